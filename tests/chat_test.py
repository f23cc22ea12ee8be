"""rdna chat, and rdna run --chat: messages through a model's chat template. The model is the demo model with a template
put into its file; what it answers must be what it writes after the text that the template makes."""
import json
import pathlib
import tempfile
import unittest

import rdna_program
from rdna_program import DEMO_MODEL, output, run

import gguf_file as gf

TEMPLATE = """{{ bos_token }}{% for m in messages %}
{%- if m.role == 'system' and not loop.first %}{{ raise_exception('system messages come first') }}{% endif %}
{{- m.role | capitalize + ': ' + m.content | trim + '\\n' }}{% endfor %}{% if add_generation_prompt %}And he said,{% endif %}"""
GREEDY = ("--greedy", "--ignore-end", "--max-tokens", 6, "--kv", "f32", "--device", rdna_program.DEVICE)


class Chat(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.model = pathlib.Path(folder.name) / "chat.gguf"
        file = gf.Reader(DEMO_MODEL)
        keys = [(key, *gf.typed(value)) for key, value in file.keys.items() if key != "general.file_type"]
        gf.write(cls.model, keys + [("tokenizer.chat_template", gf.TEXT, TEMPLATE)],
                 [(name, gf.TENSOR_F32, array) for name, array in file.tensors.items()])

    def rendered(self, *messages):
        """What the template makes of (role, content) pairs, without the token for the beginning."""
        variables = {"messages": [{"role": role, "content": content} for role, content in messages], "add_generation_prompt": True,
                     "bos_token": ""}
        return output("template", self.model, stdin=json.dumps(variables).encode()).decode()

    def continued(self, *messages):
        """What the model writes then, as a text that it is given as it stands."""
        return json.loads(output("run", self.model, self.rendered(*messages), "--json", *GREEDY))

    def chat(self, lines, *options):
        return run("chat", self.model, *GREEDY, *options, stdin="\n".join(lines).encode())

    def test_template_of_a_model(self):
        self.assertEqual(self.rendered(("user", " Who is he? "), ("assistant", "I")), "User: Who is he?\nAssistant: I\nAnd he said,")

    def test_run(self):
        for system in ((), ("--system", "Be brief.")):
            report = json.loads(output("run", self.model, "Who is he?", "--chat", *system, "--json", *GREEDY))
            want = self.continued(*((("system", system[1]),) if system else ()), ("user", "Who is he?"))
            self.assertEqual((report["tokens"], report["prompt_tokens"]), (want["tokens"], want["prompt_tokens"]))
            self.assertEqual(output("run", self.model, "Who is he?", "--chat", *system, *GREEDY).decode(), want["text"] + "\n")

    def test_turns(self):
        first = self.continued(("user", "Who is he?"))["text"]
        second = self.continued(("user", "Who is he?"), ("assistant", first), ("user", "And then?"))["text"]
        result = self.chat(["Who is he?", "", "And then?", "/clear", "Who is he?", "/exit", "Unread"])
        self.assertEqual(result.stdout.decode(), f"{first}\n{second}\n{first}\n", result.stderr.decode())
        plan, *rest = result.stderr.decode().splitlines()
        self.assertEqual((result.returncode, rest), (0, ["(stopped: length)"] * 3))
        self.assertRegex(plan, r": weights [\d.]+ MiB, caches [\d.]+ MiB \(512 tokens\), activations .*; free ")

    def test_system(self):
        plain = self.continued(("user", "Who?"))["text"]
        stern = self.continued(("system", "Thou shalt be brief and say nothing."), ("user", "Who?"))["text"]
        self.assertNotEqual(plain, stern)
        self.assertEqual(self.chat(["Who?", "/system", "Who?"], "--system", "Thou shalt be brief and say nothing.").stdout.decode(),
                         f"{stern}\n{plain}\n")
        self.assertEqual(self.chat(["Who?", "/system Thou shalt be brief and say nothing.", "Who?", "/quit"]).stdout.decode(),
                         f"{plain}\n{stern}\n")

    def test_what_is_refused_is_forgotten(self):
        first = self.continued(("user", "Who?"))["text"]
        result = self.chat(["word " * 600, "Who?"])
        self.assertEqual((result.returncode, result.stdout.decode()), (0, first + "\n"))
        self.assertIn("context", result.stderr.decode())

    def test_commands(self):
        result = self.chat(["/frobnicate", "/help"])
        self.assertEqual((result.returncode, result.stdout), (0, b""))
        self.assertIn("there is no command /frobnicate", result.stderr.decode())
        self.assertEqual(result.stderr.decode().count("/system TEXT"), 2)

    def test_a_model_gives_its_special_tokens_to_its_template(self):
        text = output("template", self.model, stdin=b'{"messages": []}').decode()
        self.assertTrue(text.startswith("<|endoftext|>"), text)

    def test_refusals(self):
        for arguments in (("chat", DEMO_MODEL), ("run", DEMO_MODEL, "x", "--chat"), ("template", DEMO_MODEL)):
            result = run(*arguments, stdin=b"{}")
            self.assertEqual((result.returncode, result.stdout), (1, b""))
            self.assertIn(b"has no chat template", result.stderr)
        for arguments, status, mentions in ((("run", self.model, "x", "--system", "y"), 2, b"--chat"), (("template", "/nowhere.jinja"), 1, b"/nowhere.jinja"),
                                            (("template", self.model, "--json", "/nowhere.json"), 1, b"/nowhere.json"), (("template",), 2, b"FILE.jinja")):
            result = run(*arguments)
            self.assertEqual((result.returncode, result.stdout), (status, b""), arguments)
            self.assertIn(mentions, result.stderr)


if __name__ == "__main__":
    unittest.main()

"""rdna serve as Anthropic's and Ollama's clients see it, what it tells of tokens, and that it serves an emulated card."""
import clients_python  # goes on in another interpreter where the clients are not here
import json
import unittest

import anthropic
import ollama

import serving
from rdna_program import DEMO_MODEL, output


class Interfaces(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = serving.folder_for(cls)
        cls.model = serving.write_model(folder)
        cls.server = serving.serve_for(cls, cls.model, "--slots", 4, "--kv", "f32")
        cls.anthropic = anthropic.Anthropic(base_url=cls.server.url, api_key="none", max_retries=0)
        cls.addClassCleanup(cls.anthropic.close)
        cls.ollama = ollama.Client(cls.server.url)

    def want(self, prompt, count, *options):
        return serving.greedy(self.model, prompt, count, "--kv", "f32", *options)

    # ---- Anthropic ----

    def message(self, content, count, **options):  # temperature is no longer an argument of this client
        options["extra_body"] = {"temperature": 0}
        return self.anthropic.messages.create(model="chat", max_tokens=count, messages=[{"role": "user", "content": content}], **options)

    def test_message(self):
        want = self.want("Who is he?", 9, "--chat", "--system", "Be brief.")
        for system in ("Be brief.", [{"type": "text", "text": "Be "}, {"type": "text", "text": "brief.", "cache_control": {"type": "ephemeral"}}],
                       [{"type": "text", "text": "x-anthropic-billing-header: cc_version=2; cch=1a2b3;"}, {"type": "text", "text": "Be brief."}],
                       "x-anthropic-billing-header: cch=fffff;\nBe brief."):
            got = self.message([{"type": "text", "text": "Who is he?"}], 9, system=system)
            self.assertEqual((got.content[0].text, got.stop_reason, got.stop_sequence), (want["text"], "max_tokens", None))
            self.assertEqual(got.usage.input_tokens + got.usage.cache_read_input_tokens, want["prompt_tokens"])
            self.assertEqual(got.usage.output_tokens, 9)
        self.assertEqual(got.usage.input_tokens, 1)  # whatever the hash, the prompt begins as those before it
        line = "x-anthropic-billing-header: cch=fffff;\n"  # what a user says is read as it is
        long, short = (self.anthropic.messages.count_tokens(model="chat", messages=[{"role": "user", "content": text}])
                       for text in ([{"type": "text", "text": line + "Who?"}], "Who?"))
        self.assertGreater(long.input_tokens, short.input_tokens + 5)

    def test_message_stream(self):
        want = self.want("And then?", 20, "--chat")["text"]
        with self.anthropic.messages.stream(model="chat", max_tokens=20, extra_body={"temperature": 0}, messages=[{"role": "user", "content": "And then?"}]) as stream:
            kinds = [event.type for event in stream]
            final = stream.get_final_message()
        self.assertEqual((final.content[0].text, final.stop_reason, final.usage.output_tokens), (want, "max_tokens", 20))
        self.assertEqual([kinds[0], kinds[1], *kinds[-3:]], ["message_start", "content_block_start", "content_block_stop", "message_delta", "message_stop"])
        stop = want.split(" ")[4]
        got = self.message("And then?", 20, stop_sequences=[stop])
        self.assertEqual((got.content[0].text, got.stop_reason, got.stop_sequence), (want[:want.index(stop)], "stop_sequence", stop))

    def test_turns_and_what_tools_answered(self):
        turns = [{"role": "user", "content": "Who?"}, {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": ""}, {"type": "text", "text": "He."}]},
                 {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "a tool's"}, {"type": "text", "text": "And?"}]}]
        count = self.anthropic.messages.count_tokens(model="chat", messages=turns).input_tokens
        plain = [{"role": "user", "content": "Who?"}, {"role": "assistant", "content": "He."}, {"role": "tool", "content": "a tool's"}, {"role": "user", "content": "And?"}]
        prompt = self.server.post("/apply-template", messages=plain)["prompt"]
        self.assertIn("Assistant: He.\nTool: a tool's\nUser: And?\n", prompt)
        self.assertEqual(count, self.server.post("/tokenize", content=prompt, parse_special=True)["count"])

    def test_anthropic_errors(self):
        message = [{"role": "user", "content": "x"}]
        for body, status, kind, mentions in (
                (b"{", 400, "invalid_request_error", "no JSON"), ({"messages": message}, 400, "invalid_request_error", "max_tokens"),
                ({"messages": message, "max_tokens": 1, "model": "other"}, 404, "not_found_error", "other"), ({"messages": [], "max_tokens": 1}, 400, "invalid_request_error", "at least one"),
                ({"messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}], "max_tokens": 1}, 400, "invalid_request_error", "image"),
                ({"messages": [{"role": "tool", "content": "x"}], "max_tokens": 1}, 400, "invalid_request_error", "user or assistant"), ({"messages": message, "max_tokens": 1, "system": 5}, 400, "invalid_request_error", "system"),
                ({"messages": message, "max_tokens": 1, "tools": [{"name": "x"}]}, 400, "invalid_request_error", "tool 0"),
                ({"messages": message, "max_tokens": 1, "tools": [{"name": "x", "input_schema": {}}]}, 400, "invalid_request_error", "no form for calls"), ({"messages": message, "max_tokens": 1, "zzz": 1}, 400, "invalid_request_error", "zzz"),
                ({"messages": [{"role": "user", "content": "word " * 600}], "max_tokens": 1}, 400, "invalid_request_error", "prompt is too long: 6")):
            got, _, text = self.server.ask("POST", "/v1/messages", body)
            error = json.loads(text)
            self.assertEqual((got, error["type"], error["error"]["type"]), (status, "error", kind), text)
            self.assertIn(mentions, error["error"]["message"])
        with self.assertRaises(anthropic.BadRequestError):
            self.message("x", 1, stop_sequences=[""])

    # ---- Ollama ----

    def test_ollama_chat(self):
        want = self.want("Who is he?", 9, "--chat")
        options = {"temperature": 0, "num_predict": 9}
        got = self.ollama.chat("chat", [{"role": "user", "content": "Who is he?"}], options=options)
        self.assertEqual((got.message.content, got.done, got.done_reason, got.eval_count, got.prompt_eval_count), (want["text"], True, "length", 9, want["prompt_tokens"]))
        self.assertGreater(got.total_duration, got.eval_duration)
        parts = list(self.ollama.chat("chat:latest", [{"role": "user", "content": "Who is he?"}], options=options, stream=True))
        self.assertEqual("".join(part.message.content for part in parts), want["text"])
        self.assertEqual([part.done for part in parts], [False] * (len(parts) - 1) + [True])

    def test_ollama_generate(self):
        options = {"temperature": 0, "num_predict": 7}
        self.assertEqual(self.ollama.generate("chat", "Who?", options=options).response, self.want("Who?", 7, "--chat")["text"])
        self.assertEqual(self.ollama.generate("chat", "Who?", system="Be brief.", options=options).response, self.want("Who?", 7, "--chat", "--system", "Be brief.")["text"])
        self.assertEqual(self.ollama.generate("chat", "And God said", raw=True, options=options).response, self.want("And God said", 7)["text"])
        usual = {"typical_p": 1.0, "tfs_z": 1, "mirostat": 0, "f16_kv": True, "logits_all": False, "num_ctx": 2048}  # what older clients send beside
        self.assertEqual(self.ollama.generate("chat", "And God said", raw=True, options={**options, **usual}).response, self.want("And God said", 7)["text"])
        seeded = {"num_predict": 12, "seed": 5, "stop": ["zzz"]}
        self.assertEqual(self.ollama.generate("chat", "Who?", options=seeded).response, self.ollama.generate("chat", "Who?", options=seeded).response)

    def test_ollama_models(self):
        self.assertEqual([model.model for model in self.ollama.list().models], ["chat:latest"])
        self.assertEqual([model.model for model in self.ollama.ps().models], ["chat:latest"])
        shown = self.ollama.show("chat")
        self.assertEqual((shown.modelinfo["general.architecture"], shown.template), ("llama", serving.TEMPLATE))
        self.assertIn("version", json.loads(self.server.ask("GET", "/api/version")[2]))
        for call, status, mentions in ((lambda: self.ollama.chat("other", []), 404, "other"), (lambda: self.ollama.generate("chat", "x", format={"type": "fish"}), 400, "type is to be"),
                                       (lambda: self.ollama.chat("chat", [{"role": "user", "content": "x"}], options={"mirostat": 2}), 400, "mirostat"),
                                       (lambda: self.ollama.generate("chat", "x", options={"typical_p": 0.9}), 400, "typical_p"), (lambda: self.ollama.show("other"), 404, "other")):
            with self.assertRaises(ollama.ResponseError) as caught:
                call()
            self.assertEqual(caught.exception.status_code, status)
            self.assertIn(mentions, caught.exception.error)

    # ---- tokens ----

    def test_tokens(self):
        text = "And God said, Lo\xe9 \u6c49"
        ids = [int(word) for word in output("tokenize", self.model, stdin=text.encode()).split()]
        got = self.server.post("/tokenize", content=text)
        self.assertEqual((got["tokens"], got["count"]), (ids, len(ids)))
        self.assertEqual(self.server.post("/detokenize", tokens=ids)["content"], text)
        self.assertEqual([piece["id"] for piece in self.server.post("/tokenize", content=text, with_pieces=True)["tokens"]], ids)
        for path, body in (("/tokenize", {}), ("/tokenize", {"content": 5}), ("/detokenize", {}), ("/detokenize", {"tokens": ["x"]}), ("/detokenize", {"tokens": [1 << 40]}),
                           ("/detokenize", {"tokens": [99999]}), ("/apply-template", {}), ("/apply-template", {"messages": [1]})):
            status, _, answer = self.server.ask("POST", path, body)
            self.assertEqual((status, "message" in json.loads(answer)["error"]), (400, True), (path, body))


class Emulated(unittest.TestCase):
    @unittest.skipUnless(serving.EMULATOR.exists(), "the emulator is not built")
    def test_an_emulated_card(self):
        wants = [serving.greedy(DEMO_MODEL, prompt, 4)["text"] for prompt in ("And God said", "The king")]
        server = serving.Server(DEMO_MODEL, "--slots", 2, "--context", 64, device="hip",
                                environment={"RDNA_EMULATE": "gfx1100", "RDNA_EMULATE_CHECK": "1"})
        self.addCleanup(server.stop)
        body = {"prompt": ["And God said", "The king"], "max_tokens": 4, "temperature": 0}
        got = json.loads(server.ask("POST", "/v1/completions", body, timeout=300)[2])
        self.assertEqual([choice["text"] for choice in got["choices"]], wants)


if __name__ == "__main__":
    unittest.main()

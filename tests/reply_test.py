"""What a model wrote, taken apart into reasoning, content and calls: messages are rendered as each family of templates
writes them, and read back, cut at every byte. Then the grammars of tools: what is written under them is a valid call."""
import json
import os
import random
import subprocess
import unittest

import jinja2

import grammar_test
import rdna_program
import template_families

CUTS = os.environ.get("RDNA_REPLY_CUTS", str(rdna_program.ROOT / "build/release/bin/reply_cuts"))
THINK = "{% if m.thinking %}<think>\n{{ m.thinking }}\n</think>\n\n{% endif %}"
SAID = "{{ m.content }}{% if m.content and m.calls %}\n{% endif %}"
CALLS = "{% for c in m.calls %}"
BEGIN, SEP, END = "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>"
LIST, LIST_END = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"

# One assistant message, as the templates that makers publish write it.
FORMS = {
    "hermes": THINK + SAID + CALLS + '{{ "" if loop.first else "\n" }}<tool_call>\n{"name": "{{ c.name }}", "arguments": {{ c.arguments | tojson }}}\n</tool_call>{% endfor %}',
    "xml": THINK + SAID + CALLS + "{{ '' if loop.first else '\n' }}<tool_call>\n<function={{ c.name }}>\n{% for k, v in c.arguments.items() %}<parameter={{ k }}>\n"
           "{{ v if v is string else v | tojson }}\n</parameter>\n{% endfor %}</function>\n</tool_call>{% endfor %}",
    "llama": "{% if m.calls %}" + CALLS + '{{ "" if loop.first else "; " }}{"name": "{{ c.name }}", "parameters": {{ c.arguments | tojson }}}{% endfor %}{% else %}{{ m.content }}{% endif %}'
             "{# <|python_tag|> #}",
    "mistral": "{{ m.content }}{% if m.calls %}[TOOL_CALLS][" + CALLS + '{{ "" if loop.first else ", " }}{"name": "{{ c.name }}", "arguments": {{ c.arguments | tojson }}, "id": "abcdefghi"}{% endfor %}]{% endif %}',
    "mistral ": "{{ m.content }}" + CALLS + "[TOOL_CALLS]{{ c.name }}[ARGS]{{ c.arguments | tojson }}{% endfor %}",
    "harmony": "{% if m.thinking %}<|channel|>analysis<|message|>{{ m.thinking }}<|end|><|start|>assistant{% endif %}"
               "{% if m.content %}<|channel|>{{ 'commentary' if m.calls else 'final' }}<|message|>{{ m.content }}{% if m.calls %}<|end|><|start|>assistant{% endif %}{% endif %}"
               + CALLS + "{{ '' if loop.first else '<|call|><|start|>assistant' }}<|channel|>commentary to=functions.{{ c.name }} <|constrain|>json<|message|>{{ c.arguments | tojson }}{% endfor %}",
    "harmony ": "{% if m.content %}<|channel|>final<|message|>{{ m.content }}{% endif %}" + CALLS + "<|start|>assistant to=functions.{{ c.name }}<|channel|>commentary json<|message|>{{ c.arguments | tojson }}<|call|>{% endfor %}",
    "deepseek": THINK + "{{ m.content }}{% if m.calls %}" + LIST + CALLS + BEGIN + "function" + SEP + "{{ c.name }}\n```json\n{{ c.arguments | tojson }}\n```" + END + "{{ '' if loop.last else '\n' }}{% endfor %}" + LIST_END + "{% endif %}",
    "deepseek ": THINK + "{{ m.content }}{% if m.calls %}" + LIST + CALLS + BEGIN + "{{ c.name }}" + SEP + "{{ c.arguments | tojson }}" + END + "{% endfor %}" + LIST_END + "{% endif %}",
    "glm": THINK + SAID + CALLS + "{{ '' if loop.first else '\n' }}<tool_call>{{ c.name }}\n{% for k, v in c.arguments.items() %}<arg_key>{{ k }}</arg_key>\n<arg_value>{{ v if v is string else v | tojson }}</arg_value>\n{% endfor %}</tool_call>{% endfor %}",
    "granite": "{{ m.content }}{% if m.calls %}<|tool_call|>[" + CALLS + '{{ "" if loop.first else ", " }}{"name": "{{ c.name }}", "arguments": {{ c.arguments | tojson }}}{% endfor %}]{% endif %}',
    "granite ": "{{ m.content }}{% if m.calls %}<|tool_call|>[" + CALLS + '{{ "" if loop.first else ", " }}{"name": "{{ c.name }}", "arguments": {{ c.arguments | tojson }}}{% endfor %}]<|/tool_call|>{% endif %}',
}
TOOLS = [{"type": "function", "function": {"name": "weather", "description": "the weather", "parameters": {"type": "object", "properties": {
            "city": {"type": "string", "description": "which"}, "days": {"type": "integer", "minimum": 1, "maximum": 14}, "grid": {"type": "array", "items": {"type": "number"}},
            "where": {"type": "null"}, "ok": {"type": "boolean"}}, "required": ["city", "days"]}}},
         {"type": "function", "function": {"name": "stop.now-2", "parameters": {"type": "object", "properties": {}}}}]
CONTENTS = ["", "Let me look.", "a < b, <tool or </think\n\nand {\"x\": 1} [TOOL <|x|> \u00e9\U0001f642", "1. one\n2. two"]
ARGUMENTS = [{"city": "Z\u00fcrich", "days": 2, "grid": [1.5, 2], "where": None, "ok": True}, {"city": "5", "days": 7},
             {"city": "say \"}\\\" </tool_call> \n </parameter> ] ; ```\n{", "days": 1}, {"city": "", "days": 3}]


def render(form, message):
    environment = jinja2.Environment(keep_trailing_newline=True)
    environment.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
    return environment.from_string(FORMS[form]).render(m=message)


def ask(questions):
    result = subprocess.run([CUTS], input="".join(json.dumps(q) + "\n" for q in questions).encode(), capture_output=True, timeout=600)
    assert result.returncode == 0, result.stderr.decode()
    return [json.loads(line) for line in result.stdout.decode().split("\n")[:-1]]


def joined(parts):
    """A message of parts."""
    text = lambda kind: "".join(part["text"] for part in parts if part["kind"] == kind)
    calls = [{"name": part["name"], "arguments": json.loads(part["text"])} for part in parts if part["kind"] == "call"]
    return {"thinking": text("reasoning"), "content": text("content"), "calls": calls}


class Replies(unittest.TestCase):
    def test_forms_of_templates(self):
        found = {name: answer["form"] for name, answer in zip(template_families.TEMPLATES, ask([{"template": text, "text": ""} for text in template_families.TEMPLATES.values()]))}
        self.assertEqual({name: found[name] for name in ("ChatML", "Llama 3", "Qwen 3")}, {"ChatML": "plain", "Llama 3": "llama", "Qwen 3": "hermes"})
        self.assertIn("harmony", found.values())

    def test_messages(self):
        """Rendered, then read back, cut at every byte."""
        questions, messages = [], []
        for form in FORMS:
            for content in CONTENTS:
                for calls in [[], [("weather", ARGUMENTS[0])], [("weather", ARGUMENTS[1]), ("stop.now-2", {})], [("weather", ARGUMENTS[2])], [("weather", ARGUMENTS[3])]]:
                    for thinking in ("", "hm < hm\n\nso"):
                        message = {"content": content, "thinking": thinking, "calls": [{"name": n, "arguments": a} for n, a in calls]}
                        if thinking and "m.thinking" not in FORMS[form]:
                            continue
                        if form.startswith("llama") and calls:
                            message["content"] = ""
                        if form.strip() in ("xml", "glm") and calls and "</parameter>" in calls[0][1].get("city", ""):
                            message["calls"][0]["arguments"] = {"city": "say \"}\\\" < </param \n ] ; ```\n{", "days": 1}
                        if form == "harmony" and not content and not calls:
                            continue
                        if form == "harmony " and content and calls:
                            continue
                        questions.append({"template": FORMS[form], "tools": TOOLS, "text": render(form, message)})
                        messages.append((form, message))
        for (form, message), question, answer in zip(messages, questions, ask(questions)):
            self.assertEqual(answer["form"], form.strip())
            self.assertEqual(joined(answer["parts"]), message, f"{form}: {question['text']!r}")
            self.assertIsNone(answer["differs"], f"{form}: {question['text']!r}\n{answer['parts']}")

    def test_a_thought_that_the_prompt_opened(self):
        answer = ask([{"template": FORMS["hermes"], "thinks_first": True, "text": "\nhm\n</think>\n\nyes"}])[0]
        self.assertEqual(joined(answer["parts"]), {"thinking": "hm", "content": "yes", "calls": []})
        self.assertIsNone(answer["differs"])

    def test_what_is_no_call_is_content(self):
        rows = [("hermes", t) for t in ('a <tool_call>\n{"name": 5}\n</tool_call> b', "<tool_call>\n{not json}\n</tool_call>", '<tool_call>{"name": "f", "arguments": {}} and so on', "<tool_call>", "x <tool_call>{",
                                        '<tool_call>{"name": "f", "arguments": "none"}</tool_call>', " <tool_ca", "a </think> b", "trailing space \n")]
        rows += [("xml", "<tool_call>\n<function=f>\n<parameter=a>\n1"), ("xml", "<tool_call>\n<function=f>\nhm</function></tool_call>"), ("xml", "<function="), ("glm", "<tool_call>f\n<arg_key>a</arg_key></tool_call>"),
                 ("llama", '{"a": 1}'), ("llama", '{"name": "f"'), ("llama", "{ x"), ("llama", "well {\"name\": \"f\", \"parameters\": {}}"), ("llama", "<|python_tag|>print(1)"),
                 ("mistral", "[TOOL_CALLS][1]"), ("mistral", "[TOOL_CALLS]"), ("mistral ", "[TOOL_CALLS]f[ARGS]{"), ("mistral", "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {}}, 1]"),
                 ("deepseek", LIST + BEGIN + "function" + SEP + "f\n```json\n{"), ("deepseek ", LIST + "x"), ("granite", "<|tool_call|>[]"),
                 ("harmony", "plain words"), ("harmony", "<|channel|>final"), ("harmony", "<|channel|>commentary to=functions.f <|message|>no json")]
        for (form, text), answer in zip(rows, ask([{"template": FORMS[form], "text": text} for form, text in rows])):
            self.assertEqual(joined(answer["parts"]), {"thinking": "", "content": text, "calls": []}, form)
            self.assertIsNone(answer["differs"], text)

    def test_noise(self):
        """Pieces of tags in any order: nothing but white space and tags is lost, and cutting changes nothing."""
        r = random.Random(1)
        pieces = ["<tool_call>", "</tool_call>", "{", "}", '"name"', ":", '"f"', ",", '"arguments"', "{}", "<think>", "</think>", "\n", " ", "<", "<function=f>", "</function>", "<parameter=a>", "</parameter>", "[TOOL_CALLS]",
                  "[ARGS]", "[", "]", "<|channel|>", "<|message|>", "<|call|>", "<|start|>", "final", "to=functions.f", LIST, BEGIN, SEP, END, LIST_END, "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", "f", "\u00e9", "<|tool_call|>"]
        questions = [{"template": FORMS[form], "text": "".join(r.choice(pieces) for _ in range(r.randint(1, 14)))} for form in FORMS for _ in range(60)]
        for question, answer in zip(questions, ask(questions)):
            self.assertIsNone(answer["differs"], f"{question['text']!r}: {answer['parts']}")

    def test_calls_under_a_grammar(self):
        """Random walks along the masks of the tools' grammar are calls that the schemas allow."""
        for parallel in (False, True):
            grammars = ask([{"template": FORMS[form], "tools": TOOLS, "text": "", "parallel": parallel} for form in FORMS])
            for answer in grammars:
                self.assertNotIn("error", answer)
            walks = grammar_test.ask(rdna_program.DEMO_MODEL, [{"grammar": answer["grammar"], "walks": 4, "seed": 2} for answer in grammars])
            questions = []
            for form, walk in zip(FORMS, walks):
                self.assertNotIn("error", walk, f"{form}: {walk.get('error')}")
                questions += [{"template": FORMS[form], "tools": TOOLS, "text": text} for text in walk["walks"] if text is not None]
            self.assertGreater(len(questions), 2 * len(FORMS))
            schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in TOOLS}
            for question, answer in zip(questions, ask(questions)):
                said = joined(answer["parts"])
                self.assertEqual((said["content"], said["thinking"]), ("", ""), question["text"])
                self.assertGreater(len(said["calls"]), 0)
                for call in said["calls"]:
                    self.assertTrue(grammar_test.valid(call["arguments"], schemas[call["name"]], {}), question["text"])

    def test_grammars_that_are_refused(self):
        rows = [("hermes", [], "no JSON array"), ("hermes", [{"name": "a b"}], "has no name"), ("hermes", [{"name": "f", "parameters": {"not": {}}}], "the tool f: the schema at #: the keyword not"),
                ("xml", [{"name": "f", "parameters": {"properties": {"x": {"type": "string", "maxLength": 3}}}}], "the argument x")]
        for (form, tools, sentence), answer in zip(rows, ask([{"template": FORMS[form], "tools": tools, "text": ""} for form, tools, _ in rows])):
            self.assertIn(sentence, answer["error"])
        self.assertIn("no form for calls", ask([{"template": "", "tools": TOOLS, "text": ""}])[0]["error"])


if __name__ == "__main__":
    unittest.main()

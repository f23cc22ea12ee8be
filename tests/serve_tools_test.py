"""Tools, schemas and reasoning over HTTP, through the official clients. A grammar dictates what the model writes where a
test must know it; elsewhere the model writes what comes, and it must be a valid call or a value of the schema."""
import clients_python  # goes on in another interpreter where the clients are not here
import concurrent.futures
import json
import typing
import unittest

import anthropic
import ollama
import openai
import pydantic

import grammar_test
import serving

# In the manner of Qwen 3; with |thinks| it opens the reasoning itself.
TEMPLATE = """{{ bos_token }}{% if tools %}Tools:{% for t in tools %} {{ t | tojson }}{% endfor %}
{% endif %}{% for m in messages %}{{ m.role }}: {{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>
{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}
</tool_call>{% endfor %}
{% endfor %}{% if add_generation_prompt %}assistant: {% if thinks %}<think>
{% endif %}{% endif %}{# <think> </think> #}"""

WEATHER = {"name": "weather", "description": "the weather", "parameters": {
    "type": "object", "properties": {"city": {"type": "string", "maxLength": 8}, "days": {"type": "integer", "minimum": 1, "maximum": 14}},
    "required": ["city", "days"], "additionalProperties": False}}
STOP = {"name": "stop", "parameters": {"type": "object", "properties": {}, "additionalProperties": False}}
TOOLS = [{"type": "function", "function": WEATHER}, {"type": "function", "function": STOP}]
ANTHROPIC_TOOLS = [{"name": tool["name"], "description": "d", "input_schema": tool["parameters"]} for tool in (WEATHER, STOP)]
ASK = [{"role": "user", "content": "What is the weather?"}]

CALLS = [("weather", {"city": "Bern", "days": 2}), ("stop", {})]
DICTATED = ("<think>Two cities.</think>Let me look." + "\n".join(
    '<tool_call>\n{"name": "%s", "arguments": %s}\n</tool_call>' % (name, json.dumps(arguments)) for name, arguments in CALLS))


def dictate(text):
    return "root ::= " + json.dumps(text)


class Tools(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = serving.folder_for(cls)
        cls.model = serving.write_model(folder, TEMPLATE)
        cls.server = serving.serve_for(cls, cls.model, "--slots", 4, "--context", 1024)
        cls.openai = openai.OpenAI(base_url=cls.server.url + "/v1", api_key="none", max_retries=0)
        cls.addClassCleanup(cls.openai.close)
        cls.anthropic = anthropic.Anthropic(base_url=cls.server.url, api_key="none", max_retries=0)
        cls.addClassCleanup(cls.anthropic.close)
        cls.ollama = ollama.Client(cls.server.url)

    def chat(self, count=300, **options):
        return self.openai.chat.completions.create(model="chat", messages=options.pop("messages", ASK), max_tokens=count, **options)

    def check_call(self, name, arguments):
        schema = {tool["name"]: tool["parameters"] for tool in (WEATHER, STOP)}[name]
        self.assertTrue(grammar_test.valid(arguments, schema, schema), (name, arguments))

    # ---- what is written is taken apart ----

    def test_parts(self):
        message = self.chat(tools=TOOLS, extra_body={"grammar": dictate(DICTATED)}).choices[0]
        self.assertEqual((message.message.content, message.message.reasoning_content, message.finish_reason), ("Let me look.", "Two cities.", "tool_calls"))
        self.assertEqual([(call.function.name, json.loads(call.function.arguments)) for call in message.message.tool_calls], CALLS)
        self.assertEqual(len({call.id for call in message.message.tool_calls}), 2)

    def test_parts_of_a_stream(self):
        words, thoughts, calls, reasons = "", "", {}, []
        for chunk in self.chat(tools=TOOLS, stream=True, extra_body={"grammar": dictate(DICTATED)}):
            delta = chunk.choices[0].delta
            words += delta.content or ""
            thoughts += getattr(delta, "reasoning_content", None) or ""
            for call in delta.tool_calls or []:
                name, arguments = calls.get(call.index, ("", ""))
                calls[call.index] = (name + (call.function.name or ""), arguments + (call.function.arguments or ""))
            reasons.append(chunk.choices[0].finish_reason)
        self.assertEqual((words, thoughts), ("Let me look.", "Two cities."))
        self.assertEqual([(calls[i][0], json.loads(calls[i][1])) for i in range(2)], CALLS)
        self.assertEqual(reasons, [None] * (len(reasons) - 1) + ["tool_calls"])

    def test_without_tools_calls_are_text(self):
        for options in ({}, {"tools": TOOLS, "tool_choice": "none"}):
            choice = self.chat(extra_body={"grammar": dictate(DICTATED)}, **options).choices[0]
            self.assertEqual((choice.message.content, choice.message.reasoning_content), (DICTATED.split("</think>")[1], "Two cities."))
            self.assertEqual((choice.message.tool_calls, choice.finish_reason), (None, "stop"))

    def test_one_call(self):
        calls = self.chat(tools=TOOLS, parallel_tool_calls=False, extra_body={"grammar": dictate(DICTATED)}).choices[0].message.tool_calls
        self.assertEqual([call.function.name for call in calls], ["weather"])

    def test_thinking_opened_by_the_prompt(self):
        extra = {"chat_template_kwargs": {"thinks": True}}
        message = self.chat(12, temperature=0, extra_body=extra).choices[0].message
        self.assertEqual(message.content, "")
        self.assertGreater(len(message.reasoning_content), 10)
        # what must come behind the thinking has no token to begin with in this vocabulary
        with self.assertRaisesRegex(openai.BadRequestError, "thinks first"):
            self.chat(tools=TOOLS, tool_choice="required", extra_body=extra)

    def test_logprobs_of_all_tokens(self):
        options = {"tools": TOOLS, "logprobs": True, "top_logprobs": 1, "extra_body": {"grammar": dictate(DICTATED)}}
        whole = self.chat(**options)
        self.assertEqual("".join(token.token for token in whole.choices[0].logprobs.content), DICTATED)
        parts = [token.token for chunk in self.chat(stream=True, **options) if chunk.choices[0].logprobs for token in chunk.choices[0].logprobs.content]
        self.assertEqual("".join(parts), DICTATED)

    # ---- calls that must be made ----

    def test_required_calls(self):
        for seed in range(6):
            choice = self.chat(tools=TOOLS, tool_choice="required", seed=seed, temperature=1.5, parallel_tool_calls=seed > 3).choices[0]
            for call in choice.message.tool_calls:
                self.check_call(call.function.name, json.loads(call.function.arguments))
            if seed <= 3:  # a model that is free to go on calling may do so until its tokens end
                self.assertEqual((len(choice.message.tool_calls), choice.finish_reason), (1, "tool_calls"))
        named = {"type": "function", "function": {"name": "stop"}}
        choice = self.chat(tools=TOOLS, tool_choice=named, parallel_tool_calls=False).choices[0]
        self.assertEqual([(call.function.name, json.loads(call.function.arguments)) for call in choice.message.tool_calls], [("stop", {})])

    def test_anthropic_calls(self):
        ask = {"model": "chat", "max_tokens": 300, "messages": ASK, "tools": ANTHROPIC_TOOLS}
        for _ in range(3):
            got = self.anthropic.messages.create(tool_choice={"type": "any", "disable_parallel_tool_use": True}, **ask)
            for block in got.content:
                self.assertEqual(block.type, "tool_use")
                self.check_call(block.name, block.input)
            self.assertEqual(got.stop_reason, "tool_use")
        one = {"type": "tool", "name": "weather", "disable_parallel_tool_use": True}
        with self.anthropic.messages.stream(tool_choice=one, **ask) as stream:
            kinds = [event.type for event in stream]
            final = stream.get_final_message()
        self.assertEqual(([block.name for block in final.content], final.stop_reason), (["weather"], "tool_use"))
        self.check_call("weather", final.content[0].input)
        self.assertEqual([kinds.count("content_block_start"), kinds.count("content_block_stop")], [1, 1])
        answered = ASK + [{"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "stop", "input": {}}]},
                          {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "done"}]}]
        self.assertEqual(self.anthropic.messages.create(**{**ask, "messages": answered, "max_tokens": 2}).usage.output_tokens, 2)

    def test_anthropic_thinking(self):
        folder = serving.folder_for(self)
        server = serving.Server(serving.write_model(folder, TEMPLATE.replace("if thinks", "if enable_thinking")))
        self.addCleanup(server.stop)
        ask = {"model": "chat", "max_tokens": 12, "messages": ASK, "extra_body": {"temperature": 0}, "thinking": {"type": "enabled", "budget_tokens": 1024}}
        with anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0) as client:
            got = client.messages.create(**ask)
            self.assertEqual([block.type for block in got.content], ["thinking"])
            with client.messages.stream(**ask) as stream:
                self.assertEqual([block.thinking for block in stream.get_final_message().content], [got.content[0].thinking])
            plain = client.messages.create(**{**ask, "thinking": {"type": "disabled"}})
            self.assertEqual([block.type for block in plain.content], ["text"])
        chat = ollama.Client(server.url).chat("chat", ASK, think=True, options={"temperature": 0, "num_predict": 12, "repeat_penalty": 1})
        self.assertEqual((chat.message.thinking, chat.message.content), (got.content[0].thinking, ""))

    def test_ollama(self):
        shown = self.ollama.show("chat")
        self.assertEqual(shown.capabilities, ["completion", "tools", "thinking"])
        schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"], "additionalProperties": False}
        for stream in (False, True):
            parts = self.ollama.chat("chat", ASK, tools=TOOLS, format=schema, stream=stream, options={"num_predict": 300, "seed": 3})
            parts = list(parts) if stream else [parts]
            calls = [call for part in parts for call in part.message.tool_calls or []]
            words = "".join(part.message.content or "" for part in parts)
            for call in calls:
                self.check_call(call.function.name, dict(call.function.arguments))
            if not calls:
                self.assertIn(type(json.loads(words)["ok"]), (bool,))
        self.assertIsInstance(json.loads(self.ollama.generate("chat", "Who?", format=schema).response)["ok"], bool)
        self.assertIsInstance(json.loads(self.ollama.generate("chat", "Who?", raw=True, format=schema).response)["ok"], bool)

    # ---- a vocabulary with tokens for the tags ----

    def test_forms_that_begin_with_a_token(self):
        folder = serving.folder_for(self)
        tags = ["<think>", "</think>", "<tool_call>"]
        server = serving.Server(serving.write_model(folder, TEMPLATE, tags), "--context", 1024)
        self.addCleanup(server.stop)
        think, think_end, call = (server.post("/tokenize", content=tag, parse_special=True)["tokens"] for tag in tags)
        self.assertEqual([len(think), len(think_end), len(call)], [1, 1, 1])
        form = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"enum": ["yes", "no"]}}}
        with openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0) as client:
            def chat(**options):
                return client.chat.completions.create(model="chat", messages=ASK, max_tokens=300, **options).choices[0]

            # the model is free to call, and a call that it begins is one of the tools'
            for seed in range(4):
                choice = chat(tools=TOOLS, seed=seed, temperature=1.5, parallel_tool_calls=False, logit_bias={call[0]: 100})
                self.assertEqual((len(choice.message.tool_calls), choice.finish_reason), (1, "tool_calls"))
                self.check_call(choice.message.tool_calls[0].function.name, json.loads(choice.message.tool_calls[0].function.arguments))
            # what it only thinks is free
            choice = chat(tools=TOOLS, logit_bias={think[0]: 50}, extra_body={"grammar": 'root ::= "<think><tool_call>x</think>y"'})
            self.assertEqual((choice.message.reasoning_content, choice.message.content), ("<tool_call>x", "y"))
            choice = chat(tools=TOOLS, logit_bias={call[0]: 100}, extra_body={"chat_template_kwargs": {"thinks": True}})
            self.assertEqual((choice.finish_reason, choice.message.tool_calls), ("length", None))
            self.assertIn("<tool_call><tool_call>", choice.message.reasoning_content)
            # a schema begins behind the thinking
            choice = chat(response_format=form, logit_bias={think_end[0]: 100}, extra_body={"chat_template_kwargs": {"thinks": True}})
            self.assertIn(choice.message.content, ('"yes"', '"no"'))
            # with tools besides, a call or the schema
            for seed in range(4):
                choice = chat(tools=TOOLS, response_format=form, seed=seed, temperature=1.5, parallel_tool_calls=False)
                for made in choice.message.tool_calls or []:
                    self.check_call(made.function.name, json.loads(made.function.arguments))
                self.assertTrue(choice.message.tool_calls or choice.message.content in ('"yes"', '"no"'), choice)

    # ---- schemas ----

    def test_schemas(self):
        """Replies under random schemas parse and are allowed by them, several at once; one that had no room ends as that."""
        def ask(seed):
            schema = grammar_test.Maker(seed).schema()
            form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
            choice = self.chat(400, response_format=form, seed=seed, temperature=1).choices[0]
            return schema, choice.message.content, choice.finish_reason

        whole = 0
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for schema, text, reason in pool.map(ask, range(24)):
                if reason == "stop":
                    whole += 1
                    self.assertTrue(grammar_test.valid(json.loads(text), schema, schema), (schema, text))
        self.assertGreater(whole, 6)

    def test_forms_of_a_schema(self):
        class Answer(pydantic.BaseModel):
            name: typing.Literal["a", "b"]
            right: bool

        parsed = self.openai.chat.completions.parse(model="chat", messages=ASK, response_format=Answer, max_tokens=400, seed=1)
        self.assertIsInstance(parsed.choices[0].message.parsed, Answer)
        form = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"enum": ["yes", "no"]}}}
        self.assertIn(self.chat(response_format=form).choices[0].message.content, ('"yes"', '"no"'))
        self.assertIn(self.openai.completions.create(model="chat", prompt="x", max_tokens=20, extra_body={"response_format": form}).choices[0].text, ('"yes"', '"no"'))
        self.assertEqual(self.openai.completions.create(model="chat", prompt="x", max_tokens=20, extra_body={"grammar": 'root ::= "a" "b"{3}'}).choices[0].text, "abbb")
        got = self.anthropic.messages.create(model="chat", max_tokens=20, messages=ASK, extra_body={"output_config": {"format": {"type": "json_schema", "schema": {"const": 5}}}})
        self.assertEqual((got.content[0].text, got.stop_reason), ("5", "end_turn"))

    def test_same_grammar_at_once(self):
        """Grammars are shared by those who ask for the same, and dropped when many others came."""
        texts = [f"number {n}" for n in range(40)]
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            ask = lambda text: self.chat(extra_body={"grammar": dictate(text)}).choices[0].message.content
            self.assertEqual(list(pool.map(ask, texts * 3)), texts * 3)

    # ---- what is refused ----

    def test_bad_requests(self):
        function = lambda **function: [{"type": "function", "function": function}]
        schema = lambda schema: {"response_format": {"type": "json_schema", "json_schema": {"schema": schema}}}
        for path, body, mentions in (
                ("/v1/chat/completions", {"tools": 5}, "'tools' must be a list"), ("/v1/chat/completions", {"tools": [{"type": "web_search"}]}, "web_search"),
                ("/v1/chat/completions", {"tools": [{"type": "function"}]}, "tool 0"), ("/v1/chat/completions", {"tools": TOOLS, "tool_choice": "never"}, "tool_choice"),
                ("/v1/chat/completions", {"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "fly"}}}, "'fly'"),
                ("/v1/chat/completions", {"tools": function(name="a b"), "tool_choice": "required"}, "no name of letters"),
                ("/v1/chat/completions", {"tools": function(name="f", parameters={"type": "object", "properties": {"a": {"not": {}}}}), "tool_choice": "required"}, "not"),
                ("/v1/chat/completions", {"tool_choice": "required"}, "no tools"), ("/v1/chat/completions", {"response_format": {"type": "xml"}}, "xml"),
                ("/v1/chat/completions", {"response_format": {"type": "json_schema"}}, "schema"), ("/v1/chat/completions", schema({"type": "fish"}), "type is to be"),
                ("/v1/chat/completions", schema({"not": {}}), "not"), ("/v1/chat/completions", {"grammar": "root ::= ("}, "line"), ("/v1/chat/completions", {"grammar": 5}, "text"),
                ("/v1/chat/completions", {"grammar": 'root ::= "a"', "response_format": {"type": "json_object"}}, "excludes"),
                ("/v1/messages", {"max_tokens": 1, "tools": [{"name": "x"}]}, "input_schema"), ("/v1/messages", {"max_tokens": 1, "tools": [{"type": "web_search_20250305", "name": "x"}]}, "web_search"),
                ("/v1/messages", {"max_tokens": 1, "tools": ANTHROPIC_TOOLS, "tool_choice": {"type": "tool"}}, "tool_choice"), ("/v1/messages", {"max_tokens": 1, "tool_choice": {"type": "any"}}, "no tools"),
                ("/v1/messages", {"max_tokens": 1, "output_config": {"format": {"type": "xml"}}}, "json_schema"),
                ("/api/chat", {"format": "xml"}, "schema"), ("/api/chat", {"tools": "x"}, "list"), ("/api/chat", {"format": {"not": {}}}, "not")):
            with self.subTest(path=path, body=str(body)[:90]):
                status, _, text = self.server.ask("POST", path, {"messages": ASK, **body})
                self.assertEqual(status, 400, text)
                self.assertIn(mentions, text)
        self.assertEqual(self.chat(3).usage.completion_tokens, 3)  # it stands


if __name__ == "__main__":
    unittest.main(verbosity=2)

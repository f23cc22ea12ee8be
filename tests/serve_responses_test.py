"""/v1/responses through OpenAI's client, and a conversation in the shape that Codex sends. A grammar dictates what is
written where a test must know it."""
import clients_python  # goes on in another interpreter where the clients are not here
import json
import unittest

import openai

import grammar_test
import serving
from serve_tools_test import CALLS, DICTATED, STOP, TEMPLATE, WEATHER, dictate

TOOLS = [{"type": "function", "strict": False, **WEATHER}, {"type": "function", **STOP}]


class Responses(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = serving.folder_for(cls)
        cls.model = serving.write_model(folder, TEMPLATE, ["<think>", "</think>"])
        cls.server = serving.serve_for(cls, cls.model, "--slots", 2, "--context", 1024, "--kv", "f32")
        cls.client = openai.OpenAI(base_url=cls.server.url + "/v1", api_key="none", max_retries=0)
        cls.addClassCleanup(cls.client.close)

    def create(self, **options):
        return self.client.responses.create(**{"model": "chat", "input": "Who?", "max_output_tokens": 300, **options})

    def same_as_chat(self, messages, **options):
        got = self.create(temperature=0, max_output_tokens=9, **options)
        chat = self.client.chat.completions.create(model="chat", messages=messages, max_tokens=9, temperature=0)
        self.assertEqual((got.output_text, got.usage.input_tokens), (chat.choices[0].message.content, chat.usage.prompt_tokens))
        return got

    def test_text(self):
        got = self.same_as_chat([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Who?"}], instructions="Be brief.")
        self.assertEqual((got.status, got.incomplete_details.reason, got.instructions), ("incomplete", "max_output_tokens", "Be brief."))
        self.assertEqual((got.output[0].status, got.usage.output_tokens, got.usage.total_tokens), ("incomplete", 9, got.usage.input_tokens + 9))
        got = self.create(extra_body={"grammar": 'root ::= "He."'})
        self.assertEqual((got.output_text, got.status, got.incomplete_details, got.output[0].status), ("He.", "completed", None, "completed"))

    def test_items(self):
        items = [{"role": "user", "content": [{"type": "input_text", "text": "Wh"}, {"type": "input_text", "text": "o?"}]},
                 {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]},
                 {"type": "message", "role": "assistant", "id": "msg_1", "status": "completed", "content": [{"type": "output_text", "text": "He.", "annotations": []}]},
                 {"type": "function_call", "call_id": "c1", "name": "stop", "arguments": "{}"}, {"type": "function_call", "call_id": "c2", "name": "stop", "arguments": "{}"},
                 {"type": "function_call_output", "call_id": "c1", "output": "done"}, {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "too"}]}]
        call = lambda name: {"id": name, "type": "function", "function": {"name": "stop", "arguments": "{}"}}
        self.same_as_chat([{"role": "user", "content": "Who?"}, {"role": "assistant", "content": "He.", "tool_calls": [call("c1"), call("c2")]},
                           {"role": "tool", "tool_call_id": "c1", "content": "done"}, {"role": "tool", "tool_call_id": "c2", "content": "too"}], input=items)

    def check_output(self, response):
        kinds = [item.type for item in response.output]
        self.assertEqual(kinds, ["reasoning", "message", "function_call", "function_call"])
        self.assertEqual((response.output[0].content[0].text, response.output_text), ("Two cities.", "Let me look."))
        self.assertEqual([(call.name, json.loads(call.arguments), call.status) for call in response.output[2:]], [(*call, "completed") for call in CALLS])
        self.assertEqual(len({item.id for item in response.output} | {call.call_id for call in response.output[2:]}), 6)
        self.assertEqual(response.status, "completed")

    def test_parts(self):
        self.check_output(self.create(tools=TOOLS, extra_body={"grammar": dictate(DICTATED)}))

    def test_stream(self):
        with self.client.responses.stream(model="chat", input="Who?", max_output_tokens=300, tools=TOOLS, extra_body={"grammar": dictate(DICTATED)}) as stream:
            events = list(stream)
            self.check_output(stream.get_final_response())
        self.assertEqual([event.sequence_number for event in events if hasattr(event, "sequence_number")], list(range(len(events))))
        kinds = [event.type for event in events]
        self.assertEqual((kinds[0], kinds[1], kinds[-1]), ("response.created", "response.in_progress", "response.completed"))
        for kind in ("output_item.added", "output_item.done"):
            self.assertEqual([event.output_index for event in events if event.type == "response." + kind], [0, 1, 2, 3])
        self.assertEqual("".join(event.delta for event in events if event.type == "response.output_text.delta"), "Let me look.")
        self.assertEqual("".join(event.delta for event in events if event.type == "response.reasoning_text.delta"), "Two cities.")
        self.assertEqual("".join(event.delta for event in events if event.type == "response.function_call_arguments.delta"), "".join(json.dumps(arguments) for _, arguments in CALLS))

    def test_what_ends_early(self):
        events = list(self.create(stream=True, max_output_tokens=5, temperature=0))
        self.assertEqual((events[-1].type, events[-1].response.output[0].status), ("response.incomplete", "incomplete"))

    def test_codex(self):
        """A turn that calls a tool, and the one that brings the tool's answer, with all the fields of its requests."""
        ask = {"model": "chat", "instructions": "You are a coding agent.", "stream": True, "store": False, "include": ["reasoning.encrypted_content"],
               "tool_choice": "required", "parallel_tool_calls": False, "reasoning": {"effort": "medium", "summary": "auto"}, "prompt_cache_key": "0192",
               "text": {"verbosity": "low"}, "client_metadata": {"x": "y"}, "tools": [*TOOLS, {"type": "web_search", "external_web_access": False}],
               "input": [{"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "<permissions>"}]},
                         {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Weather?"}]}]}
        for _ in range(3):
            status, headers, text = self.server.ask("POST", "/v1/responses", ask)
            self.assertEqual((status, headers["Content-Type"]), (200, "text/event-stream"), text)
            events = [json.loads(block.split("\ndata: ")[1]) for block in text.strip().split("\n\n")]
            self.assertEqual([block.split("\n")[0] for block in text.strip().split("\n\n")], ["event: " + event["type"] for event in events])
            self.assertEqual(events[-1]["type"], "response.completed")
            call = events[-1]["response"]["output"][-1]
            schema = {tool["name"]: tool["parameters"] for tool in (WEATHER, STOP)}[call["name"]]
            self.assertTrue(grammar_test.valid(json.loads(call["arguments"]), schema, schema), call)
            ask["input"] += [call, {"type": "function_call_output", "call_id": call["call_id"], "output": "fine"}]
        self.assertGreater(events[-1]["response"]["usage"]["input_tokens_details"]["cached_tokens"], 0)

    def test_schema(self):
        form = lambda schema: {"format": {"type": "json_schema", "name": "x", "schema": schema}}
        self.assertIn(self.create(text=form({"enum": ["yes", "no"]})).output_text, ('"yes"', '"no"'))
        self.assertIsInstance(json.loads(self.create(text=form({"type": "boolean"})).output_text), bool)

    def test_bad_requests(self):
        for body, status, mentions in (
                ({}, 400, "'input'"), ({"input": 5}, 400, "'input'"), ({"input": []}, 400, "at least one"), ({"input": [5]}, 400, "item 0"),
                ({"input": [{"type": "item_reference", "id": "x"}]}, 400, "item_reference"), ({"input": [{"type": "function_call"}]}, 400, "'name'"),
                ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]}, 400, "sees none"),
                ({"input": "x", "previous_response_id": "resp_1"}, 400, "keeps no responses"), ({"input": "x", "background": True}, 400, "background"),
                ({"input": "x", "tools": [{"type": "code_interpreter"}]}, 400, "code_interpreter"), ({"input": "x", "tools": 5}, 400, "list"),
                ({"input": "x", "tools": TOOLS, "tool_choice": {"type": "function", "name": "fly"}}, 400, "fly"), ({"input": "x", "tool_choice": "maybe"}, 400, "tool_choice"),
                ({"input": "x", "text": {"format": {"type": "xml"}}}, 400, "xml"), ({"input": "x", "max_output_tokens": 0}, 400, "max_output_tokens"),
                ({"input": "x", "zzz": 1}, 400, "zzz"), ({"input": "word " * 3000}, 400, "context"), ({"input": "x", "model": "other"}, 404, "other")):
            with self.subTest(str(body)[:80]):
                got, _, text = self.server.ask("POST", "/v1/responses", body)
                error = json.loads(text)["error"]
                self.assertEqual((got, set(error)), (status, {"message", "type", "param", "code"}), text)
                self.assertIn(mentions, error["message"])


if __name__ == "__main__":
    unittest.main(verbosity=2)

"""Conversations of coding agents to their ends, request by request as the agents send them: Claude Code over /v1/messages
and Codex over /v1/responses. The model's answers go back as the agents send them back; the requests are written after
the interfaces' documents. The model here knows nothing of tools, so a turn that is to call one says so in tool_choice."""
import json
import random
import unittest

import grammar_test
import serving
from serve_tools_test import TEMPLATE

CONTEXT, THINKS = 4096, TEMPLATE.replace("if thinks", "if enable_thinking")
WORDS = "and the king of Israel said unto them behold I will go up in those days".split()


def function(properties, required):
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "properties": properties, "required": required,
            "additionalProperties": False}


TEXT, COUNT = {"type": "string", "maxLength": 6, "description": "d"}, {"type": "integer", "minimum": 1, "maximum": 60}
SCHEMAS = {
    "Bash": function({"command": TEXT, "timeout": COUNT, "run_in_background": {"type": "boolean"}}, ["command"]),
    "Read": function({"file_path": TEXT, "offset": COUNT, "limit": COUNT}, ["file_path"]),
    "Edit": function({"file_path": TEXT, "old_string": TEXT, "new_string": TEXT, "replace_all": {"type": "boolean", "default": False}},
                     ["file_path", "old_string", "new_string"]),
    "TodoWrite": function({"todos": {"type": "array", "maxItems": 2, "items": function(
        {"content": TEXT, "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]}}, ["content", "status"])}}, ["todos"])}
SHELL = {"type": "object", "properties": {"cmd": TEXT, "workdir": TEXT, "yield_time_ms": COUNT, "login": {"type": "boolean"}}, "required": ["cmd"],
         "additionalProperties": False}
PLAN = {"type": "object", "properties": {"plan": {"type": "array", "maxItems": 2, "items": {
    "type": "object", "properties": {"step": TEXT, "status": TEXT}, "required": ["step", "status"], "additionalProperties": False}}},
    "required": ["plan"], "additionalProperties": False}


def read_events(text):
    """[(name, data)] of a stream of events; pings and comments apart."""
    blocks = [dict(line.split(": ", 1) for line in block.split("\n")) for block in text.strip().split("\n\n") if block[0] != ":"]
    return [(block["event"], json.loads(block["data"])) for block in blocks if block["event"] != "ping"]


class Agents(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = serving.folder_for(cls)
        cls.model = serving.write_model(folder, THINKS, ["<think>", "</think>", "<tool_call>"])
        # the small models that agents use for titles have other names
        cls.server = serving.serve_for(cls, cls.model, "--context", CONTEXT, "--slots", 2, "--keep", 4, "--any-model", "--kv", "f32")

    def setUp(self):
        self.rng = random.Random(11)

    def words(self, count):
        return " ".join(self.rng.choice(WORDS) for _ in range(count))

    def ask(self, path, body, headers):
        status, found, text = self.server.ask("POST", path, body, headers)
        self.assertEqual(status, 200, text)
        return found, text

    # ---- Claude Code ----

    HEADERS = {"anthropic-version": "2023-06-01", "x-api-key": "none", "x-app": "cli", "User-Agent": "claude-cli/2.1.30 (external, cli)",
               "anthropic-beta": "claude-code-20250219,interleaved-thinking-2025-05-14,context-management-2025-06-27,prompt-caching-scope-2026-01-05",
               "anthropic-dangerous-direct-browser-access": "true", "X-Stainless-Lang": "js", "X-Stainless-Retry-Count": "0"}

    def claude_request(self, messages, **options):
        system = [f"x-anthropic-billing-header: cc_version=2.1.30.{self.rng.randrange(999)}; cc_entrypoint=cli; cch={self.rng.randrange(16**5):05x};",
                  "You are Claude Code, Anthropic's official CLI for Claude.", "You help with software. " + "Use the tools. " * 20]
        blocks = [{"type": "text", "text": text, **({"cache_control": {"type": "ephemeral"}} if i else {})} for i, text in enumerate(system)]
        marked = json.loads(json.dumps(messages))
        if isinstance(marked[-1]["content"], list):
            marked[-1]["content"][-1]["cache_control"] = {"type": "ephemeral"}
        tools = [{"name": name, "description": "A tool: " + name, "input_schema": schema} for name, schema in SCHEMAS.items()]
        return {"model": "claude-opus-4-6", "max_tokens": 300, "stream": True, "system": blocks, "messages": marked, "tools": tools,
                "metadata": {"user_id": "user_0_account__session_0"}, "thinking": {"type": "disabled"}, "temperature": 1,
                "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}, "output_config": {"effort": "medium"}, **options}

    def claude_reply(self, request):
        """The content of the message that its stream makes, why it stopped, and what it used."""
        counted = {key: request[key] for key in ("model", "system", "messages", "tools", "thinking")}
        count = json.loads(self.ask("/v1/messages/count_tokens?beta=true", counted, self.HEADERS)[1])["input_tokens"]
        found, text = self.ask("/v1/messages?beta=true", request, self.HEADERS)
        self.assertEqual(found["Content-Type"], "text/event-stream")
        events, content, inputs = read_events(text), [], {}
        kinds = [name for name, _ in events]
        self.assertEqual(kinds, [data["type"] for _, data in events])
        self.assertRegex(" ".join(kinds), r"^message_start( content_block_start( content_block_delta)* content_block_stop)+ message_delta message_stop$")
        for name, data in events:
            if name == "content_block_start":
                self.assertEqual(data["index"], len(content))
                content.append(data["content_block"])
            elif name == "content_block_delta":
                self.assertEqual(data["index"], len(content) - 1)
                kind, value = [item for item in data["delta"].items() if item[0] != "type"][0]
                if kind == "partial_json":
                    inputs[data["index"]] = inputs.get(data["index"], "") + value
                else:
                    content[-1][kind] += value
        for index, arguments in inputs.items():
            content[index]["input"] = json.loads(arguments)
        usage, last = events[-2][1]["usage"], events[-2][1]
        self.assertEqual(usage["input_tokens"] + usage["cache_read_input_tokens"], count)
        return content, last["delta"]["stop_reason"], usage, count

    def test_claude_code(self):
        # what it asks for besides: whether it may, and a title
        probe = {"model": "claude-haiku-4-5", "max_tokens": 1, "messages": [{"role": "user", "content": "quota"}], "metadata": {"user_id": "u"}}
        self.assertEqual(json.loads(self.ask("/v1/messages?beta=true", probe, self.HEADERS)[1])["usage"]["output_tokens"], 1)
        form = {"type": "object", "properties": {"isNewTopic": {"type": "boolean"}, "title": {"anyOf": [TEXT, {"type": "null"}]}},
                "required": ["isNewTopic", "title"], "additionalProperties": False}
        title = self.claude_request([{"role": "user", "content": "Who is he?"}], model="claude-haiku-4-5", tools=[], output_config={"format": {"type": "json_schema", "schema": form}})
        self.assertTrue(grammar_test.valid(json.loads(self.claude_reply(title)[0][0]["text"]), form, form))

        messages, before, kinds = [], 0, []
        for turn in range(11):
            wanted = "end" if turn % 5 == 4 else "think" if turn % 5 == 0 else "tool"
            if not messages or messages[-1]["role"] == "assistant" and messages[-1]["content"][-1]["type"] != "tool_use":
                texts = ["<system-reminder>\n" + self.words(9) + "\n</system-reminder>", self.words(6)]
                messages.append({"role": "user", "content": [{"type": "text", "text": text} for text in texts]})
            elif messages[-1]["role"] == "assistant":
                results = [{"type": "tool_result", "tool_use_id": block["id"], "content": self.words(self.rng.randint(1, 40)) if turn % 2 else [{"type": "text", "text": self.words(5)}],
                            **({"is_error": True} if turn % 7 == 3 else {})} for block in messages[-1]["content"] if block["type"] == "tool_use"]
                messages.append({"role": "user", "content": [*results, *([{"type": "text", "text": "<system-reminder>todo</system-reminder>"}] if turn % 3 == 0 else [])]})
            options = {"tool": {"tool_choice": {"type": "any", "disable_parallel_tool_use": turn % 4 != 1}}, "end": {"max_tokens": 20},
                       "think": {"max_tokens": 20, "thinking": {"type": "enabled", "budget_tokens": 1024}}}[wanted]
            content, reason, usage, count = self.claude_reply(self.claude_request(messages, **options))
            with self.subTest(turn=turn):
                # whatever the hash: all of the last prompt but for its end, which asks for an answer, was known
                self.assertGreaterEqual(usage["cache_read_input_tokens"], before - 20)
                for block in content:
                    if block["type"] == "tool_use":
                        schema = SCHEMAS[block["name"]]
                        self.assertTrue(grammar_test.valid(block["input"], schema, schema), block)
                kinds += [block["type"] for block in content]
                if wanted == "tool" and reason == "tool_use":
                    self.assertEqual([block["type"] for block in content], ["tool_use"] * len(content))
                elif wanted == "think":
                    self.assertEqual(([block["type"] for block in content], reason), (["thinking"], "max_tokens"))
                    content.append({"type": "text", "text": self.words(3)})  # as if it had gone on
            before = count
            messages.append({"role": "assistant", "content": content})
        self.assertEqual(set(kinds), {"thinking", "tool_use", "text"})
        self.assertGreater(kinds.count("tool_use"), 3)

    # ---- Codex ----

    def codex_request(self, items, **options):
        group = {"type": "namespace", "name": "mcp__docs__", "description": "d", "tools": [{"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}}]}
        tools = [{"type": "function", "name": "exec_command", "description": "Runs a command.", "strict": False, "parameters": SHELL},
                 {"type": "function", "name": "update_plan", "description": "Updates the plan.", "strict": False, "parameters": PLAN},
                 {"type": "web_search", "external_web_access": False}, {"type": "image_generation", "output_format": "png"}, group]
        return {"model": "gpt-oss", "instructions": "You are Codex, a coding agent. " + "Work until it is done. " * 15, "input": items, "tools": tools,
                "tool_choice": "auto", "parallel_tool_calls": True, "reasoning": {"effort": "medium", "summary": "auto"}, "store": False, "stream": True,
                "include": ["reasoning.encrypted_content"], "prompt_cache_key": "0199-7a", "text": {"verbosity": "low"}, "client_metadata": {"x-codex-installation-id": "0"},
                "service_tier": "priority", "max_output_tokens": 300, **options}

    def codex_reply(self, request):
        headers = {"originator": "codex_cli_rs", "User-Agent": "codex_cli_rs/0.90.0", "session_id": "0199-7a", "conversation_id": "0199-7a", "version": "0.90.0",
                   "Accept": "text/event-stream", "Authorization": "Bearer none"}
        found, text = self.ask("/v1/responses", request, headers)
        self.assertEqual(found["Content-Type"], "text/event-stream")
        events = read_events(text)
        self.assertEqual([name for name, _ in events], [data["type"] for _, data in events])
        self.assertEqual([data["sequence_number"] for _, data in events], list(range(len(events))))
        kinds = [name.removeprefix("response.") for name, _ in events]
        self.assertEqual(kinds[:2], ["created", "in_progress"])
        self.assertIn(kinds[-1], ("completed", "incomplete"))
        items = [data["item"] for name, data in events if name == "response.output_item.done"]  # all that Codex keeps
        self.assertEqual(items, events[-1][1]["response"]["output"])
        written = "".join(data["delta"] for name, data in events if name == "response.output_text.delta")
        said = "".join(part["text"] for item in items if item["type"] == "message" for part in item["content"])
        self.assertEqual(written, said)
        return items, events[-1][1]["response"]["usage"]

    def test_codex(self):
        models = json.loads(self.server.ask("GET", "/v1/models?client_version=0.90.0")[2])
        self.assertEqual((models["models"], [model["id"] for model in models["data"]]), ([], ["chat"]))
        message = lambda role, text: {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}
        items = [message("developer", "<permissions instructions>" + self.words(20)), message("user", "<environment_context>\n  <cwd>/w</cwd>\n</environment_context>"),
                 message("user", "Mend it.")]
        before, calls = 0, 0
        for turn in range(8):
            free = turn % 6 == 5
            got, usage = self.codex_reply(self.codex_request(items, **({"max_output_tokens": 20} if free else {"tool_choice": "required", "parallel_tool_calls": turn % 3 == 0})))
            with self.subTest(turn=turn):
                self.assertGreaterEqual(usage["input_tokens_details"]["cached_tokens"], before - 20)
                self.assertEqual(usage["total_tokens"], usage["input_tokens"] + usage["output_tokens"])
            before = usage["input_tokens"]
            items += [{"type": "reasoning", "id": f"rs_{turn}", "summary": [{"type": "summary_text", "text": "hm"}], "content": None, "encrypted_content": None}] if turn % 4 == 2 else []
            items += [{key: value for key, value in item.items() if key != "status"} for item in got]
            for call in (item for item in got if item["type"] == "function_call"):
                schema = {"exec_command": SHELL, "update_plan": PLAN}[call["name"]]
                self.assertTrue(grammar_test.valid(json.loads(call["arguments"]), schema, schema), call)
                calls += 1
                output = f"Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code {turn % 2}\nOutput:\n" + self.words(self.rng.randint(1, 40))
                items.append({"type": "function_call_output", "call_id": call["call_id"], "output": output if turn % 3 else [{"type": "input_text", "text": output}]})
            if not any(item["type"] == "function_call" for item in got):
                items.append(message("user", self.words(6)))
        self.assertGreater(calls, 4)


if __name__ == "__main__":
    unittest.main()

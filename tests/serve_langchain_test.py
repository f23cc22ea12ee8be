"""LangChain's chat models of OpenAI, Anthropic and Ollama over rdna serve as they are: texts, streams, tools, what tools
answered, and values of a schema."""
import clients_python  # goes on in another interpreter where the clients are not here
import os
import typing
import unittest

os.environ["LANGSMITH_TRACING"] = "false"  # nothing is to be sent elsewhere
import pydantic
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langchain_ollama import ChatOllama
from langchain_openai import ChatOpenAI

import serving
from serve_tools_test import CALLS, DICTATED, TEMPLATE, dictate


@tool
def weather(city: str, days: int) -> str:
    """The weather of a city."""
    return f"{days} days of rain in {city}"


@tool
def stop() -> str:
    """Ends it."""
    return "ended"


TOOLS = {"weather": weather, "stop": stop}
ASK = [SystemMessage("Be brief."), HumanMessage("What is the weather?")]


class Answer(pydantic.BaseModel):
    """Whether it rains."""
    rains: bool
    where: typing.Literal["Bern", "here"]


class LangChain(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = serving.folder_for(cls)
        # with tokens for the tags, calls that the model makes of itself keep to the tools as well
        cls.model = serving.write_model(folder, TEMPLATE, ["<think>", "</think>", "<tool_call>"])
        cls.server = serving.serve_for(cls, cls.model, "--slots", 4, "--context", 1024, "--kv", "f32")
        cls.call = cls.server.post("/tokenize", content="<tool_call>", parse_special=True)["tokens"][0]

    def openai(self, count=300, **options):
        return ChatOpenAI(base_url=self.server.url + "/v1", api_key="none", model="chat", max_tokens=count, max_retries=0, stream_usage=True, **options)

    def anthropic(self, count=300, **options):
        return ChatAnthropic(base_url=self.server.url, api_key="none", model="chat", max_tokens=count, max_retries=0,
                             model_kwargs={"extra_body": {"temperature": options.pop("temperature", 1)}}, **options)

    def ollama(self, count=300, **options):
        return ChatOllama(base_url=self.server.url, model="chat", num_predict=count, repeat_penalty=1, **options)

    def all_models(self, count=300, **options):
        return {"openai": self.openai(count, **options), "responses": self.openai(count, use_responses_api=True, **options),
                "anthropic": self.anthropic(count, **options), "ollama": self.ollama(count, **options)}

    @staticmethod
    def gather(chunks):
        whole = None
        for chunk in chunks:
            assert isinstance(chunk, AIMessageChunk)
            whole = chunk if whole is None else whole + chunk
        return whole

    def test_texts_and_streams(self):
        want = serving.greedy(self.model, "What is the weather?", 12, "--kv", "f32", "--chat", "--system", "Be brief.")
        for name, model in self.all_models(12, temperature=0).items():
            with self.subTest(name):
                got = model.invoke(ASK)
                self.assertEqual(got.text, want["text"])
                self.assertEqual((got.usage_metadata["input_tokens"], got.usage_metadata["output_tokens"]), (want["prompt_tokens"], 12))
                chunks = list(model.stream(ASK))
                self.assertGreater(len(chunks), 3)
                whole = self.gather(chunks)
                self.assertEqual((whole.text, whole.usage_metadata["output_tokens"]), (want["text"], 12))

    def check_calls(self, message):
        """At least one call of the tools, whose arguments they take."""
        self.assertFalse(message.invalid_tool_calls)
        self.assertGreater(len(message.tool_calls), 0, message)
        answers = [TOOLS[call["name"]].invoke(call) for call in message.tool_calls]
        self.assertTrue(all(isinstance(answer, ToolMessage) for answer in answers))
        return answers

    def test_calls_and_what_tools_answer(self):
        for name, model in self.all_models().items():
            options = {"openai": {"tool_choice": "required", "parallel_tool_calls": False}, "responses": {"tool_choice": "required", "parallel_tool_calls": False},
                       "anthropic": {"tool_choice": "any", "parallel_tool_calls": False}, "ollama": {}}[name]
            if name == "ollama":  # it has no way to require a call
                continue
            bound, messages = model.bind_tools(list(TOOLS.values()), **options), list(ASK)
            with self.subTest(name):
                for turn in range(2):
                    message = bound.invoke(messages) if turn == 0 else self.gather(bound.stream(messages))
                    messages += [message, *self.check_calls(message)]
                self.assertEqual(len({call["id"] for message in messages if isinstance(message, AIMessage) for call in message.tool_calls}), 2)
                self.assertIsInstance(model.invoke([*messages, HumanMessage("And now?")]), AIMessage)

    def test_parallel_calls_of_a_stream(self):
        bound = self.openai(extra_body={"grammar": dictate(DICTATED)}).bind_tools(list(TOOLS.values()))
        for message in (bound.invoke(ASK), self.gather(bound.stream(ASK))):
            self.assertEqual([(call["name"], call["args"]) for call in message.tool_calls], CALLS)
            self.assertEqual(message.text, "Let me look.")
            self.assertEqual([answer.content for answer in self.check_calls(message)], ["2 days of rain in Bern", "ended"])

    def test_calls_that_the_model_makes_of_itself(self):
        for seed in range(3):
            bound = self.openai(temperature=1.5, seed=seed, logit_bias={str(self.call): 100}).bind_tools(list(TOOLS.values()), parallel_tool_calls=False)
            self.check_calls(self.gather(bound.stream(ASK)))

    def test_ollama_reads_calls(self):
        call = {"name": "weather", "args": {"city": "Bern", "days": 2}, "id": "c1"}
        messages = [*ASK, AIMessage("", tool_calls=[call]), weather.invoke({**call, "type": "tool_call"})]
        bound = self.ollama(8, temperature=0).bind_tools(list(TOOLS.values()))
        whole = bound.invoke(messages)
        self.assertEqual(self.gather(bound.stream(messages)).text, whole.text)
        turns = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What is the weather?"},
                 {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": {"name": "weather", "arguments": call["args"]}}]},
                 {"role": "tool", "content": "2 days of rain in Bern"}]
        template = self.server.post("/apply-template", messages=turns)["prompt"]
        tools = self.server.post("/tokenize", content=template, parse_special=True)["count"]
        self.assertGreater(whole.usage_metadata["input_tokens"], tools)  # the tools stand before these messages

    def test_values_of_a_schema(self):
        for name, model in self.all_models(temperature=1).items():
            with self.subTest(name):
                structured = model.with_structured_output(Answer, method="json_schema")
                self.assertIsInstance(structured.invoke(ASK), Answer)

    def test_errors_are_the_clients(self):
        import anthropic, ollama, openai
        long = [HumanMessage("word " * 3000)]
        for name, kind in (("openai", openai.BadRequestError), ("responses", openai.BadRequestError), ("anthropic", anthropic.BadRequestError),
                           ("ollama", ollama.ResponseError)):
            with self.subTest(name), self.assertRaisesRegex(kind, "context"):
                self.all_models()[name].invoke(long)


if __name__ == "__main__":
    unittest.main(warnings="ignore")  # the clients leave connections open

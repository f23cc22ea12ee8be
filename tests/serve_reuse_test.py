"""What rdna serve keeps of prompts: twenty turns of an agent's conversation, on a model with windows and on one with
recurrent layers, compute only what is new and one interval of checkpoints, and answer as a server without a past does."""
import random
import unittest

import transformers_python  # first: this goes on in a Python that has transformers

import rdna_program  # first: it makes tools/ importable
import gguf_file as gf
import serving
from architecture_delta import DELTA
from architecture_models import Model
from architecture_rows import ROWS as DENSE
from rdna_program import DEMO_MODEL

CONTEXT, CHECKPOINTS, TURNS, REPLY = 2048, 16, 20, 24
TEMPLATE = """{{ bos_token }}{% for m in messages %}<{{ m.role }}> {{ m.content }}
{% endfor %}{% if add_generation_prompt %}<assistant> {% endif %}"""
SYSTEM = "You are an agent with tools: read, write, search. " + "Answer in few words and call a tool where you do not know. " * 8
WORDS = "and the king of Israel said unto them behold I will go up in those days".split()


def write_model(path, name):
    """A small random model of the row's kind, with the demo model's vocabulary and a chat template."""
    vocabulary = {key: value for key, value in gf.Reader(DEMO_MODEL).keys.items() if key.startswith("tokenizer.")}
    row = next(row for row in DENSE + DELTA if row.name == name)
    row = type(row)(row.name, {**row.config, "vocab_size": len(vocabulary["tokenizer.ggml.tokens"]),
                               "max_position_embeddings": CONTEXT}, without=row.without)
    Model(row, seed=5).write(path)
    file = gf.Reader(path)
    entries = [(key, *gf.typed(value)) for key, value in {**file.keys, **vocabulary}.items()]
    gf.write(path, entries + [("tokenizer.chat_template", gf.TEXT, TEMPLATE)],
             [(name, gf.TENSOR_F32, array) for name, array in file.tensors.items()])


class Conversation:
    """An agent's: a tool's result or a user's words a turn. The client keeps the reasoning of its last answers until the
    user says something again, and then strips all of it."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.messages = [{"role": "system", "content": SYSTEM}]  # all agents have the same
        self.contents = {}  # of the assistant's messages without their reasoning

    def words(self, count):
        return " ".join(self.rng.choice(WORDS) for _ in range(count))

    def ask(self, turn):
        if turn % 5 == 0:
            for place, content in self.contents.items():
                self.messages[place] = {"role": "assistant", "content": content}
            self.messages.append({"role": "user", "content": self.words(9)})
        else:
            self.messages.append({"role": "tool", "content": f"result {turn}: {self.words(self.rng.randint(3, 40))}"})
        if turn == 12:  # an edited tail: what came before the last answer is another text now
            del self.messages[-3:]
            self.messages.append({"role": "user", "content": "No: " + self.words(12)})
        return list(self.messages)

    def take(self, reply):
        middle = len(reply) // 2
        self.contents[len(self.messages)] = reply[middle:]
        self.messages.append({"role": "assistant", "content": f"<think>{reply[:middle]}</think>{reply[middle:]}"})


def common(a, b):
    return next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))


class Reuse(unittest.TestCase):
    options = ("--context", CONTEXT, "--kv", "f32", "--checkpoints", CHECKPOINTS, "--lanes", 8)

    @classmethod
    def setUpClass(cls):
        cls.folder = serving.folder_for(cls)

    def model(self, name):
        path = self.folder / f"{name}.gguf"
        if not path.exists():
            write_model(path, name)
        return path

    @staticmethod
    def ask(server, messages):
        """The reply with every number that it has: log probabilities show a change of one bit."""
        got = server.post("/v1/chat/completions", messages=messages, temperature=0, max_tokens=REPLY, ignore_eos=True,
                          logprobs=True, top_logprobs=3)
        return got["choices"][0]["message"]["content"], got["choices"][0]["logprobs"]["content"], got["usage"]

    def cached(self, server, ids):
        usage = server.post("/v1/completions", prompt=ids, max_tokens=1, temperature=0)["usage"]
        self.assertEqual(usage["prompt_tokens"], len(ids))
        return usage["prompt_tokens_details"]["cached_tokens"]

    @staticmethod
    def tokens(server, messages):
        text = server.post("/apply-template", messages=messages)["prompt"]
        return server.post("/tokenize", content=text, parse_special=True)["tokens"]

    def cold(self, name, messages):
        server = serving.Server(self.model(name), *self.options, "--slots", 1)
        try:
            return self.ask(server, messages)
        finally:
            server.stop()

    def converse(self, name, interval, slots, conversations, compared=(4, 5, 10, 12, 15, 19)):
        server = serving.Server(self.model(name), *self.options, "--slots", slots, "--cache", 2 * CONTEXT)
        self.addCleanup(server.stop)
        read = []
        for turn in range(TURNS):
            for conversation in conversations:
                messages = conversation.ask(turn)
                prompt, before = self.tokens(server, messages), server.metrics()
                reply, numbers, usage = self.ask(server, messages)
                after = server.metrics()
                known = max((common(prompt, other) for other in read), default=0)
                processed = after["processed_tokens_total"] - before["processed_tokens_total"]
                cached = usage["prompt_tokens_details"]["cached_tokens"]
                with self.subTest(turn=turn):
                    self.assertEqual(usage["prompt_tokens"], len(prompt))
                    # the last token written is never read
                    self.assertEqual(processed, len(prompt) - cached + REPLY - 1)
                    self.assertEqual(after["cached_tokens_total"] - before["cached_tokens_total"], cached)
                    self.assertLessEqual(len(prompt) - cached, max(len(prompt) - known, 1) + interval)
                    if turn in compared:
                        self.assertEqual((reply, numbers), self.cold(name, messages)[:2])
                read.append(prompt)
                conversation.take(reply)

    def test_windows(self):
        self.converse("gemma3", 0, 2, [Conversation(1)])

    def test_recurrent_layers(self):
        self.converse("qwen35", 2 * CONTEXT // (CHECKPOINTS - 2) + 1, 2, [Conversation(2)])

    def test_two_conversations_in_one_slot(self):
        for name, interval in (("gemma3", 0), ("qwen35", 2 * CONTEXT // (CHECKPOINTS - 2) + 1)):
            with self.subTest(name):
                self.converse(name, interval, 1, [Conversation(3), Conversation(4)], (5, 12, 19))

    def test_a_server_that_ends_and_begins_again(self):
        """With what the first saved the second computes no more than the first would have, and says the same."""
        for name, interval in (("gemma3", 0), ("qwen35", 2 * CONTEXT // (CHECKPOINTS - 2) + 1)):
            with self.subTest(name):
                conversation, known, kept = Conversation(9), [], self.folder / f"kept-{name}"
                for turn in range(6):
                    messages = conversation.ask(turn)
                    if turn % 3 == 0:
                        server = serving.Server(self.model(name), *self.options, "--slots", 2, "--cache", 2 * CONTEXT, "--cache-dir", kept)
                        self.addCleanup(server.process.kill)
                    prompt = self.tokens(server, messages)
                    reply, numbers, usage = self.ask(server, messages)
                    cached = usage["prompt_tokens_details"]["cached_tokens"]
                    shared = max((common(prompt, other) for other in known), default=0)
                    self.assertLessEqual(len(prompt) - cached, max(len(prompt) - shared, 1) + interval)
                    if turn == 3:
                        self.assertGreater(cached, 0)
                        self.assertEqual((reply, numbers), self.cold(name, messages)[:2])
                    known.append(prompt)
                    conversation.take(reply)
                    if turn % 3 == 2:
                        self.assertEqual(server.stop(), "")

    def test_long_texts_that_part(self):
        """Of recurrent layers a text that was read at once can be gone on from in its middle, and of two texts that serves
        whose checkpoint is nearer, though the other shares more."""
        server = serving.Server(self.model("qwen35"), *self.options, "--slots", 1, "--keep", 3, "--cache", 4 * CONTEXT)
        self.addCleanup(server.stop)
        rng = random.Random(7)
        draw = lambda count: [rng.randrange(100, 400) for _ in range(count)]
        text, interval = draw(1200), 2 * CONTEXT // (CHECKPOINTS - 2) + 1
        self.assertEqual(self.cached(server, text), 0)
        shared = 3 * interval + 20
        # which ends 32 tokens behind a checkpoint
        self.assertEqual(self.cached(server, text[:shared] + draw(31)), 3 * interval)
        self.assertEqual(self.cached(server, text[:shared + 50] + draw(100)), shared - 1)

    def test_the_end_of_a_prompt_is_not_worth_another_text(self):
        server = serving.Server(self.model("gemma3"), *self.options, "--slots", 1, "--keep", 1, "--cache", 2 * CONTEXT)
        self.addCleanup(server.stop)
        rng = random.Random(8)
        waits, goes_on = ([rng.randrange(100, 400) for _ in range(200)] for _ in range(2))
        asked = (waits, goes_on, goes_on[:-5] + [9] * 30, waits)
        self.assertEqual([self.cached(server, ids) for ids in asked], [0, 0, 195, 199])

    def test_how_many_are_kept(self):
        for keep, is_kept in ((0, False), (1, True)):
            server = serving.Server(self.model("gemma3"), *self.options, "--slots", 1, "--keep", keep, "--cache", 2 * CONTEXT)
            self.addCleanup(server.stop)
            first, second = Conversation(5).ask(1), Conversation(6).ask(1)
            self.ask(server, first)
            self.ask(server, second)
            usage = self.ask(server, first)[2]
            kept = usage["prompt_tokens_details"]["cached_tokens"] == usage["prompt_tokens"] - 1
            self.assertEqual(kept, is_kept)


if __name__ == "__main__":
    unittest.main()

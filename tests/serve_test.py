"""rdna serve through the official clients and plain HTTP: what it writes is what rdna run writes, alone and among others."""
import clients_python  # goes on in another interpreter where the clients are not here
import concurrent.futures
import json
import random
import socket
import tempfile
import time
import unittest

import openai

import serving
from rdna_program import DEMO_MODEL, output

import gguf_file as gf

PROMPTS = ["And God said", "The king of Israel", "In those days", "Blessed is the man", "And it came to pass", "Thou shalt not", "Behold,",
           "The LORD is my shepherd", "For the children of", "And the angel", "Woe unto", "Then Moses", "A wise son", "Let us", "Hear, O", "Now the"]


class Serve(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = serving.folder_for(cls)
        cls.model = serving.write_model(folder)
        cls.server = serving.serve_for(cls, cls.model, "--slots", 6, "--kv", "f32")
        cls.client = openai.OpenAI(base_url=cls.server.url + "/v1", api_key="none", max_retries=0)
        cls.addClassCleanup(cls.client.close)

    def complete(self, prompt, count, **options):
        return self.client.completions.create(model="chat", prompt=prompt, max_tokens=count, temperature=0, **options)

    def want(self, prompt, count):
        return serving.greedy(self.model, prompt, count, "--kv", "f32")

    def test_completion(self):
        want = self.want(PROMPTS[0], 20)
        got = self.complete(PROMPTS[0], 20)
        self.assertEqual((got.choices[0].text, got.choices[0].finish_reason), (want["text"], "length"))
        self.assertEqual((got.usage.prompt_tokens, got.usage.completion_tokens), (want["prompt_tokens"], 20))

    def test_prompts_are_texts_or_ids(self):
        ids = [int(word) for word in output("tokenize", self.model, "--bos", stdin=PROMPTS[0].encode()).split()]
        if serving.greedy(self.model, PROMPTS[0], 1)["prompt_tokens"] == len(ids) - 1:
            ids = ids[1:]
        texts = self.complete(PROMPTS[:2], 9)
        self.assertEqual([choice.text for choice in texts.choices], [self.want(prompt, 9)["text"] for prompt in PROMPTS[:2]])
        self.assertEqual(self.complete(ids, 9).choices[0].text, texts.choices[0].text)
        self.assertEqual([choice.text for choice in self.complete([ids, ids], 9).choices], [texts.choices[0].text] * 2)

    def test_stream(self):
        want = self.want(PROMPTS[1], 24)
        chunks = list(self.complete(PROMPTS[1], 24, stream=True, stream_options={"include_usage": True}))
        self.assertEqual("".join(chunk.choices[0].text for chunk in chunks[:-1]), want["text"])
        self.assertGreater(len(chunks), 3)
        self.assertEqual(chunks[-2].choices[0].finish_reason, "length")
        self.assertEqual((chunks[-1].choices, chunks[-1].usage.completion_tokens), ([], 24))

    def test_types_of_the_cache(self):
        for kv in ("bf16", "q8_0"):
            with self.subTest(kv):
                server = serving.Server(DEMO_MODEL, "--name", "chat", "--kv", kv)
                self.addCleanup(server.stop)
                with openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0) as client:
                    got = client.completions.create(model="chat", prompt=PROMPTS[0], max_tokens=20, temperature=0)
                self.assertEqual(got.choices[0].text, serving.greedy(DEMO_MODEL, PROMPTS[0], 20, "--kv", kv)["text"])

    def test_chat(self):
        messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": [{"type": "text", "text": "Who "}, {"type": "text", "text": "is he?"}]}]
        want = serving.greedy(self.model, "Who is he?", 8, "--chat", "--system", "Be brief.", "--kv", "f32")
        got = self.client.chat.completions.create(model="chat", messages=messages, max_completion_tokens=8, temperature=0)
        self.assertEqual((got.choices[0].message.content, got.choices[0].message.role), (want["text"], "assistant"))
        self.assertEqual(got.usage.prompt_tokens, want["prompt_tokens"])
        chunks = list(self.client.chat.completions.create(model="chat", messages=messages, max_tokens=8, temperature=0, stream=True))
        self.assertEqual("".join(chunk.choices[0].delta.content or "" for chunk in chunks), want["text"])
        self.assertEqual((chunks[0].choices[0].delta.role, chunks[-1].choices[0].finish_reason), ("assistant", "length"))
        developer = [{**messages[0], "role": "developer"}, messages[1]]
        again = self.client.chat.completions.create(model="chat", messages=developer, max_tokens=8, temperature=0)
        self.assertEqual(again.choices[0].message.content, want["text"])

    def test_many_clients_at_once(self):
        wants = [self.want(prompt, 30)["text"] for prompt in PROMPTS]

        def stream(index):
            return "".join(chunk.choices[0].text for chunk in self.complete(PROMPTS[index], 30, stream=True))

        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            self.assertEqual(list(pool.map(stream, list(range(16)) * 3)), wants * 3)

    def test_stops(self):
        whole = self.want(PROMPTS[0], 30)["text"]
        words = whole.split(" ")
        for stop in (words[5], " " + words[6] + " ", words[3][-1] + " " + words[4][:1]):
            cut = whole[:whole.index(stop)]
            got = self.complete(PROMPTS[0], 30, stop=[stop, "never written"])
            self.assertEqual((got.choices[0].text, got.choices[0].finish_reason), (cut, "stop"), stop)
            chunks = list(self.complete(PROMPTS[0], 30, stop=stop, stream=True))
            self.assertEqual("".join(chunk.choices[0].text for chunk in chunks), cut)
        # what only begins like a stop is written all the same
        self.assertEqual(self.complete(PROMPTS[0], 30, stop=whole[-3:] + "never").choices[0].text, whole)

    def test_seeds_and_several_texts(self):
        ask = lambda **options: [choice.text for choice in self.client.completions.create(
            model="chat", prompt=PROMPTS[2], max_tokens=12, temperature=1, **options).choices]
        first = ask(seed=7, n=4)
        self.assertEqual(first, ask(seed=7, n=4))
        self.assertEqual(len(set(first)), 4)
        self.assertEqual(ask(seed=8), first[1:2])  # the next text has the next seed
        self.assertNotEqual(ask(), ask())
        narrow = ask(seed=7, extra_body={"top_k": 1})
        self.assertEqual(narrow, [self.want(PROMPTS[2], 12)["text"]])
        self.assertEqual(ask(seed=9, top_p=0), narrow)
        self.assertEqual(ask(seed=9, extra_body={"min_p": 1}), narrow)

    def test_logprobs(self):
        ids = json.loads(output("run", self.model, PROMPTS[0], "--json", "--greedy", "--max-tokens", 5, "--kv", "f32"))["tokens"]
        content = self.client.chat.completions.create(model="chat", messages=[{"role": "user", "content": "Who?"}], max_tokens=6, temperature=0,
                                                      logprobs=True, top_logprobs=4).choices[0].logprobs.content
        self.assertEqual(len(content), 6)
        for token in content:
            self.assertEqual((token.token, token.logprob), (token.top_logprobs[0].token, token.top_logprobs[0].logprob))
            values = [top.logprob for top in token.top_logprobs]
            self.assertEqual(values, sorted(values, reverse=True))
            self.assertEqual(bytes(token.bytes).decode(), token.token)
        whole = self.complete(PROMPTS[0], 5, logprobs=3).choices[0]
        self.assertEqual(("".join(whole.logprobs.tokens), len(ids)), (whole.text, 5))
        for offset, token in zip(whole.logprobs.text_offset, whole.logprobs.tokens):
            self.assertEqual(whole.text[offset:offset + len(token)], token)
        parts = [chunk.choices[0].logprobs for chunk in self.complete(PROMPTS[0], 5, logprobs=3, stream=True)]
        self.assertEqual(sum((part.tokens for part in parts), []), whole.logprobs.tokens)
        self.assertEqual(sum((part.text_offset for part in parts), []), whole.logprobs.text_offset)
        # the first one's value against the logits themselves
        import numpy as np
        with tempfile.NamedTemporaryFile() as file:
            prompt = [int(word) for word in output("tokenize", self.model, stdin=PROMPTS[0].encode()).split()]
            prompt = prompt if len(prompt) == self.want(PROMPTS[0], 1)["prompt_tokens"] else [0] + prompt
            output("logits", self.model, "--tokens", ",".join(map(str, prompt)), "--out", file.name, "--kv", "f32")
            row = np.fromfile(file.name, np.float32).reshape(len(prompt), -1)[-1].astype(np.float64)
        self.assertAlmostEqual(whole.logprobs.token_logprobs[0], row[ids[0]] - np.logaddexp.reduce(row), delta=1e-4)

    def test_bias_and_penalties(self):
        plain = self.want(PROMPTS[0], 12)["tokens"]
        banned = self.client.completions.create(model="chat", prompt=PROMPTS[0], max_tokens=1, temperature=0, logprobs=0, logit_bias={str(plain[0]): -100})
        self.assertNotEqual(banned.choices[0].text, self.complete(PROMPTS[0], 1).choices[0].text)
        forced = self.complete(PROMPTS[0], 4, logit_bias={str(plain[3]): 100}).choices[0].text
        self.assertEqual(forced, self.complete(PROMPTS[0], 1, logit_bias={str(plain[3]): 100}).choices[0].text * 4)
        spread = self.complete(PROMPTS[0], 40, logprobs=0, frequency_penalty=2, presence_penalty=2).choices[0].logprobs.tokens
        dull = self.complete(PROMPTS[0], 40, logprobs=0).choices[0].logprobs.tokens
        self.assertGreater(len(set(spread)), len(set(dull)))

    def test_what_is_known_is_not_read_again(self):
        long = " ".join(PROMPTS * 3)
        first = self.complete(long, 8)
        again = self.complete(long, 8)
        longer = self.complete(long + first.choices[0].text + " and then", 8)
        tokens = first.usage.prompt_tokens
        self.assertEqual(again.choices[0].text, first.choices[0].text)
        self.assertEqual(again.usage.prompt_tokens_details.cached_tokens, tokens - 1)
        self.assertGreaterEqual(longer.usage.prompt_tokens_details.cached_tokens, tokens)
        self.assertEqual(longer.choices[0].text, self.want(long + first.choices[0].text + " and then", 8)["text"])
        before = self.server.metrics()
        texts = self.complete("Selah. " + long, 4, n=4)
        after = self.server.metrics()
        self.assertEqual(len({choice.text for choice in texts.choices}), 1)
        processed = after["processed_tokens_total"] - before["processed_tokens_total"]
        self.assertLessEqual(processed, texts.usage.prompt_tokens + 4 * 4)  # the prompt once

    def test_who_goes_is_forgotten(self):
        for stream in (True, False):
            before = self.server.metrics()["cancelled_total"]
            with socket.create_connection(("127.0.0.1", self.server.port)) as connection:
                body = json.dumps({"prompt": "x", "max_tokens": 400, "stream": stream, "ignore_eos": True, "n": 16}).encode()
                connection.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
                if stream:
                    connection.recv(100)
            deadline = time.monotonic() + 60
            while (now := self.server.metrics())["cancelled_total"] == before or now["running"] + now["waiting"]:
                self.assertLess(time.monotonic(), deadline, now)
                time.sleep(0.02)

    def test_cancels_among_others(self):
        wants = [self.want(prompt, 25)["text"] for prompt in PROMPTS]
        rng = random.Random(5)

        def client(index, leaves):
            text = ""
            with self.complete(PROMPTS[index], 25, stream=True) as stream:
                for count, chunk in enumerate(stream):
                    text += chunk.choices[0].text
                    if count == leaves:
                        return wants[index].startswith(text)
            return text == wants[index]

        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            jobs = [pool.submit(client, rng.randrange(16), rng.choice([1, 5, 12, 99])) for _ in range(64)]
            self.assertTrue(all(job.result() for job in jobs))

    def test_models(self):
        models = self.client.models.list().data
        self.assertEqual([model.id for model in models], ["chat"])
        self.assertEqual(self.client.models.retrieve("chat").id, "chat")
        with self.assertRaises(openai.NotFoundError):
            self.client.models.retrieve("other")
        self.assertEqual(json.loads(self.server.ask("GET", "/health")[2])["status"], "healthy")

    def test_errors_of_the_client(self):
        with self.assertRaises(openai.NotFoundError) as caught:
            self.client.completions.create(model="gpt-9", prompt="x")
        self.assertEqual((caught.exception.code, caught.exception.param), ("model_not_found", "model"))
        with self.assertRaises(openai.BadRequestError) as caught:
            self.complete("word " * 600, 4)
        self.assertEqual((caught.exception.code, caught.exception.param), ("context_length_exceeded", "prompt"))
        with self.assertRaises(openai.BadRequestError) as caught:
            self.client.chat.completions.create(model="chat", messages=[{"role": "user", "content": "x"}, {"role": "system", "content": "y"}])
        self.assertIn("system messages come first", str(caught.exception))

    def test_bad_requests(self):
        chat, complete = "/v1/chat/completions", "/v1/completions"
        message = [{"role": "user", "content": "x"}]
        for path, body, status, mentions in (
                (complete, b"", 400, "no body"), (complete, b"{", 400, "no JSON"), (complete, b"[1]", 400, "no object"), (complete, b'{"prompt":"\xff"}', 400, "no JSON"),
                (complete, b'{"prompt":"a","prompt":"b"}', 400, "no JSON"), (complete, b"[" * 100000, 400, "no JSON"), (complete, {}, 400, "prompt"),
                (complete, b'{"a\\\xc4\x990\xc7\xd6\xfc"}', 400, "no JSON"), (complete, {"\xe9" * 300: 1}, 400, "\xe9"), (complete, {"x" + "\xe9" * 300: 1}, 400, "\xe9"),
                (complete, {"prompt": 5}, 400, "prompt"), (complete, {"prompt": []}, 400, "prompt"), (complete, {"prompt": [1, "a"]}, 400, "token id"),
                (complete, {"prompt": [99999]}, 400, "token id"), (complete, {"prompt": [[]]}, 400, "no tokens"), (complete, {"prompt": ["a"] * 200}, 400, "200 prompts"),
                (complete, {"prompt": "a", "temperature": "hot"}, 400, "temperature"), (complete, {"prompt": "a", "temperature": 3}, 400, "from 0 to 2"),
                (complete, {"prompt": "a", "max_tokens": 0}, 400, "max_tokens"), (complete, {"prompt": "a", "max_tokens": 1.5}, 400, "integer"),
                (complete, {"prompt": "a", "n": 0}, 400, "'n'"), (complete, {"prompt": ["a"] * 100, "n": 100}, 400, "texts of one request"),
                (complete, {"prompt": "a", "stop": ""}, 400, "stop"), (complete, {"prompt": "a", "stop": [1]}, 400, "stop"), (complete, {"prompt": "a", "stop": ["x"] * 17}, 400, "more than 16"),
                (complete, {"prompt": "a", "logit_bias": {"x": 1}}, 400, "no token id"), (complete, {"prompt": "a", "logit_bias": {"5": 1000}}, 400, "-100 to 100"),
                (complete, {"prompt": "a", "logit_bias": {"-1": 1}}, 400, "no token id"), (complete, {"prompt": "a", "logit_bias": [1]}, 400, "object"),
                (complete, {"prompt": "a", "logprobs": True}, 400, "logprobs"), (complete, {"prompt": "a", "logprobs": 21}, 400, "from 0 to 20"),
                (complete, {"prompt": "a", "echo": True}, 400, "echo"), (complete, {"prompt": "a", "best_of": 3}, 400, "best_of"), (complete, {"prompt": "a", "frobnicate": 1}, 400, "frobnicate"),
                (complete, {"prompt": "a", "stream": "yes"}, 400, "true or false"), (complete, {"prompt": "a", "stream_options": 1}, 400, "stream_options"),
                (complete, {"prompt": "a", "model": 7}, 400, "model"), (complete, {"prompt": "a", "model": "other"}, 404, "other"),
                (chat, {}, 400, "messages"), (chat, {"messages": []}, 400, "at least one"), (chat, {"messages": "x"}, 400, "list"), (chat, {"messages": ["x"]}, 400, "no object"),
                (chat, {"messages": [{"role": "king", "content": "x"}]}, 400, "king"), (chat, {"messages": [{"role": "user"}]}, 400, "content"),
                (chat, {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]}, 400, "sees none"),
                (chat, {"messages": [{"role": "user", "content": [1]}]}, 400, "part 0"), (chat, {"messages": message, "response_format": {"type": "xml"}}, 400, "response_format"),
                (chat, {"messages": message, "tools": [{"type": "function"}]}, 400, "tools"), (chat, {"messages": message, "tool_choice": "required"}, 400, "tools"),
                (chat, {"messages": message, "top_logprobs": 2}, 400, "top_logprobs"), (chat, {"messages": message, "modalities": ["audio"]}, 400, "text alone"),
                (chat, {"messages": message, "chat_template_kwargs": 1}, 400, "chat_template_kwargs"), (chat, {"messages": message, "audio": {"voice": "x"}}, 400, "audio"),
                ("/v1/frobnicate", {}, 404, "/v1/frobnicate"), ("/v1/models", {}, 405, "takes GET")):
            with self.subTest(path=path, body=str(body)[:80]):
                got, headers, text = self.server.ask("POST", path, body)
                error = json.loads(text)["error"]
                self.assertEqual(got, status, text)
                self.assertEqual(set(error), {"message", "type", "param", "code"})
                self.assertIn(mentions, error["message"] + (error["param"] or ""))
                self.assertEqual(headers["Content-Type"], "application/json")
        self.assertEqual(self.complete("x", 1).usage.completion_tokens, 1)  # it stands

    def test_numbers_have_ends(self):
        """The least and the greatest that each field may have are taken, and what is a step beyond them is not."""
        vocabulary = len(gf.Reader(DEMO_MODEL).keys["tokenizer.ggml.tokens"])
        chat = lambda field, value: ("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}], "max_tokens": 1, "logprobs": True, field: value})
        text = lambda field, value: ("/v1/completions", {"prompt": "x", "max_tokens": 1, field: value})
        ollama = lambda field, value: ("/api/generate", {"prompt": "x", "stream": False, "options": {"num_predict": 1, field: value}})
        for ask, field, low, high, step in (
                (text, "temperature", 0, 2, 1e-9), (text, "top_p", 0, 1, 1e-9), (text, "min_p", 0, 1, 1e-9), (text, "top_k", -1, 2**31 - 1, 1),
                (text, "repetition_penalty", 0.01, 100, 1e-9), (text, "frequency_penalty", -2, 2, 1e-9), (text, "presence_penalty", -2, 2, 1e-9),
                (text, "seed", -2**63, 2**63 - 1, 1), (text, "max_tokens", 1, None, 1), (text, "n", 1, 128, 1), (text, "logprobs", 0, 20, 1),
                (chat, "top_logprobs", 0, 20, 1), (ollama, "repeat_penalty", 0.01, 100, 1e-9), (ollama, "repeat_last_n", -1, 1 << 24, 1), (ollama, "num_predict", -2, None, 1)):
            for value, status in ((low, 200), (high, 200), (low - step, 400), (high and high + step, 400)):
                if value is not None and (value, field) != (low, "num_predict"):  # -2: to the end of the context
                    with self.subTest(field=field, value=value):
                        got, _, answer = self.server.ask("POST", *ask(field, value))
                        self.assertEqual(got, status, answer)
                        if status == 400 and abs(value) < 2**63:
                            self.assertIn(field, answer)
        for field, value, status in (("prompt", [vocabulary - 1], 200), ("prompt", [vocabulary], 400), ("prompt", [-1], 400), ("logit_bias", {str(vocabulary - 1): 100}, 200),
                                     ("logit_bias", {"0": -100}, 200), ("logit_bias", {str(vocabulary): 1}, 400), ("logit_bias", {"0": -100.1}, 400)):
            with self.subTest(field=field, value=value):
                got, _, answer = self.server.ask("POST", *text(field, value))
                self.assertEqual(got, status, answer)
                if f"{vocabulary}" in str(value):
                    self.assertIn(f"0 to {vocabulary - 1}", answer)

    def test_metrics_count_what_was_done(self):
        before, began = self.server.metrics(), time.monotonic()
        got = self.complete("Who counts " + PROMPTS[3], 20, extra_body={"ignore_eos": True}).usage
        self.assertEqual(self.server.ask("POST", "/v1/completions", b"{")[0], 400)
        took, after = time.monotonic() - began, self.server.metrics()
        rise = {name: after[name] - before[name] for name in after}
        cached = got.prompt_tokens_details.cached_tokens
        for name, value in (("jobs_total", 1), ("prompt_tokens_total", got.prompt_tokens), ("cached_tokens_total", cached), ("written_tokens_total", 20),
                            ("processed_tokens_total", got.prompt_tokens - cached + 19), ("first_token_seconds_count", 1), ("refused_total", 0), ("cancelled_total", 0),
                            ("failed_total", 0), ("preempted_total", 0)):
            self.assertEqual(rise[name], value, name)
        self.assertGreaterEqual(rise["steps_total"], 20)
        for name in ("step_seconds_total", "other_seconds_total", "first_token_seconds_sum"):
            self.assertTrue(0 < rise[name] <= took, f"{name}: {rise[name]} of {took} s")
        self.assertLessEqual(rise["step_seconds_total"] + rise["other_seconds_total"], took)
        self.assertEqual((after["running"], after["waiting"]), (0, 0))
        self.assertTrue(0 <= after["cache_free_pages"] <= after["cache_pages"])


class OtherServers(unittest.TestCase):
    """Servers with options of their own."""

    def serve(self, *options, model=DEMO_MODEL):
        server = serving.Server(model, *options)
        self.addCleanup(server.stop)
        return server

    def test_keys_cors_and_limits(self):
        with tempfile.NamedTemporaryFile("w") as keys:
            keys.write("first\nsecond\n")
            keys.flush()
            server = self.serve("--key", "third", "--keys", keys.name, "--cors", "https://example.org", "--body", 1, "--name", "mine")
            for headers, status in (({}, 401), ({"Authorization": "Bearer wrong"}, 401), ({"Authorization": "Bearer firs"}, 401), ({"Authorization": "Bearer first1"}, 401),
                                    ({"Authorization": "Bearer second"}, 200), ({"Authorization": "bearer third"}, 200), ({"x-api-key": "first"}, 200)):
                self.assertEqual(server.ask("GET", "/v1/models", headers=headers)[0], status, headers)
            self.assertEqual(server.ask("GET", "/health")[0], 200)
            status, headers, _ = server.ask("OPTIONS", "/v1/models")
            self.assertEqual((status, headers["Access-Control-Allow-Origin"]), (204, "https://example.org"))
            status, headers, text = server.ask("POST", "/v1/completions", b"x" * (3 << 20), {"x-api-key": "first"})
            self.assertEqual((status, "larger than" in json.loads(text)["error"]["message"]), (413, True))
            status, _, text = server.ask("POST", "/v1/completions", {"model": "mine:latest", "prompt": "x", "max_tokens": 1}, {"x-api-key": "first"})
            self.assertEqual(status, 200, text)

    def test_a_full_cache_lets_texts_wait(self):
        wants = [serving.greedy(DEMO_MODEL, prompt, 100, "--ignore-end")["text"] for prompt in PROMPTS[:6]]
        server = self.serve("--slots", 6, "--cache", 256, "--context", 256)
        ask = lambda prompt: server.post("/v1/completions", prompt=prompt, max_tokens=100, temperature=0, ignore_eos=True)["choices"][0]["text"]
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            self.assertEqual(list(pool.map(ask, PROMPTS[:6])), wants)
        self.assertGreater(server.metrics()["preempted_total"], 0)

    def test_what_is_known_takes_no_room_again(self):
        """Of 1,024 tokens half are free: enough for the rest of a prompt of 400 that is known, so that the other text stays."""
        server = self.serve("--slots", 3, "--cache", 1024, "--context", 512)
        ask = lambda ids: server.post("/v1/completions", prompt=ids, max_tokens=1, temperature=0)["usage"]["prompt_tokens_details"]["cached_tokens"]
        short, long = list(range(1000, 1100)), list(range(300, 700))
        self.assertEqual([ask(short), ask(long), ask(long), ask(short)], [0, 0, 399, 99])

    def test_the_queue_and_the_time_have_ends(self):
        server = self.serve("--slots", 1, "--queue", 1, "--seconds", 1, "--context", 512)
        ask = lambda count: server.ask("POST", "/v1/completions", {"prompt": "x", "max_tokens": 500, "ignore_eos": True, "n": count})
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            statuses = [job.result()[0] for job in [pool.submit(ask, 2) for _ in range(8)]]
        self.assertIn(429, statuses)
        self.assertTrue(set(statuses) <= {200, 429, 503}, statuses)
        slow = self.serve("--slots", 1, "--seconds", 0.1)
        status, headers, text = slow.ask("POST", "/v1/completions", {"prompt": "x", "max_tokens": 500, "ignore_eos": True, "n": 20})
        self.assertEqual((status, headers["Retry-After"]), (503, "1"))
        self.assertIn("its time was over", text)

    def test_a_signal_lets_texts_end(self):
        server = serving.Server(DEMO_MODEL)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            job = pool.submit(server.post, "/v1/completions", prompt="x", max_tokens=300, temperature=0, ignore_eos=True)
            while not server.metrics()["running"]:
                time.sleep(0.005)
            server.stop()
            self.assertEqual(job.result()["usage"]["completion_tokens"], 300)
        hasty = serving.Server(DEMO_MODEL, "--drain", 0)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            job = pool.submit(hasty.ask, "POST", "/v1/completions", {"prompt": "x", "max_tokens": 500, "n": 100, "ignore_eos": True})
            while not hasty.metrics()["running"]:
                time.sleep(0.005)
            hasty.stop()
            try:
                self.assertIn(job.result()[0], (200, 503))
            except OSError:
                pass  # the connection closed

    def test_what_does_not_start(self):
        import rdna_program
        taken = self.serve()
        for arguments, mentions in ((("--port", taken.port), "cannot listen"), (("--host", "no.such.host.invalid"), "no address"), (("--keys", "/nowhere"), "/nowhere")):
            result = rdna_program.run("serve", DEMO_MODEL, "--device", "host", *arguments)
            self.assertEqual((result.returncode, result.stdout), (1, b""), arguments)
            self.assertIn(mentions, result.stderr.decode())


if __name__ == "__main__":
    unittest.main()

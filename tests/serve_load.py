#!/usr/bin/env python3
"""Streams to many clients of one rdna serve, of whom some go away in the middle: tests/serve_load.py [SECONDS] [--clients N]
[--device DEVICE] [--model FILE] [--rates N,N… | --masks]

Every stream must be, as far as it was read, what `rdna run --greedy` writes; the server's memory, descriptors and threads
at the end must be those after half the time. Printed besides: times between tokens, and what the server takes for a token
beside the model's step, with one client. With --rates nothing is checked: it prints tokens a second of so many clients
that all write 256 tokens, beside those of the first number of them; with --masks it prints what a JSON schema costs a
token (models: tools/made_model.py)."""
import argparse
import concurrent.futures
import contextlib
import http.client
import json
import os
import random
import sys
import threading
import time

import serving
from rdna_program import DEMO_MODEL
import rdna_program

PROMPTS = ["And God said", "The king of Israel", "In those days", "Blessed is the man", "And it came to pass", "Thou shalt not", "Behold,",
           "The LORD is my shepherd", "For the children of", "And the angel", "Woe unto", "Then Moses", "A wise son", "Let us", "Hear, O", "Now the"]
LONGEST, MORE_MIB, MORE_DESCRIPTORS = 60, 32, 4


class Load:
    def __init__(self, server, wants):
        self.server, self.wants = server, wants
        self.texts = {(prompt, LONGEST): text for prompt, text in wants.items()} if wants else {}  # {(prompt, tokens): text}
        self.lock, self.ends, self.runs = threading.Lock(), False, 0
        self.gaps, self.wrong, self.whole, self.left, self.tokens = [], [], 0, 0, 0

    def stream(self, prompt, count, leaves, gaps):
        """Reads a stream, or the first |leaves| events of it; the text, and whether it came to its end."""
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=600)) as connection:
            body = {"prompt": prompt, "max_tokens": count, "temperature": 0, "stream": True, "ignore_eos": True, "stream_options": {"include_usage": True}}
            connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
            response, text, events, last = connection.getresponse(), "", 0, 0
            assert response.status == 200, response.read()
            for line in response:
                if not line.startswith(b"data: "):
                    continue
                if line.startswith(b"data: [DONE]"):
                    return text, True
                event, now = json.loads(line[6:]), time.perf_counter()
                if not event["choices"]:
                    assert event["usage"]["completion_tokens"] == count, event
                    continue
                if last:
                    gaps.append(now - last)
                last = now
                text += event["choices"][0]["text"]
                events += 1
                if events == leaves:
                    return text, False
        return text, False

    def client(self, seed):
        rng, gaps, whole, left, tokens = random.Random(seed), [], 0, 0, 0
        while True:
            prompt, count = rng.choice(PROMPTS), rng.randint(4, LONGEST)
            leaves = rng.randint(1, count) if rng.random() < 0.3 else None
            try:
                text, ended = self.stream(prompt, count, leaves, gaps)
                # so many tokens always make the same text, and it is the beginning of what 60 make
                fine = self.wants[prompt].startswith(text) and (self.texts.setdefault((prompt, count), text) == text if ended else leaves)
            except Exception as error:  # a thread's end would go unseen
                fine, text, ended = False, repr(error), False
            if not fine:
                with self.lock:
                    self.wrong.append((prompt, count, leaves, text))
            whole += ended
            left += not ended
            tokens += count if ended else 0
            if self.ends:
                break
        with self.lock:
            self.gaps += gaps
            self.whole += whole
            self.left += left
            self.tokens += tokens

    def held(self):
        """MiB, descriptors, threads."""
        process = f"/proc/{self.server.process.pid}"
        with open(process + "/status") as file:
            fields = dict(line.split(":\t", 1) for line in file)
        return int(fields["VmRSS"].split()[0]) / 1024, len(os.listdir(process + "/fd")), int(fields["Threads"])

    def run(self, clients, seconds):
        """What is held when all have gone again."""
        threads = [threading.Thread(target=self.client, args=(f"{self.runs} {i}",)) for i in range(clients)]
        self.ends, self.runs = False, self.runs + 1
        for thread in threads:
            thread.start()
        time.sleep(seconds)
        self.ends = True
        for thread in threads:
            thread.join()
        while (now := self.server.metrics())["running"] + now["waiting"]:
            time.sleep(0.02)
        return self.held()


def overhead(server, tokens=400):
    """Of one client: seconds of a token beside the model's step, as the server counts them and as the client waits, and
    of the step."""
    load, gaps = Load(server, None), []
    load.stream("In the beginning", 1, None, gaps)  # so that no step has a prompt
    before = server.metrics()
    load.stream("In the beginning", tokens, None, gaps)
    after = server.metrics()
    of = lambda name: after[name] - before[name]
    step = of("step_seconds_total") / of("steps_total")
    return of("other_seconds_total") / of("steps_total"), sum(gaps) / len(gaps) - step, step


def rates(server, counts, tokens=256):
    """Prints a line for each number of clients that begin together, by the time from the first's request to the last's end."""
    print("clients   tokens/s   of the first   between tokens: median, p99")
    first = None
    for count in counts:
        load, gaps = Load(server, None), [[] for _ in range(count)]
        for turn, length in enumerate((4, tokens)):  # kernels are loaded and choices made in the first
            for own in gaps:
                own.clear()
            with concurrent.futures.ThreadPoolExecutor(count) as clients:
                began = time.perf_counter()
                streams = [clients.submit(load.stream, f"{i} {turn} {PROMPTS[i % len(PROMPTS)]}", length, None, gaps[i]) for i in range(count)]
                assert all(stream.result()[1] for stream in streams), "a stream broke off"
                seconds = time.perf_counter() - began
        rate, between = count * tokens / seconds, sorted(gap for own in gaps for gap in own)
        first = first or rate
        print(f"{count:7d} {rate:10.0f} {rate / first:14.2f} {1e3 * between[len(between) // 2]:17.2f} ms, {1e3 * between[len(between) * 99 // 100]:.2f} ms", flush=True)


SCHEMA = {"type": "object", "required": ["city", "notes"], "additionalProperties": False,
          "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "units": {"enum": ["metric", "imperial"]},
                         "from": {"type": "string", "format": "date"}, "notes": {"type": "array", "items": {"type": "string"}}}}


def masks(server, turns=6, tokens=200):
    """Prints what a token takes in replies with a schema and in such without, which come in turn."""
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}
    found = {False: [], True: []}  # of each reply: tokens, seconds in the model's steps, seconds between them
    for turn in range(2 * turns + 2):
        has_schema, before = turn % 2 == 1, server.metrics()
        server.post("/v1/completions", prompt=f"{turn} In those days", max_tokens=tokens, temperature=1, seed=turn,
                    ignore_eos=not has_schema, **({"response_format": form} if has_schema else {}))
        after = server.metrics()
        if turn >= 2:  # kernels are loaded and the schema is read in the first
            found[has_schema].append([after[name] - before[name] for name in ("steps_total", "step_seconds_total", "other_seconds_total")])
    of = {}
    for has_schema, replies in found.items():
        steps, inside, between = (sum(column) for column in zip(*replies))
        of[has_schema] = inside / steps, between / steps
        print(f"{'with' if has_schema else 'without'} a schema: {steps:.0f} tokens, each {1e6 * inside / steps:.0f} us in the model and {1e6 * between / steps:.0f} us besides")
    cost = of[True][1] - of[False][1]
    print(f"a schema costs {1e6 * cost:.0f} us a token, {100 * cost / sum(of[False]):.2f} % of one without")


def main(arguments=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("seconds", nargs="?", type=float, default=600)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--device", default=rdna_program.DEVICE)
    parser.add_argument("--model", default=DEMO_MODEL)
    parser.add_argument("--rates", type=lambda text: [int(count) for count in text.split(",")])
    parser.add_argument("--masks", action="store_true")
    chosen = parser.parse_args(arguments)
    rdna_program.DEVICE = chosen.device
    if chosen.rates:
        server = serving.Server(chosen.model, "--slots", max(chosen.rates), "--context", 512, device=chosen.device)
        _, _, step = overhead(server)
        print(f"one client: {1e3 * step:.2f} ms a step of the model")
        rates(server, chosen.rates)
        return server.stop()
    if chosen.masks:
        server = serving.Server(chosen.model, "--slots", 1, "--context", 512, device=chosen.device)
        masks(server)
        return server.stop()
    wants = {prompt: serving.greedy(chosen.model, prompt, LONGEST, "--kv", "f32", "--ignore-end")["text"] for prompt in PROMPTS}
    server = serving.Server(chosen.model, "--slots", chosen.clients, "--context", 512, "--kv", "f32", "--keep", 8, device=chosen.device,
                            environment={"ASAN_OPTIONS": "quarantine_size_mb=1"})  # which keeps what was freed
    load = Load(server, wants)
    other, waited, step = overhead(server)
    began = time.monotonic()
    middle, end = (load.run(chosen.clients, chosen.seconds / 2) for _ in range(2))
    took = time.monotonic() - began
    gaps = sorted(load.gaps)
    print(f"one client: a step of the model {1e6 * step:.0f} us; beside it {1e6 * other:.1f} us a token between steps ({100 * other / step:.2f} %), "
          f"{1e6 * waited:.1f} us as the client sees it")
    print(f"{chosen.clients} clients, {took:.0f} s: {load.whole} streams to their end, {load.left} left, {load.tokens / took:.0f} tokens/s; between tokens median "
          f"{1e3 * gaps[len(gaps) // 2]:.1f} ms, p99 {1e3 * gaps[len(gaps) * 99 // 100]:.1f} ms ({gaps[len(gaps) * 99 // 100] / gaps[len(gaps) // 2]:.2f} times)")
    print(f"after half the time {middle[0]:.0f} MiB, {middle[1]} descriptors, {middle[2]} threads; at the end {end[0]:.0f}, {end[1]}, {end[2]}")
    server.stop()
    assert not load.wrong, f"{len(load.wrong)} streams are wrong, the first {load.wrong[0]}"
    assert load.whole > 0 and load.left > 0
    assert end[0] <= middle[0] + MORE_MIB, "the memory grows"
    assert end[1] <= middle[1] + MORE_DESCRIPTORS and end[2] <= middle[2], "descriptors or threads are left"
    print("all streams are what rdna run writes; memory is flat")


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Sends malformed requests to one rdna serve: tests/malformed_requests.py [COUNT] [--seed N]

Bodies that were valid are cut, damaged, nested or given values of wrong types; one request in sixteen is no HTTP, or not
that of its length. Every answer must be one of the API's errors, or an answer where the damage did no harm; the server must
write the same text afterwards as before, in 16 MiB more than in the middle at most: by then it has most of the 1,024 jobs
of /v1/jobs that it keeps for readers, who do not come."""
import argparse
import collections
import json
import multiprocessing
import pathlib
import random
import socket
import tempfile
import time

import embedding_files
import serving

MESSAGES = [{"role": "user", "content": "In the"}]
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {"at": {"type": "string"}}}}}
BODIES = {
    "/v1/chat/completions": dict(messages=MESSAGES, max_tokens=1, temperature=0.5, stop=["x"], tools=[TOOL], logit_bias={"5": 1}),
    "/v1/completions": dict(prompt="In the", max_tokens=1, seed=3, n=1, logprobs=1),
    "/v1/responses": dict(input="In the", max_output_tokens=1),
    "/v1/messages": dict(messages=MESSAGES, max_tokens=1, system="Be", stop_sequences=["x"]),
    "/v1/messages/count_tokens": dict(messages=MESSAGES),
    "/v1/embeddings": dict(input=["In", "the"], encoding_format="float"),
    "/v1/rerank": dict(query="in", documents=["the", {"text": "a"}], model="judge", top_n=1),
    "/v1/jobs": dict(prompt="In the", max_tokens=1),
    "/api/chat": dict(messages=MESSAGES, stream=False, options=dict(num_predict=1)),
    "/api/generate": dict(prompt="In the", stream=False, options=dict(num_predict=1), keep_alive="5m"),
    "/api/embed": dict(input="In the"),
    "/api/show": dict(model="chat"),
    "/tokenize": dict(content="In the"),
    "/detokenize": dict(tokens=[1, 2, 3]),
    "/apply-template": dict(messages=MESSAGES),
}
STRANGE = [None, True, -1, 2 ** 63, 1e300, "", "\u0000", "x" * 3000, [], {}, [[]], [None], {"": 0}, -0.5, "\U0010ffff", {"type": "text"}]


def places(value, at=()):
    """Every place inside |value|."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield (*at, key)
        yield from places(inner, (*at, key))


def with_strange_value(draw, body):
    body = json.loads(json.dumps(body))
    *path, last = draw.choice(list(places(body)))
    inner = body
    for key in path:
        inner = inner[key]
    inner[last] = draw.choice(STRANGE)
    return json.dumps(body).encode()


def damaged(draw, data):
    kind = draw.randrange(4)
    at = draw.randrange(len(data))
    if kind == 0:
        return data[:at]
    if kind == 1:
        return data[:at] + draw.randbytes(draw.randrange(1, 9)) + data[at + draw.randrange(9):]
    if kind == 2:
        return data[:at] + draw.choice([b"[", b'{"a":']) * draw.choice([3, 4000]) + data[at:]
    return draw.randbytes(draw.randrange(200))


def request(draw):
    """The bytes of a request; whether its connection is of no use afterwards."""
    path, body = draw.choice(list(BODIES.items()))
    body = with_strange_value(draw, body) if draw.random() < 0.4 else damaged(draw, json.dumps(body).encode())
    if draw.randrange(16):
        return f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body, False
    kind = draw.randrange(6)
    if kind == 0:
        return draw.randbytes(draw.randrange(1, 300)) + b"\r\n\r\n", True
    if kind == 1:
        return f"POST {path} HTTP/1.1\r\nContent-Length: {draw.choice(['-1', 'x', '9' * 30, '1e3'])}\r\n\r\n".encode() + body, True
    if kind == 2:
        return f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body) + 9}\r\n\r\n".encode() + body, True
    if kind == 3:
        return f"POST {path} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{draw.choice(['zz', 'ffffffffffffffffff', '-3'])}\r\n".encode() + body, True
    if kind == 4:
        return damaged(draw, f"POST {path} HTTP/1.1\r\nHost: a\r\nX: y\r\n\r\n".encode()) + b"\r\n\r\n", True
    return f"{draw.choice(['GET', 'PUT', 'BREW'])} {path}/%ff%00/../{'a' * draw.randrange(2000)} HTTP/1.1\r\nHost: a\r\n\r\n".encode(), False


def answer(stream):
    """Status and body of an answer; None where the connection was closed without one."""
    line = stream.readline()
    if not line:
        return None
    length, chunked = 0, False
    while (header := stream.readline()) not in (b"\r\n", b""):
        name, _, value = header.decode().partition(":")
        length = int(value) if name.lower() == "content-length" else length
        chunked |= name.lower() == "transfer-encoding"
    data = stream.read(length)
    while chunked:
        size = int(stream.readline(), 16)
        data += stream.read(size)
        stream.readline()
        chunked = size > 0
    return int(line.split()[1]), data


def send(port, count, seed):
    """How often each status came; 0 is a connection that was closed, or left where a request had no end."""
    draw, statuses, connection = random.Random(seed), collections.Counter(), None
    for i in range(count):
        data, last = request(draw)
        for attempt in range(2):  # a connection that was kept may have been closed since
            fresh = connection is None
            if fresh:
                connection = socket.create_connection(("127.0.0.1", port))
                stream = connection.makefile("rb")
            try:
                connection.sendall(data)
                # what has no end is not answered before the server's patience is: who sent it goes
                connection.settimeout(0.02 if last else 600)
                found = answer(stream)
            except (BrokenPipeError, ConnectionResetError, OSError) as problem:
                assert last or not isinstance(problem, TimeoutError), f"seed {seed}, request {i}: no answer to {data[:2000]!r}"
                found = None
            if found is None or last:
                stream.close()
                connection.close()
                connection = None
            if found or fresh or last:
                break
        status, body = found or (0, b"")
        statuses[status] += 1
        assert found or last, f"seed {seed}, request {i}: closed without an answer: {data[:2000]!r}"
        assert status < 500, f"seed {seed}, request {i}: {status} {body!r} to {data[:2000]!r}"
        if status >= 400 and not last:
            told = json.loads(body)  # the worker's interface has two forms of its own
            assert told.get("error") or told.get("errors") or told.get("code"), f"seed {seed}, request {i}: {status} {body!r} to {data[:2000]!r}"
    return statuses


def memory(server):
    text = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    return int(text.split("VmRSS:")[1].split()[0]) / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", nargs="?", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    statuses, clients, middle, began = collections.Counter(), 4, 0, time.monotonic()
    with tempfile.TemporaryDirectory() as folder, open(pathlib.Path(folder) / "log", "w") as log, multiprocessing.Pool(clients) as pool:
        models = serving.write_model(folder, pooling=1), embedding_files.write_encoder(pathlib.Path(folder) / "judge.gguf", pooling=4, labels=1)
        server = serving.Server(models[0], models[1], "--context", 32, device="host", stderr=log)
        before = server.post("/v1/completions", prompt="In the beginning", max_tokens=12, temperature=0)["choices"]
        for part in range(10):
            each = -(-options.count // (10 * clients))
            for found in pool.starmap(send, [(server.port, each, f"{options.seed}.{part}.{i}") for i in range(clients)]):
                statuses += found
            middle = memory(server) if part == 4 else middle
            print(f"{sum(statuses.values())} requests, {time.monotonic() - began:.0f} s, {memory(server):.0f} MiB", dict(sorted(statuses.items())), flush=True)
        after = server.post("/v1/completions", prompt="In the beginning", max_tokens=12, temperature=0)["choices"]
        assert after == before, f"{after} is not {before}"
        assert memory(server) < middle + 16, f"{memory(server):.0f} MiB, and {middle:.0f} in the middle"
        server.stop()
    answered = statuses[200]
    print(f"{sum(statuses.values()) - answered} malformed requests refused or cut off, {answered} answered, the server writes as before")


if __name__ == "__main__":
    main()

"""rdna serve as a hive's worker: its flags, token, jobs and their events, limits, readiness, progress and heartbeats."""
import contextlib
import http.client
import http.server
import json
import os
import socket
import subprocess
import threading
import time
import unittest

import rdna_program
import serving
from rdna_program import DEMO_MODEL

PROMPT = "And God said"
JOB = {"operation": "infer", "hive_id": "localhost", "model": "demo", "prompt": PROMPT, "max_tokens": 12, "temperature": 0.0}


def events(text):
    """The data of an event stream; the last one must be [DONE]."""
    lines = [line.removeprefix("data: ") for line in text.split("\n\n") if line]
    assert lines[-1] == "[DONE]", lines[-1]
    return [json.loads(line) for line in lines[:-1]]


def worker(model, *options, **more):
    return serving.Server(model, "--worker-id", "worker-1", "--model-ref", "demo", *options, model_option="--model", **more)


class Hive(http.server.BaseHTTPRequestHandler):
    """Keeps what it is sent."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.beats.append((self.path, self.headers["Authorization"], body, time.monotonic()))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *arguments):
        pass


@contextlib.contextmanager
def hive():
    server = http.server.HTTPServer(("127.0.0.1", 0), Hive)
    server.beats = []
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Worker(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = worker(DEMO_MODEL, "--kv", "f32", "--slots", 4)
        cls.addClassCleanup(cls.server.stop)

    def ask_job(self, path="/v1/jobs", **changes):
        answer = self.server.post(path, **{**JOB, **changes})
        self.assertEqual(answer["sse_url"], f"/v1/jobs/{answer['job_id']}/stream")
        return answer

    def read_job(self, answer):
        status, headers, text = self.server.ask("GET", answer["sse_url"])
        self.assertEqual((status, headers["Content-Type"]), (200, "text/event-stream"))
        return events(text)

    def test_events(self):
        want = serving.greedy(DEMO_MODEL, PROMPT, 12, "--kv", "f32")
        for path in ("/v1/jobs", "/v1/inference"):
            answer = self.ask_job(path)
            got = self.read_job(answer)
            kinds = [event["type"] for event in got]
            self.assertEqual(kinds, ["started", "narration"] + ["token"] * 12 + ["metrics", "narration", "end"])
            started, end = got[0], got[-1]
            self.assertEqual((started["job_id"], started["model"]), (answer["job_id"], "demo"))
            self.assertRegex(started["started_at"], r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
            tokens = [event for event in got if event["type"] == "token"]
            self.assertEqual("".join(token["t"] for token in tokens), want["text"])
            self.assertEqual([token["i"] for token in tokens], list(range(12)))
            self.assertGreater(sum(token["t"] != "" for token in tokens), 9)  # each has its own part of the text
            metrics = next(event for event in got if event["type"] == "metrics")
            self.assertGreater(metrics["tokens_per_sec"], 0)
            self.assertGreater(metrics["vram_bytes"], 0)
            self.assertEqual((end["tokens_out"], end["stop_reason"]), (12, "MAX_TOKENS"))
            self.assertGreater(end["decode_time_ms"], 0)

    def test_a_job_is_written_before_its_reader_comes_and_read_once(self):
        before = self.server.metrics()["written_tokens_total"]
        answer = self.ask_job(max_tokens=20)
        deadline = time.monotonic() + 60
        while self.server.metrics()["written_tokens_total"] < before + 20:
            self.assertLess(time.monotonic(), deadline)
        self.assertEqual(self.read_job(answer)[-1]["tokens_out"], 20)
        status, _, text = self.server.ask("GET", answer["sse_url"])
        self.assertEqual((status, json.loads(text)["code"]), (404, "job_not_found"))

    def test_stops_and_sampling(self):
        whole = serving.greedy(DEMO_MODEL, PROMPT, 30, "--kv", "f32")["text"]
        word = whole.split(" ")[5]
        got = self.read_job(self.ask_job(max_tokens=30, stop=[word, "never"], top_p=1.0, top_k=0, min_p=0.0, repetition_penalty=1.0, seed=3, stream=True, device="0", worker_id="worker-1"))
        self.assertEqual("".join(event["t"] for event in got if event["type"] == "token"), whole[:whole.index(word)])
        self.assertEqual(got[-1]["stop_reason"], "STOP_SEQUENCE")
        texts = {seed: "".join(event.get("t", "") for event in self.read_job(self.ask_job(temperature=1.5, seed=seed))) for seed in (1, 2)}
        again = "".join(event.get("t", "") for event in self.read_job(self.ask_job(temperature=1.5, seed=1)))
        self.assertEqual(again, texts[1])
        self.assertNotEqual(texts[1], texts[2])

    def test_limits(self):
        for changes, wrong in (
                ({"prompt": ""}, {"prompt": "length(1..=32768)"}), ({"prompt": "x" * 32769}, {"prompt": "length(1..=32768)"}), ({"prompt": 5}, {"prompt": "type(text)"}),
                ({"prompt": None}, {"prompt": "required"}), ({"max_tokens": 0}, {"max_tokens": "range(1..=2048)"}), ({"max_tokens": 2049}, {"max_tokens": "range(1..=2048)"}),
                ({"max_tokens": 1.5}, {"max_tokens": "type(integer)"}), ({"temperature": -0.1}, {"temperature": "range(0.0..=2.0)"}), ({"temperature": 2.1}, {"temperature": "range(0.0..=2.0)"}),
                ({"top_p": 1.1}, {"top_p": "range(0.0..=1.0)"}), ({"min_p": -1}, {"min_p": "range(0.0..=1.0)"}), ({"top_k": -1}, {"top_k": "range(0..=4294967295)"}),
                ({"repetition_penalty": 2.5}, {"repetition_penalty": "range(0.0..=2.0)"}), ({"stop": ["a"] * 5}, {"stop": "max_count(4)"}), ({"stop": ["x" * 101]}, {"stop": "max_length(100)"}),
                ({"stop": [""]}, {"stop": "non_empty"}), ({"stop": "word"}, {"stop": "type(texts)"}), ({"operation": "image_generation"}, {"operation": "one_of(infer)"}),
                ({"stream": False}, {"stream": "one_of(true)"}), ({"worker_id": "worker-2"}, {"worker_id": "this_worker"}), ({"zzz": 1}, {"zzz": "known"}),
                ({"priority": 101}, {"priority": "range(-100..=100)"}),
                ({"max_tokens": 0, "temperature": 3, "top_p": 2}, {"max_tokens": "range(1..=2048)", "temperature": "range(0.0..=2.0)", "top_p": "range(0.0..=1.0)"})):
            with self.subTest(str(changes)[:60]):
                status, _, text = self.server.ask("POST", "/v1/jobs", {**JOB, **changes})
                errors = json.loads(text)["errors"]
                self.assertEqual((status, {error["field"]: error["constraint"] for error in errors}), (400, wrong))
                for error in errors:
                    self.assertTrue(error["message"])
        # the ends themselves
        for changes in ({"max_tokens": 1, "temperature": 2, "top_p": 1, "min_p": 1, "repetition_penalty": 2, "stop": ["x" * 100] * 4}, {"max_tokens": 2, "temperature": 0, "top_p": 0, "min_p": 0, "repetition_penalty": 0, "top_k": 4294967295}):
            self.assertEqual(self.read_job(self.ask_job(**changes))[-1]["type"], "end")

    def test_other_bad_requests(self):
        for body, status, mentions in ((b"{", 400, "no JSON"), (b"[]", 400, "no object"), ({**JOB, "model": "other"}, 404, "other"), ({**JOB, "prompt": "word " * 5000}, 400, "context")):
            got, _, text = self.server.ask("POST", "/v1/jobs", body)
            answer = json.loads(text)
            message = answer["errors"][0]["message"] if status == 400 else answer["message"]
            self.assertEqual((got, mentions in message), (status, True), text)
        for path in ("/v1/jobs/none/stream", "/v1/jobs/", "/v1/jobs/x", "/v1/jobs/" + "x" * 200 + "/stream"):
            status, _, text = self.server.ask("GET", path)
            self.assertEqual((status, set(json.loads(text))), (404, {"code", "message"}), path)

    def test_a_reader_that_goes_and_a_second_one(self):
        before = self.server.metrics()["cancelled_total"]
        answer = self.ask_job(max_tokens=2048, temperature=1.0)
        with socket.create_connection(("127.0.0.1", self.server.port)) as connection:
            connection.sendall(f"GET {answer['sse_url']} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            connection.recv(100)
            status, _, text = self.server.ask("GET", answer["sse_url"])
            self.assertIn((status, json.loads(text).get("code")), ((409, "job_taken"), (404, "job_not_found")))
        deadline = time.monotonic() + 60
        while (now := self.server.metrics())["cancelled_total"] == before and now["running"]:
            self.assertLess(time.monotonic(), deadline, now)

    def test_ready(self):
        self.assertEqual(json.loads(self.server.ask("GET", "/v1/ready")[2]), {"ready": True, "state": "idle", "model_loaded": True, "worker_id": "worker-1"})
        self.assertEqual(self.server.ask("GET", "/ready")[0], 200)
        self.assertEqual(json.loads(self.server.ask("GET", "/health")[2])["status"], "healthy")
        self.assertEqual(events(self.server.ask("GET", "/v1/loading/progress")[2]), [{"stage": "ready"}])


class OtherWorkers(unittest.TestCase):
    def test_it_listens_while_it_loads(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        process = subprocess.Popen([rdna_program.PROGRAM, "serve", "--worker-id", "w", "--model", DEMO_MODEL, "--port", str(port), "--device", rdna_program.DEVICE],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            deadline, seen = time.monotonic() + 60, None
            while seen is None:
                self.assertLess(time.monotonic(), deadline)
                with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port)) as connection:
                    try:
                        connection.request("GET", "/v1/loading/progress")
                        seen = events(connection.getresponse().read().decode())
                    except ConnectionRefusedError:
                        time.sleep(0.0005)
            self.assertEqual(seen[-1], {"stage": "ready"})
            shares = [event["share"] for event in seen[:-1]]
            self.assertEqual(shares, sorted(set(shares)))
            for event in seen[:-1]:
                self.assertEqual(set(event), {"stage", "model", "layers_loaded", "layers_total", "vram_mb", "share"})
                self.assertTrue(0 <= event["layers_loaded"] <= event["layers_total"])
            # a request that came while it loaded was answered
            self.assertIn(b"http://", process.stdout.readline())
        finally:
            process.terminate()
            process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0)

    def test_token_and_heartbeats(self):
        with hive() as beats:
            begun = time.monotonic()
            server = worker(DEMO_MODEL, "--hive-url", f"http://127.0.0.1:{beats.server_port}/hive/", "--heartbeat", 0.2, environment={"LLORCH_API_TOKEN": "secret"})
            with contextlib.ExitStack() as stack:
                stack.callback(server.stop)
                for headers, status in (({}, 401), ({"Authorization": "Bearer wrong"}, 401), ({"Authorization": "Bearer secret"}, 200)):
                    got, _, text = server.ask("POST", "/v1/jobs", JOB, headers)
                    self.assertEqual(got, status)
                    if status == 401:
                        self.assertEqual(json.loads(text)["code"], "invalid_api_key")
                self.assertEqual(server.ask("GET", json.loads(text)["sse_url"])[0], 401)
                self.assertEqual(server.ask("GET", "/health")[0], 200)
                self.assertEqual(server.ask("GET", "/v1/ready")[0], 200)
                deadline = time.monotonic() + 60
                while len(beats.beats) < 8:
                    self.assertLess(time.monotonic(), deadline)
                    time.sleep(0.02)
            for path, authorization, body, _ in beats.beats:
                self.assertEqual((path, authorization, body["worker_id"], body["health_status"]), ("/hive/v1/heartbeat", "Bearer secret", "worker-1", "healthy"))
            self.assertGreaterEqual(beats.beats[7][3] - begun, 7 * 0.2)  # not sooner; a busy machine may be late

    def test_a_hive_that_is_not_there(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        server = worker(DEMO_MODEL, "--hive-url", f"http://127.0.0.1:{port}", "--heartbeat", 0.05, "--log")
        self.assertEqual(server.post("/v1/completions", prompt="x", max_tokens=1)["usage"]["completion_tokens"], 1)
        time.sleep(0.2)
        lines = [json.loads(line) for line in server.stop().splitlines()]
        self.assertGreater(sum(line.get("event") == "heartbeat" and not line["taken"] for line in lines), 1)
        for url in ("https://hive", "hive:5", "http://", "http://hive:99999999", "http://hive:x", "http://a b", "http://user@hive"):
            result = rdna_program.run("serve", "--model", DEMO_MODEL, "--device", "host", "--port", 0, "--hive-url", url)
            self.assertEqual((result.returncode, b"hive's URL" in result.stderr), (1, True), (url, result.stderr))

    def test_misuse(self):
        for arguments, mentions in (((), "no model"), ((DEMO_MODEL, "--model", DEMO_MODEL), "--model"), ((DEMO_MODEL, DEMO_MODEL, "--name", "x"), "--name")):
            result = rdna_program.run("serve", *arguments)
            self.assertEqual((result.returncode, mentions in result.stderr.decode()), (2, True), arguments)

    @unittest.skipUnless(serving.EMULATOR.exists() and rdna_program.DEVICE == "host", "the emulator is not built, or RDNA_TEST_DEVICE is not the host")
    def test_rocm_device(self):
        server = worker(DEMO_MODEL, "--rocm-device", 1, environment={"RDNA_EMULATE": "gfx1100,gfx1030"}, device=None)
        self.addCleanup(server.stop)
        self.assertIn("RX 6", server.line)
        self.assertEqual(events(server.ask("GET", server.post("/v1/jobs", **{**JOB, "max_tokens": 2})["sse_url"])[2])[-1]["tokens_out"], 2)


if __name__ == "__main__":
    unittest.main()

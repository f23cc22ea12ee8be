"""rdna serve under load and abuse: who comes first, how long anything may take, slow and greedy clients, signals, and what
is left of an answer then."""
import concurrent.futures
import contextlib
import json
import os
import pathlib
import socket
import threading
import time
import unittest

import rdna_program
import serving
from rdna_program import DEMO_MODEL

LONG = {"prompt": "x", "max_tokens": 480, "ignore_eos": True, "temperature": 0}
MESSAGES = [{"role": "user", "content": "x"}]


class Limits(unittest.TestCase):
    def serve(self, *options, **more):
        server = serving.Server(DEMO_MODEL, *options, **more)
        self.addCleanup(server.stop)
        return server

    @contextlib.contextmanager
    def busy(self, server, **more):
        """A server whose only place is taken until the end of the block."""
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            send(connection, "/v1/completions", {**LONG, "stream": True, "n": 100, **more})
            serving.wait_for(lambda: server.metrics()["running"])
            yield
            connection.close()
        serving.wait_for(lambda: server.metrics()["running"] == 0, seconds=300)  # others may have waited for the place

    # ---- order ----

    def test_priorities(self):
        server = self.serve("--slots", 1, "--context", 4096)
        order, lock = [], threading.Lock()  # of answers as they come; each takes longer than a busy machine delays one

        def ask(name, path, **body):
            status, _, text = server.ask("POST", path, body)
            with lock:
                order.append(name)
            self.assertEqual(status, 200, text)

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            jobs = []
            with self.busy(server, n=1, max_tokens=4000):
                for count, (name, path, body) in enumerate((
                        ("late", "/v1/completions", {"prompt": "a", "max_tokens": 200, "priority": 5}), ("first come", "/v1/completions", {"prompt": "b", "max_tokens": 200}),
                        ("then come", "/api/generate", {"prompt": "c", "raw": True, "stream": False, "options": {"num_predict": 200}}), ("urgent", "/v1/completions", {"prompt": "d", "max_tokens": 200, "priority": -5}),
                        ("most urgent", "/api/generate", {"prompt": "e", "raw": True, "stream": False, "priority": -9, "options": {"num_predict": 200}})), 1):
                    jobs.append(pool.submit(ask, name, path, **body))
                    serving.wait_for(lambda: server.metrics()["waiting"] == count)
            for job in jobs:
                job.result()
        self.assertEqual(order, ["most urgent", "urgent", "first come", "then come", "late"])
        for bad in (101, -101, 1.5, "high"):
            status, _, text = server.ask("POST", "/v1/completions", {"prompt": "x", "priority": bad})
            self.assertEqual((status, json.loads(text)["error"]["param"]), (400, "priority"))

    # ---- time ----

    def test_a_text_waits_only_so_long(self):
        server = self.serve("--slots", 1, "--queue-seconds", 0.3, "--context", 4096)
        with self.busy(server, n=1, max_tokens=4000):
            begun = time.monotonic()
            status, _, text = server.ask("POST", "/v1/completions", {"prompt": "x"})
            error = json.loads(text)["error"]
            self.assertEqual((status, error["code"], "0.3 seconds" in error["message"]), (503, "queue_timeout", True))
            self.assertGreater(time.monotonic() - begun, 0.3)
            status, _, text = server.ask("POST", "/v1/completions", {"prompt": "x", "stream": True})
            self.assertEqual((status, json.loads(text.split("data: ")[-1])["error"]["code"]), (200, "queue_timeout"))
            events = server.ask("GET", server.post("/v1/jobs", prompt="x", max_tokens=1)["sse_url"])[2].split("\n\n")
            self.assertEqual((json.loads(events[-3][6:])["code"], events[-2]), ("queue_timeout", "data: [DONE]"))
            status, _, text = server.ask("POST", "/api/generate", {"prompt": "x", "stream": False})
            self.assertEqual((status, "0.3 seconds" in json.loads(text)["error"]), (503, True))
        self.assertGreaterEqual(server.metrics()["expired_total"], 4)

    def test_a_request_may_limit_itself(self):
        server = self.serve("--slots", 2, "--context", 4096)  # no machine writes what is asked for in these times
        for path, body in (("/v1/completions", {"n": 30, **LONG}), ("/v1/completions", {"n": 30, "stream": True, **LONG})):
            begun = time.monotonic()
            status, _, text = server.ask("POST", path, {**body, "timeout": 0.02})
            self.assertGreater(time.monotonic() - begun, 0.02)
            self.assertEqual(status, 200 if "stream" in body else 503)
            self.assertIn("[DONE]" if "stream" in body else "its time was over", text)
        events = server.ask("GET", server.post("/v1/jobs", prompt="x", max_tokens=2048, timeout=0.002)["sse_url"])[2]
        self.assertIn('"code":"cancelled"', events)
        self.assertTrue(events.endswith("data: [DONE]\n\n"))
        self.assertEqual(server.ask("POST", "/v1/completions", {"prompt": "x", "timeout": -1})[0], 400)

    def test_silent_streams_ping(self):
        folder = serving.folder_for(self)
        server = serving.Server(serving.write_model(folder), "--slots", 1, "--ping", 0.1, "--context", 512)
        self.addCleanup(server.stop)
        for path, body, ping in (("/v1/completions", {"prompt": "x"}, ": ping\n\n"), ("/v1/messages", {"messages": MESSAGES}, "event: ping\n")):
            with self.busy(server, n=8), socket.create_connection(("127.0.0.1", server.port)) as connection:
                send(connection, path, {**body, "max_tokens": 1, "stream": True})
                serving.wait_for(lambda: ping.encode() in connection.recv(65536))

    # ---- clients ----

    def test_slow_clients_are_closed(self):
        server = self.serve("--patience", 0.5, "--connections", 64)
        head = b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n"
        slow = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(40)]
        for index, connection in enumerate(slow):
            self.addCleanup(connection.close)
            connection.settimeout(10)
            if index % 2:
                connection.sendall(head + b"\r\n")  # the body trickles
        open_ones = list(slow)
        for byte in range(60):
            for connection in list(open_ones):
                try:
                    connection.send(head[byte % len(head):][:1] if slow.index(connection) % 2 == 0 else b" ")
                except OSError:
                    open_ones.remove(connection)
            if byte % 10 == 0:
                self.assertEqual(server.post("/v1/completions", prompt="x", max_tokens=1)["usage"]["completion_tokens"], 1)
            if not open_ones:
                break
            time.sleep(0.05)
        self.assertEqual(len(open_ones), 0)
        # who is answered for longer than that is not closed
        self.assertEqual(server.post("/v1/completions", **LONG)["usage"]["completion_tokens"], 480)

    def test_who_sends_no_more_is_not_waited_for(self):
        server = self.serve("--patience", 1e6)
        for sent in (b"", b"POST /v1/completions HT", b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{"):
            with self.subTest(sent), socket.create_connection(("127.0.0.1", server.port)) as connection:
                connection.sendall(sent)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(1000):  # until it is closed
                    pass

    def test_a_zero_in_a_path(self):
        server = self.serve()
        for path in ("/health%00", "/v1/models%00x", "/v1/jobs/x/stream%00", "/%00"):
            with self.subTest(path):
                self.assertEqual(server.ask("GET", path)[0], 404)
        self.assertEqual(server.ask("GET", "/v1/%6dodels")[0], 200)

    def test_large_bodies_are_not_kept(self):
        server = self.serve("--body", 4)
        status = pathlib.Path(f"/proc/{server.process.pid}/status")
        peak = lambda: int(next(line for line in status.read_text().splitlines() if line.startswith("VmHWM")).split()[1])
        server.post("/v1/completions", prompt="x", max_tokens=1)
        before, megabyte = peak(), b"x" * (1 << 20)
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (100 << 20))
            for _ in range(100):
                connection.sendall(megabyte)
            self.assertTrue(connection.recv(65536).startswith(b"HTTP/1.1 413"))
        self.assertLess(peak() - before, 8 << 10)
        with socket.create_connection(("127.0.0.1", server.port)) as connection:  # without saying how much comes
            connection.sendall(b"POST /v1/messages HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
            for _ in range(100):
                connection.sendall(b"100000\r\n" + megabyte + b"\r\n")
            connection.sendall(b"0\r\n\r\n")
            answer = connection.recv(65536)
            self.assertTrue(answer.startswith(b"HTTP/1.1 413"), answer)
        self.assertLess(peak() - before, 32 << 10)  # at most 4 MiB, and its copy as it grows
        self.assertEqual(server.post("/v1/completions", prompt="x", max_tokens=1)["usage"]["completion_tokens"], 1)

    # ---- ends ----

    def test_a_signal_in_the_middle_of_streams(self):
        for drain, whole in ((600, True), (0, False)):  # a busy machine takes long to write them to their end
            server = serving.Server(DEMO_MODEL, "--slots", 4, "--context", 512, "--drain", drain)
            asked = [("/v1/completions", {**LONG, "stream": True})] * 3 + [("/api/generate", {"prompt": "x", "raw": True, "options": {"num_predict": 480}})]
            job = server.post("/v1/jobs", prompt="x", max_tokens=480)["sse_url"]
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                texts = [pool.submit(server.ask, "POST", path, body) for path, body in asked] + [pool.submit(server.ask, "GET", job)]
                serving.wait_for(lambda: server.metrics()["written_tokens_total"] > 40)
                begun = time.monotonic()
                server.stop()
                for number, text in enumerate(texts):
                    status, _, body = text.result()
                    self.assertEqual(status, 200)  # and they end as streams do, also those that are cut off
                    self.assertTrue(body.endswith("data: [DONE]\n\n") or json.loads(body.splitlines()[-1])["done"], body[-200:])
                    if whole or number < 3:  # the others may have come to their own end
                        self.assertEqual("cancelled" in body, not whole, body[-400:])
            if not whole:
                self.assertLess(time.monotonic() - begun, 120)

    def test_a_full_disk_under_the_log(self):
        with open("/dev/full", "w") as full:
            server = self.serve("--log", stderr=full)
            for _ in range(3):
                self.assertEqual(server.post("/v1/completions", prompt="x", max_tokens=1)["usage"]["completion_tokens"], 1)

    @unittest.skipUnless(serving.EMULATOR.exists() and rdna_program.DEVICE == "host", "the emulator is not built, or RDNA_TEST_DEVICE is not the host")
    def test_a_lost_device(self):
        server = self.serve("--driver", "hip", "--context", 64, "--slots", 1, device=None,
                            environment={"RDNA_EMULATE": "gfx1100", "RDNA_EMULATE_LOSE": "150", "ASAN_OPTIONS": "detect_leaks=0"})  # of a lost card nothing can be freed
        self.assertEqual(server.ask("GET", "/health")[0], 200)
        deadline = time.monotonic() + 60
        while (answer := server.ask("POST", "/v1/completions", {"prompt": "x", "max_tokens": 4}))[0] == 200:
            self.assertLess(time.monotonic(), deadline)
        self.assertEqual((answer[0], bool(json.loads(answer[2])["error"]["message"])), (500, True), answer)
        for path in ("/health", "/ready"):  # whoever watches it starts another one
            self.assertEqual(server.ask("GET", path)[0], 503, path)
        self.assertEqual(server.ask("POST", "/v1/completions", {"prompt": "x"})[0], 500)


def send(connection, path, body):
    data = json.dumps(body).encode()
    connection.sendall(f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)


if __name__ == "__main__":
    unittest.main()

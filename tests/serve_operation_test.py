"""How rdna serve is run: its page in docs/ against what it has, the examples there, logs, the service, the image, and the
example deployments."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

import embedding_files
import rdna_program
import serving
from rdna_program import DEMO_MODEL, ROOT, output

PAGE = (ROOT / "docs/serve.md").read_text()
UNIT = ROOT / "packaging/systemd/rdna-serve.service"
IMAGE = ROOT / "packaging/oci/Containerfile"
CLUSTER = ROOT / "examples/serve/kubernetes.yaml"


def routes():
    """(method, path) of each row of the server's table."""
    return set(re.findall(r'^ *\{"(GET|POST)", "([^"]+)"', (ROOT / "src/server/routes.c").read_text(), re.M))


def flags():
    return set(re.findall(r"^  (--[a-z-]+)", output("serve", "--help").decode(), re.M))


class Page(unittest.TestCase):
    def test_it_has_every_endpoint_and_flag(self):
        rows = PAGE.split("## Endpoints")[1].split("\n\n")[1]
        documented = {(method, path) for method, path in re.findall(r"`(GET|POST) ([^`]+)`", rows)}
        self.assertEqual(documented, routes())
        self.assertEqual(set(re.findall(r"^\| `(--[a-z-]+)", PAGE, re.M)), flags())
        keys = set(re.findall(r"`([a-z-]+)`", PAGE.split("| key | |")[1].split("\n\n")[0].replace("as the options of these names", "")))
        fields = (ROOT / "src/server/presets_file.c").read_text().split("field_row fields[] = {")[1].split("};")[0]
        self.assertEqual(keys, set(re.findall(r'"([a-z-]+)"', fields)))

    def test_examples(self):
        blocks = re.findall(r"```sh\n(.*?)```", PAGE, re.S)
        asked = "".join(blocks)
        for method, path in routes():
            if path in ("/v1/inference", "/v1/inference/*", "/v1/jobs/*", "/v1/models/*", "/page/*") or path.startswith(("/v1/images/", "/sdapi/", "/controlnet/")):  # of a server of another kind
                continue
            self.assertRegex(asked, re.escape("127.0.0.1:8080" + path) + r"(?=[\s\"])", "there is no example of it")
        with tempfile.TemporaryDirectory() as folder:
            model = serving.write_model(folder, pooling=3)
            judge = embedding_files.write_encoder(model.with_name("judge.gguf"), pooling=4, labels=1)
            server = serving.Server(model.rename(model.with_name("demo.gguf")), judge)
            self.addCleanup(server.stop)
            for block in blocks:
                script = 'set -euo pipefail; curl() { command curl --fail-with-body -w "\\n" "$@"; }\n' + block.replace("127.0.0.1:8080", f"127.0.0.1:{server.port}")
                result = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60)
                self.assertEqual(result.returncode, 0, block + result.stdout + result.stderr)
            self.assertIn("[DONE]", result.stdout)  # the last one is the worker's

    def test_the_example_of_presets(self):
        text = re.search(r"```json\n(.*?)```", PAGE, re.S)[1]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "models.json"
            path.write_text(text.replace('"preload": true', '"preload": false'))
            server = serving.Server(path, model_option="--models")
            self.addCleanup(server.stop)
            self.assertEqual([model["id"] for model in json.loads(server.ask("GET", "/v1/models")[2])["data"]], ["chat", "coder-30b"])


class Running(unittest.TestCase):
    def test_log(self):
        with tempfile.TemporaryDirectory() as folder:
            gone = pathlib.Path(folder) / "gone.gguf"
            server = serving.Server(DEMO_MODEL, gone, "--log", "--idle", 0.1)
            answer = server.post("/v1/completions", prompt="And God said", max_tokens=3, priority=7)
            server.ask("POST", "/v1/completions", {"prompt": "x", "model": "gone"})
            server.ask("GET", "/nowhere")
            time.sleep(0.4)
            lines = [json.loads(line) for line in server.stop().splitlines()]
        for line in lines:
            self.assertRegex(line["time"], r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        kinds = [line["event"] for line in lines]
        self.assertEqual(set(kinds), {"load", "request", "unload"})
        loads = [line for line in lines if line["event"] == "load"]
        self.assertEqual([(line["model"], line["whole"], "error" in line) for line in loads], [("rdna-demo-q8_0", True, False), ("gone", False, True)])
        requests = {line["status"]: line for line in lines if line["event"] == "request"}  # in the order of their ends
        self.assertEqual(sorted(requests), [200, 404, 500])
        first = requests[200]
        self.assertEqual((first["path"], first["model"], first["id"], first["written_tokens"], first["prompt_tokens"], first["priority"]),
                         ("/v1/completions", "rdna-demo-q8_0", answer["id"], 3, answer["usage"]["prompt_tokens"], 7))
        self.assertTrue(0 < first["first_token_seconds"] <= first["seconds"] < 30)
        self.assertIn("gone", requests[500]["error"])

    def test_it_tells_the_service_manager(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as manager:
            manager.bind(folder + "/notify")
            manager.settimeout(30)
            server = serving.Server(DEMO_MODEL, environment={"NOTIFY_SOCKET": folder + "/notify"})
            self.assertEqual(manager.recv(100), b"READY=1")
            server.stop()
            self.assertEqual(manager.recv(100), b"STOPPING=1")
        # a manager that is gone is no reason to end
        server = serving.Server(DEMO_MODEL, environment={"NOTIFY_SOCKET": folder + "/notify"})
        server.stop()

    def test_unit(self):
        text = UNIT.read_text()
        command = re.search(r"^ExecStart=/usr/bin/rdna serve (.*)$", text, re.M)[1]
        self.assertLessEqual(set(re.findall(r"--[a-z-]+", text)) - {"--drain"}, flags())
        self.assertIn("--models", command)
        stop, drain = int(re.search(r"TimeoutStopSec=(\d+)", text)[1]), int(re.search(r"--drain\b.*\((\d+)\)", output("serve", "--help").decode())[1])
        self.assertGreater(stop, drain)
        if not shutil.which("systemd-analyze"):
            self.skipTest("systemd-analyze checks the unit, and it is not installed (Debian's package systemd)")
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder) / UNIT.name
            copy.write_text(text.replace("/usr/bin/rdna", rdna_program.PROGRAM))
            verified = subprocess.run(["systemd-analyze", "verify", "--man=no", copy], capture_output=True, text=True, timeout=60)
            self.assertEqual((verified.returncode, [line for line in verified.stderr.splitlines() if UNIT.name in line]), (0, []), verified.stderr)
            # exposure in tenths, as systemd weighs it: 20 is "OK"
            exposed = subprocess.run(["systemd-analyze", "security", "--offline=true", "--threshold=20", copy], capture_output=True, text=True, timeout=60)
            self.assertEqual(exposed.returncode, 0, exposed.stdout[-600:])
            copy.write_text(copy.read_text().replace("Type=notify", "Type=notfy").replace("ProtectSystem=strict", ""))
            verified = subprocess.run(["systemd-analyze", "verify", "--man=no", copy], capture_output=True, text=True, timeout=60)
            self.assertIn("notfy", verified.stderr)  # it does look

    def test_image(self):
        text = IMAGE.read_text()
        base = re.search(r"^FROM (\S+)$", text, re.M)[1]
        self.assertEqual(base, "docker.io/library/debian:12-slim")
        steps = re.findall(r"^(\w+)", re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", text, flags=re.M)), re.M)
        self.assertLessEqual(set(steps), {"FROM", "ARG", "RUN", "COPY", "USER", "EXPOSE", "ENTRYPOINT", "CMD"})
        self.assertLess(steps.index("COPY"), steps.index("USER"))
        entry, rest = (json.loads(re.search(rf"^{step} (\[.*\])$", text, re.M)[1]) for step in ("ENTRYPOINT", "CMD"))
        self.assertEqual(entry[:2], ["/usr/bin/rdna", "serve"])
        self.assertLessEqual({word for word in entry + rest if word.startswith("--")}, flags())
        # what the program links is installed, each library by its Debian package
        wanted = set()
        needed = subprocess.run(["readelf", "-d", rdna_program.PROGRAM], capture_output=True, text=True, check=True).stdout
        linked = dict(re.findall(r"^\s+(\S+) => (\S+)", subprocess.run(["ldd", rdna_program.PROGRAM], capture_output=True, text=True, check=True).stdout, re.M))
        for name in set(re.findall(r"\(NEEDED\).*\[(.+)\]", needed)) & set(linked):
            path = linked[name].removeprefix("/usr")
            found = subprocess.run(["dpkg", "-S", path, "/usr" + path], capture_output=True, text=True).stdout
            if not found:
                self.skipTest(f"no Debian package has {linked[name]}, so the packages that the image installs cannot be told")
            wanted.add(found.split(":")[0])
        installed = set(re.search(r"no-install-recommends \\\n(.*?)\\\n", text, re.S)[1].split())
        here_alone = {"libc6", "libgcc-s1", "libasan8", "libubsan1"}  # which the base has, and a build with sanitizers
        self.assertEqual(installed - {"$HIP"}, wanted - here_alone)
        hip = re.search(r"^ARG HIP=(\S+)$", text, re.M)[1]
        self.assertIn(hip, (ROOT / "packaging/debian-packages.txt").read_text().split())

    def test_cluster(self):
        text = CLUSTER.read_text()
        documents = [part for part in text.split("\n---\n")]
        kinds = [re.search(r"^kind: (\w+)$", part, re.M)[1] for part in documents]
        self.assertEqual(kinds, ["ConfigMap", "Deployment", "Service"])
        open_routes = set(re.findall(r'\{"GET", "([^"]+)", \w+, &\w+, true, WORK_ANY\}', (ROOT / "src/server/routes.c").read_text()))
        probes = re.findall(r"path: (/\S+), port: http", text)
        self.assertEqual(len(probes), 3)
        self.assertLessEqual(set(probes), open_routes)  # probes have no key
        self.assertLessEqual(set(re.findall(r"--[a-z-]+", re.search(r"args: (\[.*\])", text)[1])), flags())
        with contextlib.suppress(ImportError):
            import yaml
            parsed = list(yaml.safe_load_all(text))
            self.assertEqual([part["kind"] for part in parsed], kinds)
            models = json.loads(parsed[0]["data"]["models.json"])
            self.assertTrue(models["models"])
            container = parsed[1]["spec"]["template"]["spec"]["containers"][0]
            self.assertEqual(container["args"][:2], ["--models", "/etc/rdna/models.json"])
            self.assertGreater(parsed[1]["spec"]["template"]["spec"]["terminationGracePeriodSeconds"], 30)

    def test_a_signal_while_models_are_loaded(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        process = subprocess.Popen([rdna_program.PROGRAM, "serve", DEMO_MODEL, "--port", str(port), "--device", rdna_program.DEVICE], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break  # it listens before the model is there
            except ConnectionRefusedError:
                self.assertIsNone(process.poll())
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0)


if __name__ == "__main__":
    unittest.main()

"""What tests of rdna serve share: a server of the demo model with a chat template in its file, and plain HTTP."""
import contextlib
import functools
import http.client
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time

import rdna_program
from rdna_program import DEMO_MODEL, output

EMULATOR = pathlib.Path(rdna_program.PROGRAM).parent.parent / "emulator/librdna_emulator.so"

TEMPLATE = """{{ bos_token }}{% for m in messages %}
{%- if m.role == 'system' and not loop.first %}{{ raise_exception('system messages come first') }}{% endif %}
{{- m.role | capitalize + ': ' + m.content | trim + '\\n' }}{% endfor %}{% if add_generation_prompt %}And he said,{% endif %}"""


def write_model(folder, template=TEMPLATE, tags=(), pooling=None):
    """The demo model with a chat template, and |tags| in place of its last tokens; |pooling|: it gives vectors too."""
    import gguf_file as gf
    path = pathlib.Path(folder) / "chat.gguf"
    file = gf.Reader(DEMO_MODEL)
    user_defined = 4
    for i, tag in enumerate(tags, 1):
        file.keys["tokenizer.ggml.tokens"][-i] = tag
        file.keys["tokenizer.ggml.token_type"][-i] = user_defined
    keys = [(key, *gf.typed(value)) for key, value in file.keys.items() if key != "general.file_type"]
    if pooling is not None:
        keys.append(("llama.pooling_type", gf.U32, pooling))
    gf.write(path, keys + [("tokenizer.chat_template", gf.TEXT, template)],
             [(name, gf.TENSOR_F32, array) for name, array in file.tensors.items()])
    return path


def at_end(case, clean_up):
    """Calls clean_up when a test, or a class of them, has ended."""
    (case.addClassCleanup if isinstance(case, type) else case.addCleanup)(clean_up)


def folder_for(case):
    """A folder that is there as long as a test, or a class of them, runs."""
    folder = tempfile.TemporaryDirectory()
    at_end(case, folder.cleanup)
    return pathlib.Path(folder.name)


def serve_for(case, *arguments, **more):
    """A Server that runs as long."""
    server = Server(*arguments, **more)
    at_end(case, server.stop)
    return server


def wait_for(what, seconds=60):
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.005)


class Server:
    """A running rdna serve on a port of its own."""

    def __init__(self, model, *options, environment=None, device=rdna_program.DEVICE, model_option=None, stderr=subprocess.PIPE):
        arguments = [*([model_option] if model_option else []), model, "--port", 0, *(["--device", device] if device else []), *options]
        self.process = subprocess.Popen([rdna_program.PROGRAM, "serve", *map(str, arguments)], stdout=subprocess.PIPE,
                                        stderr=stderr, text=True, env={**os.environ, **(environment or {})})
        self.line = self.process.stdout.readline()
        assert "http://" in self.line, f"rdna serve did not start: {self.process.communicate()[1]}"
        self.port = int(self.line.split("http://127.0.0.1:")[1].split(",")[0])
        self.url = f"http://127.0.0.1:{self.port}"

    def stop(self, how=signal.SIGTERM, timeout=600):
        """Ends it; its status, which must be 0, and what it said on stderr."""
        if self.process.returncode is None:
            self.process.send_signal(how)
        stderr = self.process.communicate(timeout=timeout)[1]
        assert self.process.returncode == 0, f"rdna serve: exit status {self.process.returncode}: {stderr}"
        return stderr

    def ask(self, method, path, body=None, headers=None, timeout=300):
        """(status, headers, text); a body that is no bytes is sent as JSON."""
        status, found, data = self.ask_bytes(method, path, body, headers, timeout)
        return status, found, data.decode()

    def ask_bytes(self, method, path, body=None, headers=None, timeout=300):
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)) as connection:
            data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            connection.request(method, path, data, {"Content-Type": "application/json", **(headers or {})})
            response = connection.getresponse()
            return response.status, response.headers, response.read()

    def post(self, path, **body):
        status, _, text = self.ask("POST", path, body)
        assert status == 200, f"{path}: {status} {text}"
        return json.loads(text)

    def metrics(self):
        lines = self.ask("GET", "/metrics")[2].splitlines()
        return {line.split()[0].removeprefix("rdna_"): float(line.split()[1]) for line in lines if line[0] != "#"}


@functools.lru_cache(None)
def greedy(model, prompt, count, *options):
    """What rdna run writes."""
    return json.loads(output("run", model, prompt, "--json", "--greedy", "--max-tokens", count, "--device", rdna_program.DEVICE, *options))

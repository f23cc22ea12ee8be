"""Two replicas of rdna serve behind Ray Serve, as examples/serve/ray_serve.py has it: what they write is what rdna run
writes, both work, streams come through, and one that dies is replaced. For tests/nightly.sh: Ray is half a gigabyte."""
import concurrent.futures
import http.client
import json
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
if os.environ.get("RDNA_RAY_PYTHON") != sys.executable:
    python = subprocess.run([ROOT / "packaging/ray-venv.sh"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    os.execve(python, [python, *sys.argv], {**os.environ, "RDNA_RAY_PYTHON": python})

sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "examples/serve")]
import rdna_program

os.environ.update(RDNA_PROGRAM=str(pathlib.Path(rdna_program.PROGRAM).resolve()), RDNA_MODEL=str(rdna_program.DEMO_MODEL), RDNA_OPTIONS="--device host --kv f32",
                  RDNA_GPUS="0", RDNA_REPLICAS="2", RAY_USAGE_STATS_ENABLED="0", RAY_AUTH_MODE="disabled", PYTHONPATH=str(ROOT / "examples/serve"))
import ray
import serving
from ray import serve

PROMPTS = ["And God said", "The king of Israel", "Blessed is the man", "Woe unto", "Then Moses", "Hear, O", "Behold,", "A wise son"]


def ask(method, path, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", 8000, timeout=120)
    connection.request(method, path, json.dumps(body) if body else None)
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response.status, text


def workers(count):
    """The replicas that answer |count| requests, each with its process."""
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        return {json.loads(text)["worker_id"] for status, text in pool.map(lambda _: ask("GET", "/v1/ready"), range(count)) if status == 200}


def stream(prompt):
    status, text = ask("POST", "/v1/completions", {"prompt": prompt, "max_tokens": 20, "temperature": 0, "stream": True})
    assert status == 200 and text.endswith("data: [DONE]\n\n"), (status, text)
    return "".join(json.loads(line[6:])["choices"][0]["text"] for line in text.split("\n\n")[:-2])


def main():
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False)
    import ray_serve
    serve.run(ray_serve.app)
    try:
        wants = [serving.greedy(rdna_program.DEMO_MODEL, prompt, 20, "--kv", "f32")["text"] for prompt in PROMPTS]
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            assert list(pool.map(stream, PROMPTS * 4)) == wants * 4
        found = workers(64)
        assert len(found) == 2, found
        status, text = ask("POST", "/v1/completions", {"prompt": "x", "model": "other"})
        assert (status, json.loads(text)["error"]["code"]) == (404, "model_not_found"), text  # errors come through as they are
        victim = subprocess.run(["pgrep", "-f", f"worker-id {min(found)} "], capture_output=True, text=True, check=True).stdout.split()[0]
        os.kill(int(victim), 9)
        deadline = time.monotonic() + 120
        while len(now := workers(32)) < 2 or min(found) in now:
            assert time.monotonic() < deadline, (found, now)
            time.sleep(1)
        assert stream(PROMPTS[0]) == wants[0]
    finally:
        serve.shutdown()
        ray.shutdown()
    left = subprocess.run(["pgrep", "-f", "worker-id " + "|worker-id ".join(found | now)], capture_output=True, text=True).stdout.split()
    assert not left, f"processes are left: {left}"
    print("32 streams through two replicas equal rdna run; one that died was replaced")


if __name__ == "__main__":
    main()

"""rdna serve behind Ray Serve: each replica has a server of its own, and Ray gives requests to the replica that is free.

    pip install "ray[serve]"
    RDNA_MODEL=chat.gguf serve run examples.serve.ray_serve:app        # from the repository, or with this folder as path
    curl -N http://127.0.0.1:8000/v1/completions -d '{"prompt": "Once", "max_tokens": 16, "stream": true}'

From the environment: RDNA_PROGRAM (rdna), RDNA_MODEL, RDNA_OPTIONS (more options of rdna serve), RDNA_REPLICAS (2),
RDNA_GPUS, the cards that Ray gives each replica (1; 0 for the host)."""
import asyncio
import os
import shlex
import subprocess

import aiohttp
import fastapi
from fastapi.responses import StreamingResponse
from ray import serve

front = fastapi.FastAPI()
HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "host", "content-length"}


@serve.deployment(num_replicas=int(os.environ.get("RDNA_REPLICAS", "2")), max_ongoing_requests=64,
                  ray_actor_options={"num_cpus": 1, "num_gpus": float(os.environ.get("RDNA_GPUS", "1"))})
@serve.ingress(front)
class Rdna:
    def __init__(self, program, model, options):
        name = serve.get_replica_context().replica_id.unique_id
        self.process = subprocess.Popen([program, "serve", model, "--port", "0", "--worker-id", name, *options], stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()  # when the model is loaded
        if "http://" not in line:
            raise RuntimeError(f"rdna serve did not start: exit status {self.process.wait()}")
        self.url = "http://" + line.split("http://")[1].split(",")[0]
        self.session = None

    async def check_health(self):
        """Asked by Ray, which starts another replica where this fails."""
        if self.process.poll() is not None:
            raise RuntimeError(f"rdna serve ended: exit status {self.process.returncode}")
        async with self.connect().get(self.url + "/health") as answer:
            if answer.status != 200:
                raise RuntimeError(f"rdna serve: {await answer.text()}")

    def connect(self):
        if self.session is None:
            self.session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None), auto_decompress=False)
        return self.session

    @front.api_route("/{path:path}", methods=["GET", "POST", "OPTIONS"])
    async def forward(self, request: fastapi.Request):
        headers = {key: value for key, value in request.headers.items() if key not in HOP_BY_HOP}
        answer = await self.connect().request(request.method, self.url + request.url.path, data=await request.body(), headers=headers)

        async def parts():
            try:
                async for part in answer.content.iter_any():
                    yield part
            finally:
                answer.close()  # also when the client has gone: the text ends then

        kept = {key: value for key, value in answer.headers.items() if key.lower() not in HOP_BY_HOP}
        return StreamingResponse(parts(), status_code=answer.status, headers=kept)

    async def __del__(self):
        self.process.terminate()  # it ends what it is writing first
        if self.session is not None:
            await self.session.close()
        await asyncio.to_thread(self.process.wait)


app = Rdna.bind(os.environ.get("RDNA_PROGRAM", "rdna"), os.environ.get("RDNA_MODEL", ""), shlex.split(os.environ.get("RDNA_OPTIONS", "")))

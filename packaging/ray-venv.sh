#!/bin/bash
# Makes build/venv-ray: Python with Ray Serve, for examples/serve/ray_serve.py. Prints its interpreter.
set -euo pipefail
cd "$(dirname "$0")/.."
. packaging/venv.sh
make_venv build/venv-ray "numpy ray[serve]==2.60.0 aiohttp"

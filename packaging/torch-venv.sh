#!/bin/bash
# Makes build/venv-torch-VERSION: Python with that PyTorch and what the tests need beside it. Prints its interpreter.
# packaging/torch-venv.sh [TORCH_VERSION]
set -euo pipefail
cd "$(dirname "$0")/.."
. packaging/venv.sh
version=${1:-2.13.0}
venv=build/venv-torch-$version
torch() { # the CPU's build is a tenth of the others' size; indexes that do not have it have one without the mark
  install_packages "$venv" "torch==$version+cpu" >/dev/null 2>&1 || install_packages "$venv" "torch==$version" >&2
}
# Triton: the release that this PyTorch's Inductor knows
# transformers and diffusers: what language models and schedules of pictures are compared with, 180 MB beside PyTorch's 700
make_venv "$venv" "numpy pytest expecttest scikit-learn triton==3.7.0 transformers==5.23.0 diffusers==0.42.1 keras==3.15.1" torch

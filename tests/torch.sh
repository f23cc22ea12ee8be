#!/bin/bash
# The PyTorch plugin: builds it against a build of librdna and runs its tests on the host driver. tests/torch.sh [BUILD]
# Where PyTorch cannot be installed it fails; RDNA_TEST_TORCH=0 leaves the plugin out.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build/release}
[ "${RDNA_TEST_TORCH:-1}" = 0 ] && { echo "left out: RDNA_TEST_TORCH=0"; exit 0; }
if ! python=$(packaging/torch-venv.sh); then
  echo "PyTorch could not be installed, so the plugin was neither built nor run; RDNA_TEST_TORCH=0 leaves it out" >&2
  exit 1
fi
cmake -S bindings/torch -B build/torch -G Ninja -DRDNA_DIR="$PWD/$build/lib" -DPython3_EXECUTABLE="$python" \
  -DCMAKE_BUILD_TYPE=Release >build/torch.configure.log 2>&1 || { cat build/torch.configure.log; exit 1; }
cmake --build build/torch
export PYTHONPATH=$PWD/build/torch PYTHONDONTWRITEBYTECODE=1 RDNA_DRIVER=host
"$python" -m pytest -q -p no:cacheprovider bindings/torch/tests
# PyTorch's own samples: all of f32 forward, and a share of the rest that moves with the commit, so that a few dozen
# commits see all of it. All of them, of all types: bindings/torch/tests/opinfo.py --all
"$python" bindings/torch/tests/opinfo.py
turn=$((16#$(git rev-parse --short=7 HEAD 2>/dev/null || echo 0)))
share() { # of N, options: the share whose turn it is
  echo "opinfo.py --share $((turn % $1 + 1))/$1 ${*:2}"
  "$python" bindings/torch/tests/opinfo.py --share "$((turn % $1 + 1))/$1" "${@:2}"
}
share 20 --grad
share 20 --kind out
share 20 --kind inplace
share 5 --kind errors
share 20 --dtype float64
share 20 --dtype bfloat16 --kind forward,grad
share 20 --dtype int64

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
# a fixed share of PyTorch's own samples; all of them, of all types: bindings/torch/tests/opinfo.py --all
"$python" bindings/torch/tests/opinfo.py --share 3/10
"$python" bindings/torch/tests/opinfo.py --share 7/20 --grad
"$python" bindings/torch/tests/opinfo.py --share 4/20 --kind out
"$python" bindings/torch/tests/opinfo.py --share 9/20 --kind inplace
"$python" bindings/torch/tests/opinfo.py --share 2/5 --kind errors

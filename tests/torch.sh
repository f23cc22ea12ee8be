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
export PYTHONPATH=$PWD/build/torch:$PWD/bindings/python PYTHONDONTWRITEBYTECODE=1 RDNA_DRIVER=host

# PyTorch's own samples: all of f32 forward, and a share of the rest that moves with the commit, so that a few dozen
# commits see all of it. All of them, of all types: bindings/torch/tests/opinfo.py --all
turn=$((16#$(git rev-parse --short=7 HEAD 2>/dev/null || echo 0)))
sections=(--section float32/forward)
share() { # of N, sections: the share whose turn it is
  for section in "${@:2}"; do sections+=(--section "$section:$((turn % $1 + 1))/$1"); done
}
share 20 float32/grad float32/out float32/inplace
share 5 float32/errors
share 20 float64/forward bfloat16/forward bfloat16/grad int64/forward int32/forward uint8/forward bool/forward complex64/forward complex64/grad complex128/forward

# Beside the tests, which are one process and leave the other processors idle; the last are rdna.amd's.
"$python" -m pytest -q -p no:cacheprovider bindings/torch/tests >build/torch.pytest.log 2>&1 &
tests=$! failed=0
trap 'kill $tests 2>/dev/null || true' EXIT
echo "opinfo.py ${sections[*]}"
"$python" bindings/torch/tests/opinfo.py "${sections[@]}" || failed=1
"$python" -m pytest -q -p no:cacheprovider bindings/python/tests || failed=1
wait $tests || failed=1
cat build/torch.pytest.log
exit $failed

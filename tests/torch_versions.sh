#!/bin/bash
# The PyTorch plugin on other releases of PyTorch: for each, an environment, a build of the plugin, its tests on the host
# and a share of PyTorch's operator samples. Wants a finished librdna. tests/torch_versions.sh [-b BUILD] VERSION…
# PyPI's PyTorch brings CUDA's libraries along, so that an environment takes 6 GB where the index has no CPU build.
set -uo pipefail
cd "$(dirname "$0")/.."
build=build/release
[ "${1:-}" = -b ] && { build=$2; shift 2; }
[ $# -gt 0 ] || { echo "usage: tests/torch_versions.sh [-b BUILD] VERSION…" >&2; exit 2; }
export PYTHONDONTWRITEBYTECODE=1 RDNA_DRIVER=host
one() { # VERSION
  local python folder=build/torch-$1
  python=$(packaging/torch-venv.sh "$1") || { echo "PyTorch $1 could not be installed"; return 1; }
  cmake -S bindings/torch -B "$folder" -G Ninja -DRDNA_DIR="$PWD/$build/lib" -DPython3_EXECUTABLE="$python" \
    -DCMAKE_BUILD_TYPE=Release >"$folder.configure.log" 2>&1 || { cat "$folder.configure.log"; return 1; }
  cmake --build "$folder" >"$folder.build.log" 2>&1 || { grep -A3 -E 'error:|FAILED' "$folder.build.log"; return 1; }
  grep -c 'warning:' "$folder.build.log" | sed 's/$/ warnings/'
  export PYTHONPATH=$PWD/$folder
  "$python" -m pytest -q -p no:cacheprovider bindings/torch/tests || return 1
  "$python" bindings/torch/tests/opinfo.py --share 3/20 || return 1
}
failed=()
for version in "$@"; do
  echo "== PyTorch $version"
  (one "$version") || failed+=("$version")
done
[ ${#failed[@]} -eq 0 ] || { echo "failed: ${failed[*]}"; exit 1; }

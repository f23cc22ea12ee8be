#!/bin/bash
# The TensorFlow plugin on other releases of TensorFlow: one build of it, for each release an environment and the plugin's
# tests on the host. Wants a finished librdna. tests/tensorflow_versions.sh [-b BUILD] VERSION…
set -uo pipefail
cd "$(dirname "$0")/.."
build=build/release
[ "${1:-}" = -b ] && { build=$2; shift 2; }
[ $# -gt 0 ] || { echo "usage: tests/tensorflow_versions.sh [-b BUILD] VERSION…" >&2; exit 2; }
cmake -S bindings/tensorflow -B build/tensorflow -G Ninja -DRDNA_DIR="$(realpath "$build/lib")" \
  -DCMAKE_BUILD_TYPE=Release >build/tensorflow.configure.log 2>&1 || { cat build/tensorflow.configure.log; exit 1; }
cmake --build build/tensorflow || exit 1
export TF_PLUGGABLE_DEVICE_LIBRARY_PATH=$PWD/build/tensorflow/tensorflow-plugins PYTHONPATH=$PWD/build/tensorflow
export PYTHONDONTWRITEBYTECODE=1 RDNA_DRIVER=host
failed=()
for version in "$@"; do
  echo "== TensorFlow $version"
  if ! python=$(packaging/tensorflow-venv.sh "$version"); then
    echo "TensorFlow $version could not be installed"
    failed+=("$version")
    continue
  fi
  "$python" -m pytest -q -p no:cacheprovider bindings/tensorflow/tests || failed+=("$version")
done
[ ${#failed[@]} -eq 0 ] || { echo "failed: ${failed[*]}"; exit 1; }

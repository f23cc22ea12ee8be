#!/bin/bash
# The TensorFlow plugin: builds it against a build of librdna and runs its tests on the host driver.
# tests/tensorflow.sh [BUILD [SCRIPT]]: a script of bindings/tensorflow/tests in place of the tests, soak.py
# Where TensorFlow cannot be installed it fails; RDNA_TEST_TENSORFLOW=0 leaves the plugin out.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build/release}
[ "${RDNA_TEST_TENSORFLOW:-1}" = 0 ] && { echo "left out: RDNA_TEST_TENSORFLOW=0"; exit 0; }
if ! python=$(packaging/tensorflow-venv.sh); then
  echo "TensorFlow could not be installed, so the plugin was not run; RDNA_TEST_TENSORFLOW=0 leaves it out" >&2
  exit 1
fi
cmake -S bindings/tensorflow -B build/tensorflow -G Ninja -DRDNA_DIR="$(realpath "$build/lib")" \
  -DCMAKE_BUILD_TYPE=Release >build/tensorflow.configure.log 2>&1 || { cat build/tensorflow.configure.log; exit 1; }
cmake --build build/tensorflow
export TF_PLUGGABLE_DEVICE_LIBRARY_PATH=$PWD/build/tensorflow/tensorflow-plugins PYTHONPATH=$PWD/build/tensorflow
if [ $# -gt 1 ]; then
  PYTHONDONTWRITEBYTECODE=1 RDNA_DRIVER=host TF_CPP_MIN_LOG_LEVEL=2 exec "$python" "bindings/tensorflow/tests/$2"
fi
PYTHONDONTWRITEBYTECODE=1 RDNA_DRIVER=host "$python" -m pytest -q -p no:cacheprovider bindings/tensorflow/tests

#!/bin/bash
# Makes build/venv-tensorflow-VERSION: Python with that TensorFlow and what the tests need beside it. Prints its
# interpreter. packaging/tensorflow-venv.sh [TENSORFLOW_VERSION]
set -euo pipefail
cd "$(dirname "$0")/.."
. packaging/venv.sh
version=${1:-2.21.0}
# The CPU's build: the plugin brings its own device, and the other wheel is 400 MB more.
make_venv "build/venv-tensorflow-$version" "tensorflow-cpu==$version keras==3.15.1 numpy pytest scikit-learn"

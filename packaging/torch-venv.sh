#!/bin/bash
# Makes build/venv-torch-VERSION: Python with that PyTorch and what the plugin's tests need. Quick when it is there. Prints
# its interpreter, or fails with what pip said. packaging/torch-venv.sh [TORCH_VERSION]
set -euo pipefail
cd "$(dirname "$0")/.."
version=${1:-2.13.0}
venv=build/venv-torch-$version
if [ ! -e "$venv/complete" ]; then
  mkdir -p build
  python3 -m venv "$venv" >&2
  # the CPU's build is a tenth of the others' size; indexes that do not have it have one without the mark
  "$venv/bin/pip" install --quiet --disable-pip-version-check "torch==$version+cpu" >/dev/null 2>&1 ||
    "$venv/bin/pip" install --quiet --disable-pip-version-check "torch==$version" >&2
  "$venv/bin/pip" install --quiet --disable-pip-version-check numpy pytest expecttest scikit-learn >&2
  touch "$venv/complete"
fi
echo "$PWD/$venv/bin/python"

#!/bin/bash
# Makes build/venv-torch-VERSION: Python with that PyTorch and what the tests need beside it. Quick when it is there. Prints
# its interpreter, or fails with what pip said. packaging/torch-venv.sh [TORCH_VERSION]
set -euo pipefail
cd "$(dirname "$0")/.."
version=${1:-2.13.0}
venv=build/venv-torch-$version
# transformers: what the architectures of language models are compared with, 150 MB beside PyTorch's 700
packages="numpy pytest expecttest scikit-learn transformers==5.23.0"
mkdir -p build
# Suites that need it run side by side: the first to come makes it, the others wait here until it is whole.
exec 9>"$venv.lock"
flock 9
if [ "$(cat "$venv/complete" 2>/dev/null)" != "$packages" ]; then
  python3 -m venv "$venv" >&2
  # the CPU's build is a tenth of the others' size; indexes that do not have it have one without the mark
  "$venv/bin/pip" install --quiet --disable-pip-version-check "torch==$version+cpu" >/dev/null 2>&1 ||
    "$venv/bin/pip" install --quiet --disable-pip-version-check "torch==$version" >&2
  # shellcheck disable=SC2086 # one word a package
  "$venv/bin/pip" install --quiet --disable-pip-version-check $packages >&2
  echo "$packages" >"$venv/complete"
fi
echo "$PWD/$venv/bin/python"

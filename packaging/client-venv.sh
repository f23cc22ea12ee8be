#!/bin/bash
# Makes build/venv-clients: Python with the official clients of the interfaces that rdna serve has. Quick when it is
# there. Prints its interpreter, or fails with what pip said.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=build/venv-clients
packages="numpy openai==3.54.0 anthropic==2.12.0 ollama==0.6.3"
mkdir -p build
# Suites that need it run side by side: the first to come makes it, the others wait here until it is whole.
exec 9>"$venv.lock"
flock 9
if [ "$(cat "$venv/complete" 2>/dev/null)" != "$packages" ]; then
  python3 -m venv "$venv" >&2
  # shellcheck disable=SC2086 # one word a package
  "$venv/bin/pip" install --quiet --disable-pip-version-check $packages >&2
  echo "$packages" >"$venv/complete"
fi
echo "$PWD/$venv/bin/python"

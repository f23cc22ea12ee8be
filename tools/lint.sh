#!/bin/bash
# Layout, that no folder includes upward, sizes, reasons of skips, and clang-tidy over the build's compile commands: tools/lint.sh BUILD
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build/release}
failed=0

echo "== layout"
git ls-files '*.c' '*.h' '*.hip' '*.cpp' | xargs clang-format-19 --dry-run --Werror || failed=1

echo "== folders"
python3 tools/check_layers.py || failed=1

echo "== sizes"
python3 tools/check_sizes.py || failed=1

echo "== skips"
python3 tools/check_skips.py || failed=1

echo "== clang-tidy"
python3 - "$build" <<'PY' | xargs -P "$(nproc)" -n 8 clang-tidy-19 -p "$build" --quiet --warnings-as-errors='*' 2>/dev/null || failed=1
import json, os, sys
commands = json.load(open(os.path.join(sys.argv[1], "compile_commands.json")))
root = os.getcwd()
# a host twin is compiled once for each instruction set: once is enough here
print("\n".join(sorted({c["file"] for c in commands if c["file"].startswith(root + "/") and "/build/" not in c["file"]})))
PY
[ $failed -eq 0 ] && echo "lint: clean"
exit $failed

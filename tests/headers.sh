#!/bin/bash
# Every public header compiles on its own as C17 and as C++17, and op.h has all of op/: tests/headers.sh CC
set -euo pipefail
cd "$(dirname "$0")/.."
count=0
while read -r header; do
  echo "#include \"rdna/$header\"" | "$1" -x c -std=c17 -Wall -Wextra -Wpedantic -Werror -Iinclude -fsyntax-only -
  echo "#include \"rdna/$header\"" | "$1" -x c++ -std=c++17 -Wall -Wextra -Werror -Iinclude -fsyntax-only -
  count=$((count + 1))
done < <(cd include/rdna && find . -name '*.h' -printf '%P\n' | sort)
reached=$("$1" -M -Iinclude include/rdna/op.h)
for header in include/rdna/op/*.h; do
  grep -q "$header" <<<"$reached" || { echo "include/rdna/op.h does not include $header"; exit 1; }
done
echo "$count headers"

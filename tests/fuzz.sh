#!/bin/bash
# Runs every libFuzzer target for a time, each from the corpus it left: tests/fuzz.sh SECONDS [NAME…]
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-600}
shift || true
cmake --preset fuzz >/dev/null
cmake --build build/fuzz
names=("$@")
[ ${#names[@]} -gt 0 ] || mapfile -t names < <(find build/fuzz/bin -name '*_fuzz' -printf '%f\n' | sort)
for name in "${names[@]}"; do
  mkdir -p "build/fuzz/corpus/$name"
  echo "== $name, $seconds s"
  (cd build/fuzz && "bin/$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=4096 -print_final_stats=1 \
    "corpus/$name" 2>&1 | tail -n 12)
done

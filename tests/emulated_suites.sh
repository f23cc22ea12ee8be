#!/bin/bash
# The suites of operators on an emulated GPU for which the everyday build makes no pack, checker on.
# tests/emulated_suites.sh BUILD GPU PACK [SUITE ...]
# PACK is the target whose kernels the GPU runs (src/device/targets.def). Prints each suite with its seconds, and fails
# where one does.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1 gpu=$2 pack=$3
shift 3
cmake --build "$build" --target "kernels_$pack"
export RDNA_EMULATE=$gpu RDNA_EMULATE_CHECK=1 RDNA_TEST_DEVICE=hip
mapfile -t suites < <(printf '%s\n' "$@" | sed '/^$/d')
if [ ${#suites[@]} -eq 0 ]; then
  mapfile -t suites < <(ctest --test-dir "$build" -N | sed -n 's/^ *Test *#[0-9]*: emulator\.gfx1100\.//p')
fi
[ ${#suites[@]} -gt 0 ] || { echo "$build has no suites of operators on an emulated GPU"; exit 1; }

log=$(mktemp)
trap 'rm -f "$log"' EXIT
failed=0
for suite in "${suites[@]}"; do
  began=$SECONDS result=passed
  timeout 3600 "$build/bin/$suite" >"$log" 2>&1 || { result=FAILED failed=$((failed + 1)); tail -40 "$log"; }
  printf '%-24s %-7s %5d s\n' "$suite" $result $((SECONDS - began))
done
echo "$gpu: ${#suites[@]} suites, $failed failed"
[ $failed -eq 0 ]

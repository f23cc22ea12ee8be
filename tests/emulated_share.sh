#!/bin/bash
# A share of the kernels on an emulated GPU for which the everyday build makes no pack: families in turn with the commit,
# compiled alone, their cases with the checker on. tests/emulated_share.sh BUILD GPU PACK ONE_IN CASES [FAMILY ...]
# PACK is the target whose kernels the GPU runs (src/device/targets.def); one family in ONE_IN is taken, of those named if
# any are.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1 gpu=$2 pack=$3 one_in=$4 cases=$5
shift 5
commit=$((16#$(git rev-parse --short=7 HEAD 2>/dev/null || echo 0)))
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT

families=() images=() at=0
for source in src/math/*/*.hip; do
  [[ $# -eq 0 || " $* " == *" $(basename "$source" .hip) "* ]] || continue
  at=$((at + 1))
  if [ $(((at + commit) % one_in)) -eq 0 ]; then
    families+=("$(basename "$source" .hip)")
    images+=("kernels/$pack/${families[-1]}.hsaco")
  fi
done
[ ${#families[@]} -gt 0 ] || { echo "no family is chosen: one of $one_in of $at"; exit 1; }
cmake --build "$build" --target "${images[@]}" rdna_pack_builder >"$made/log" 2>&1 || { cat "$made/log"; exit 1; }
"$(find "$build" -name rdna_pack_builder -type f | head -1)" "$made/$pack.rdnapack" "$pack" 1 "${images[@]/#/$build/}"

export RDNA_EMULATE=$gpu RDNA_EMULATE_CHECK=1 RDNA_KERNEL_PATH=$made
case $gpu in gfx908 | gfx90a | gfx942) export RDNA_EMULATE_LINT=1 ;; esac
for family in "${families[@]}"; do
  code=0
  "$build/bin/cases_test" hip "$cases" "=$family" "$commit" 2>"$made/said" || code=$?
  cat "$made/said"
  [ $code -eq 0 ] || exit $code
  # lints are no errors, but these: waits that matrix units leave to the compiler
  ! grep -q "the hardware does not wait" "$made/said" || { echo "$gpu: $family lacks wait states"; exit 1; }
done
echo "$gpu: ${#families[@]} families of $at"

#!/bin/bash
# An entry that is not whole, of the list of GPUs, of the kernel families, of the block formats or of the pointwise
# operations, stops the build with a sentence that names it. tests/incomplete_lists.sh CMAKE
set -uo pipefail
cmake=$1 root=$(realpath "$(dirname "$0")/..") failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

refused() { # what the sentence must hold, command…
  local wanted=$1 said
  shift
  if said=$("$@" 2>&1); then
    echo "accepted: $wanted"
    failed=1
  elif [[ $(tr -s ' \n' ' ' <<<"$said") != *"$wanted"* ]]; then
    echo "refused without '$wanted': $said"
    failed=1
  fi
}

mkdir -p "$work/targets/src/device"
printf 'cmake_minimum_required(VERSION 3.18)\nproject(targets NONE)\ninclude(%s/cmake/targets.cmake)\n' "$root" \
  >"$work/targets/CMakeLists.txt"
with_row() { # configures with one row more
  { cat "$root/src/device/targets.def" && echo "$1"; } >"$work/targets/src/device/targets.def"
  "$cmake" -S "$work/targets" -B "$work/targets/build"
}
while IFS='|' read -r row why; do
  refused "src/device/targets.def: $row $why" with_row "$row"
done <<'ROWS'
RDNA_AMD_TARGET(gfx1250, 0x49, card, "")|the row is not whole
RDNA_AMD_TARGET(gfx1250, card, "", own)|the row is not whole
RDNA_AMD_TARGET(gfx1250, 0x49, card, "", mine)|its pack is 'mine'
RDNA_AMD_TARGET(gfx1250, 0x49, card, "gfx1251", none)|gfx1251, whose code it is to run, is no row
RDNA_AMD_TARGET(gfx1250, 0x49, card, "gfx900", none)|gfx900, whose code it is to run, is no row, or a name of another length
RDNA_AMD_TARGET(gfx1250, 0x49, card, "", gfx1101)|gfx1101, on which its pack is to be based, has no pack of its own
RDNA_AMD_TARGET(gfx1250, 0x4e, card, "", own)|another row has gfx1250 or 0x4e
RDNA_AMD_TARGET(gfx1201, 0x49, card, "", own)|another row has gfx1201 or 0x49
RDNA_SERIES(gfx13, "RX 10000", 7)|the row is not whole
RDNA_NVIDIA_TARGET(sm_100, own)|the row is not whole
ROWS
with_row 'RDNA_AMD_TARGET(gfx1250, 0x49, card, "gfx1201", gfx1100)' >/dev/null || { echo "a whole row is refused" && failed=1; }

families() { "$cmake" -DROOT="$work" -DOUT="$work/families.h" -P "$root/cmake/families.cmake"; }
mkdir -p "$work/math/one" "$work/math/two"
touch "$work/math/one/one.hip"
echo '#define RDNA_ONE_KERNELS(X) X(one, struct one_args, 256, rdna__one_case)' >"$work/math/one/one_kernels.h"
families >/dev/null && grep -q '  FAMILY(one, RDNA_ONE_KERNELS)$' "$work/families.h" || { echo "a whole family is refused" && failed=1; }
touch "$work/math/two/two.hip"
refused "math/two/two.hip has no list of kernels: define RDNA_TWO_KERNELS(X)" families
echo '#define RDNA_TWO_KERNELS(X)' >"$work/math/two/two_kernels.h"
echo '#define RDNA_THREE_KERNELS(X)' >"$work/math/two/three_kernels.h"
refused "three_kernels.h defines RDNA_THREE_KERNELS, but there is no three.hip beside it" families
echo '#define RDNA_TWO_KERNELS(X)' >"$work/math/two/three_kernels.h"
refused "defines RDNA_TWO_KERNELS a second time" families

format_files=(include/rdna/tensor.h src/base/block_formats.h src/base/tensor.c src/kernel/case.c
              src/math/quant/testing_blocks.h tools/gguf_file.py)
mkdir -p "$work/formats"
printf 'cmake_minimum_required(VERSION 3.18)\nproject(formats NONE)\ninclude(%s/cmake/formats.cmake)\n' "$root" \
  >"$work/formats/CMakeLists.txt"
with_edit() { # configures with one of the files edited by sed
  (cd "$root" && cp --parents "${format_files[@]}" "$work/formats") && sed -i "$2" "$work/formats/$1"
  "$cmake" -S "$work/formats" -B "$work/formats/build"
}
while IFS='|' read -r file edit why; do
  refused "$why" with_edit "$file" "$edit"
done <<'ROWS'
src/base/block_formats.h|s/Q5_0, 6, 32, 22, /Q5_0, 6, 32, /|src/base/block_formats.h: F(X, q5_0, Q5_0, 6, 32, PACKED, PLAIN,
src/base/block_formats.h|s/Q5_0, 6, 32, /Q5_0, 6, 64, /|the row is not whole: F(X, name, NAME, ggml's number, 32 or 256 values
src/base/block_formats.h|s/Q5_0, 6, 32, 22, PACKED/Q5_0, 6, 32, 22, /|the row is not whole
src/base/block_formats.h|s/[.]low_at = 6, //|src/base/block_formats.h: the row of Q5_0 has no .low_at
src/base/block_formats.h|s/q5_0, Q5_0,/q5_9, Q5_9,/|include/rdna/tensor.h lacks ' RDNA_Q5_9,', the enumerator of Q5_9
include/rdna/tensor.h|s/^  RDNA_DTYPE_COUNT/  RDNA_Q5_9,\n&/|src/base/tensor.c lacks '[RDNA_Q5_9] =', the row (src/base/block_formats.h has none) of RDNA_Q5_9
src/math/quant/testing_blocks.h|s/case RDNA_Q5_0:/default:/|src/math/quant/testing_blocks.h lacks 'case RDNA_Q5_0:', the definition for tests of Q5_0
tools/gguf_file.py|s/TENSOR_Q5_0/TENSOR_Q5/g|tools/gguf_file.py lacks 'TENSOR_Q5_0', the number and the formula of Q5_0
src/kernel/case.c|s/[[]RDNA_F8_E5M2[]] =/[1] =/|src/kernel/case.c lacks '[RDNA_F8_E5M2] =', the poison of RDNA_F8_E5M2
ROWS
with_edit tools/gguf_file.py '' >/dev/null || { echo "whole formats are refused" && failed=1; }

mkdir -p "$work/include/rdna/op"
with_operation() { # compiles the checks of the list with one map more
  while IFS= read -r line; do
    [[ $line == *"new maps go above"* ]] && echo "$1 \\"
    echo "$line"
  done <"$root/include/rdna/op/pointwise.def" >"$work/include/rdna/op/pointwise.def"
  cc -std=gnu17 -fsyntax-only -I"$work/include" -I"$root/src" -x c "$root/src/math/pointwise/pointwise_check.h"
}
while IFS='|' read -r row why; do
  refused "include/rdna/op/pointwise.def: NEW: $why" with_operation "$row"
done <<'ROWS'
SIMPLE(NEW, , R, NO, NONE, x)|it has no name
SIMPLE(NEW, new, R, NO, x)|a SIMPLE row has the columns
ELEMENTARY(NEW, new, R, NO, NONE, x)|an ELEMENTARY row has the columns
SIMPLE(NEW, new, F32, NO, NONE, x)|the column |types| is F32
SIMPLE(NEW, new, R, YES, NONE, x)|the column |chain| is YES
SIMPLE(NEW, new, RI, NO, NONE, x)|it is offered for RI, and its expression for integers is NONE
SIMPLE(NEW, new, R, NO, x, x)|it is offered for R, and its expression for integers is x
SIMPLE(NEW, new, I, NO, x, x)|it is offered for I, and its expressions for floating types are x
ELEMENTARY(NEW, new, R, NO, NONE, x, NONE)|it is offered for R, and its expressions for floating types are x and NONE
ROWS
with_operation 'ELEMENTARY(NEW, new, RI, FAST, x, x, x)' || { echo "a whole operation is refused" && failed=1; }
exit $failed

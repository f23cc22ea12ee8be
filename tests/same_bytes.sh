#!/bin/bash
# The smallest family, compiled and packed from two checkouts at different paths, gives the same bytes.
# tests/same_bytes.sh PACK_BUILDER COMPILER FLAGS…
set -euo pipefail
builder=$1
shift
root=$(realpath "$(dirname "$0")/..")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for checkout in "$work/a" "$work/another/and longer"; do
  mkdir -p "$checkout/src/math"
  cp -r "$root/include" "$checkout"
  cp -r "$root/src/kernel" "$checkout/src"
  cp -r "$root/src/math/fill" "$checkout/src/math"
  cd "$checkout"
  "$@" -I"$checkout/src" -I"$checkout/include" "$checkout/src/math/fill/fill.hip" -o fill.hsaco
  "$builder" gfx1100.rdnapack gfx1100 9 fill.hsaco
done
cmp "$work/a/fill.hsaco" fill.hsaco
cmp "$work/a/gfx1100.rdnapack" gfx1100.rdnapack

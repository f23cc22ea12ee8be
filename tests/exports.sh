#!/bin/bash
# The shared library shows every function that include/rdna declares, and nothing else: tests/exports.sh LIBRARY
set -euo pipefail
cd "$(dirname "$0")/.."
nm --dynamic --defined-only "$1" | awk '$2 ~ /[TDBRV]/ {sub(/@.*/, "", $3); print $3}' | sort -u >/tmp/rdna-exported.$$
# a declaration is RDNA_API or RDNA_CHECKED and, behind it, a name before a parenthesis
grep -rhoE 'RDNA_(API|CHECKED) [^(;]*\(' include/rdna | grep -oE 'rdna_[a-z0-9_]+\($' | tr -d '(' | sort -u >/tmp/rdna-declared.$$
trap 'rm -f /tmp/rdna-exported.$$ /tmp/rdna-declared.$$' EXIT
if ! diff /tmp/rdna-declared.$$ /tmp/rdna-exported.$$; then
  echo "declared (<) and exported (>) names differ" >&2
  exit 1
fi
echo "$(wc -l </tmp/rdna-exported.$$) functions"

#!/bin/bash
# Installs the Debian packages of debian-packages.txt, or of the lists that are named, that are missing; quick and silent
# when none is: packaging/setup.sh [LIST.txt…]
set -euo pipefail
[ $# -gt 0 ] || set -- "$(dirname "$0")/debian-packages.txt"
missing=()
for list; do
  [ -r "$list" ] || { echo "setup: there is no list $list" >&2; exit 2; }
  while read -r package || [[ -n $package ]]; do
    [[ -z $package || $package == \#* ]] && continue
    dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
  done <"$list"
done
[ ${#missing[@]} -eq 0 ] && exit 0
if ! command -v apt-get >/dev/null; then
  echo "setup: apt-get is not here; install by hand: ${missing[*]}" >&2
  exit 1
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "setup: not root and no sudo; as root: apt-get install ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi
echo "setup: installing ${missing[*]}"
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null

#!/bin/bash
# Installs a Chromium without a window, and a font, for the tests of the web page that rdna serve has. They are 300 MB and no
# part of debian-packages.txt: without them tests/serve_browser_test.py is skipped. Quick when they are there.
set -euo pipefail
packages=(chromium-headless-shell fonts-liberation)
missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0
as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo)
echo "browser: installing ${missing[*]}"
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null

# Sourced: make_venv FOLDER "PACKAGES" [COMMAND…] makes a Python environment with these packages, where COMMAND has put
# what must come first. Quick when it is there. Prints its interpreter, or fails with what pip said.
make_venv() {
  local venv=$1 packages=$2
  shift 2
  mkdir -p build
  # Suites that need it run side by side: the first to come makes it, the others wait here until it is whole.
  exec 9>"$venv.lock"
  flock 9
  if [ "$(cat "$venv/complete" 2>/dev/null)" != "$packages" ]; then
    python3 -m venv "$venv" >&2
    "${@:-true}"
    # shellcheck disable=SC2086 # one word a package
    install_packages "$venv" $packages >&2
    echo "$packages" >"$venv/complete"
  fi
  echo "$PWD/$venv/bin/python"
}

install_packages() { # environment, packages…
  "$1/bin/pip" install --quiet --disable-pip-version-check "${@:2}"
}

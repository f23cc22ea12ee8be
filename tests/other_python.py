"""Where packages that a test needs are not to be had here, the test goes on in an environment that has them."""
import importlib.util
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def go_on_with(packages, script, setting, needs):
    """|script| of packaging/ makes the environment. Where it cannot, |setting| 0 leaves out the tests that need it, which
    is then told to be because |needs|; without that a failure is a failure."""
    if all(importlib.util.find_spec(name) for name in packages):
        return
    if os.environ.get(setting, "1") == "0":
        print(f"left out: {setting}=0, and {needs}")
        raise SystemExit(77)
    made = subprocess.run([ROOT / "packaging" / script], check=True, stdout=subprocess.PIPE, text=True)
    python = made.stdout.strip()
    os.execv(python, [python, *sys.argv])

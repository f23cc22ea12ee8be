"""Imported by tests that ask rdna serve through the interfaces' official clients: where these are not to be had here, they
go on in the environment of packaging/client-venv.sh."""
import importlib.util
import os
import pathlib
import subprocess
import sys

if not all(importlib.util.find_spec(name) for name in ("openai", "anthropic", "ollama")):
    # Where they cannot be installed, RDNA_TEST_CLIENTS=0 leaves out what needs them; anything else that fails is a failure.
    if os.environ.get("RDNA_TEST_CLIENTS", "1") == "0":
        print("left out: RDNA_TEST_CLIENTS=0, and the interfaces' clients are needed")
        raise SystemExit(77)
    ROOT = pathlib.Path(__file__).resolve().parent.parent
    python = subprocess.run([ROOT / "packaging/client-venv.sh"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    os.execv(python, [python, *sys.argv])

"""Imported by tests that compare with transformers: where it is not to be had here, they go on in the environment of
packaging/torch-venv.sh."""
import importlib.util
import os
import pathlib
import subprocess
import sys

if not importlib.util.find_spec("transformers"):
    # Where PyTorch cannot be had, RDNA_TEST_TORCH=0 leaves out what needs it; anything else that fails is a failure.
    if os.environ.get("RDNA_TEST_TORCH", "1") == "0":
        print("left out: RDNA_TEST_TORCH=0, and the reference needs PyTorch and transformers")
        raise SystemExit(77)
    ROOT = pathlib.Path(__file__).resolve().parent.parent
    python = subprocess.run([ROOT / "packaging/torch-venv.sh"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    os.execv(python, [python, *sys.argv])

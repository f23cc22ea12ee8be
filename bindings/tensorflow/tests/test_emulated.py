"""Training on emulated gfx1100, checker on: the code objects that we ship, instruction by instruction."""

import os
import pathlib
import subprocess
import sys

import releases


def emulated(script, cards, words):
    environment = {k: v for k, v in os.environ.items() if k != "RDNA_DRIVER"}
    environment.update(RDNA_EMULATE=cards, RDNA_EMULATE_CHECK="1")
    done = subprocess.run([sys.executable, str(pathlib.Path(__file__).parent / script)], env=environment,
                          capture_output=True, text=True, timeout=600, check=False)  # fmt: skip
    assert done.returncode == 0 and words in done.stdout, done.stdout[-2000:] + done.stderr[-4000:]
    assert "rdna emulator:" not in done.stderr, done.stderr[-4000:]


def test_a_tiny_cnn_trains_on_an_emulated_card():
    emulated("emulated.py", "gfx1100", "emulated and CPU")


@releases.copies_on_devices
def test_two_cards():
    emulated("two_devices.py", "gfx1100,gfx1100", "two devices compute")

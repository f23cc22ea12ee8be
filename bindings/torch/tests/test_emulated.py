"""Training on an emulated AMD card: the code objects that we ship, instruction by instruction, with the emulator's checker
on. What the tests compare with the CPU there are losses and updated weights; the checker must find nothing."""

import os
import pathlib
import subprocess
import sys

from test_device import IMPORT, emulated, run

# Each kind of net, optimizer and type once. All: RDNA_DRIVER=hip RDNA_EMULATE=gfx1100 RDNA_EMULATE_CHECK=1 pytest FILES
CHOSEN = ["test_training.py::test_training_follows_the_cpu[SmallCNN-sgd]",
          "test_training.py::test_training_follows_the_cpu[SmallTransformer-fused adamw]",
          "test_models.py::test_training_goes_as_on_the_cpu[ResNet-bf16]",
          "test_models.py::test_training_goes_as_on_the_cpu[GPT2-bf16]"]


def card():
    return emulated(RDNA_EMULATE_CHECK="1", PYTHONPATH=os.environ.get("PYTHONPATH", ""))


def test_a_small_cnn_and_a_small_transformer_train_on_an_emulated_card():
    tests = [str(pathlib.Path(__file__).parent / name) for name in CHOSEN]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("RDNA_")}
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", *tests],
                          env={**environment, **card()}, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0 and "4 passed" in done.stdout, done.stdout[-4000:] + done.stderr[-4000:]
    assert "rdna emulator" not in done.stderr and "Kernel" not in done.stderr, done.stderr[-4000:]


def test_the_checker_would_have_found_something():
    """Memory that nobody wrote is read: the checker names the kernel, and the next wait raises."""
    done = run(IMPORT + "x = torch.empty(1 << 22, device='rdna').exp()\n"
               "try: torch.rdna.synchronize()\nexcept RuntimeError as error: print('raised', error)", **card())
    assert done.stdout.startswith("raised"), done.stdout + done.stderr
    assert "rdna emulator: Kernel" in done.stderr and "nobody wrote" in done.stderr, done.stderr

"""torch.distributed in processes of their own: on the host through Gloo, on emulated cards through the stand-in of RCCL."""

import os
import pathlib
import subprocess
import sys

import pytest
from test_device import IMPORT, emulated, run

HERE = pathlib.Path(__file__).parent


def ranks(backend, tmp_path, *words, size=2, **environment):
    env = {k: v for k, v in os.environ.items() if not k.startswith("RDNA_") or k == "RDNA_KERNEL_PATH"}
    env.update(environment)
    children = [subprocess.Popen([sys.executable, "-W", "ignore", str(HERE / "ranks.py"), backend, str(r), str(size),
                                  str(tmp_path / "store"), *words],
                                 env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for r in range(size)]
    for rank, child in enumerate(children):
        out, error = child.communicate(timeout=240)
        assert child.returncode == 0 and f"rank {rank} of {size} is done" in out, out + error[-4000:]
        yield error


def test_gloo_on_copies_only_by_name(tmp_path):
    for error in ranks("rdna_gloo", tmp_path, "ddp", RDNA_DRIVER="host"):
        assert "Time stats" not in error  # DDP's timer is there


def test_rccl_on_emulated_cards(tmp_path):
    maps = pathlib.Path("/proc/self/maps").read_text().split()
    library = next(pathlib.Path(word) for word in maps if "/librdna.so" in word)
    fakes = library.parent.parent / "fakes" / "hip_math"
    if not (fakes / "librccl.so.1").exists():
        pytest.skip(f"{library} is installed; the stand-in of RCCL, which this test needs, is in a build folder alone")
    card = emulated(RDNA_EMULATE_CHECK="1", RDNA_VENDOR_PATH=str(fakes))
    for error in ranks("rdna", tmp_path, "ddp", "late", **card):
        assert "rdna emulator" not in error and "the same call" not in error, error


def test_without_rccl_it_says_so():
    start = (IMPORT + "import torch.distributed as dist, tempfile\n"
             "print(dist.Backend.default_device_backend_map['rdna'])\n"
             "dist.init_process_group('rdna', init_method='file://' + tempfile.mktemp(), rank=0, world_size=1)\n"
             "try: dist.all_reduce(torch.ones(3, device='rdna'))\nexcept Exception as error: print(type(error).__name__, error)\n")
    for words, environment in (("NotImplementedError comm: no library of collective operations serves devices of the host driver",
                                lambda: {"RDNA_DRIVER": "host"}),
                               ("librccl.so.1 is not looked for on an emulated card", emulated)):
        done = run(start, PYTHONPATH=os.environ.get("PYTHONPATH", ""), **environment())
        assert done.stdout.startswith("rdna\n") and words in done.stdout, done.stdout + done.stderr

"""Every Python block of the interface's specification and of docs/amd/ runs, with a device and without one."""

import glob
import os
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
PAGES = sorted(glob.glob(os.path.join(HERE, "..", "..", "..", "docs", "amd", "*.md")))
NO_DEVICE = {"RDNA_DRIVER": "hip", "RDNA_EMULATE": "", "RDNA_HIP_LIBRARY": "/nonexistent"}


def python(code, tmp_path, *arguments, **environment):
    path = os.pathsep.join([HERE, os.environ.get("PYTHONPATH", "")])
    # what it loads as it begins, and the compiler's own files, are nobody else's
    environment = {**os.environ, "PYTHONPATH": path, "XDG_CACHE_HOME": str(tmp_path), **environment}
    done = subprocess.run([sys.executable, "-c", code, *arguments], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


def library_path():
    """Of librdna, which a source tree has at no place that the package could know without the plugin."""
    import torch_rdna  # noqa: F401  brings it

    from rdna import _library

    return _library.path()


NO_CUDA = '("verify the installation", "CUDA")'  # torch.cuda of a PyTorch without it names no device
WHERE = {
    "device": ({}, f"torch_rdna, specification; there = specification.run([{NO_CUDA}])", "rdna"),
    # torch.cuda is rdna's, so that the block that asks it runs too
    "as cuda": ({"RDNA_AS_CUDA": "1"}, "torch_rdna, specification; there = specification.run()", "cuda"),
    "no device": (NO_DEVICE, f"specification; there = specification.run([{NO_CUDA}])", "cpu"),
    "no plugin": ({"TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "RDNA_LIBRARY": library_path()},
                  f"sys; sys.modules['torch_rdna'] = None; import specification; there = specification.run([{NO_CUDA}])",
                  "cpu"),
}


@pytest.mark.parametrize("where", WHERE)
def test_the_specification(where, tmp_path):
    environment, start, place = WHERE[where]
    said = python(f"import {start}; print('at the end', there['backend'].device, there['batch_size'], "
                  "there['loss'].item() < 1.2, there['stats'].total_mb > 0)", tmp_path, **environment)
    last = said.splitlines()[-1]
    assert last == ("at the end cpu 8 True True" if place == "cpu" else f"at the end {place}:0 32 True True")
    assert "Epoch 9: loss=" in said and "forward_pass: " in said and "Cache hit rate: " in said


RUN_PAGES = """
import re, sys, warnings
warnings.simplefilter("ignore")
count = 0
for page in sys.argv[1:]:
    with open(page) as text:
        blocks = re.findall("^```python\\n(.*?)^```$", text.read(), re.M | re.S)
    there = {"__name__": page}
    for number, block in enumerate(blocks, 1):
        exec(compile(block, f"{page}, block {number}", "exec"), there)
    count += len(blocks)
print("at the end", count)
"""


@pytest.mark.parametrize("where", ["device", "no device"])
def test_pages(where, tmp_path):
    environment, start = ({}, "import torch_rdna") if where == "device" else (NO_DEVICE, "")
    said = python(start + RUN_PAGES, tmp_path, *PAGES, **environment)
    assert int(said.split("at the end ")[-1]) >= 14


def test_there_are_pages_of_all_classes():
    text = "".join(open(page).read() for page in PAGES)
    from rdna import amd

    missing = [name for name in amd.__all__ if name not in text and amd._MODULE[name] != "optimizer"]
    assert not missing, missing


INSTALL = """
import sys, types, pytest
from rdna.compat import kernel_pytorch
kernel_pytorch.install()
kernel_pytorch.install()
import kernel_pytorch as top
import kernel_pytorch.backends.amd.amd_exceptions as theirs
from kernel_pytorch.backends import amd, nvidia
from kernel_pytorch.core import config
import kernel_pytorch.backends.amd.memory as memory
from kernel_pytorch.backends.amd import hip_utilities
from kernel_pytorch.backends.amd.amd_backend import AMDBackend, AMDDeviceInfo
from kernel_pytorch.backends.amd.amd_optimizer import AMDOptimizer, OptimizationResult
from kernel_pytorch.backends.amd.rocm_compiler import CompiledKernel, LRUCache, ROCmCompiler
from kernel_pytorch.backends.nvidia.nvidia_backend import NVIDIABackend
import kernel_pytorch.backends.amd.memory_manager as manager
import rdna.amd
assert manager is memory and hip_utilities is rdna.amd.utilities and AMDBackend is rdna.amd.AMDBackend and NVIDIABackend is nvidia.NVIDIABackend
assert amd is rdna.amd and config is rdna.amd.config and theirs is rdna.amd.amd_exceptions and memory is rdna.amd.memory
assert amd.AMDMemoryManager is memory.AMDMemoryManager and nvidia.NVIDIABackend.__name__ == "NVIDIABackend"
assert top.backends.amd is rdna.amd and top.core.config.AMDConfig is rdna.amd.AMDConfig
import torch
for wrong in ("cuda", 3):
    with pytest.raises(theirs.AMDConfigurationError, match="KernelPyTorchConfig"):
        nvidia.NVIDIABackend(wrong)
with pytest.warns(UserWarning, match="NVIDIABackend computes on the CPU"):
    backend = nvidia.NVIDIABackend()
assert backend.fallback_reason and backend.device.type == "cpu"
model = torch.nn.Linear(2, 2)
assert backend.prepare_model(model) is model
with pytest.raises(theirs.AMDBackendError, match="Module"):
    backend.prepare_model("model")
"""

SHADOWED = """
import sys, pytest
from rdna.compat import kernel_pytorch
with pytest.raises(ImportError, match="kernel_pytorch is installed at .*__init__.py"):
    kernel_pytorch.install()
assert "kernel_pytorch" not in sys.modules
import kernel_pytorch as theirs
assert theirs.there == 1
with pytest.raises(ImportError, match="replace=True"):
    kernel_pytorch_compat = sys.modules["rdna.compat.kernel_pytorch"].install()
sys.modules["rdna.compat.kernel_pytorch"].install(replace=True)
from kernel_pytorch.backends.amd import AMDBackend
"""


def test_install(tmp_path):
    if __import__("torch").cuda.is_available():
        pytest.skip("NVIDIABackend has a GPU here")
    python(INSTALL, tmp_path)
    (tmp_path / "kernel_pytorch").mkdir()
    (tmp_path / "kernel_pytorch" / "__init__.py").write_text("there = 1\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run([sys.executable, "-c", SHADOWED], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

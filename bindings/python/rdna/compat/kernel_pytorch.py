"""install() makes `from kernel_pytorch.backends.amd import AMDBackend` and its neighbours mean rdna.amd's."""

import sys
import warnings

import torch

from rdna import amd
from rdna.amd.config import AMDConfig, KernelPyTorchConfig

from ._names import begin, module

_told = set()

# The files of that interface's package, which programs import from too.
_FILES = {"amd_backend": "backend", "amd_optimizer": "optimizer", "rocm_compiler": "compiler", "memory_manager": "memory",
          "hip_utilities": "utilities"}


class NVIDIABackend:
    """Models on CUDA where PyTorch has it, else on the CPU, with the reason in fallback_reason, of which it warns once."""

    def __init__(self, config=None):
        if config is not None and not isinstance(config, (KernelPyTorchConfig, AMDConfig)):
            raise amd.AMDConfigurationError("config", config, "expected a KernelPyTorchConfig or None")
        self.config = KernelPyTorchConfig() if config is None else config
        self.fallback_reason = None if torch.cuda.is_available() else "this PyTorch finds no GPU of CUDA"
        self.device = torch.device("cpu" if self.fallback_reason else "cuda")
        if self.fallback_reason and self.fallback_reason not in _told:
            _told.add(self.fallback_reason)
            warnings.warn(f"NVIDIABackend computes on the CPU: {self.fallback_reason}", stacklevel=2)

    def prepare_model(self, model):
        """Puts |model| on the device, in place, and returns it."""
        if not isinstance(model, torch.nn.Module):
            raise amd.AMDBackendError(f"prepare_model: expected a torch.nn.Module, got {type(model).__name__}")
        return model.to(self.device)


def _module(name, package, **names):
    return module(name, package, __name__, **names)


def install(replace=False):
    """Puts kernel_pytorch, .core.config, .backends.amd with its modules and .backends.nvidia into sys.modules.
    Where a package of that name is installed, it stays, and ImportError says so; |replace| takes its name in this process.
    A second call changes nothing."""
    if not begin("kernel_pytorch", replace, "`from rdna.amd import AMDBackend`"):
        return
    top = _module("kernel_pytorch", True, _of_rdna=True)
    core = _module("kernel_pytorch.core", True, config=amd.config)
    backends = _module("kernel_pytorch.backends", True, amd=amd)
    nvidia = _module("kernel_pytorch.backends.nvidia", True, NVIDIABackend=NVIDIABackend)
    top.core, top.backends, backends.nvidia, nvidia.nvidia_backend = core, backends, nvidia, nvidia
    sys.modules.update({
        "kernel_pytorch": top,
        "kernel_pytorch.core": core,
        "kernel_pytorch.core.config": amd.config,
        "kernel_pytorch.backends": backends,
        "kernel_pytorch.backends.amd": amd,
        "kernel_pytorch.backends.nvidia": nvidia,
        "kernel_pytorch.backends.nvidia.nvidia_backend": nvidia,
    })
    for name in (*amd._PLACES, *_FILES):
        # Under all names the same module: an except of one catches what the other raises.
        found = getattr(amd, _FILES.get(name, name))
        setattr(amd, name, found)
        sys.modules[f"kernel_pytorch.backends.amd.{name}"] = found

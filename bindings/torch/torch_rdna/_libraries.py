"""Libraries that know CUDA and a few other devices by name: each learns of rdna when the program imports it.

torch.rdna imports none of them. A finder in sys.meta_path sees the modules that are listed here, and calls the function
beside a module once that has run, before the library's other modules take names from it. RDNA_LIBRARIES=0 turns it off.
"""

import importlib
import os
import sys
import warnings

import torch

# The file of this package that knows each module, of which a function has the module's name with _ for dots.
_MODULES = {
    "accelerate.accelerator": "_accelerate",
    "accelerate.state": "_accelerate",
    "accelerate.utils.modeling": "_accelerate",
    "torch._inductor.compile_fx": "_aoti",
    "torch.export.pt2_archive._package": "_aoti",
    "torch.nested._internal.sdpa": "_nested",
    "torch.nn.attention.flex_attention": "_flex_attention",
    "torch.utils.collect_env": "_collect_env",
    "safetensors.torch": "_safetensors",
    "transformers.training_args": "_transformers",
    "transformers.utils.import_utils": "_transformers",
    "bitsandbytes": "_bitsandbytes",
    "torchao.float8.inference": "_torchao",
    "torchao.prototype.mx_formats.inference_workflow": "_torchao",
    "torchao.quantization.quantize_.workflows.int4.int4_tile_packed_to_4d_tensor": "_torchao",
    "triton.runtime.driver": "_triton",
    "lightning.fabric.connector": "_lightning",
    "lightning.pytorch.trainer.connectors.accelerator_connector": "_lightning",
}


def takes(device):
    """Whether a library that chose |device| by itself shall take rdna: it found no accelerator, and there is one."""
    return torch.device(device).type == "cpu" and torch.rdna.is_available()


def replace(module, name, make):
    """module.name = make(what it was), also where modules of the same package already hold it under any name."""
    before = getattr(module, name)
    after = make(before)
    package = module.__name__.split(".")[0]
    for other in list(sys.modules.values()):
        if (getattr(other, "__name__", None) or "").split(".")[0] == package:
            for key, value in list(vars(other).items()):
                if value is before:
                    setattr(other, key, after)


def _register(module):
    name = module.__name__
    try:
        file = importlib.import_module(f"{__package__}.{_MODULES[name]}")
        getattr(file, name.replace(".", "_"))(module)
    except Exception as error:  # another release of the library, which is to run as it does without us
        warnings.warn(
            f"{name} did not learn of device 'rdna' ({error!r}); name the device yourself. RDNA_LIBRARIES=0 ends this warning",
            RuntimeWarning,
            stacklevel=2,
        )


class _Finder:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name not in _MODULES:
            return None
        for finder in sys.meta_path:
            spec = None if finder is cls else finder.find_spec(name, path, target)
            if spec is not None:
                break
        else:
            return None
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            _register(module)

        spec.loader.exec_module = exec_module
        return spec


def register():
    if os.environ.get("RDNA_LIBRARIES", "1") == "0":
        return
    sys.meta_path.insert(0, _Finder)
    for name in _MODULES:
        if name in sys.modules:
            _register(sys.modules[name])

"""Keras 3 on rdna's devices, by its PyTorch backend and PyTorch's plugin: import this before keras.

    import rdna.keras
    import keras
    model.compile(optimizer="adam", loss="mse")
    model.fit(x, y)

Models, their variables and what they compute are on torch.device("rdna") from then on, or where KERAS_TORCH_DEVICE says;
`with keras.device("cpu"):` is the processor as ever. What Keras does only for "cuda", among it cuDNN's recurrent networks, it does as for other devices.
torch.rdna.fallback_report() says which operators were computed on the processor.
"""

import os
import sys

from .amd._plugin import devices


def _begin():
    """Chooses the backend and device; ImportError, RuntimeError with what is to be done."""
    loaded = sys.modules.get("keras")
    wanted, device = os.environ.get("KERAS_BACKEND"), os.environ.get("KERAS_TORCH_DEVICE", "rdna")
    if wanted not in (None, "torch"):
        raise ImportError(f"rdna.keras: KERAS_BACKEND is {wanted!r}, and it is Keras' backend of PyTorch that runs on rdna; leave it out, or set it to 'torch'")
    there, reason = devices()
    if there is None:
        raise RuntimeError(f"rdna.keras: {reason}")
    if loaded is not None:
        core = sys.modules.get("keras.src.backend.torch.core")
        if core is None or core.DEFAULT_DEVICE != device:
            raise ImportError("rdna.keras: keras was imported before and has chosen "
                              f"{'another backend' if core is None else core.DEFAULT_DEVICE}; import rdna.keras first")
    os.environ.update(KERAS_BACKEND="torch", KERAS_TORCH_DEVICE=device)


_begin()

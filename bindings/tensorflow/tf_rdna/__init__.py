"""AMD GPUs for TensorFlow through librdna: tf.device('/device:RDNA:0'). `import tensorflow` loads the plugin by itself; this
package says what TensorFlow's own functions do not, and lets Keras compile for devices that XLA does not know."""

from . import config
from . import _data, _keras, _patches, dlpack
from ._ledger import placement
from ._plugin import device_count, ledger as _ledger, library as _library, operators

__all__ = ["config", "device_count", "dlpack", "fusions", "is_available", "operator_report", "operators", "placement", "reset_operator_report", "why_none"]


def is_available():
    """Whether there is a device: a GPU, or what RDNA_DRIVER or RDNA_EMULATE ask for."""
    return device_count() > 0


def why_none():
    """Why there is no device, as a sentence; "" where there is one."""
    return "" if is_available() else _library().rdna_tensorflow_why_none().decode()


def operator_report():
    """{"device": {operator: calls}, "host": {…}}: what ran on the device, and what the processor computed because
    TensorFlow keeps its values in host memory (shapes and positions in int32)."""
    device, host = _ledger()
    return {"device": device, "host": host}


def fusions():
    """How many products and convolutions the graph pass has joined with their biases and activations, in all traced functions."""
    return _library().rdna_tensorflow_fused()


def reset_operator_report():
    _library().rdna_tensorflow_ledger_reset()


_patches.apply(_keras.PATCHES | _data.PATCHES | dlpack.PATCHES)

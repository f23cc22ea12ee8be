"""Which devices TensorFlow sees, and what their memory holds."""

import ctypes

from . import _plugin


def set_visible_devices(devices):
    """Only these, numbers or TensorFlow's physical devices, become RDNA:0, RDNA:1, … Before the first operator;
    RuntimeError after it, ValueError for a device that there is not."""
    import tensorflow as tf
    from tensorflow.python.eager import context

    numbers = [device if isinstance(device, int) else int(device.name.rsplit(":", 1)[1]) for device in devices]
    if context.context()._initialized:
        raise RuntimeError("TensorFlow has made its devices already: call set_visible_devices before the first operator")
    if not _plugin.library().rdna_tensorflow_set_visible((ctypes.c_int * len(numbers))(*numbers), len(numbers)):
        raise ValueError(f"devices {numbers} were asked for; there are {_plugin.device_count()}, counted from 0")
    context.context()._physical_device_to_index = None
    context.context()._initialize_physical_devices(reinitialize=True)
    return tf.config.list_physical_devices("RDNA")


def get_memory_info(device_id=None):
    """{"current", "peak"}: bytes of tensors, as tf.config.experimental.get_memory_info has them; and of the pool from which
    they and scratch memory come, "reserved", "peak_reserved". Of device 0 where none is named."""
    import tensorflow as tf

    index = 0 if device_id is None else int(device_id)
    count = len(tf.config.list_logical_devices("RDNA"))
    if not 0 <= index < count:
        raise ValueError(f"device {index} was asked for; there are {count}, counted from 0")
    info = dict(tf.config.experimental.get_memory_info(f"RDNA:{index}"))
    stats = _plugin.memory(index)
    info["reserved"], info["peak_reserved"] = stats.reserved, stats.peak_reserved
    return info

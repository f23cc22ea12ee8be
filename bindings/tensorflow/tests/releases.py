"""What single releases of TensorFlow cannot do: tests of it are expected to fail there and nowhere else."""

import pytest
import tensorflow as tf

copies_on_devices = pytest.mark.xfail(
    tf.__version__.startswith("2.17."), strict=True,
    reason="TensorFlow 2.17 lets a stream wait for itself before it copies from device to device, and refuses that")  # fmt: skip

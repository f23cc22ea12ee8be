import os

os.environ.setdefault("RDNA_DRIVER", "host")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tf_rdna  # noqa: E402  before Keras, whose compile() it changes
import pytest  # noqa: E402
import tensorflow as tf  # noqa: E402

tf.config.set_soft_device_placement(False)  # an operator without a kernel here raises


def pytest_sessionstart(session):
    if not tf_rdna.is_available():
        raise pytest.UsageError(f"no device to test: {tf_rdna.why_none()}")

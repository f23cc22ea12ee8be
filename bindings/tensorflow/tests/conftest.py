import os
import pathlib

os.environ.setdefault("RDNA_DRIVER", "host")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# TensorFlow has convolutions with dilation and groups, and their gradients, on the CPU by oneDNN alone, which it takes for some
# processors by itself and for others not.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")

import tf_rdna  # noqa: E402  before Keras, whose compile() it changes
import pytest  # noqa: E402
import tensorflow as tf  # noqa: E402

tf.config.set_soft_device_placement(False)  # an operator without a kernel here raises


def pytest_sessionstart(session):
    if not tf_rdna.is_available():
        raise pytest.UsageError(f"no device to test: {tf_rdna.why_none()}")


ran = set()  # operators of ours, in all tests so far
files = set()


def pytest_collection_modifyitems(items):
    files.update(item.path.name for item in items)


def pytest_runtest_teardown(item):
    ran.update(tf_rdna.operator_report()["device"])


def pytest_sessionfinish(session, exitstatus):
    """A kernel that no test calls fails a run of all tests."""
    everything = {path.name for path in pathlib.Path(__file__).parent.glob("test_*.py")}
    idle = set(tf_rdna.operators()) - ran
    if exitstatus == 0 and files == everything and not session.config.option.keyword and idle:
        session.exitstatus = 1
        print(f"\nno test has called the kernels of {sorted(idle)}")

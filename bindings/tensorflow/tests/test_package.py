"""tf_rdna, and how TensorFlow finds the device."""

import os
import subprocess
import sys

import pytest
import tensorflow as tf
import tf_rdna


def python(code, **settings):
    return subprocess.run([sys.executable, "-c", code], env={**os.environ, **settings}, capture_output=True, text=True)


def test_device():
    assert tf_rdna.is_available() and tf_rdna.device_count() >= 1 and tf_rdna.why_none() == ""
    assert [d.device_type for d in tf.config.list_physical_devices("RDNA")] == ["RDNA"]
    with pytest.raises(ValueError, match="device 7 was asked for"):
        tf_rdna.config.get_memory_info(7)
    with pytest.raises(RuntimeError, match="before the first operator"):
        tf.zeros([1])
        tf_rdna.config.set_visible_devices([0])


def test_memory_info():
    with tf.device("/device:RDNA:0"):
        before = tf_rdna.config.get_memory_info()
        x = tf.zeros([1024, 1024])
        during = tf_rdna.config.get_memory_info(0)
        assert during["current"] >= before["current"] + 4 * 2**20 and during["peak"] >= during["current"]
        assert during["reserved"] >= during["current"]
        del x
        assert tf_rdna.config.get_memory_info()["current"] < during["current"]


def test_report():
    tf_rdna.reset_operator_report()
    with tf.device("/device:RDNA:0"):
        tf.matmul(tf.zeros([2, 2]), tf.zeros([2, 2]))
    assert tf_rdna.operator_report()["device"]["MatMul"] == 1
    assert "MatMul" in tf_rdna.operators() and len(tf_rdna.operators()) > 150


def test_no_device_and_no_visible_device():
    """Not a GPU's driver: TensorFlow goes on without, and tf_rdna says why. One process for both, as each takes seconds."""
    result = python("import tf_rdna, tensorflow as tf; print(tf_rdna.is_available(), tf_rdna.why_none());"
                    "print(tf_rdna.config.set_visible_devices([]), tf.zeros([2]).device)", RDNA_DRIVER="hip")  # fmt: skip
    assert result.returncode == 0, result.stderr
    first, second = result.stdout.strip().splitlines()[-2:]
    assert first.startswith("False ") and len(first) > 30
    assert second.startswith("[]") and "CPU:0" in second


FORK = r"""
import os, sys, tf_rdna, tensorflow as tf
tf.config.set_soft_device_placement(False)
child = os.fork()  # before the first operator
with tf.device("/device:RDNA:0"):
    kept = [tf.Variable(tf.random.normal([64, 64])) for _ in range(3)]

    @tf.function
    def step():
        kept[0].assign_add(tf.matmul(kept[1], kept[2]))
        return tf.reduce_sum(tf.ones([100]))

    assert float(step()) == 100
    data = iter(tf.data.Dataset.range(5).prefetch(2))
    next(data)
    lent = tf.experimental.dlpack.to_dlpack(kept[1].read_value())
os.write(1, b"child done\n" if child == 0 else b"parent done\n")
if child:
    _, status = os.waitpid(child, 0)
    sys.exit(os.waitstatus_to_exitcode(status))
"""


def test_fork_and_exit():
    """Two processes compute, and end with variables, functions, iterators and capsules that are still there."""
    result = python(FORK)
    assert result.returncode == 0, result.stderr[-3000:]
    assert "child done" in result.stdout and "parent done" in result.stdout, result.stdout
    assert not any(word in result.stderr for word in ("Error", "Exception", "Fatal", "Check failed")), result.stderr[-3000:]

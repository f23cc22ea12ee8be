"""tf_rdna, and how TensorFlow finds the device."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
import tf_rdna
from tf_rdna import _plugin


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


def test_what_is_moved_to_the_processor_is_counted():
    @tf.function
    def function(x):
        return tf.math.special.dawsn(x) + 1

    tf.config.set_soft_device_placement(True)
    try:
        with tf_rdna.placement() as seen, tf.device("/device:RDNA:0"):
            root = tf.linalg.sqrtm(tf.eye(3)) + 1
            tf.shape(root)[0] + 1  # values of the device's that are in host memory
            function(root)
            function(root)
            with tf.device("/device:CPU:0"):
                tf.linalg.sqrtm(root)
        assert seen.moved == {"MatrixSquareRoot": 1, "Dawsn": 1}
        assert seen.processor["MatrixSquareRoot"] == 2 and seen.device["StridedSlice"] == 1 and seen.device["AddV2"] == 3
        with pytest.raises(RuntimeError, match="MatrixSquareRoot"), tf_rdna.placement(refuse=True):
            tf.linalg.sqrtm(root)
        with tf_rdna.placement(refuse=True) as seen:
            tf.matmul(root, root)
        assert seen.device == {"MatMul": 1} and not seen.processor
    finally:
        tf.config.set_soft_device_placement(False)


def test_no_device_and_no_visible_device():
    """Not a GPU's driver: TensorFlow goes on without, and tf_rdna says why. One process for both, as each takes seconds."""
    result = python("import tf_rdna, tensorflow as tf; print(tf_rdna.is_available(), tf_rdna.why_none());"
                    "print(tf_rdna.config.set_visible_devices([]), tf.zeros([2]).device)", RDNA_DRIVER="hip")  # fmt: skip
    assert result.returncode == 0, result.stderr
    first, second = result.stdout.strip().splitlines()[-2:]
    assert first.startswith("False ") and len(first) > 30
    assert second.startswith("[]") and "CPU:0" in second


def test_what_the_device_has_not_is_a_sentence():
    """No index, type or layout that is not there ends more than the call."""
    with pytest.raises((tf.errors.InvalidArgumentError, ValueError), match="RDNA:7"), tf.device("/device:RDNA:7"):
        tf.zeros([1]) + 1
    with tf.device("/device:RDNA:0"):
        for refused in (lambda: tf.strings.length(tf.constant("a")), lambda: tf.linalg.sqrtm(tf.eye(2)),
                        lambda: tf.cast(tf.ones([2]), tf.dtypes.experimental.float8_e5m2)):  # fmt: skip
            with pytest.raises((tf.errors.InvalidArgumentError, tf.errors.NotFoundError), match="device|kernel"):
                refused()
        with pytest.raises((tf.errors.InvalidArgumentError, tf.errors.UnimplementedError), match="NCHW_VECT_C|rank|dimension"):
            tf.nn.conv2d(tf.zeros([1, 1, 5, 5]), tf.zeros([2, 2, 1, 1]), 1, "SAME", data_format="NCHW_VECT_C")
        assert float(tf.reduce_sum(tf.ones([3]))) == 3


def test_no_memory_is_told_with_the_allocators_report():
    """Of scratch memory here, which is refused at once; TensorFlow waits ten seconds for that of a result (soak.py)."""
    with tf.device("/device:RDNA:0"):
        kept = tf.zeros([2**20])
        with pytest.raises(tf.errors.ResourceExhaustedError, match=r"tried to allocate 8192.00 GiB .* GiB free of .* this process holds .* largest holders are 'tensorflow' "):
            tf.raw_ops.CropAndResize(image=np.ones([1, 4, 4, 1], np.float32), boxes=np.ones([2**10, 4], np.float32), box_ind=np.zeros(2**10, np.int32),
                                     crop_size=[2**31 - 1, 2])  # fmt: skip
        assert float(tf.reduce_sum(kept)) == 0


TOO_NEW = r"""
#include <dlfcn.h>
#include <stdio.h>
#include "abi.h"

static void *find(void *library, const char *name) {
  void *found = dlsym(library, name);
  if (!found) printf("no %s\n", name);
  return found;
}

int main(int argc, char **argv) { /* TensorFlow's library, the plugin: what TensorFlow calls when it loads one */
  void *theirs = dlopen(argv[argc - 2], RTLD_NOW | RTLD_LOCAL), *ours = dlopen(argv[argc - 1], RTLD_NOW | RTLD_LOCAL);
  if (!theirs || !ours) return printf("%s\n", dlerror()), 1;
  SP_Platform platform = {0};
  SP_PlatformFns platform_fns = {0};
  SE_PlatformRegistrationParams begin = {.platform = &platform, .platform_fns = &platform_fns};
  ((void (*)(SE_PlatformRegistrationParams *, TF_Status *))find(ours, "SE_InitPlugin"))(&begin, NULL);
  ((void (*)(void))find(ours, "TF_InitKernel"))();
  TP_Optimizer optimizer = {0};
  TP_OptimizerConfigs configs = {0};
  TP_OptimizerRegistrationParams pass = {.optimizer = &optimizer, .optimizer_configs = &configs};
  ((void (*)(TP_OptimizerRegistrationParams *, TF_Status *))find(ours, "TF_InitGraph"))(&pass, NULL);
  if (configs.memory_optimization != TF_TriState_Off) return printf("TensorFlow would make variables by reference\n"), 1;
  TP_Profiler profiler = {0};
  TP_ProfilerFns profiler_fns = {0};
  TF_ProfilerRegistrationParams trace = {.profiler = &profiler, .profiler_fns = &profiler_fns};
  ((void (*)(TF_ProfilerRegistrationParams *, TF_Status *))find(ours, "TF_InitProfiler"))(&trace, NULL);
  int devices = -1;
  platform_fns.get_device_count(&platform, &devices, NULL);
  printf("%d %s\n", devices, ((const char *(*)(void))find(ours, "rdna_tensorflow_why_none"))());
  return 0;
}
"""


def test_a_tensorflow_that_has_not_what_is_needed(tmp_path):
    """One that is too new, or too old: the plugin loads, has no device, and says which function it misses."""
    library, program = tmp_path / "libtensorflow_framework.so.2", tmp_path / "too_new"
    (tmp_path / "empty.c").write_text("int TF_Version;\n")
    (tmp_path / "too_new.c").write_text(TOO_NEW)
    subprocess.run(["cc", "-shared", "-fPIC", "-Wl,-soname,libtensorflow_framework.so.2", tmp_path / "empty.c", "-o", library], check=True)
    sources = pathlib.Path(__file__).resolve().parent.parent / "csrc"
    subprocess.run(["cc", "-std=gnu17", f"-I{sources}", tmp_path / "too_new.c", "-o", program, "-ldl"], check=True)
    done = subprocess.run([program, library, _plugin.path()], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("0 this TensorFlow has no TF_") and "the plugin knows 2.16 to 2.21" in done.stdout, done.stdout


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

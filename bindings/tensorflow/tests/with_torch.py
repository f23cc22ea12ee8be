"""PyTorch and TensorFlow in one process on one rdna device: memory is shared both ways without a copy, and one allocator has it
all. PYTHONPATH has both plugins; with_torch.py FOLDER, where PyTorch is installed, which is imported beside this Python's TensorFlow."""

import gc
import sys

import numpy as np

sys.path.append(sys.argv[1])

import torch  # noqa: E402
import torch_rdna  # noqa: E402, F401
import tensorflow as tf  # noqa: E402
import tf_rdna  # noqa: E402

rng = np.random.default_rng(3)


def same_place(tensor, other):
    """Two of PyTorch's; TensorFlow does not say where its tensors are."""
    return tensor.data_ptr() == other.data_ptr()


def held():
    return torch.rdna.memory_allocated()


def to_tensorflow():
    x = torch.from_numpy(rng.standard_normal((300, 200)).astype(np.float32)).to("rdna")
    before = held()
    t = tf_rdna.dlpack.from_dlpack(x)
    assert held() == before and "RDNA" in t.device and t.shape == x.shape
    assert same_place(tf_rdna.dlpack.to_torch(t), x)
    x.mul_(2)  # is seen, and waited for
    again = tf.experimental.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x))
    with tf.device("/device:RDNA:0"):
        product = tf.matmul(again, again, transpose_b=True)
    np.testing.assert_allclose(product, (x.double().cpu() @ x.double().cpu().T).numpy(), rtol=1e-4, atol=1e-3)
    view = tf_rdna.dlpack.from_dlpack(x.T)  # has gaps: a copy
    np.testing.assert_array_equal(view, x.cpu().numpy().T)
    wanted = x.cpu().numpy()
    del x, t
    gc.collect()
    with tf.device("/device:RDNA:0"):
        tf.fill([300, 200], 7.0)
    np.testing.assert_array_equal(tf.identity(again), wanted)  # lives as long as somebody has it


def to_torch():
    with tf.device("/device:RDNA:0"):
        t = tf.random.normal([300, 200])
    before = held()
    x, y = tf_rdna.dlpack.to_torch(t), tf_rdna.dlpack.to_torch(t)
    assert x.is_rdna and same_place(x, y) and held() == before
    np.testing.assert_array_equal(x.cpu().numpy(), t.numpy())
    total = (x @ x.T).sum()
    wanted = t.numpy().astype(np.float64)
    np.testing.assert_allclose(float(total), (wanted @ wanted.T).sum(), rtol=1e-3, atol=1)
    del t, y
    gc.collect()
    with tf.device("/device:RDNA:0"):
        tf.fill([300, 200], 7.0)
    np.testing.assert_array_equal(x.cpu().numpy(), wanted.astype(np.float32))


def one_allocator():
    files = {line.split()[-1] for line in open("/proc/self/maps") if "librdna.so" in line}
    assert len(files) == 1, files
    before = held(), tf_rdna.config.get_memory_info()["reserved"]
    kept = torch.zeros(64 << 20, device="rdna")  # 256 MiB, which TensorFlow sees
    assert held() - before[0] >= 256 << 20 and tf_rdna.config.get_memory_info()["reserved"] - before[1] >= 256 << 20
    del kept


def alternately(steps=100):
    """A value goes to and fro, and memory is flat."""
    x, sizes = torch.zeros(1000, device="rdna"), []
    for step in range(steps):
        with tf.device("/device:RDNA:0"):
            t = tf_rdna.dlpack.from_dlpack(x) + 1
        x = tf_rdna.dlpack.to_torch(t) * 1
        sizes.append(held())
    assert x.cpu().tolist() == [steps] * 1000 and max(sizes[10:]) - min(sizes[10:]) < 1 << 20


for test in (to_tensorflow, to_torch, one_allocator, alternately):
    test()
    print(test.__name__, flush=True)

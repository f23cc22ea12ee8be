"""PyFlame's names over rdna.arrays: every one of its documents' tables, values beside NumPy's, devices by their specifications, and what is not there."""
import contextlib
import io
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import types
import unittest

import numpy as np
import rdna_program
from arrays_tools import ROOT, Case, ra, rng

from rdna.compat import pyflame as compat

compat.install()
import pyflame as pf
import pyflame.nn as pfnn
import pyflame.optim
from pyflame import autograd
from pyflame.backend import rocm

OPERATIONS = """matmul batch_matmul transpose conv1d conv2d conv3d conv_transpose2d max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d
    adaptive_avg_pool2d batch_norm layer_norm group_norm relu sigmoid tanh gelu silu softmax log_softmax add sub mul div pow max min neg abs sqrt exp log sin
    cos eq ne lt le gt ge where clamp sum mean prod mse_loss cross_entropy bce_loss nll_loss adaptive_avg_pool1d instance_norm dropout embedding gather
    reshape view squeeze unsqueeze slice concat cat stack broadcast copy contiguous less maximum minimum l1_loss bce_with_logits_loss kl_div_loss
    smooth_l1_loss leaky_relu rsqrt permute global_avg_pool2d bmm""".split()
OTHERS = """rocm_is_available rocm_device_count rocm_get_device_info set_device get_device device_info synchronize rocm_set_device rocm_get_device
    rocm_synchronize device_count randn randint rand tensor zeros ones full arange from_numpy eval is_lazy print_graph""".split()
MODULES = """Sequential Linear ReLU Conv1d Conv2d BatchNorm1d BatchNorm2d LayerNorm GroupNorm MaxPool2d AvgPool2d AdaptiveAvgPool2d GlobalAvgPool2d Dropout
    Dropout2d MultiheadAttention SelfAttention CrossAttention MSELoss L1Loss SmoothL1Loss BCELoss BCEWithLogitsLoss KLDivLoss CrossEntropyLoss NLLLoss""".split()
OPTIMIZERS = "SGD Adam AdamW RMSprop StepLR MultiStepLR ExponentialLR LinearLR CosineAnnealingLR ReduceLROnPlateau".split()


class PyFlame(Case):
    def setUp(self):
        pf.set_device("cpu")

    def test_names(self):
        for place, names in ((pf, OPERATIONS + OTHERS), (pfnn, MODULES), (pyflame.optim, OPTIMIZERS),
                             (rocm, ["get_tuning_cache", "get_pinned_pool", "warmup_memory_pool", "get_memory_manager"])):
            for name in names:
                self.assertTrue(callable(getattr(place, name)), name)
        for name, mentions in (("layout_transform", "no layouts of a fabric"), ("backward", "pyflame.autograd.grad"), ("anything", "no such name")):
            for place in (pf, autograd):
                with self.assertRaisesRegex(AttributeError, mentions):
                    getattr(place, name)

    def test_values(self):
        a, b, v = rng.standard_normal((3, 4)).astype("f4"), rng.uniform(0.2, 2, (3, 4)).astype("f4"), rng.standard_normal((2, 3, 4)).astype("f4")
        x, y, z = pf.tensor(a), pf.tensor(b), pf.from_numpy(v)
        soft = np.exp(a) / np.exp(a).sum(1, keepdims=True)
        erf = np.array([[math.erf(n / math.sqrt(2)) for n in row] for row in a])
        for got, want in (
                (pf.matmul(x, pf.transpose(y)), a @ b.T), (pf.bmm(z, pf.transpose(z)), v @ v.swapaxes(1, 2)), (pf.transpose(z, 0, 2), v.swapaxes(0, 2)),
                (pf.add(x, y), a + b), (pf.sub(x, y), a - b), (pf.mul(x, y), a * b), (pf.div(x, y), a / b), (pf.pow(y, x), b ** a), (pf.max(x, y), np.maximum(a, b)),
                (pf.min(x, y), np.minimum(a, b)), (pf.neg(x), -a), (pf.abs(x), abs(a)), (pf.sqrt(y), np.sqrt(b)), (pf.rsqrt(y), 1 / np.sqrt(b)), (pf.exp(x), np.exp(a)),
                (pf.log(y), np.log(b)), (pf.sin(x), np.sin(a)), (pf.cos(x), np.cos(a)), (pf.tanh(x), np.tanh(a)), (pf.relu(x), np.maximum(a, 0)),
                (pf.sigmoid(x), 1 / (1 + np.exp(-a))), (pf.silu(x), a / (1 + np.exp(-a))), (pf.gelu(x), a * (1 + erf) / 2), (pf.leaky_relu(x, negative_slope=0.1), np.where(a > 0, a, a * 0.1)),
                (pf.softmax(x, dim=-1), soft), (pf.log_softmax(x, dim=1), np.log(soft)), (pf.clamp(x, -0.5, 0.5), a.clip(-0.5, 0.5)), (pf.where(pf.gt(x, y), x, y), np.where(a > b, a, b)),
                (pf.sum(x, dim=0), a.sum(0)), (pf.mean(x, dim=1, keepdim=True), a.mean(1, keepdims=True)), (pf.max(x, dim=1), a.max(1)), (pf.min(x, 0), a.min(0)), (pf.prod(y), b.prod()),
                (pf.max(x), a.max()), (pf.mse_loss(x, y), ((a - b) ** 2).mean()), (pf.l1_loss(x, y), abs(a - b).mean()), (pf.bce_loss(pf.sigmoid(x), pf.clamp(y, 0.0, 1.0)),
                 -(b.clip(0, 1) * np.log(1 / (1 + np.exp(-a))) + (1 - b.clip(0, 1)) * np.log(1 / (1 + np.exp(a)))).mean()),
                (pf.cross_entropy(x, pf.tensor(np.int64([1, 0, 3]))), -np.log(soft[[0, 1, 2], [1, 0, 3]]).mean()), (pf.nll_loss(pf.log_softmax(x), pf.tensor([1, 0, 3])), -np.log(soft[[0, 1, 2], [1, 0, 3]]).mean()),
                (pf.reshape(x, 2, 6), a.reshape(2, 6)), (pf.view(x, [4, -1]), a.reshape(4, 3)), (pf.unsqueeze(x, 1), a[:, None]), (pf.squeeze(pf.unsqueeze(x, 0)), a), (pf.slice(z, 2, 1, 4, 2), v[:, :, 1:4:2]),
                (pf.cat([x, y], dim=1), np.concatenate([a, b], 1)), (pf.concat([x, y]), np.concatenate([a, b])), (pf.stack([x, y], dim=2), np.stack([a, b], 2)), (pf.broadcast(x, 2, 3, 4), np.broadcast_to(a, (2, 3, 4))),
                (pf.permute(z, 2, 0, 1), v.transpose(2, 0, 1)), (pf.contiguous(pf.transpose(x)), a.T), (pf.copy(x), a), (pf.gather(x, 1, ra.asarray([[3], [0], [1]])), a[[0, 1, 2], [3, 0, 1]][:, None]),
                (pf.embedding(ra.asarray([2, 0]), x), a[[2, 0]]), (pf.layer_norm(x, 4), (a - a.mean(1, keepdims=True)) / np.sqrt(a.var(1, keepdims=True) + 1e-5)), (pf.dropout(x, 0.5, training=False), a),
                (pf.full((2, 3), 2.5), np.full((2, 3), 2.5)), (pf.arange(4), np.arange(4)), (pf.zeros(2, 3), np.zeros((2, 3))), (pf.ones([2]), np.ones(2)), (pf.tensor([1, 2]), np.float32([1, 2]))):
            self.assertEqual((got.dtype, got.shape), (np.dtype("f4"), want.shape))
            np.testing.assert_allclose(got.numpy(), want, rtol=2e-5, atol=2e-6)  # float32, sums of a dozen
        for got, want in ((pf.eq(x, x), a == a), (pf.ne(x, y), a != b), (pf.lt(x, y), a < b), (pf.less(x, y), a < b), (pf.le(x, y), a <= b), (pf.ge(x, y), a >= b)):
            self.same(got, want)
        with self.assertRaisesRegex(NotImplementedError, r"over the last dimension, \(4,\) here"):
            pf.layer_norm(x, (3, 4))

    def test_images(self):
        image, weight = rng.standard_normal((2, 3, 6, 6)).astype("f4"), rng.standard_normal((4, 3, 3, 3)).astype("f4")
        x, w = pf.tensor(image), pf.tensor(weight)
        padded, want = np.pad(image, ((0, 0), (0, 0), (1, 1), (1, 1))), np.zeros((2, 4, 3, 3))
        for i, j in np.ndindex(3, 3):
            want[:, :, i, j] = np.einsum("ncij,ocij->no", padded[:, :, 2 * i:2 * i + 3, 2 * j:2 * j + 3], weight)
        np.testing.assert_allclose(pf.conv2d(x, w, stride=2, padding=1).numpy(), want, rtol=1e-4, atol=1e-4)  # sums of 27 products
        blocks = image.reshape(2, 3, 3, 2, 3, 2)
        np.testing.assert_allclose(pf.max_pool2d(x, kernel_size=2, stride=2).numpy(), blocks.max((3, 5)))
        np.testing.assert_allclose(pf.avg_pool2d(x, kernel_size=2, stride=2).numpy(), blocks.mean((3, 5)), atol=1e-6)
        for pooled in (pf.adaptive_avg_pool2d(x, (1, 1)), pf.global_avg_pool2d(x)):
            np.testing.assert_allclose(pooled.numpy(), image.mean((2, 3), keepdims=True), atol=1e-6)
        mean, var, gamma, beta = (rng.uniform(0.5, 2, 3).astype("f4") for _ in range(4))
        across = lambda v: v[:, None, None]
        np.testing.assert_allclose(pf.batch_norm(x, *map(pf.tensor, (mean, var, gamma, beta)), training=False).numpy(),
                                   (image - across(mean)) / np.sqrt(across(var) + 1e-5) * across(gamma) + across(beta), rtol=1e-4, atol=1e-5)

    def test_tensors(self):
        x = pf.randn(3, 4)
        self.assertEqual((x.numel, x.numel(), x.shape, x.dtype, pf.rand([2, 2]).shape), (12, 12, (3, 4), np.dtype("f4"), (2, 2)))
        self.assertEqual((pf.tensor(np.int64([1])).dtype, pf.from_numpy(np.float64([1])).dtype), (np.dtype("f4"), np.dtype("f8")))
        ints = pf.randint(3, 6, (400,)).numpy()
        self.assertEqual((set(ints), pf.ones(2, 3).sum().item()), ({3, 4, 5}, 6.0))
        pf.manual_seed(7)
        two = [*pf.randint(0, 2**31 - 1, (8,)).numpy(), *pf.randint(0, 2**31 - 1, (8,)).numpy()]
        self.assertEqual(len(set(two)), 16)
        pf.manual_seed(7)
        first = pf.randn(1000).numpy()
        pf.manual_seed(7)
        np.testing.assert_array_equal(pf.randn([1000]).numpy(), first)
        self.assertTrue(abs(first.mean()) < 0.15 and 0.9 < first.std() < 1.1)  # 4.7 and 4.5 standard deviations
        graph, seen = io.StringIO(), []

        def f(a):
            b = pf.relu(a) * 2.0
            seen.append(pf.is_lazy(b))
            seen.append(pf.is_lazy(pf.eval(b)))
            with contextlib.redirect_stdout(graph):
                pf.print_graph(b)
            return b.sum()
        self.same(autograd.grad(f)(pf.tensor([1.0, -1.0])), np.float32([2, 0]))
        self.assertEqual((seen, pf.is_lazy(x)), ([True, False], False))
        self.assertIn("relu", graph.getvalue())
        model = pfnn.Sequential(pfnn.Linear(8, 6), pfnn.ReLU(), pfnn.Linear(6, 3))
        self.assertGreater(pf.cross_entropy(model(pf.randn(5, 8)), pf.randint(0, 3, (5,))).item(), 0)

    def test_devices(self):
        self.assertEqual((pf.get_device(), pf.rocm_get_device(), pf.device_info()["type"], pf.randn(2).device), ("cpu", -1, "cpu", "host"))
        pf.synchronize()
        for spec in ("cuda", "rocm:x", "rocm:-1", "rocm:", "cpu:0", "cerebras:two", "", None):
            with self.assertRaisesRegex(ValueError, "'cpu', 'rocm' or 'rocm:N', not"):
                pf.set_device(spec)
        for spec in ("cerebras", "cerebras:simulator"):
            with self.assertRaisesRegex(RuntimeError, "Cerebras' devices are not available"):
                pf.set_device(spec)
        self.assertEqual(pf.get_device(), "cpu")
        if not pf.rocm_is_available():
            self.assertEqual(pf.rocm_device_count(), 0)
            for call in (lambda: pf.set_device("rocm"), lambda: pf.rocm_get_device_info(0), pf.rocm_synchronize, lambda: rocm.get_memory_manager().get_stats(),
                         lambda: rocm.warmup_memory_pool(1, "small"), lambda: rocm.get_tuning_cache().get_stats()):
                with self.assertRaisesRegex(RuntimeError, "not available"):
                    call()
        with self.assertRaisesRegex(ValueError, "model_size is 'small', 'medium', 'large', not 'huge'"):
            rocm.warmup_memory_pool(model_size="huge")

    def test_a_package_that_is_there_stays(self):
        there, made = types.ModuleType("pyflame"), {name: module for name, module in sys.modules.items() if name.split(".")[0] == "pyflame"}
        there.__file__ = "/somewhere/pyflame/__init__.py"
        try:
            sys.modules["pyflame"] = there
            with self.assertRaisesRegex(ImportError, "/somewhere/pyflame/__init__.py: install.replace=True. takes its name"):
                compat.install()
            compat.install(replace=True)
            self.assertIsNot(sys.modules["pyflame"], there)
        finally:
            sys.modules.update(made)

    def test_on_an_emulated_card(self):
        """Devices, tuning, pinned memory and the pool where there is a card, in a process of its own."""
        emulator = pathlib.Path(os.environ.get("RDNA_HIP_LIBRARY", pathlib.Path(rdna_program.PROGRAM).parent.parent / "emulator/librdna_emulator.so"))
        kernels = pathlib.Path(os.environ.get("RDNA_KERNEL_PATH", pathlib.Path(rdna_program.PROGRAM).parent.parent / "kernels"))
        if not emulator.exists() or not list(kernels.glob("*gfx1100*")):
            self.skipTest(f"needs {emulator} and kernels for gfx1100 in {kernels}: cmake --build build/release")
        program = textwrap.dedent("""
            import sys, numpy as np
            from rdna.compat import pyflame
            pyflame.install()
            import pyflame as pf
            from pyflame.backend.rocm import get_memory_manager, get_pinned_pool, get_tuning_cache, warmup_memory_pool
            assert pf.rocm_is_available() and pf.rocm_device_count() == 1 and pf.get_device() == "cpu"
            pf.set_device("rocm")
            assert (pf.get_device(), pf.rocm_get_device(), pf.randn(2).device) == ("rocm:0", 0, "hip:0")
            info = pf.rocm_get_device_info(0)
            assert set(info) == {"device_id", "name", "architecture", "total_memory", "free_memory", "compute_units"} and info["architecture"] == "gfx1100"
            assert pf.device_info() == {"type": "rocm", **pf.rocm_get_device_info(0)}
            for call, error in ((lambda: pf.set_device("rocm:1"), ValueError), (lambda: pf.rocm_get_device_info(1), RuntimeError)):
                try:
                    call()
                except error as e:
                    assert "there is no AMD GPU 1; there are 1" in str(e), e
                else:
                    raise AssertionError
            a, b = np.ones((4, 5), "f4"), np.arange(10, dtype="f4").reshape(5, 2)
            assert (pf.matmul(pf.tensor(a), pf.tensor(b)).numpy() == a @ b).all()
            pf.synchronize(); pf.rocm_synchronize()
            cache = get_tuning_cache()
            cache.enable_exhaustive_search(True)
            cache.set_cache_file(sys.argv[1])
            assert cache is get_tuning_cache() and set(cache.get_stats()) == {"hits", "misses", "entries"}
            pool = get_pinned_pool()
            pool.warmup([100, 5000])
            block = pool.acquire(5000)
            pool.release(block)
            assert pool.get_stats()["allocations"] == 2
            pool.clear()
            manager = get_memory_manager()
            assert warmup_memory_pool(batch_size=1, model_size="small") == 8 * 32 * 32 * 64 * 4
            assert manager.get_stats()["cached"] >= 8 * 32 * 32 * 64 * 4
            manager.clear_pool()
            assert manager.get_stats()["reserved"] == manager.get_stats()["allocated"] == 0, manager.get_stats()
            pf.set_device("cpu")
            assert pf.randn(2).device == "host"
            """)
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "PYTHONPATH": str(ROOT / "bindings/python"), "RDNA_EMULATE": "gfx1100", "RDNA_HIP_LIBRARY": str(emulator),
                           "RDNA_KERNEL_PATH": str(kernels)}
            environment.pop("RDNA_DRIVER", None)
            done = subprocess.run([sys.executable, "-c", program, f"{folder}/tune.sqlite"], env=environment, capture_output=True, text=True, timeout=300)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()

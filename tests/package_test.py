"""The package rdna's own devices, memory, operations and reports, by addresses and buffers, beside NumPy."""
import contextlib
import ctypes
import io
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import numpy as np
from arrays_tools import ra

import rdna

rng = np.random.default_rng(7)
TYPES = {0: (np.float32, 2.0**-23), 1: (np.float16, 2.0**-10)}

# What the interface is asked for by name.
FUNCTIONS = """is_available device_count current_device set_device device tf_device is_rdna_available rdna_device_count empty_cache memory_allocated
max_memory_allocated memory_reserved memory_cached memory_summary get_device_properties get_device_capability config diagnostics run_diagnostics
print_system_info print_memory_info print_kernel_info get_system_info get_roc_version get_hip_version get_library_version get_build_info
set_debug_logging set_profiling set_memory_cache_limit get_library_config set_library_config LibraryConfig to_dlpack from_dlpack get_buffer_info
is_device_pointer get_device_for_pointer get_memory_alignment calculate_aligned_size is_aligned align_pointer create_timer matmul conv2d
DeviceProperties DeviceManager DeviceContext Stream MemoryAllocator MemoryManager MemoryStats AllocationOptions TensorDesc MatmulConfig ConvConfig
MatmulKernel ConvKernel CustomKernels KernelManager PerformanceProfiler ScopedEvent BenchmarkRunner""".split()


def python(code, **settings):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **settings}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)


def by_loops(x, w, dy):
    """A convolution in two groups with stride (2, 1), padding (1, 0), dilation (1, 2), and both gradients, in float64."""
    x, w, dy = (v.astype(np.float64) for v in (np.pad(x, ((0, 0), (0, 0), (1, 1), (0, 0))), w, dy))
    y, dx, dw = np.zeros(dy.shape), np.zeros(x.shape), np.zeros(w.shape)
    for n, o, i, j in np.ndindex(dy.shape):
        place = n, slice(0, 2) if o < 3 else slice(2, 4), slice(2 * i, 2 * i + 3), slice(j, j + 3, 2)
        y[n, o, i, j] = (x[place] * w[o]).sum()
        dx[place] += dy[n, o, i, j] * w[o]
        dw[o] += dy[n, o, i, j] * x[place]
    return y, dx[:, :, 1:-1], dw


class Package(unittest.TestCase):
    def test_every_name_is_there(self):
        assert [name for name in FUNCTIONS if not hasattr(rdna, name) or name not in dir(rdna)] == []
        assert all(hasattr(rdna, name) for name in rdna.__all__)
        with self.assertRaisesRegex(AttributeError, "has no attribute 'nonsense'"):
            rdna.nonsense

    def test_a_driver_that_is_named_loads_no_other(self):
        """AMD's runtime is beside every Debian that runs this, and a process may be unable to bear it."""
        loaded = "print([line.split('/')[-1] for line in open('/proc/self/maps') if 'libamdhip64' in line or 'libcuda.' in line])"
        code = "import rdna, numpy\nx = numpy.ones((3, 3), numpy.float32)\nassert rdna.is_available()\n" + loaded
        self.assertEqual(python(code, RDNA_DRIVER="host").stdout.strip(), "[]")
        self.assertEqual(python("import ctypes\nctypes.CDLL('libamdhip64.so.5')\n" + loaded).stdout.strip() == "[]", False)  # it would be seen

    def test_without_a_device(self):
        """Not one name imports NumPy or a framework, and what asks about nothing gets an answer."""
        result = python(
            "import sys, rdna\n"
            "assert rdna.is_available() is False and rdna.device_count() == 0 == rdna.memory_allocated() == rdna.memory_cached()\n"
            "rdna.empty_cache(); rdna.set_profiling(True); rdna.set_profiling(False); rdna.print_memory_info(); rdna.print_kernel_info()\n"
            "assert rdna.run_diagnostics() is True\n"
            "assert not {'numpy', 'torch', 'tensorflow'} & sys.modules.keys()\n"
            "for use in (lambda: rdna.set_device(0), rdna.get_device_properties, lambda: rdna.memory_allocated(0), lambda: rdna.create_timer('t')):\n"
            "    try: use()\n"
            "    except RuntimeError as error: assert 'device 0 was asked for: ' in str(error) and len(str(error)) > 60, error\n"
            "    else: raise AssertionError(use)\n", RDNA_DRIVER="hip")  # fmt: skip
        assert result.returncode == 0, result.stdout + result.stderr

    def test_devices(self):
        assert rdna.is_available() is True is rdna.is_rdna_available() and rdna.device_count() == rdna.rdna_device_count() >= 1
        assert rdna.current_device() == 0
        for scope in (rdna.device("rdna"), rdna.device("rdna:0"), rdna.tf_device("/device:RDNA:0"), rdna.tf_device("/device:RDNA")):
            with scope as entered:
                assert entered.device_id == 0 == rdna.current_device()
        for wrong in ("cuda", "rdna:", "rdna:x", "rdna:-1", "rdnas", "rdna:0:1", ""):
            with self.assertRaisesRegex(ValueError, '"rdna" or "rdna:N"'):
                rdna.device(wrong)
        for wrong in ("RDNA:0", "/device:GPU:0", "/device:RDNA:", "/device:RDNAx:0", "/device:RDNA:a"):
            with self.assertRaisesRegex(ValueError, '"/device:RDNA"'):
                rdna.tf_device(wrong)
        with self.assertRaisesRegex(ValueError, "device 9 was asked for; there"):
            rdna.set_device(9)
        with self.assertRaisesRegex(ValueError, "device 9 was asked for; there"):
            rdna.device("rdna:9").__enter__()
        properties = rdna.get_device_properties()
        assert properties.name and properties.arch and properties.max_workgroup_size > 0
        assert 0 < properties.free_memory <= properties.total_memory and properties.compute_units > 0
        assert rdna.get_device_capability(0, "fp16") is True
        with self.assertRaisesRegex(ValueError, "fp16, bf16 or tensor_cores"):
            rdna.get_device_capability(0, "fp4")

    def test_two_devices(self):
        """Each thread has a current device; what is visible is numbered anew. Copies from one to the other arrive."""
        result = python(
            "import threading, rdna\n"
            "rdna.config.set_visible_devices([1, 0])\n"
            "assert rdna.device_count() == 2\n"
            "manager = rdna.MemoryManager.get_instance()\n"
            "a, b = manager.allocate(1000, 0), manager.allocate(1000, 1)\n"
            "assert (rdna.get_device_for_pointer(a + 5), rdna.get_device_for_pointer(b)) == (0, 1)\n"
            "data, back = bytearray(range(250)) * 4, bytearray(1000)\n"
            "host = lambda x: rdna.get_buffer_info(x)['ptr']\n"
            "manager.memcpy(a, host(data), 1000); manager.memcpy(b, a, 1000); manager.memcpy(host(back), b, 1000)\n"
            "assert back == data\n"
            "seen = []\n"
            "with rdna.device('rdna:1'):\n"
            "    t = threading.Thread(target=lambda: seen.append(rdna.current_device())); t.start(); t.join()\n"
            "    seen.append(rdna.current_device())\n"
            "assert seen == [0, 1] and rdna.current_device() == 0, seen\n"
            "try: rdna.config.set_visible_devices([0])\n"
            "except RuntimeError as error: assert 'before the first use' in str(error)\n"
            "else: raise AssertionError\n", RDNA_DRIVER="null")  # fmt: skip
        assert result.returncode == 0, result.stdout + result.stderr
        result = python("import rdna\nfor wrong in ([7], [0, 0], [-1]):\n"
                        "    try: rdna.config.set_visible_devices(wrong)\n"
                        "    except ValueError as error: assert 'were asked for; there are 2' in str(error)\n"
                        "    else: raise AssertionError(wrong)\n"
                        "rdna.config.set_visible_devices([])\nassert not rdna.is_available()", RDNA_DRIVER="null")  # fmt: skip
        assert result.returncode == 0, result.stdout + result.stderr

    def test_memory(self):
        context = rdna.DeviceManager.get_instance().get_current_context()
        allocator, before = rdna.MemoryAllocator(context), rdna.memory_allocated()
        address = allocator.allocate(100_000)
        assert rdna.is_aligned(address) and rdna.memory_allocated() >= before + 100_000 <= rdna.max_memory_allocated()
        assert rdna.is_device_pointer(address) and rdna.is_device_pointer(address + 99_999) and rdna.get_device_for_pointer(address) == 0
        info, stats = allocator.get_allocation_info(address), allocator.get_stats()
        assert (info.ptr, info.size, info.is_device_memory, info.device_id) == (address, 100_000, True, 0)
        assert stats.allocated_bytes == rdna.memory_allocated() and stats.total_allocations > stats.total_frees >= 0
        assert rdna.memory_reserved() == stats.allocated_bytes + stats.cached_bytes and rdna.memory_cached() == stats.cached_bytes
        data, back = rng.integers(0, 256, 100_000, np.uint8), np.zeros(100_000, np.uint8)
        assert allocator.memcpy(address, data.ctypes.data, data.nbytes) and allocator.memset(address + 10, 77, 20)
        stream = context.create_stream()
        assert stream.memcpy(back.ctypes.data, address, back.nbytes) and stream.is_valid() and stream.get_native_handle()
        data[10:30] = 77
        assert (back == data).all()
        pinned = allocator.allocate(64, rdna.AllocationOptions(pinned_host_memory=True))
        assert not rdna.is_device_pointer(pinned) and allocator.memset(pinned, 3, 64) and ctypes.string_at(pinned, 64) == b"\3" * 64
        for each in (address, pinned, 0):
            allocator.deallocate(each)
        for wrong in (address, address + 1):
            with self.assertRaisesRegex(ValueError, "is not the beginning of memory"):
                allocator.deallocate(wrong)
            with self.assertRaisesRegex(ValueError, "not an address of a device"):
                rdna.get_device_for_pointer(wrong)
        assert rdna.memory_allocated() == before and allocator.allocate(0) == 0
        with self.assertRaisesRegex(rdna.RdnaError, "no unified") as refused:
            allocator.allocate(8, rdna.AllocationOptions(managed_memory=True))
        assert refused.exception.status == "UNSUPPORTED"
        with self.assertRaises(rdna.RdnaError) as refused:
            allocator.allocate(1 << 50)
        assert refused.exception.status == "OUT_OF_MEMORY" and len(str(refused.exception)) > 60
        for options in ({"alignment": 3}, {"alignment": 512}):
            with self.assertRaisesRegex(ValueError, "power of two|aligned to 256"):
                allocator.allocate(8, rdna.AllocationOptions(**options))
        array = ra.ones(3)
        capsule = array.__dlpack__()  # of one pool for all in the process
        assert rdna.memory_allocated() > before
        del capsule

    def test_cache(self):
        rdna.set_memory_cache_limit(123 << 20)
        assert rdna.get_library_config().memory_cache_limit == 123 << 20
        rdna.MemoryManager.get_instance().deallocate(rdna.MemoryManager.get_instance().allocate(100 << 20))
        assert rdna.memory_cached() >= 100 << 20
        rdna.empty_cache()
        assert rdna.memory_cached() < 100 << 20
        rdna.set_library_config(rdna.LibraryConfig())
        assert rdna.get_library_config().memory_cache_limit == 0
        with self.assertRaisesRegex(ValueError, "unified"):
            rdna.set_library_config(rdna.LibraryConfig(use_unified_memory=True))

    def test_alignment(self):
        for size in (0, 1, 255, 256, 257, 12345):
            assert rdna.calculate_aligned_size(size) == -(-size // 256) * 256 == rdna.align_pointer(size, rdna.get_memory_alignment())
        assert rdna.is_aligned(48, 16) and not rdna.is_aligned(40, 16)
        with self.assertRaisesRegex(ValueError, "power of two"):
            rdna.calculate_aligned_size(7, 12)

    def test_buffers(self):
        x = np.zeros((3, 5), np.float16)[:, ::2]
        assert rdna.get_buffer_info(x) == {"ptr": x.ctypes.data, "size": 9, "itemsize": 2, "format": "e", "ndim": 2, "shape": [3, 3], "strides": [10, 4]}
        with self.assertRaises(TypeError):
            rdna.get_buffer_info(3)

    def test_dlpack(self):
        x = rng.standard_normal((3, 4)).astype(np.float32)
        assert (rdna.from_dlpack(x).numpy() == x).all() and (rdna.from_dlpack(rdna.to_dlpack(x)).numpy() == x).all()
        capsule = rdna.to_dlpack(x)
        rdna.from_dlpack(capsule)
        for wrong in (capsule, 3):
            with self.assertRaises((ValueError, TypeError)):
                rdna.from_dlpack(wrong)
        assert rdna.from_dlpack(ra.arange(6)).numpy().tolist() == [0, 1, 2, 3, 4, 5]

    def test_matmul(self):
        for data_type in TYPES:
            for turn_a in (False, True):
                for turn_b in (False, True):
                    with self.subTest(data_type=data_type, turn_a=turn_a, turn_b=turn_b):
                        self.product(data_type, turn_a, turn_b)

    def product(self, data_type, turn_a, turn_b):
        dtype, epsilon = TYPES[data_type]
        a, b, c = (rng.standard_normal(shape).astype(dtype) for shape in ((13, 29), (29, 7), (13, 7)))
        want = 0.5 * (a.astype(np.float64) @ b.astype(np.float64)) + 2 * c.astype(np.float64)
        a, b = (np.ascontiguousarray(x.T) if turn else x for x, turn in ((a, turn_a), (b, turn_b)))
        config = rdna.MatmulConfig(transpose_a=turn_a, transpose_b=turn_b, alpha=0.5, beta=2.0)
        desc = lambda x: rdna.TensorDesc(x.shape, data_type)
        assert rdna.matmul(desc(a), a, desc(b), b, desc(c), c, config)
        np.testing.assert_allclose(c, want, atol=8 * epsilon * np.abs(want).max(), rtol=0)

    def test_matmul_refuses(self):
        a, read_only = np.zeros((2, 3), np.float32), bytes(24)
        desc = rdna.TensorDesc([2, 3])
        with self.assertRaisesRegex(ValueError, r"\(2, 3\)|shape|size|disagree|columns|rows"):
            rdna.matmul(desc, a, desc, a, rdna.TensorDesc([2, 3]), np.zeros((2, 3), np.float32))
        with self.assertRaisesRegex(ValueError, "which can be written"):
            rdna.matmul(desc, a, rdna.TensorDesc([3, 3]), np.zeros(9, np.float32), desc, read_only)
        with self.assertRaisesRegex(ValueError, "contiguous buffer of 36 bytes"):
            rdna.matmul(desc, a, rdna.TensorDesc([3, 3]), a, desc, a.copy())
        with self.assertRaisesRegex(ValueError, "data_type is 0"):
            rdna.TensorDesc([2], 5)

    def test_batched_matmul_on_addresses(self):
        kernel, allocator = rdna.KernelManager.get_instance().get_matmul_kernel(), rdna.MemoryManager.get_instance()
        a, b = rng.standard_normal((3, 4, 5)).astype(np.float32), rng.standard_normal((3, 5, 6)).astype(np.float32)
        out = np.full((3, 4, 6), np.nan, np.float32)
        places = [allocator.allocate(x.nbytes) for x in (a, b, out)]
        for place, x in zip(places, (a, b, out)):
            allocator.memcpy(place, x.ctypes.data, x.nbytes)
        batch = lambda *shape: [rdna.TensorDesc(shape)] * 3
        assert kernel.batched_matmul(batch(4, 5), places[0], batch(5, 6), places[1], batch(4, 6), places[2]) and kernel.is_initialized()
        allocator.memcpy(out.ctypes.data, places[2], out.nbytes)
        for place in places:
            allocator.deallocate(place)
        np.testing.assert_allclose(out, a.astype(np.float64) @ b, atol=1e-5)
        with self.assertRaisesRegex(ValueError, "batches of 3, 2 and 3"):
            kernel.batched_matmul(batch(4, 5), 0, batch(5, 6)[:2], 0, batch(4, 6), 0)

    def test_conv2d_and_its_gradients(self):
        x, w = rng.standard_normal((2, 4, 9, 7)).astype(np.float32), rng.standard_normal((6, 2, 3, 2)).astype(np.float32)
        dy = rng.standard_normal((2, 6, 5, 5)).astype(np.float32)
        want, want_dx, want_dw = by_loops(x, w, dy)
        y, desc = np.full(want.shape, np.nan, np.float32), lambda v: rdna.TensorDesc(v.shape)
        config = rdna.ConvConfig(padding=[1, 0], stride=[2, 1], dilation=[1, 2], groups=2)
        assert rdna.conv2d(desc(x), x, desc(w), w, desc(y), y, config)
        np.testing.assert_allclose(y, want, atol=1e-5)
        kernel, dx, dw = rdna.KernelManager.get_instance().get_conv_kernel(0), np.full_like(x, np.nan), np.full_like(w, np.nan)
        assert kernel.conv2d_backward_data(desc(w), w, desc(dy), dy, desc(dx), dx, config)
        assert kernel.conv2d_backward_filter(desc(x), x, desc(dy), dy, desc(dw), dw, config)
        np.testing.assert_allclose(dx, want_dx, atol=1e-5)
        np.testing.assert_allclose(dw, want_dw, atol=1e-4)
        assert kernel.find_best_algorithm(desc(x), desc(w), desc(y), config)
        with self.assertRaisesRegex(ValueError, "a number for height"):
            rdna.conv2d(desc(x), x, desc(w), w, desc(y), y, rdna.ConvConfig(stride=[1, 1, 1]))

    def test_custom_kernels(self):
        kernels = rdna.KernelManager.get_instance().get_custom_kernels(0)
        a, b = rng.standard_normal((5, 9)).astype(np.float32), rng.standard_normal((5, 9)).astype(np.float32)
        d = rdna.TensorDesc(a.shape)
        erf = np.vectorize(math.erf)(a.astype(np.float64) / 2**0.5)
        e = np.exp(a.astype(np.float64))
        for name, operands, want in [("add", (b,), a.astype(np.float64) + b), ("multiply", (b,), a.astype(np.float64) * b), ("relu", (), np.maximum(a, 0)),
                                     ("gelu", (), a / 2 * (1 + erf))]:
            out = np.full_like(a, np.nan)
            assert getattr(kernels, name)(d, a, *(x for v in operands for x in (d, v)), d, out)
            np.testing.assert_allclose(out, want, atol=1e-6, err_msg=name)
        for dim in (0, 1, -1):
            out = np.full_like(a, np.nan)
            kernels.softmax(d, a, d, out, dim)
            np.testing.assert_allclose(out, e / e.sum(dim, keepdims=True), atol=1e-6)
        for dims in ((0,), (1,), (0, -1), ()):
            want = a.astype(np.float64).sum(dims or None)
            out = np.full(np.shape(want), np.nan, np.float32)
            kernels.sum(d, a, rdna.TensorDesc(out.shape), out, dims)
            np.testing.assert_allclose(out, want, atol=1e-5)
            kernels.mean(d, a, rdna.TensorDesc(out.shape), out, dims)
            np.testing.assert_allclose(out, a.astype(np.float64).mean(dims or None), atol=1e-6)
        with self.assertRaisesRegex(ValueError, "dimension 2"):
            kernels.sum(d, a, rdna.TensorDesc([5]), np.zeros(5, np.float32), (2,))

    def test_strides(self):
        """Every second column, and a tensor that is one row again and again."""
        kernels, a, out = rdna.KernelManager.get_instance().get_custom_kernels(), np.arange(20, dtype=np.float32), np.full((4, 5), np.nan, np.float32)
        twice, row = rdna.TensorDesc([2, 5], strides=[10, 2]), rdna.TensorDesc([2, 5], strides=[0, 1])
        assert not twice.contiguous and twice.get_size() == 40
        kernels.add(twice, a, row, a, rdna.TensorDesc([2, 5]), out)
        np.testing.assert_array_equal(out.reshape(-1)[:10].reshape(2, 5), a.reshape(2, 10)[:, ::2] + a[:5])
        assert np.isnan(out.reshape(-1)[10:]).all()

    def test_reports(self):
        said = io.StringIO()
        for name in ("get_library_version", "get_build_info", "get_system_info", "get_kernel_info", "get_memory_info", "memory_summary"):
            assert len(getattr(rdna, name)()) > 4, name
        assert isinstance(rdna.get_roc_version(), str) and isinstance(rdna.get_hip_version(), str)
        with contextlib.redirect_stdout(said):
            rdna.print_system_info(), rdna.print_memory_info(), rdna.print_kernel_info()
            assert rdna.diagnostics() is True
        said = said.getvalue()
        assert rdna.get_device_properties().name in said and "computes what it should" in said
        assert rdna.DeviceManager.get_instance().check_device_compatibility(0) and not rdna.DeviceManager.get_instance().check_device_compatibility(7)
        assert "device 7" in rdna.DeviceManager.get_instance().get_last_error()

    def test_versions_of_rocm(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, ROCM_PATH=folder):
            assert rdna.get_roc_version() == ""
            (pathlib.Path(folder) / ".info").mkdir()
            (pathlib.Path(folder) / ".info" / "version").write_text("6.4.1-83\n")
            assert rdna.get_roc_version() == "6.4.1-83"

    def test_logging(self):
        result = python("import rdna\nfor on in (True, False):\n    rdna.set_debug_logging(on)\n"
                        "    assert rdna.get_library_config().enable_debug_logging is on\n    rdna.log_debug(f'word {on}')")  # fmt: skip
        assert result.returncode == 0 and "word True" in result.stderr and "word False" not in result.stderr, result.stderr

    def test_profiler(self):
        profiler, a = rdna.PerformanceProfiler.get_instance(), np.ones((4, 4), np.float32)
        profiler.clear_events()
        d = rdna.TensorDesc(a.shape)
        rdna.set_profiling(True)
        assert profiler.is_enabled() and rdna.get_library_config().enable_profiling
        rdna.matmul(d, a, d, a, d, a.copy())
        rdna.set_profiling(False)
        seen = profiler.get_all_stats()
        assert seen and seen["copy to device"].count == 3 and any("gemm" in name for name in seen), seen
        with rdna.ScopedEvent("mine"):
            pass
        assert profiler.get_stats("mine").count == 1 and profiler.get_event_count() >= 5
        with tempfile.TemporaryDirectory() as folder:
            report = pathlib.Path(folder) / "report"
            assert "mine" in profiler.generate_report(str(report)) and "mine" in report.read_text()
        with self.assertRaises(KeyError):
            profiler.end_event("never")

    def test_timer_and_benchmarks(self):
        with rdna.create_timer("t") as timer:
            ra.ones(1000).numpy()
        assert timer.elapsed_ms() >= 0
        runner = rdna.BenchmarkRunner.get_instance()
        assert runner.benchmark_memory_bandwidth(0, 1 << 20) > 0 and runner.benchmark_matrix_multiply(64, 32, 16) > 0


if __name__ == "__main__":
    unittest.main()

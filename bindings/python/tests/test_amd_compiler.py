"""ROCmCompiler: kernels compiled, kept and launched, on an emulated gfx1100 with the checker on, against PyTorch on the CPU.

What needs a card is run by a process of its own, with RDNA_EMULATE; the rest here, where the device is the host."""

import hashlib
import os
import pathlib
import re
import struct
import subprocess
import sys
import threading
import time
import warnings

import pytest
import torch

from rdna.amd import (AMDConfig, AMDConfigurationError, CompiledKernel, HIPCompilationError, HIPKernelError, LRUCache,
                      ROCmCompiler)
from rdna.amd.compiler import STANDARD_KERNELS, operator
from rdna.amd.config import AMDArchitecture

EMULATED = bool(os.environ.get("RDNA_EMULATE"))
card = pytest.mark.skipif(not EMULATED, reason="no GPU here; test_on_an_emulated_card runs it in a process with one")
ADD = """
__global__ void add(const float* a, const float* b, float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}
"""
WIDTHS = """
__global__ void widths(long long* out, bool flag, short s, unsigned char u, unsigned w, long long l, double d, half h,
                       hip_bfloat16 b, float f, int2 pair) {
  out[0] = flag, out[1] = s, out[2] = u, out[3] = w, out[4] = l, out[5] = (long long)d, out[6] = (long long)(float)h;
  out[7] = (long long)(float)b, out[8] = (long long)f, out[9] = pair.x, out[10] = pair.y;
}
"""
TWO = ADD + "__global__ void subtract(const float* a, const float* b, float* c, int n) {}\n"


@pytest.fixture
def config(tmp_path):
    return AMDConfig(architecture=AMDArchitecture.RDNA3, hip_compiler_cache_dir=str(tmp_path / "cache"))


def test_lru_cache():
    cache = LRUCache(max_size=2)
    assert len(cache) == 0 and cache.get("a") is None and LRUCache().max_size == 100
    cache.set("a", 1)
    cache.set("b", 2)
    assert cache.get("a") == 1
    cache.set("c", 3)  # "b" goes
    assert cache.get("b") is None and cache.get("a") == 1 and cache.get("c") == 3 and len(cache) == 2
    cache.set("a", 4)
    assert cache.get("a") == 4 and len(cache) == 2 and "a" in cache
    cache.clear()
    assert len(cache) == 0 and cache.get("a", 5) == 5
    with pytest.raises(ValueError):
        LRUCache(0)


def test_what_a_compiled_kernel_says(config):
    kernel = ROCmCompiler(config).compile_kernel(ADD, "add")
    assert isinstance(kernel, CompiledKernel) and kernel.name == "add"
    assert kernel.source_hash == hashlib.sha256(ADD.encode()).hexdigest()[:16]
    assert kernel.binary[:4] == b"\x7fELF" and kernel.architecture is AMDArchitecture.RDNA3 and kernel.target == "gfx1100"
    assert kernel.optimization_flags == ["-O2"] and kernel.compile_time_ms > 1
    assert kernel.signature() == "const float* a, const float* b, float* c, int n"


@pytest.mark.parametrize("level, flags", [("conservative", ["-O1"]), ("aggressive", ["-O3", "-ffast-math"])])
def test_levels(config, level, flags):
    assert ROCmCompiler(config).compile_kernel(ADD, "add", level).optimization_flags == flags
    config.optimization_level = level
    assert ROCmCompiler(config).compile_kernel(ADD, "add").optimization_flags == flags


@pytest.mark.parametrize("generation, target", [
    ("CDNA2", "gfx90a"), ("CDNA3", "gfx942"), ("RDNA2", "gfx1030"), ("RDNA3", "gfx1100"), ("RDNA4", "gfx1200"),
    ("CDNA", "gfx908"), ("RDNA", "gfx1010")])
def test_targets(tmp_path, generation, target):
    compiler = ROCmCompiler(AMDConfig(architecture=AMDArchitecture[generation], hip_compiler_cache_dir=str(tmp_path)))
    assert compiler._get_gpu_target() == target
    assert compiler.compile_kernel(ADD, "add").architecture is AMDArchitecture[generation]


def test_counts_and_both_caches(config):
    compiler = ROCmCompiler(config)
    keys = {"total_compilations", "cache_hits", "cache_misses", "compilation_errors", "cache_size",
            "cache_hit_rate_percent"}
    assert keys <= compiler.get_compilation_stats().keys() and compiler.get_compilation_stats()["cache_size"] == 0
    assert compiler.get_compilation_stats()["cache_hit_rate_percent"] == 0.0
    first = compiler.compile_kernel(ADD, "add")
    assert compiler.compile_kernel(ADD, "add") is first
    compiler.compile_kernel(TWO, "subtract")
    compiler.compile_kernel(ADD, "add", "aggressive")
    stats = compiler.get_compilation_stats()
    assert (stats["cache_hits"], stats["cache_misses"], stats["total_compilations"], stats["compiler_runs"]) == (1, 3, 3, 3)
    assert stats["cache_size"] == 3 and stats["cache_hit_rate_percent"] == 25.0

    other = ROCmCompiler(config)  # of another program, say: from the disk
    times = []
    for _ in range(3):
        other._cache.clear()
        begin = time.perf_counter()
        again = other.compile_kernel(ADD, "add")
        times.append(1000 * (time.perf_counter() - begin))
        assert again.from_disk and again.binary == first.binary
    assert other.get_compilation_stats()["disk_hits"] == 3 and other.get_compilation_stats()["compiler_runs"] == 0
    print(f"compiled in {first.compile_time_ms:.1f} ms, from the disk in {min(times):.3f} ms")
    assert first.compile_time_ms >= 50 * min(times)

    compiler.clear_cache()
    assert compiler.get_compilation_stats()["cache_size"] == 0
    assert not compiler.compile_kernel(ADD, "add").from_disk


def test_a_corrupt_entry_is_made_again(config):
    ROCmCompiler(config).compile_kernel(ADD, "add")
    entry, = pathlib.Path(config.hip_compiler_cache_dir).glob("*.code")
    data = bytearray(entry.read_bytes())
    data[len(data) // 2] ^= 4
    entry.write_bytes(data)
    with pytest.warns(UserWarning, match="checksum.*made again"):
        again = ROCmCompiler(config).compile_kernel(ADD, "add")
    assert not again.from_disk and ROCmCompiler(config).compile_kernel(ADD, "add").from_disk


def test_a_folder_that_cannot_be_written(config):
    config.hip_compiler_cache_dir = "/proc/self"  # where nobody makes files
    compiler = ROCmCompiler(config)
    with pytest.warns(UserWarning, match="/proc/self"):
        kernel = compiler.compile_kernel(ADD, "add")
    assert kernel.binary[:4] == b"\x7fELF" and compiler.compile_kernel(ADD, "add") is kernel


def test_caching_off(config):
    config.hip_kernel_cache_enabled = False
    compiler = ROCmCompiler(config)
    assert compiler.compile_kernel(ADD, "add") is not compiler.compile_kernel(ADD, "add")
    assert compiler.get_compilation_stats()["compiler_runs"] == 2 and not os.path.exists(config.hip_compiler_cache_dir)


def test_errors(config):
    compiler = ROCmCompiler(config)
    with pytest.raises(HIPCompilationError) as raised:
        compiler.compile_kernel("\n__global__ void broken(float* x) {\n  x[0] = nothing;\n}", "broken")
    assert raised.value.kernel_name == "broken" and "broken.hip:3:10: error" in str(raised.value)
    assert "undeclared identifier 'nothing'" in raised.value.error_message
    with pytest.raises(HIPCompilationError, match="'multiply'.*add.*subtract"):
        compiler.compile_kernel(TWO, "multiply")
    with pytest.raises(HIPCompilationError, match="none"):
        compiler.compile_kernel("__device__ int x;", "add")
    assert compiler.get_compilation_stats()["compilation_errors"] == 3
    assert compiler.get_compilation_stats()["total_compilations"] == 0
    with pytest.raises(AMDConfigurationError, match="conservative, balanced, aggressive"):
        compiler.compile_kernel(ADD, "add", "extreme")
    for bad in ((3, "add"), (ADD, None), (ADD, "")):
        with pytest.raises(TypeError):
            compiler.compile_kernel(*bad)


def test_the_document(config):
    """Its own lines, with a body for the elided one. The kernel's name there is not the source's."""
    compiler = ROCmCompiler(config)
    source = "__global__ void add(float* a, float* b, float* c) { c[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x]; }"
    with pytest.warns(UserWarning, match="'add_kernel'.*'add'"):
        kernel = compiler.compile_kernel(source, "add_kernel")
    assert kernel.name == "add_kernel"
    assert f"{kernel.architecture}" and compiler.get_compilation_stats()["cache_hit_rate_percent"] == 0.0
    compiler.clear_cache()


def test_threads_share_a_compiler(config):
    compiler, made = ROCmCompiler(config), []
    threads = [threading.Thread(target=lambda: made.append(compiler.compile_kernel(ADD, "add"))) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(made) == 4 and compiler.get_compilation_stats()["compiler_runs"] == 1


def test_no_launch_on_the_host(config):
    if EMULATED:
        pytest.skip("the device is a card here")
    kernel = ROCmCompiler(config).compile_kernel(ADD, "add")
    x = torch.zeros(4, device="rdna")
    with pytest.raises(HIPKernelError, match="runs none of a GPU"):
        kernel[1, 64](x, x, x, 4)
    with pytest.raises(HIPKernelError, match="argument 1, const float\\* a, is on cpu"):
        kernel[1, 64](x.cpu(), x, x, 4)


def test_on_an_emulated_card():
    if EMULATED:
        pytest.skip("it is this process")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("RDNA_") or k == "RDNA_KERNEL_PATH"}
    environment |= {"RDNA_DRIVER": "hip", "RDNA_EMULATE": "gfx1100", "RDNA_EMULATE_CHECK": "1"}
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__, "-k", "test_card"],
                          env=environment, capture_output=True, text=True, timeout=600, check=False)
    good = done.returncode == 0 and " passed" in done.stdout and "skipped" not in done.stdout
    assert good, done.stdout[-6000:] + done.stderr[-2000:]
    assert "rdna emulator" not in done.stderr, done.stderr[-4000:]


@card
def test_card_adds(config):
    compiler = ROCmCompiler(config)
    assert compiler._get_gpu_target() == "gfx1100"
    kernel = compiler.compile_kernel(ADD, "add")
    for n in (1, 255, 1000, 4097):
        a, b = torch.randn(n), torch.randn(n)
        a[0], b[-1] = float("nan"), float("inf")
        c = torch.full((n,), -7.0).to("rdna")
        version = c._version
        kernel[(n + 255) // 256, 256](a.to("rdna"), b.to("rdna"), c, n)
        torch.testing.assert_close(c.cpu(), a + b, rtol=0, atol=0, equal_nan=True)
        assert c._version > version  # autograd sees that it was written
    same = ROCmCompiler(config).compile_kernel(ADD, "add")
    assert same.from_disk
    x = torch.ones(64, device="rdna")
    same[1, 64](x, x, x, 64)
    assert x.sum().item() == 128
    kernel[0, 64](x, x, x, 64)  # no work
    assert x.sum().item() == 128


@card
def test_card_widths_of_arguments(config):
    kernel = ROCmCompiler(config).compile_kernel(WIDTHS, "widths")
    out = torch.zeros(11, dtype=torch.int64, device="rdna")
    kernel[1, 1](out, True, -300, 250, 4000000000, -(1 << 40), 1e12, 1.5e3, 256.0, 3, struct.pack("<ii", 7, -8))
    assert out.tolist() == [1, -300, 250, 4000000000, -(1 << 40), 10**12, 1500, 256, 3, 7, -8]
    for at, value, said in ((1, 2, "does not fit"), (2, 40000, "does not fit"), (3, -1, "does not fit"),
                            (4, -1, "does not fit"), (4, 1.5, "an integer"), (5, 1 << 63, "does not fit"), (9, "3", "no number"),
                            (10, b"abc", "8 bytes, and 3"), (0, 5, "pointer"), (6, out, "a tensor was given")):
        given = [out, True, -300, 250, 4000000000, -5, 1.0, 1.0, 1.0, 3.0, bytes(8)]
        given[at] = value
        with pytest.raises(TypeError, match=said):
            kernel[1, 1](*given)
    assert out[0].item() == 1


@card
def test_card_three_dimensions_and_shared_memory(config):
    source = """
    __global__ void where(int* out) {
      extern __shared__ int shared[];
      int inner = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
      shared[inner] = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
      __syncthreads();
      int threads = blockDim.x * blockDim.y * blockDim.z;
      out[shared[0] * threads + inner] = shared[threads - 1 - inner] * 100 + inner;
    }"""
    kernel = ROCmCompiler(config).compile_kernel(source, "where")
    out = torch.full((2 * 3 * 2, 24), -1, dtype=torch.int32).to("rdna")
    kernel[(2, 3, 2), (2, 4, 3), 24 * 4](out)
    want = torch.arange(12).reshape(12, 1) * 100 + torch.arange(24)
    assert torch.equal(out.cpu().long(), want)


@card
def test_card_refuses(config):
    kernel = ROCmCompiler(config).compile_kernel(ADD, "add")
    x, half = torch.ones(8, device="rdna"), torch.ones(8, device="rdna", dtype=torch.float16)
    integers = torch.ones(8, device="rdna", dtype=torch.int32)
    for given, kind, said in (
            ((x, x, x), TypeError, "takes 4 arguments .*int n.*, and 3 were given"),
            ((x, x, x, 8, 8), TypeError, "and 5 were given"),
            ((half, x, x, 8), TypeError, "argument 1, const float\\* a.*float16.*2-byte floats, not 4-byte"),
            ((x, integers, x, 8), TypeError, "argument 2.*int32"),
            ((x, x, x.double().float().to(torch.complex64).conj(), 8), TypeError, "conj"),
            ((x, x, x, 8.0), TypeError, "argument 4, int n: it is an integer, and 8.0 was given"),
            ((x, x, x, 1 << 31), TypeError, "does not fit"),
            ((x, x, x, x), TypeError, "a tensor was given"),
            ((x, x, [1.0], 8), TypeError, "pointer"),
            ((x, x.cpu(), x, 8), HIPKernelError, "argument 2.*is on cpu")):
        with pytest.raises(kind, match=said):
            kernel[1, 8](*given)
    for shape, kind, said in (((1, 1025), HIPKernelError, "1025"), ((1, 0), HIPKernelError, "block is 0"),
                              ((1, (32, 64)), HIPKernelError, "2048 threads"), ((1, 8, 1 << 20), HIPKernelError, "shared"),
                              ((1,), TypeError, "grid, block"), ((1.5, 8), TypeError, "grid"), ((-1, 8), TypeError, "grid"),
                              (((1, 1, 1, 1), 8), TypeError, "grid")):
        with pytest.raises(kind, match=said):
            kernel[shape](x, x, x, 8)
    with pytest.raises(TypeError, match="grid and block"):
        kernel(x, x, x, 8)
    assert x.cpu().tolist() == [1.0] * 8
    other = ROCmCompiler(AMDConfig(architecture=AMDArchitecture.RDNA2, hip_compiler_cache_dir=config.hip_compiler_cache_dir))
    with pytest.raises(HIPKernelError, match="gfx1030.*compile it for gfx1100"):
        other.compile_kernel(ADD, "add")[1, 8](x, x, x, 8)


@card
def test_card_streams_and_plain_c_names(config):
    """On the current stream; and with extern "C", where only sizes and pointers are known."""
    source = 'extern "C" __global__ void fill(float* x, float value, int n) { if (threadIdx.x < n) x[threadIdx.x] = value; }'
    kernel = ROCmCompiler(config).compile_kernel(source, "fill")
    x = torch.zeros(32, device="rdna")
    torch.rdna.synchronize()
    stream = torch.Stream("rdna")
    with torch.rdna.stream(stream):
        kernel[1, 32](x, 2.5, 20)
    stream.synchronize()
    assert x.cpu().tolist() == [2.5] * 20 + [0.0] * 12


@card
def test_card_standard_kernels(config):
    compiler = ROCmCompiler(config)
    kernels = compiler.precompile_standard_kernels()
    assert tuple(kernels) == STANDARD_KERNELS and compiler.get_compilation_stats()["cache_size"] == len(STANDARD_KERNELS)
    n = 1003
    x, y = 3 * torch.randn(n), torch.randn(n)
    on = {"a": x.to("rdna"), "b": y.to("rdna")}
    want = {"vector_add": x + y, "vector_multiply": x * y, "vector_scale": x * 0.3, "relu": x.relu(),
            "gelu": torch.nn.functional.gelu(x.double()).float(), "silu": torch.nn.functional.silu(x.double()).float()}
    for name, values in want.items():
        out = torch.full((n,), -7.0).to("rdna")
        inputs = [on["a"], on["b"]] if name in ("vector_add", "vector_multiply") else [on["a"]]
        kernels[name][(n + 255) // 256, 256](*inputs, out, *([0.3] if name == "vector_scale" else []), n)
        torch.testing.assert_close(out.cpu(), values, rtol=2e-6, atol=2e-6, msg=lambda text, name=name: name + ": " + text)
    rows = 5 * torch.randn(3, 700)
    out = torch.empty(3, 700, device="rdna")
    kernels["row_softmax"][3, 256](rows.to("rdna"), out, 700)
    torch.testing.assert_close(out.cpu(), rows.double().softmax(1).float(), rtol=1e-5, atol=1e-8)


@card
def test_card_operator(config):
    source = """
    __global__ void cube_scaled(const float* x, const float* w, float* y, float factor, int n) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < n) y[i] = factor * w[i] * x[i] * x[i] * x[i];
    }
    __global__ void cube_scaled_backward(const float* grad, const float* x, const float* w, float* dx, float* dw, float factor,
                                         int n) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i >= n) return;
      dx[i] = grad[i] * factor * w[i] * 3 * x[i] * x[i];
      dw[i] = grad[i] * factor * x[i] * x[i] * x[i];
    }"""
    compiler = ROCmCompiler(config)

    def forward(kernel, x, w, factor):
        x, w = x.contiguous(), w.contiguous()
        y = torch.empty_like(x)
        kernel[(x.numel() + 63) // 64, 64](x, w, y, factor, x.numel())
        return y

    def backward(kernel, grad, x, w, factor):
        grad, x, w = grad.contiguous(), x.contiguous(), w.contiguous()
        dx, dw = torch.empty_like(x), torch.empty_like(w)
        kernel[(x.numel() + 63) // 64, 64](grad, x, w, dx, dw, factor, x.numel())
        return dx, dw

    cube = operator("rdna_test::cube_scaled", "(Tensor x, Tensor w, float factor) -> Tensor",
                    compiler.compile_kernel(source, "cube_scaled"), forward,
                    backward=(compiler.compile_kernel(source, "cube_scaled_backward"), backward))
    x, w = torch.randn(5, 30), torch.randn(5, 30)
    leaves = [t.to("rdna").requires_grad_() for t in (x, w)]
    y = cube(*leaves, 0.5)
    assert y is not None and y.requires_grad
    (y * y).sum().backward()
    want = [t.double().requires_grad_() for t in (x, w)]
    z = 0.5 * want[1] * want[0] ** 3
    (z * z).sum().backward()
    torch.testing.assert_close(y.detach().cpu(), z.detach().float(), rtol=1e-6, atol=1e-7)
    for got, right in zip(leaves, want):
        torch.testing.assert_close(got.grad.cpu(), right.grad.float(), rtol=1e-5, atol=1e-6)
    torch.library.opcheck(cube, (x.to("rdna"), w.to("rdna"), 0.5), test_utils=("test_schema", "test_faketensor"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match="returns one"):
            operator("rdna_test::bad", "(float x) -> float", None, forward)


@card
def test_card_page():
    """What docs/amd/compiler.md shows; where the device is the host, test_amd_document.py leaves the launches out."""
    page = pathlib.Path(__file__).parents[3] / "docs" / "amd" / "compiler.md"
    there = {"__name__": "page"}
    for block in re.findall("^```python\n(.*?)^```$", page.read_text(), re.M | re.S):
        exec(compile(block, str(page), "exec"), there)
    assert there["has_card"] and there["x"].grad is not None


@card
def test_card_errors_of_a_kernel_surface(config):
    """A pointer beyond the tensor: the emulated card faults, and who waits is told which kernel it was."""
    done = subprocess.run([sys.executable, "-c", f"""
import torch
from rdna.amd import AMDConfig, ROCmCompiler
import torch_rdna
kernel = ROCmCompiler(AMDConfig(hip_compiler_cache_dir={config.hip_compiler_cache_dir!r})).compile_kernel(
    "__global__ void stray(float* x) {{ x[1ll << 40] = 1; }}", "stray")
x = torch.zeros(4, device="rdna")
kernel[1, 1](x)
try:
    torch.rdna.synchronize()
except RuntimeError as error:
    print("raised", error)
"""], capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.startswith("raised") and "stray" in done.stdout, done.stdout + done.stderr

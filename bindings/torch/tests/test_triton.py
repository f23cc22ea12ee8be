"""Triton's kernels on rdna's tensors, and Inductor, whose kernels are Triton's, on emulated gfx1100. The host has no Triton."""

import importlib.util
import os

import pytest
import torch

from test_device import IMPORT, emulated, run

triton = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")

KERNELS = '''
IMPORT
import triton
import triton.language as tl

@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)

@triton.jit
def softmax(x, out, columns, stride, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * stride + i, mask=i < columns, other=-float("inf"))
    v = tl.exp(v - tl.max(v, 0))
    tl.store(out + row * columns + i, v / tl.sum(v, 0), mask=i < columns)

@triton.jit
def product(a, b, c, M, N, K, sam, sak, sbk, sbn, scm, scn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for first in range(0, K, BK):
        left = tl.load(a + m[:, None] * sam + (first + k)[None, :] * sak, mask=(m[:, None] < M) & ((first + k)[None, :] < K), other=0.0)
        right = tl.load(b + (first + k)[:, None] * sbk + n[None, :] * sbn, mask=((first + k)[:, None] < K) & (n[None, :] < N), other=0.0)
        total = tl.dot(left, right, total)
    tl.store(c + m[:, None] * scm + n[None, :] * scn, total, mask=(m[:, None] < M) & (n[None, :] < N))
'''

DIRECT = KERNELS + '''
torch.manual_seed(0)
x, y = torch.randn(1000), torch.randn(1000)
out = torch.full((1000,), float("nan"), device="rdna")
add[(4,)](x.to("rdna"), y.to("rdna"), out, 1000, BLOCK=256)
assert torch.equal(out.cpu(), x + y)

# in order with what is queued before and behind, on a stream of its own too
with torch.rdna.stream(torch.rdna.Stream()):
    u = torch.zeros(1000, device="rdna")
    for _ in range(20):
        u += 1
        add[(4,)](u, u, u, 1000, BLOCK=256)
    assert u.mul(1).cpu().eq(2 ** 21 - 2).all(), u[:4]

rows = torch.randn(7, 101)
view = torch.randn(7, 150)
view[:, :101] = rows
out = torch.full((7, 101), float("nan"), device="rdna")
softmax[(7,)](view.to("rdna")[:, :101], out, 101, 150, BLOCK=128)
torch.testing.assert_close(out.cpu().double(), rows.double().softmax(1), rtol=1e-6, atol=1e-7)

a, b = torch.randn(33, 70).half(), torch.randn(70, 45).half()
c = torch.full((33, 45), float("nan"), device="rdna")
ours, theirs = a.to("rdna"), b.to("rdna").t().contiguous().t()
product[(2, 2)](ours, theirs, c, 33, 45, 70, *ours.stride(), *theirs.stride(), *c.stride(), BM=32, BN=32, BK=32)
torch.testing.assert_close(c.cpu().double(), a.double() @ b.double(), rtol=1e-5, atol=1e-5)  # f32 sums of exact products

# what a search measures is launches on this device
@triton.autotune([triton.Config({"BLOCK": 128}), triton.Config({"BLOCK": 256}, num_warps=8)], key=["n"],
                 do_bench=lambda call, quantiles: [triton.testing.do_bench(call, warmup=1, rep=1)] * 3)
@triton.jit
def double(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, 2 * tl.abs(tl.load(x + i, mask=i < n)), mask=i < n)
short = torch.ones(100, device="rdna")
double[lambda chosen: (triton.cdiv(100, chosen["BLOCK"]),)](short, 100)
assert double.best_config is not None and bool((short >= 2).all())

# a recording has it, and its replays read what is there then
u, out = torch.ones(1000, device="rdna"), torch.zeros(1000, device="rdna")
graph = torch.rdna.Graph()
with torch.rdna.graph(graph):
    add[(4,)](u, u, out, 1000, BLOCK=256)
assert out.cpu().eq(0).all()
u.fill_(21)
graph.replay()
assert out.cpu().eq(42).all()
print("fine")
'''

CARDS = KERNELS + '''
import triton.runtime.driver
active = triton.runtime.driver.active
try:
    active.set_current_device(7)
    raise AssertionError("device 7 was taken")
except ValueError as error:
    assert "device 7 of the vendor's library was asked for; those of rdna are 0, 1" in str(error), error
x = [torch.arange(64.0, device=f"rdna:{i}") for i in range(2)]
for i in (1, 0, 1):
    with torch.rdna.device(i):
        out = torch.empty_like(x[i])
        add[(1,)](x[i], x[i], out, 64, BLOCK=64)
        target = active.get_current_target()
        assert target.arch == torch.rdna.get_device_properties(i).arch, target
        assert torch.equal(out.cpu(), 2 * torch.arange(64.0))
print("fine")
'''

INDUCTOR = '''
IMPORT
from torch import nn
from torch.nn import functional as F
from torch._inductor.runtime.benchmarking import InductorBenchmarker
InductorBenchmarker.get_device_cache_size = lambda self, device_type=None: 4  # an emulated card has none to empty between runs
torch.manual_seed(0)

def chain(x, y):
    return F.softmax(F.gelu(x @ y) + 1, -1)
x, y = torch.randn(9, 33), torch.randn(33, 50)
got = torch.compile(chain)(x.to("rdna"), y.to("rdna"))
torch.testing.assert_close(got.cpu().double(), chain(x.double(), y.double()), rtol=1e-5, atol=1e-6)

model = nn.Sequential(nn.Linear(17, 24), nn.LayerNorm(24), nn.SiLU(), nn.Dropout(0.0), nn.Linear(24, 5))
exact = nn.Sequential(nn.Linear(17, 24), nn.LayerNorm(24), nn.SiLU(), nn.Dropout(0.0), nn.Linear(24, 5)).double()
exact.load_state_dict(model.state_dict())
model = model.to("rdna")
step = torch.compile(lambda x, t: F.cross_entropy(model(x), t))
sgd = [torch.optim.SGD(m.parameters(), lr=0.5) for m in (model, exact)]
for turn in range(4):
    x, t = torch.randn(11 + turn, 17), torch.randint(0, 5, (11 + turn,))  # sizes that change, too
    losses = [step(x.to("rdna"), t.to("rdna")), F.cross_entropy(exact(x.double()), t)]
    for loss, optimizer in zip(losses, sgd):
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.testing.assert_close(losses[0].cpu().double(), losses[1], rtol=1e-5, atol=1e-6)
for p, q in zip(model.parameters(), exact.parameters()):
    torch.testing.assert_close(p.cpu().double(), q, rtol=1e-4, atol=1e-5)

from torch._dynamo.utils import counters
assert counters["inductor"], "Inductor compiled nothing"
assert not torch.rdna.fallback_report(), torch.rdna.fallback_report()
print("fine")
'''


def children(folder, code, target="gfx1100", **more):
    file = folder / "program.py"  # Triton reads its kernels' source
    file.write_text(code.replace("IMPORT", IMPORT))
    done = run(f"import runpy; runpy.run_path({str(file)!r})", **emulated(target, PYTHONPATH=os.environ.get("PYTHONPATH", ""), **more))
    assert done.returncode == 0 and done.stdout.endswith("fine\n"), done.stderr[-3000:]
    assert "librdna_emulator:" not in done.stderr, done.stderr


@triton
def test_kernels_of_triton(tmp_path):
    children(tmp_path, DIRECT, RDNA_EMULATE_CHECK="1")


@triton
def test_kernels_of_triton_on_two_cards(tmp_path):
    children(tmp_path, CARDS, "gfx1100,gfx1030", RDNA_EMULATE_CHECK="1")


@triton
def test_inductor(tmp_path):
    # Without the checker: of a small tile several waves compute the same, and one stores it over what the others read. They
    # store nothing, so that it does no harm, but it is a race.
    children(tmp_path, INDUCTOR, RDNA_INDUCTOR="1", TORCHINDUCTOR_FX_GRAPH_CACHE="0")


def test_inductor_without_a_gpu_is_a_sentence():
    done = run(IMPORT + "torch.compile(lambda x: x + 1)(torch.ones(3, device='rdna'))", RDNA_DRIVER="host", RDNA_INDUCTOR="1",
               PYTHONPATH=os.environ.get("PYTHONPATH", ""))
    assert done.returncode and "Inductor's kernels for rdna are Triton's: install triton, and choose a GPU" in done.stderr, done.stderr


WORKER = IMPORT + '''
# a process that only compiles, in which the card cannot be had: this one has the host alone
from torch_rdna import _triton
_triton.serve("cuda")
import triton
from torch._inductor.runtime.triton_helpers import set_driver_to_gpu
set_driver_to_gpu()
assert isinstance(triton.runtime.driver.active, _triton.driver_class("cuda")), triton.runtime.driver.active
print("found")
'''


@triton
def test_processes_that_only_compile_need_no_card():
    done = run(WORKER, RDNA_DRIVER="host")
    assert done.stdout.strip() == "found", done.stderr[-2000:]

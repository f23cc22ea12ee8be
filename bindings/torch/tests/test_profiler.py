"""torch.profiler sees what rdna runs: each kernel and copy, when, how long and for which operator."""

import json
import os
import subprocess
import sys
from collections import Counter

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.profiler import ProfilerActivity, profile, schedule

pytestmark = pytest.mark.skipif(ProfilerActivity.PrivateUse1 not in torch.profiler.supported_activities(),
                                reason="this PyTorch's profiler takes nothing from devices like this one (2.6)")
BOTH = [ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]
DRIVER = torch.rdna.get_device_properties().driver
alone = pytest.mark.skipif(DRIVER == "cuda" and torch.backends.cuda.is_built(),
                           reason="PyTorch's CUDA is there and shows what runs on the GPU a second time")
PRODUCTS = ("gemm", "cublaslt", "hipblaslt", "rocblas")  # a vendor's library may do them


def on_device(p):
    return [e for e in p.events() if e.device_type == torch.autograd.DeviceType.PrivateUse1]


@alone
def test_kernels_have_times_and_belong_to_operators():
    a = torch.randn(700, 700, device="rdna")
    a @ a  # its kernel is loaded
    torch.rdna.synchronize()
    start, end = torch.rdna.Event(enable_timing=True), torch.rdna.Event(enable_timing=True)
    with profile(activities=BOTH) as p:
        start.record()
        for _ in range(3):
            b = a @ a
        c = (b + 1).relu()
        c.cpu()
        end.record()
        torch.rdna.synchronize()
    seen = on_device(p)
    names = [e.name for e in seen]
    assert sum(n.startswith(PRODUCTS) for n in names) == 3 and names[-1] == "copy to host" and len(names) == 6, names
    # one stream: each begins when the one before has ended, and all of it is what events around it measured
    for before, after in zip(seen, seen[1:]):
        assert after.time_range.start >= before.time_range.end - 1
    total = sum(e.time_range.elapsed_us() for e in seen)
    assert 0 < total <= start.elapsed_time(end) * 1e3 * 1.01
    products = [e for e in p.events() if e.name == "aten::mm" and e.kernels]
    assert len(products) == 3
    for e in products:
        kernel, = e.kernels
        assert kernel.name.startswith(PRODUCTS) and kernel.duration > 0
    table = {e.key: e for e in p.key_averages()}
    assert table["aten::mm"].self_device_time_total == pytest.approx(sum(e.kernels[0].duration for e in products))
    computing = sum(e.time_range.elapsed_us() for e in seen if not e.name.startswith("copy"))
    assert table["aten::mm"].self_device_time_total > 0.3 * computing  # 2 700^3 operations each
    assert "Self RDNA" in p.key_averages().table(sort_by="self_device_time_total")


def test_the_backward_pass_and_other_streams():
    x = torch.randn(64, 64, device="rdna", requires_grad=True)
    side = torch.rdna.Stream()
    with profile(activities=BOTH) as p:
        (x @ x).sum().backward()
        with torch.rdna.stream(side):
            torch.ones(100, device="rdna") * 2
    backward = [e for e in p.events() if e.name.startswith("autograd::engine::evaluate_function: MmBackward0")]
    assert len(backward) == 1 and backward[0].device_time_total > 0
    with torch.autograd.profiler.record_function("nothing"):
        pass
    assert len(on_device(p)) >= 6


@alone
def test_a_trace_for_chrome(tmp_path):
    with profile(activities=BOTH) as p:
        x = torch.randn(100).to("rdna")
        torch.rdna.synchronize()
        y = x.exp() + torch.zeros(100, device="rdna")
        y.cpu()
    p.export_chrome_trace(str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    kinds = Counter(e.get("cat") for e in events)
    assert kinds["kernel"] >= 2 and kinds["gpu_memcpy"] == 2, kinds
    copies = [e for e in events if e.get("cat") == "gpu_memcpy"]
    assert {e["name"] for e in copies} == {"copy to device", "copy to host"} and all(e["args"]["bytes"] == 400 for e in copies)
    kernel = next(e for e in events if e.get("cat") == "kernel" and "exp" in e["name"])
    operators = {e["args"].get("External id"): e["name"] for e in events if e.get("cat") == "cpu_op"}
    assert operators[kernel["args"]["External id"]] == "aten::exp" and kernel["dur"] > 0
    assert any(e.get("ph") == "f" and e["cat"] == "ac2g" for e in events)  # an arrow from the operator


def test_the_processor_alone_is_not_the_device():
    with profile(activities=[ProfilerActivity.CPU]) as p:
        torch.ones(10, device="rdna") + 1
    assert on_device(p) == [] and any(e.name == "aten::add" for e in p.events())


@alone
def test_again_and_by_schedule():
    x = torch.randn(1000, device="rdna")
    for _ in range(3):
        with profile(activities=BOTH) as p:
            x + 1
        assert len(on_device(p)) == 1
    steps = []
    with profile(activities=BOTH, schedule=schedule(wait=1, warmup=1, active=2, repeat=1),
                 on_trace_ready=lambda p: steps.append(len(on_device(p)))) as p:
        for _ in range(5):
            x + 1
            p.step()
    assert steps == [2]


@pytest.mark.skipif(tuple(int(n) for n in torch.__version__.split(".")[:2]) < (2, 7),
                    reason="torch 2.6 shows no such times where the device has a name of its own")
def test_the_older_profiler_times_operators():
    a = torch.randn(500, 500, device="rdna")
    with torch.autograd.profiler.profile(use_device="rdna") as p:
        a @ a
    table = {e.key: e for e in p.key_averages()}
    assert table["aten::matmul"].device_time_total >= table["aten::mm"].self_device_time_total > 0


def launches(f):
    f()
    f()
    with profile(activities=BOTH) as p:
        f()
    return len(on_device(p))


@alone
def test_compiled_models_launch_less():
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.up, self.down = nn.LayerNorm(32), nn.Linear(32, 64), nn.Linear(64, 32)

        def forward(self, x):
            return x + self.down(F.gelu(self.up(self.norm(x))) * 0.5 + 1)

    model, x = Block().to("rdna"), torch.randn(4, 9, 32, device="rdna")
    compiled = torch.compile(model, backend="rdna")
    with torch.no_grad():
        eager, ours = launches(lambda: model(x)), launches(lambda: compiled(x))
    # gelu goes into its product, the last sum into the other, times and plus become one
    assert eager - ours == 3, (eager, ours)


PROGRAM = """
import os, subprocess, sys, torch
import torch_rdna
a = torch.randn(90, 90, device="rdna")
(a @ a).exp().cpu()
if "child" not in sys.argv:
    subprocess.run([sys.executable, *sys.argv, "child"], check=True)
    if os.fork() == 0:
        sys.exit()  # a child that shares the recorder, and is not to write
    os.wait()
"""


@alone
def test_a_whole_program(tmp_path):
    program, trace = tmp_path / "program.py", tmp_path / "trace.json"
    program.write_text(PROGRAM)
    subprocess.run([sys.executable, program], check=True, env={**os.environ, "RDNA_PROFILE": str(trace)}, timeout=300)
    files = sorted(tmp_path.glob("trace.json*"))
    assert len(files) == 2 and trace in files, files  # the program's, and beside it the one of the process that it started
    for file in files:
        events = json.loads(file.read_text())["traceEvents"]
        kinds = Counter(e.get("cat") for e in events)
        assert kinds["kernel"] == 3 and kinds["gpu_memcpy"] == 1, kinds
        assert any(e.get("cat") == "cpu_op" and e["name"] == "aten::exp" for e in events)

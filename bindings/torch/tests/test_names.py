"""torch.rdna has what torch.cuda has, but for a list of names with reasons; and what the names do."""

import functools
import importlib
import inspect
import os
import pickle
import types

import pytest
import torch
from test_device import IMPORT, emulated, run

ABSENT = {
    "CudaError": "an error of CUDA's runtime; errors of rdna are AcceleratorError, RuntimeError and OutOfMemoryError",
    "DeferredCudaCallError": "torch.rdna defers no calls",
    "CUDAGraph": "its name is Graph",
    "GreenContext": "a share of a GPU's processors, which only CUDA has",
    "check_error": "takes a code of CUDA's runtime",
    "cudaStatus": "codes of CUDA's runtime",
    "cudart": "CUDA's runtime",
    "current_blas_handle": "a handle of cuBLAS, which rdna may not be using",
    "current_solver_handle": "a handle of cuSOLVER, which rdna may not be using",
    "gds": "GPUDirect Storage, NVIDIA's",
    "get_gencode_flags": "options of nvcc",
    "green_contexts": "as GreenContext",
    "has_magma": "a library of linear algebra that PyTorch was built with",
    "jiterator": "compiles CUDA C++",
    "list_gpu_processes": "asks NVIDIA's or AMD's management library for all processes of the system",
    "nccl": "raw calls of NCCL on lists of tensors; torch.distributed has the backend rdna",
    "profiler": "starts and stops NVIDIA's profiler; torch.profiler records rdna",
    "tunable": "PyTorch's tuning of cuBLAS and hipBLAS calls; librdna chooses and tunes its own",
    "comm": "scatters and gathers of nn.DataParallel; torch.distributed has the backend rdna",
}
MODULES = ["amp", "graphs", "memory", "nvtx", "random", "sparse", "streams"]


def public(module):
    """Names that torch.cuda's own documentation has, and whatever else dir() shows but for what it imports."""
    of = [getattr(v, "__name__", "") if isinstance(v, types.ModuleType) else getattr(v, "__module__", None) or ""
          for v in map(functools.partial(getattr, module), dir(module))]  # fmt: skip
    own = [n for n, where in zip(dir(module), of) if where.startswith("torch.cuda")]
    errors = [n for n in dir(module) if n.endswith("Error")]  # PyTorch's own, which torch.cuda has as well
    return sorted({n for n in [*module.__all__, *own, *errors] if not n.startswith("_")})


def test_every_name_of_torch_cuda_is_there_or_has_a_reason():
    names = [n for n in public(torch.cuda) if not n.endswith("Storage")]  # deprecated in all of PyTorch
    assert len(names) > 100
    assert [n for n in names if not hasattr(torch.rdna, n) and n not in ABSENT] == []
    assert [n for n in ABSENT if hasattr(torch.rdna, n)] == []


@pytest.mark.parametrize("name", MODULES)
def test_every_name_of_its_modules(name):
    theirs, ours = getattr(torch.cuda, name), getattr(torch.rdna, name)
    own = [n for n, v in vars(theirs).items() if getattr(v, "__module__", None) == theirs.__name__ and n[0] != "_"]
    names = {*own, *getattr(theirs, "__all__", [])} - {"amp_definitely_not_available"}
    names = names or [n for n in dir(theirs) if n.endswith("Tensor")]
    assert [n for n in names if not hasattr(ours, n) and n not in ABSENT] == [] != names
    exec(f"import torch.rdna.{name} as m; from torch.rdna import {name} as n; assert m is n is ours", {"ours": ours})


@pytest.mark.parametrize("name", ["memory", "random", "streams"])
def test_the_former_names_of_modules(name):
    former = importlib.import_module(f"{torch.rdna.__name__}._{name}")
    assert former is getattr(torch.rdna, name) is getattr(torch.rdna, f"_{name}")


def test_functions_take_the_arguments_of_cudas():
    other = {
        "mem_get_info", "memory_snapshot", "synchronize",  # newer releases take more
        "set_stream", "stream", "is_bf16_supported",
        "max_memory_cached", "memory_cached", "reset_max_memory_allocated", "reset_max_memory_cached",
    }  # fmt: skip
    different = []
    for name in public(torch.cuda):
        theirs, ours = getattr(torch.cuda, name), getattr(torch.rdna, name, None)
        if inspect.isfunction(theirs) and inspect.isfunction(ours) and name not in other:
            a, b = list(inspect.signature(theirs).parameters), list(inspect.signature(ours).parameters)
            if b[: len(a)] != a and b[:1] != ["unused"]:
                different.append((name, a, b))
    assert different == []


def test_reaching_another_device_is_not_known():
    with pytest.raises(NotImplementedError, match="copies between devices work"):
        torch.rdna.can_device_access_peer(0, "rdna:0")


REFUSED = ["MemPool", "use_mem_pool", "CUDAPluggableAllocator", "change_current_allocator", "caching_allocator_enable",
           "caching_allocator_disabled", "ExternalStream", "get_stream_from_external"]  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_done_is_refused_with_a_sentence(name):
    with pytest.raises(NotImplementedError, match="librdna"):
        getattr(torch.rdna, name)(1)


@pytest.mark.parametrize("dtype, kind", [(torch.float32, "Float"), (torch.bfloat16, "BFloat16"), (torch.int64, "Long"),
                                         (torch.bool, "Bool"), (torch.uint8, "Byte")])  # fmt: skip
def test_types_by_name(dtype, kind):
    x = torch.ones(3, dtype=dtype, device="rdna")
    named = getattr(torch.rdna, f"{kind}Tensor")
    assert x.type() == f"torch.rdna.{kind}Tensor" == f"{named.__module__}.{named.__name__}"
    assert isinstance(x, named) and not isinstance(x.cpu(), named) and not isinstance(x, torch.rdna.ShortTensor)
    assert isinstance(named([1, 0, 1]), named) and named([1, 0]).tolist() == torch.tensor([1, 0], dtype=dtype).tolist()
    assert named(2, 5).shape == (2, 5) and named().shape == (0,) and torch.ones(2).type(x.type()).is_rdna
    if kind in ("Float", "Long"):
        sparse = getattr(torch.rdna.sparse, f"{kind}Tensor")
        assert isinstance(x.to_sparse(), sparse) and not isinstance(x, sparse) and not isinstance(x.to_sparse(), named)


def test_amp():
    assert torch.rdna.is_bf16_supported()
    with torch.rdna.amp.autocast(dtype=torch.bfloat16):
        x = torch.ones(4, 4, device="rdna")
        assert (x @ x).dtype == torch.bfloat16
    with torch.rdna.amp.autocast(enabled=False):
        assert (x @ x).dtype == torch.float32
    scaler = torch.rdna.amp.GradScaler(init_scale=8.0)
    w = torch.full((3,), 2.0, device="rdna", requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=1.0)
    scaler.scale((w * w).sum()).backward()
    assert w.grad.tolist() == [32.0] * 3
    scaler.step(optimizer)
    assert w.tolist() == [-2.0] * 3

    class Double(torch.autograd.Function):
        @staticmethod
        @torch.rdna.amp.custom_fwd(cast_inputs=torch.float16)
        def forward(ctx, x):
            assert x.dtype == torch.float16 and not torch.is_autocast_enabled("rdna")
            return x * 2

        @staticmethod
        @torch.rdna.amp.custom_bwd
        def backward(ctx, grad):
            return grad * 2

    with torch.rdna.amp.autocast():
        Double.apply(w).sum().backward()


def test_ranges_are_in_the_profile():
    nvtx = torch.rdna.nvtx
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        assert nvtx.range_push("outer") == 0 and nvtx.range_push("inner") == 1
        torch.ones(3, device="rdna").add(1)
        assert nvtx.range_pop() == 1 and nvtx.range_pop() == 0
        with nvtx.range("step {}", 7):
            number = nvtx.range_start("across")
        nvtx.range_end(number)
        nvtx.mark("here")
    seen = {e.name: e for e in profile.events()}
    assert {"outer", "inner", "step 7", "across", "here"} <= set(seen)
    assert "aten::add" in [c.name for c in seen["inner"].cpu_children]
    with pytest.raises(RuntimeError, match="no range was pushed"):
        nvtx.range_pop()
    with pytest.raises(RuntimeError, match="there is no range"):
        nvtx.range_end(number)


def test_memory_of_ones_own_and_fractions():
    before = torch.rdna.memory_allocated()
    address = torch.rdna.caching_allocator_alloc(1 << 20)
    assert torch.rdna.memory_allocated() == before + (1 << 20)
    torch.rdna.caching_allocator_delete(address)
    assert torch.rdna.memory_allocated() == before
    with pytest.raises(RuntimeError, match="no memory of rdna begins"):
        torch.rdna.caching_allocator_delete(address + 1)
    torch.rdna.set_per_process_memory_fraction(0.5)
    try:
        assert torch.rdna.get_per_process_memory_fraction() == 0.5
    finally:
        torch.rdna.set_per_process_memory_fraction(1.0)
    nested, flat = torch.rdna.memory_stats_as_nested_dict(), torch.rdna.memory_stats()
    assert nested["allocated_bytes"]["all"]["current"] == flat["allocated_bytes.all.current"]
    assert 0 <= torch.rdna.device_memory_used() <= torch.rdna.mem_get_info()[1]


def test_pinned_memory_is_counted():
    torch.rdna.empty_cache()
    torch.rdna.reset_peak_host_memory_stats()
    before = torch.rdna.host_memory_stats()
    x = torch.ones(3 << 18).pin_memory()
    now = torch.rdna.host_memory_stats()
    assert now["allocated_bytes.current"] == before["allocated_bytes.current"] + (4 << 20)
    assert now["active_requests.current"] == before["active_requests.current"] + 1
    del x
    torch.rdna.empty_cache()
    after = torch.rdna.host_memory_stats_as_nested_dict()
    assert after["allocated_bytes"]["current"] == before["allocated_bytes.current"]
    assert after["allocated_bytes"]["peak"] == now["allocated_bytes.peak"]


def test_waiting_can_be_found():
    x = torch.ones(4, device="rdna")
    torch.rdna.set_sync_debug_mode("error")
    try:
        assert torch.rdna.get_sync_debug_mode() == 2
        y = (x + 1).sum()
        torch.rdna.synchronize()
        x.copy_(torch.ones(4).pin_memory(), non_blocking=True)
        for wait in (y.item, y.cpu, lambda: torch.ones(2).to("rdna"), x.tolist, x.nonzero):
            with pytest.raises(RuntimeError, match="makes the host wait"):
                wait()
        torch.rdna.set_sync_debug_mode(1)
        with pytest.warns(UserWarning, match="makes the host wait"):
            assert y.item() == 8
    finally:
        torch.rdna.set_sync_debug_mode("default")
    with pytest.raises(RuntimeError, match="expected 'default'"):
        torch.rdna.set_sync_debug_mode("loud")


def test_sensors_are_read_where_there_are_some(tmp_path, monkeypatch):
    from torch.rdna import _sensors

    with pytest.raises(NotImplementedError, match="only cards of Linux's amdgpu driver"):
        torch.rdna.temperature()
    folder = tmp_path / "0000:03:00.0"
    (folder / "hwmon" / "hwmon5").mkdir(parents=True)
    (folder / "gpu_busy_percent").write_text("37\n")
    for name, value in {"temp1_input": 61000, "power1_average": 214000000, "freq1_input": 2304000000}.items():
        (folder / "hwmon" / "hwmon5" / name).write_text(f"{value}\n")
    card = types.SimpleNamespace(name="a card", driver="hip", emulated=False, pci_domain=0, pci_bus=3, pci_device=0)
    monkeypatch.setattr(_sensors, "_DEVICES", str(tmp_path))
    monkeypatch.setattr(_sensors, "get_device_properties", lambda device: card)
    assert (torch.rdna.utilization(), torch.rdna.temperature()) == (37, 61)
    assert (torch.rdna.power_draw(), torch.rdna.clock_rate()) == (214000, 2304)
    with pytest.raises(RuntimeError, match="has no file mem_busy_percent"):
        torch.rdna.memory_usage()


def test_properties_of_the_device_by_cudas_names():
    made = {
        "name": "a card", "driver": "hip", "arch": "gfx90a:sramecc+", "index": 0, "native_index": 1, "integrated": True, "emulated": False,
        "total_memory": 7 << 30, "compute_units": 104, "wave_size": 64, "max_group_threads": 1024,
        "max_group_memory": 65536, "clock_mhz": 1700, "pci_domain": 1, "pci_bus": 3, "pci_device": 2,
    }  # fmt: skip
    card = torch.rdna.DeviceProperties(**made)
    assert (card.major, card.minor, card.gcnArchName) == (9, 0, "gfx90a:sramecc+")
    assert (card.multi_processor_count, card.warp_size, card.max_threads_per_block) == (104, 64, 1024)
    assert (card.shared_memory_per_block, card.is_integrated, card.clock_rate) == (65536, 1, 1700000)
    assert (card.pci_domain_id, card.pci_bus_id, card.pci_device_id) == (1, 3, 2)
    theirs = {"name", "total_memory", "gcnArchName", "major", "minor", "multi_processor_count", "warp_size",
              "max_threads_per_block", "shared_memory_per_block", "is_integrated", "clock_rate",
              "pci_domain_id", "pci_bus_id", "pci_device_id"}  # fmt: skip
    here = torch.rdna.get_device_properties()
    assert all(hasattr(here, name) for name in theirs)
    assert (here.major, here.minor) == torch.rdna.get_device_capability()


# The host driver records no graphs.
GRAPHS = IMPORT + """
x = torch.ones(5, device="rdna")
(x * 3 + 1).cpu()
graph = torch.rdna.Graph()
assert not torch.rdna.is_current_stream_capturing()
with torch.rdna.graph(graph, pool=torch.rdna.graph_pool_handle()):
    assert torch.rdna.is_current_stream_capturing()
    y = x * 3 + 1
assert not torch.rdna.is_current_stream_capturing()
assert torch.rdna.current_stream() == torch.rdna.default_stream()
for value in (2.0, -1.0):
    x.fill_(value)
    graph.replay()
    torch.rdna.synchronize()
    assert y.tolist() == [value * 3 + 1] * 5
assert torch.rdna.graph_pool_handle() != torch.rdna.graph_pool_handle()
left = torch.rdna.Graph()
left.capture_begin()
del left
assert not torch.rdna.is_current_stream_capturing() and (x + 1).tolist() == [0.0] * 5

torch.manual_seed(0)
plain = torch.nn.Sequential(torch.nn.Linear(6, 9), torch.nn.GELU(), torch.nn.Linear(9, 2))
ours = torch.nn.Sequential(torch.nn.Linear(6, 9), torch.nn.GELU(), torch.nn.Linear(9, 2)).to("rdna")
ours.load_state_dict(plain.state_dict())
ours = torch.rdna.make_graphed_callables(ours, (torch.randn(4, 6, device="rdna"),))
for _ in range(2):
    x = torch.randn(4, 6)
    for model, data in ((plain, x), (ours, x.to("rdna"))):
        model.zero_grad()
        model(data).square().sum().backward()
    for a, b in zip(ours.parameters(), plain.parameters()):
        torch.testing.assert_close(a.grad.cpu(), b.grad, rtol=1e-5, atol=1e-5)
        with torch.no_grad():
            a -= 0.1 * a.grad
            b -= 0.1 * b.grad
print("equal")
"""


@pytest.mark.parametrize("accelerators", [True, False])
def test_graphs(accelerators):
    """Also where PyTorch has no torch.accelerator.Graph."""
    without = "import torch\nif hasattr(torch.accelerator, 'Graph'): del torch.accelerator.Graph\n"
    done = run(("" if accelerators else without) + GRAPHS, PYTHONPATH=os.environ.get("PYTHONPATH", ""), **emulated())
    assert (done.returncode, done.stdout) == (0, "equal\n"), done.stderr
    graph = torch.rdna.Graph()
    if torch.rdna.get_device_properties().driver == "host":
        with pytest.raises(NotImplementedError, match="cannot record a graph"), torch.rdna.graph(graph):
            pass
        assert torch.rdna.current_stream() == torch.rdna.default_stream()
        assert not torch.rdna.is_current_stream_capturing()


HISTORY = IMPORT + """
def makes_some():
    return torch.empty(1 << 20, dtype=torch.uint8, device="rdna")
before = torch.empty(100, device="rdna")
torch.rdna.memory._record_memory_history(max_entries=1000)
kept = makes_some()
freed = makes_some()
del freed
torch.rdna.memory._dump_snapshot("FILE")
torch.rdna.memory._record_memory_history(None)
more = makes_some()
assert torch.rdna.memory._snapshot()["device_traces"] == [[]]
"""


def test_history_of_memory_is_what_pytorchs_viewer_reads(tmp_path):
    file = tmp_path / "snapshot.pickle"
    done = run(HISTORY.replace("FILE", str(file)), RDNA_DRIVER="host", PYTHONPATH=os.environ.get("PYTHONPATH", ""))
    assert done.returncode == 0, done.stderr
    from torch.cuda import _memory_viz

    snapshot = pickle.loads(file.read_bytes())
    events = snapshot["device_traces"][0]
    assert [e["action"] for e in events] == ["alloc", "alloc", "free_requested", "free_completed"]
    assert [e["size"] for e in events] == [1 << 20] * 4 and events[1]["addr"] == events[3]["addr"] != events[0]["addr"]
    for event in events[:2]:
        assert any(frame["name"] == "makes_some" for frame in event["frames"])
    active = [b for s in snapshot["segments"] for b in s["blocks"] if b["state"] == "active_allocated"]
    assert sorted(b["requested_size"] for b in active) == [400, 1 << 20]
    of_kept = next(b for b in active if b["address"] == events[0]["addr"])
    assert any(frame["name"] == "makes_some" for frame in of_kept["frames"])
    assert "free completed" in _memory_viz.trace(snapshot) and "1.0MiB" in _memory_viz.segsum(snapshot)
    page = _memory_viz.trace_plot(snapshot)
    assert page.lstrip().startswith("<!DOCTYPE html>")
    with pytest.raises(ValueError, match="expected enabled="):
        torch.rdna.memory._record_memory_history("some")


def test_the_last_events_are_kept():
    torch.rdna.memory._record_memory_history(max_entries=3, context=None)
    try:
        for size in (100, 200, 300):
            torch.empty(size, dtype=torch.uint8, device="rdna")
        events = torch.rdna.memory._snapshot()["device_traces"][0]
    finally:
        torch.rdna.memory._record_memory_history(None)
    assert [(e["action"], e["size"]) for e in events] == [
        ("free_requested", 200), ("free_completed", 200), ("alloc", 300), ("free_requested", 300), ("free_completed", 300),
    ]  # fmt: skip
    assert events[0]["frames"] == []


def test_memory_of_ones_own_is_in_the_history():
    torch.rdna.memory._record_memory_history()
    try:
        address = torch.rdna.caching_allocator_alloc(700)
        torch.rdna.caching_allocator_delete(address)
        events = torch.rdna.memory._snapshot()["device_traces"][0]
    finally:
        torch.rdna.memory._record_memory_history(None)
    assert [(e["action"], e["addr"], e["size"]) for e in events] == [
        (action, address, 700) for action in ("alloc", "free_requested", "free_completed")
    ]
    name = "test_memory_of_ones_own_is_in_the_history"
    assert any(frame["name"] == name for frame in events[0]["frames"])


def test_operators_that_cuda_has_and_rdna_has_not():
    """cuda_gaps.txt names all of the release that it is of, and none that is ours."""
    import cuda_gaps

    names = cuda_gaps.listed()
    assert len(names) > 60 and len(set(names)) == len(names)
    if torch.__version__.startswith(cuda_gaps.RELEASE + "."):
        assert sorted(names) == cuda_gaps.missing()
    there = set(torch._C._dispatch_get_all_op_names())
    assert [n for n in names if f"aten::{n}" in there and cuda_gaps.has(n, "PrivateUse1")] == []

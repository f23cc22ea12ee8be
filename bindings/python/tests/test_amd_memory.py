"""AMDMemoryManager: what it counts, refuses and gives back, beside the allocator's own numbers."""

import gc
import os
import subprocess
import sys

import pytest
import torch

import torch_rdna  # noqa: F401
from rdna.amd import AMDConfig, AMDMemoryManager, MemoryStats
from rdna.amd._room import MB, room
from rdna.amd.amd_exceptions import AMDBackendError, AMDConfigurationError, AMDDeviceError, ROCmMemoryError

NAMES = ["total_mb", "allocated_mb", "reserved_mb", "free_mb", "peak_allocated_mb", "num_allocations", "num_frees",
         "fragmentation_percent"]


@pytest.fixture
def manager():
    gc.collect()
    torch.rdna.synchronize()
    torch.rdna.empty_cache()
    made = AMDMemoryManager(AMDConfig())
    yield made
    made.cleanup()


def test_counts(manager):
    before = manager.get_memory_stats()
    assert isinstance(before, MemoryStats) and all(before[name] == getattr(before, name) for name in NAMES)
    with pytest.raises(KeyError, match="allocated_mb"):
        before["allocated"]
    a = manager.allocate_tensor((256, 1024), torch.float32, purpose="weights")  # a MB
    b = manager.allocate_tensor((1024, 1024), torch.float16, "weights")
    c = manager.allocate_tensor(3)
    assert (a.shape, a.dtype, a.device) == ((256, 1024), torch.float32, manager._get_device())
    assert (b.dtype, c.shape, c.dtype) == (torch.float16, (3,), torch.float32)
    stats = manager.get_memory_stats()
    assert stats.allocated_mb == pytest.approx(before.allocated_mb + 3, abs=0.01)
    assert stats.allocated_mb * MB == torch.rdna.memory_allocated() and stats.reserved_mb * MB == torch.rdna.memory_reserved()
    assert (stats.num_allocations, stats.num_frees) == (3, 0)
    assert manager.get_allocation_summary() == {"weights": 2, "unknown": 1}
    assert manager.get_allocated_memory_mb() == stats.allocated_mb
    assert manager.get_total_memory_mb() * MB == torch.rdna.mem_get_info()[1] == stats.total_mb * MB
    assert 0 < manager.get_free_memory_mb() <= stats.total_mb
    a.fill_(1)
    del b  # is a free too
    assert manager.get_allocation_summary() == {"weights": 1, "unknown": 1} and manager.get_memory_stats().num_frees == 1
    assert stats.peak_allocated_mb >= stats.allocated_mb
    peak = manager.get_memory_stats().peak_allocated_mb
    manager.reset_peak_stats()
    now = manager.get_memory_stats()
    assert now.peak_allocated_mb == now.allocated_mb < peak
    everything = manager.get_amd_memory_stats()
    assert {name: everything[name] for name in ("num_frees", "num_allocations")} == {"num_frees": 1, "num_allocations": 3}
    assert everything["purposes"] == {"weights": 1, "unknown": 1} and everything["device"] == "rdna:0"
    assert everything["allocator"]["blocks"] == torch.rdna.memory_stats()["blocks"]


def test_freed_memory_is_free(manager):
    held = torch.rdna.memory_allocated()
    a = manager.allocate_tensor((4, MB // 4), purpose="activations")
    again = a  # whoever holds it
    view = manager.allocate_tensor((2 * MB,), torch.uint8)
    part = view[5:]
    assert torch.rdna.memory_allocated() == held + 6 * MB
    manager.free_tensor(a)
    assert torch.rdna.memory_allocated() == held + 2 * MB and again.numel() == 0
    part.fill_(7)
    manager.free_tensor(view)
    assert torch.rdna.memory_allocated() == held + 2 * MB and int(part.sum(dtype=torch.int64)) == 7 * (2 * MB - 5)
    del part
    assert torch.rdna.memory_allocated() == held and manager.get_allocation_summary() == {}
    assert manager.get_memory_stats().num_frees == 2
    for other in (a, torch.ones(3, device="rdna"), torch.ones(3), None, "a"):
        with pytest.raises(AMDBackendError, match="free_tensor"):
            manager.free_tensor(other)
    assert manager.get_memory_stats().num_frees == 2


def test_a_tensor_of_a_gradient_keeps_what_autograd_needs(manager):
    a = manager.allocate_tensor((50, 3)).fill_(2).requires_grad_()
    y = (a * a).sum()
    saved = a.detach().clone()
    a_value = a.data
    y.backward()
    assert torch.equal(a.grad, 2 * saved) and torch.equal(a_value, saved)


def test_defragment_returns_segments(manager):
    kept = manager.allocate_tensor((MB,), torch.uint8, "kept").fill_(3)
    blocks = [manager.allocate_tensor((24 * MB,), torch.uint8, "block") for _ in range(3)]
    del blocks
    before, driver_frees = torch.rdna.memory_stats(), torch.rdna.memory_stats()["driver_frees"]
    assert before["reserved"] - before["allocated"] >= 48 * MB
    done = manager.defragment()
    after = torch.rdna.memory_stats()
    assert done["returned_mb"] * MB == before["reserved"] - after["reserved"] >= 48 * MB
    assert done["segments_returned"] == before["segment_count"] - after["segment_count"] == after["driver_frees"] - driver_frees > 0
    assert manager.get_memory_stats()["defrag_count"] == 1
    assert manager.defragment()["returned_mb"] == 0 and manager.get_memory_stats().defrag_count == 2
    assert int(kept.sum(dtype=torch.int64)) == 3 * MB


def test_pooling():
    held = AMDMemoryManager(AMDConfig(memory_pool_size_gb=8.0))
    torch.rdna.empty_cache()
    held.free_tensor(held.allocate_tensor((24 * MB,), torch.uint8))
    assert torch.rdna.memory_reserved() - torch.rdna.memory_allocated() >= 24 * MB
    for config in (AMDConfig(enable_memory_pooling=False), AMDConfig(memory_pool_size_gb=16 / 1024)):
        other = AMDMemoryManager(config)
        torch.rdna.empty_cache()
        least = torch.rdna.memory_reserved()
        other.free_tensor(other.allocate_tensor((24 * MB,), torch.uint8))
        assert torch.rdna.memory_reserved() == least


def test_a_pool_that_does_not_grow():
    torch.rdna.empty_cache()
    before = torch.rdna.memory_reserved()
    manager = AMDMemoryManager(AMDConfig(memory_growth_enabled=False, memory_pool_init_mb=32))
    assert torch.rdna.memory_reserved() - before >= 32 * MB
    a = manager.allocate_tensor((20 * MB,), torch.uint8)
    with pytest.raises(ROCmMemoryError, match="does not grow") as raised:
        manager.allocate_tensor((20 * MB,), torch.uint8)
    assert (raised.value.required_mb, raised.value.available_mb) == (20, 12)
    manager.free_tensor(a)
    manager.allocate_tensor((32 * MB,), torch.uint8)
    manager.cleanup()


def test_asks_before_it_allocates(manager):
    free, total = torch.rdna.mem_get_info()
    calls = torch.rdna.memory_stats()["alloc_count"]
    with pytest.raises(ROCmMemoryError, match="allocate_tensor of .* for 'cache'") as raised:
        manager.allocate_tensor((total, 2), torch.uint8, purpose="cache")
    error = raised.value
    assert error.required_mb == 2 * total / MB and 0 < error.available_mb <= 0.9 * total / MB
    assert "cache" in error.operation and "max_memory_fraction" in str(error)
    assert torch.rdna.memory_stats()["alloc_count"] == calls  # the allocator was never asked
    assert manager.get_allocation_summary() == {} and manager.get_memory_stats().num_allocations == 0
    # and where nobody asks before, the allocator's own answer
    for config, check in ((AMDConfig(), False), (AMDConfig(enable_oom_protection=False), True)):
        with pytest.raises(ROCmMemoryError) as raised:
            AMDMemoryManager(config).allocate_tensor((total, 2), torch.uint8, check_oom=check)
        assert isinstance(raised.value.__cause__, torch.OutOfMemoryError)


def test_a_share_of_the_device(monkeypatch):
    monkeypatch.setattr(torch.rdna, "mem_get_info", lambda device=None: (600 * MB, 1000 * MB))
    monkeypatch.setattr(torch.rdna, "memory_allocated", lambda device=None: 300 * MB)
    monkeypatch.setattr(torch.rdna, "memory_reserved", lambda device=None: 350 * MB)
    device = torch.device("rdna:0")
    # what is free and cached, 600 + 50, or what the share leaves
    assert [room(device, share) // MB for share in (1, 0.9, 0.5, 0.3, 0.1)] == [650, 600, 200, 0, 0]
    manager = AMDMemoryManager(AMDConfig(max_memory_fraction=0.31))
    with pytest.raises(ROCmMemoryError) as raised:
        manager.allocate_tensor((11 * MB,), torch.uint8)
    assert raised.value.available_mb == pytest.approx(10)
    assert manager.allocate_tensor((9 * MB,), torch.uint8).numel() == 9 * MB


def test_sizes(manager):
    assert manager.estimate_tensor_size((3, 5), torch.float64) == 120
    assert manager.estimate_tensor_size([7], torch.bool) == 7
    assert manager.estimate_tensor_size((), torch.int16) == 2 and manager.estimate_tensor_size((0, 9)) == 0
    assert manager.allocate_tensor((0, 9)).shape == (0, 9) and manager.allocate_tensor(()).shape == ()
    assert manager.allocate_tensor(torch.Size([2, 2])).shape == (2, 2)
    calls = manager.get_memory_stats().num_allocations
    for wrong in ((-1,), (3, -2), (2.0,), "33", None, ("3",), (True,), {2: 3}):
        for call in (manager.estimate_tensor_size, manager.allocate_tensor):
            with pytest.raises(AMDConfigurationError, match="shape") as raised:
                call(wrong, torch.float32)
            assert raised.value.value is wrong
    for wrong in ("float32", float, None, 4):
        with pytest.raises(AMDConfigurationError, match="dtype"):
            manager.allocate_tensor((2,), wrong)
    assert manager.get_memory_stats().num_allocations == calls


def test_cleanup_frees_what_is_left(manager):
    held = torch.rdna.memory_allocated()
    kept = [manager.allocate_tensor((MB,)) for _ in range(3)]
    manager.cleanup()
    assert torch.rdna.memory_allocated() == held and all(t.numel() == 0 for t in kept)
    assert manager.get_allocation_summary() == {} and manager.get_memory_stats().num_frees == 3
    assert manager.allocate_tensor((2,)).shape == (2,)
    assert "rdna:0" in repr(manager)


def test_devices():
    assert AMDMemoryManager(AMDConfig()).device_id == 0 and AMDMemoryManager().device_id == 0
    count = torch.rdna.device_count()
    with pytest.raises(AMDDeviceError):
        AMDMemoryManager(AMDConfig(), device_id=count)
    for number in (-1, 1.5):
        with pytest.raises(AMDConfigurationError, match="device_id"):
            AMDMemoryManager(AMDConfig(), device_id=number)
    with pytest.raises(AMDConfigurationError, match="memory_pool_size_gb"):
        AMDMemoryManager(AMDConfig(memory_pool_size_gb=-2))


def test_allocations_of_many_threads(manager):
    from concurrent.futures import ThreadPoolExecutor

    def work(number):
        for i in range(40):
            tensor = manager.allocate_tensor((i + 1,), purpose=f"thread {number}")
            if i % 2:
                manager.free_tensor(tensor)
            del tensor

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    stats = manager.get_memory_stats()
    assert (stats.num_allocations, stats.num_frees) == (160, 160) and manager.get_allocation_summary() == {}


NO_DEVICE = """
import warnings, torch
warnings.simplefilter("ignore")
from rdna.amd import AMDConfig, AMDMemoryManager
from rdna.amd.amd_exceptions import ROCmMemoryError
manager = AMDMemoryManager(AMDConfig())
assert manager.fallback_reason and manager._get_device() == torch.device("cpu")
a = manager.allocate_tensor((1024, 1024), torch.float32, "a")
stats = manager.get_memory_stats()
assert a.device.type == "cpu" and stats.allocated_mb == 4 and stats.total_mb > stats.free_mb > 0
assert manager.get_allocation_summary() == {"a": 1}
manager.free_tensor(a)
assert manager.get_memory_stats().allocated_mb == 0 and manager.get_memory_stats().peak_allocated_mb == 4
assert manager.defragment()["returned_mb"] == 0 and manager.get_memory_stats()["defrag_count"] == 1
manager.reset_peak_stats()
assert manager.get_memory_stats().peak_allocated_mb == 0 and manager.get_amd_memory_stats()["device"] == "cpu"
try:
    manager.allocate_tensor((2**50,))
except ROCmMemoryError as error:
    assert error.required_mb == 2**32
else:
    raise SystemExit("4 PB")
manager.cleanup()
"""


def test_without_a_device():
    environment = {**os.environ, "RDNA_DRIVER": "hip", "RDNA_EMULATE": "", "RDNA_HIP_LIBRARY": "/nonexistent"}
    subprocess.run([sys.executable, "-c", NO_DEVICE], env=environment, check=True)



"""Tensors to and from other libraries, processes and files; torch.accelerator."""

import copy
import ctypes
import gc
import inspect
import io
import os
import pickle

import numpy as np
import pytest
import torch
from test_device import IMPORT, emulated, run
from torch.utils.data import DataLoader, TensorDataset


def some():
    return torch.arange(6.0, device="rdna").reshape(2, 3)


DLPACK1 = "max_version" in inspect.signature(torch.Tensor.__dlpack__).parameters  # newer than torch 2.6
# torch 2.6 means CUDA's pinned memory unless it is told; later releases ask the accelerator and deprecate this word
PINNED_FOR = {"pin_memory_device": "rdna"} if torch.__version__ < (2, 7) else {}


class Foreign:
    """A tensor that says it is another library's."""

    def __init__(self, tensor, kind, number):
        self.tensor, self.kind, self.number = tensor, kind, number

    def __dlpack_device__(self):
        return self.kind, self.number

    def __dlpack__(self, **unused):
        capsule = self.tensor.__dlpack__()
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        place = (ctypes.c_int * 2).from_address(pointer(capsule, b"dltensor") + 8)
        place[0], place[1] = self.kind, self.number
        return capsule


@pytest.mark.parametrize("view", [lambda x: x, lambda x: x.t(), lambda x: x[:, 1:], lambda x: x[:0], lambda x: x[1, 1]])
def test_dlpack_both_ways(view):
    x = view(some())
    for y in (torch.from_dlpack(x), torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x)), torch.rdna.from_dlpack(x)):
        assert y.device == x.device and y.shape == x.shape
        assert y.stride() == x.stride() or x.numel() == 0 and not DLPACK1
        assert x.numel() == 0 or y.data_ptr() == x.data_ptr()
        assert torch.equal(y.cpu(), x.cpu())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.int8, torch.uint8, torch.int16,
                                   torch.int32, torch.int64, torch.bool, torch.complex64])
def test_dlpack_types(dtype):
    x = torch.ones(3, dtype=dtype, device="rdna")
    assert torch.from_dlpack(x).dtype == dtype and torch.equal(torch.from_dlpack(x).cpu(), x.cpu())


def test_dlpack_devices_and_streams():
    x = some()
    assert x.__dlpack_device__() == (12, 0) and torch.ones(1).__dlpack_device__() == (1, 0)  # kDLExtDev, kDLCPU
    for stream in (None, -1, 1, 2):  # no stream of a vendor's orders anything here
        assert torch.from_dlpack(x.__dlpack__(stream=stream)).data_ptr() == x.data_ptr()
    if not DLPACK1:
        return
    assert "versioned" in repr(x.__dlpack__(max_version=(1, 0)))
    assert torch.from_dlpack(x, copy=True).data_ptr() != x.data_ptr()
    assert torch.from_dlpack(x, device="cpu").device.type == "cpu" and torch.from_dlpack(torch.ones(3), device="rdna").is_rdna
    with pytest.raises(BufferError, match="require gradient"):
        torch.from_dlpack(x.requires_grad_())


def test_dlpack_memory_lives_as_long_as_the_last_tensor():
    gc.collect()
    before = torch.rdna.memory_allocated()
    x = torch.ones(1 << 18, device="rdna")
    y = torch.from_dlpack(x)
    del x
    assert torch.rdna.memory_allocated() >= before + (1 << 20) and y.sum().item() == 1 << 18
    del y
    unused = torch.ones(1 << 18, device="rdna").__dlpack__()
    del unused
    assert torch.rdna.memory_allocated() == before


def test_memory_of_other_libraries():
    assert torch.rdna.from_dlpack(np.arange(3.0)).device.type == "rdna"
    assert torch.rdna.from_dlpack(torch.ones(2)).tolist() == [1, 1]
    driver = torch.rdna.get_device_properties().driver
    kinds = {"cuda": 2, "hip": 10}
    for name, kind in kinds.items():
        x = some()
        if name == driver:
            y = torch.rdna.from_dlpack(Foreign(x, kind, 0))
            assert y.device == x.device and y.data_ptr() == x.data_ptr()
        else:
            with pytest.raises(RuntimeError, match=f"device 0 of the {name} driver is none"):
                torch.rdna.from_dlpack(Foreign(x, kind, 0))
        with pytest.raises(RuntimeError, match="device 77"):
            torch.rdna.from_dlpack(Foreign(some(), kind, 77))
    with pytest.raises(RuntimeError, match="GPU was expected"):
        torch.rdna._C.adopt_dlpack(torch.ones(2).__dlpack__())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="takes memory from PyTorch's own CUDA, and torch.cuda finds no NVIDIA GPU here")
def test_memory_of_pytorchs_cuda():
    x = torch.arange(8.0, device="cuda") * 2
    y = torch.rdna.from_dlpack(x)
    assert y.data_ptr() == x.data_ptr() and torch.equal(y.cpu(), x.cpu())
    y += 1
    torch.rdna.synchronize()
    assert x.tolist() == [2.0 * i + 1 for i in range(8)]


def test_numpy():
    x = some()
    assert np.array_equal(x.numpy(force=True), np.arange(6.0).reshape(2, 3))
    if DLPACK1:
        assert np.array_equal(np.from_dlpack(torch.from_dlpack(x, device="cpu")), np.arange(6.0).reshape(2, 3))
    for convert in (x.numpy, lambda: np.asarray(x)):
        with pytest.raises(TypeError, match="Use Tensor.cpu"):
            convert()
    with pytest.raises((RuntimeError, BufferError), match="[Uu]nsupported device"):
        np.from_dlpack(x)
    assert torch.as_tensor(np.ones(3, dtype=np.float32), device="rdna").is_rdna


@pytest.mark.parametrize("method,persistent", [("fork", False), ("spawn", True)])
def test_loaders_pin_memory(method, persistent):
    torch.ones(1, device="rdna")  # the device is in use when the workers start
    values = torch.randn(64, 5)
    loader = DataLoader(TensorDataset(values, torch.arange(64)), batch_size=16, num_workers=2, pin_memory=True,
                        multiprocessing_context=method, persistent_workers=persistent, **PINNED_FOR)
    for _ in range(1 + persistent):
        total, seen = torch.zeros(5, device="rdna"), []
        for x, i in loader:
            assert x.is_pinned() and i.is_pinned() and not values.is_pinned()
            total += x.to("rdna", non_blocking=True).sum(0)
            seen += i.tolist()
        assert sorted(seen) == list(range(64))
        torch.testing.assert_close(total.cpu(), values.sum(0))


def test_deepcopy_and_pickle():
    x = some()
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4)).to("rdna")
    optimizer = torch.optim.AdamW(model.parameters())
    model(x).sum().backward()
    optimizer.step()
    for again in (copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))):
        y = again({"a": x, "b": x.view(6), "t": x.t()})
        assert y["a"].data_ptr() == y["b"].data_ptr() != x.data_ptr() or again is not copy.deepcopy
        assert torch.equal(y["a"].cpu(), x.cpu()) and y["t"].stride() == (1, 3) and y["a"].device == x.device
        other = again(model)
        assert torch.equal(other(x).cpu(), model(x).cpu()) and other[0].weight.is_rdna and other[0].weight.requires_grad
        assert again(torch.nn.Parameter(x)).requires_grad
        assert again(torch.device("rdna:0")) == torch.device("rdna:0")
        g = torch.Generator("rdna").manual_seed(3)
        assert torch.equal(torch.randn(4, device="rdna", generator=again(g)).cpu(), torch.randn(4, device="rdna", generator=g).cpu())
    state = copy.deepcopy(optimizer.state_dict())
    optimizer.load_state_dict(pickle.loads(pickle.dumps(state)))
    assert optimizer.state[model[0].weight]["exp_avg"].is_rdna


def saved(thing, **options):
    file = io.BytesIO()
    torch.save(thing, file, **options)
    file.seek(0)
    return file


WHERE = [(None, "rdna", "cpu"), ("cpu", "cpu", "cpu"), ("rdna", "rdna", "rdna"), ("rdna:0", "rdna", "rdna"),
         (torch.device("rdna"), "rdna", "rdna"), (torch.device("cpu"), "cpu", "cpu"), ({"rdna:0": "cpu"}, "cpu", "cpu"),
         ({"cpu": "rdna:0"}, "rdna", "rdna"), (lambda storage, place: storage, "cpu", "cpu"),
         (lambda storage, place: storage.rdna(0) if place == "cpu" else storage.cpu(), "cpu", "rdna")]


@pytest.mark.parametrize("where,of_rdna,of_cpu", WHERE)
@pytest.mark.parametrize("zip_file", [True, False])
def test_files_with_map_location(where, of_rdna, of_cpu, zip_file, tmp_path):
    x = some()
    for thing, want in ((x, of_rdna), (x.cpu(), of_cpu)):
        file = saved({"x": thing, "t": thing.t(), "p": torch.nn.Parameter(thing)}, _use_new_zipfile_serialization=zip_file)
        loaded = torch.load(file, map_location=where)
        assert {v.device.type for v in loaded.values()} == {want}
        assert all(torch.equal(loaded[k].cpu(), v) for k, v in (("x", x.cpu()), ("t", x.cpu().t()), ("p", x.cpu())))
        assert loaded["x"].untyped_storage().data_ptr() == loaded["t"].untyped_storage().data_ptr()
        if zip_file:
            torch.save(thing, tmp_path / "file")
            assert torch.load(tmp_path / "file", map_location=where, mmap=True).device.type == want


def test_a_file_of_a_device_that_is_not_there():
    with pytest.raises(RuntimeError, match="device 7"):
        torch.load(saved(some()), map_location="rdna:7")


def test_the_accelerator():
    a = torch.accelerator
    assert a.current_accelerator().type == "rdna" and a.is_available() and a.device_count() == torch.rdna.device_count()
    index = getattr(a, "current_device_index", None) or a.current_device_idx
    assert index() == 0
    (getattr(a, "set_device_index", None) or a.set_device_idx)(0)
    s = torch.rdna.Stream()
    before = a.current_stream()
    a.set_stream(s)
    assert a.current_stream() == s
    a.set_stream(before)
    a.synchronize()
    if hasattr(a, "device_index"):
        with a.device_index(0):
            assert index() == 0
    with pytest.raises(RuntimeError, match="rdna:9 was asked for|nvalid device|device index"):
        (getattr(a, "set_device_index", None) or a.set_device_idx)(9)
    with torch.device("rdna"):
        assert torch.ones(2).is_rdna and torch.nn.Linear(2, 2).weight.is_rdna
    assert torch.get_device_module("rdna") is torch.rdna


@pytest.mark.skipif(not hasattr(torch.accelerator, "memory_allocated"),
                    reason=f"PyTorch {torch.__version__} has no torch.accelerator.memory_allocated; 2.9 has it")
def test_the_accelerators_memory():
    a = torch.accelerator
    a.empty_cache()
    a.reset_peak_memory_stats()
    before = a.memory_allocated()
    x = torch.empty(1 << 20, dtype=torch.uint8, device="rdna")
    assert a.memory_allocated() == before + (1 << 20) == torch.rdna.memory_allocated() <= a.max_memory_allocated()
    assert a.memory_reserved() >= 1 << 20 and a.max_memory_reserved() >= a.memory_reserved()
    assert a.memory_stats()["allocated_bytes.all.current"] == a.memory_allocated()
    a.reset_accumulated_memory_stats()
    del x
    assert a.memory_allocated() == before
    if hasattr(a, "get_memory_info"):
        free, total = a.get_memory_info()
        assert 0 < free <= total
    if hasattr(a, "get_device_capability"):
        types = a.get_device_capability()["supported_dtypes"]
        assert {torch.float32, torch.bfloat16, torch.int64, torch.complex64} <= types and torch.qint8 not in types


@pytest.mark.skipif(not hasattr(torch.accelerator, "empty_host_cache"),
                    reason=f"PyTorch {torch.__version__} has no torch.accelerator.empty_host_cache; 2.13 has it")
def test_the_accelerators_pinned_memory():
    x = torch.ones(1 << 20).pin_memory()
    there = x.to("rdna", non_blocking=True)
    del x
    torch.accelerator.empty_host_cache()
    torch.rdna.synchronize()
    torch.accelerator.empty_host_cache()
    assert there.sum().item() == 1 << 20
    with pytest.raises(RuntimeError, match="only dense CPU tensors"):
        there.pin_memory()


GRAPH = IMPORT + """
from test_interchange import test_memory_of_other_libraries
test_memory_of_other_libraries()
if not hasattr(torch.accelerator, 'Graph'):
    print('right')
    sys.exit()
x, w = torch.randn(8, 16, device='rdna'), torch.randn(16, 16, device='rdna')
f = lambda: ((x @ w).relu() + 1).sum(0)
f()
stream, graph = torch.Stream('rdna'), torch.accelerator.Graph()
torch.rdna.synchronize()
with stream, graph:
    y = f()
for i in range(3):
    x.copy_(torch.randn(8, 16))
    torch.rdna.synchronize()
    with stream: graph.replay()
    torch.rdna.synchronize()
    assert torch.allclose(y.cpu(), f().cpu(), atol=1e-5), i
for wrong in (graph.capture_begin, torch.accelerator.Graph().replay, torch.accelerator.Graph().capture_end):
    try: wrong()
    except RuntimeError as error: assert 'recording' in str(error), error
    else: raise AssertionError
graph.reset()
print('right')
"""


def test_graphs_and_memory_of_rocm_on_an_emulated_card():
    if hasattr(torch.accelerator, "Graph") and torch.rdna.get_device_properties().driver == "host":
        with pytest.raises(NotImplementedError, match="record"):
            torch.accelerator.Graph().capture_begin()
    done = run(f"import sys; sys.path.insert(0, {os.path.dirname(__file__)!r})\n" + GRAPH,
               **emulated(PYTHONPATH=os.environ.get("PYTHONPATH", "")))
    assert done.stdout == "right\n", done.stderr

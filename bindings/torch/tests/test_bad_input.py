"""What is asked wrongly, or cannot be: an exception with a sentence, memory as it was, and the next call works."""

import gc
import os
import re

import pytest
import torch
from test_device import IMPORT, emulated, run
from torch.nn import functional as F


@pytest.fixture(autouse=True)
def nothing_is_lost():
    torch.rdna.synchronize()
    before = torch.rdna.memory_allocated()
    yield
    if torch.rdna.memory_allocated() > before:
        gc.collect()  # the exception's frames
    assert torch.rdna.memory_allocated() <= before
    assert (torch.ones(3, device="rdna") + 1).sum().item() == 6


def there(*shape, dtype=torch.float32):
    return torch.ones(*shape, device="rdna", dtype=dtype)


def here(*shape, dtype=torch.float32):
    return torch.ones(*shape, dtype=dtype)


MIXED = {
    "add": lambda: there(3) + here(3), "add_": lambda: there(3).add_(here(3)), "cpu add_": lambda: here(3).add_(there(3)),
    "mm": lambda: there(2, 2) @ here(2, 2), "cpu mm": lambda: here(2, 2) @ there(2, 2),
    "addmm": lambda: torch.addmm(here(2), there(2, 2), there(2, 2)), "bmm": lambda: torch.bmm(there(1, 2, 2), here(1, 2, 2)),
    "linear": lambda: F.linear(there(2, 3), here(4, 3)), "linear bias": lambda: F.linear(there(2, 3), there(4, 3), here(4)),
    "conv weight": lambda: F.conv2d(there(1, 1, 4, 4), here(1, 1, 2, 2)),
    "conv bias": lambda: F.conv2d(there(1, 1, 4, 4), there(1, 1, 2, 2), here(1)),
    "cpu conv": lambda: F.conv2d(here(1, 1, 4, 4), there(1, 1, 2, 2)),
    "batch norm": lambda: F.batch_norm(there(2, 3), here(3), here(3)),
    "batch norm weight": lambda: F.batch_norm(there(2, 3), there(3), there(3), here(3), here(3), True),
    "layer norm": lambda: F.layer_norm(there(2, 3), (3,), here(3)), "group norm": lambda: F.group_norm(there(2, 4), 2, here(4)),
    "embedding": lambda: F.embedding(there(2, dtype=torch.int64), here(3, 3)),
    "cpu embedding": lambda: F.embedding(here(2, dtype=torch.int64), there(3, 3)),
    "gather": lambda: there(3).gather(0, here(1, dtype=torch.int64)), "cat": lambda: torch.cat([there(3), here(3)]),
    "cpu stack": lambda: torch.stack([here(3), there(3)]), "where": lambda: torch.where(there(3) > 0, there(3), here(3)),
    "cpu condition": lambda: torch.where(here(3) > 0, there(3), there(3)),
    "masked_fill": lambda: there(3).masked_fill(here(3) > 0, 1.0), "scatter": lambda: there(3).scatter(0, there(1, dtype=torch.int64), here(1)),
    "out": lambda: torch.add(there(3), 1, out=here(3)), "rdna out": lambda: torch.add(here(3), 1, out=there(3)),
    "cross entropy": lambda: F.cross_entropy(there(2, 3), here(2, dtype=torch.int64)), "mse": lambda: F.mse_loss(there(3), here(3)),
    "attention": lambda: F.scaled_dot_product_attention(there(1, 1, 2, 8), here(1, 1, 2, 8), there(1, 1, 2, 8)),
    "addcmul": lambda: torch.addcmul(there(3), here(3), there(3)), "lerp": lambda: torch.lerp(there(3), here(3), 0.5),
    "foreach": lambda: torch._foreach_add([there(3)], [here(3)]), "fallback": lambda: torch.ops.aten.igamma(there(3), here(3)),
    "fused": lambda: torch.ops.rdna.fused([there(3), here(3)], [0, 1, 1, 0], [0.0, 0.0], []),
    "fused addmm": lambda: torch.ops.rdna.addmm(here(2), there(2, 2), there(2, 2), 0, None),
    "generator": lambda: torch.randn(3, device="rdna", generator=torch.Generator()),
}


@pytest.mark.parametrize("name", MIXED)
def test_tensors_of_several_devices(name):
    torch.rdna.reset_fallback_report()
    with pytest.raises(RuntimeError, match="same device|devices|expected a generator of rdna|to have the same device type"):
        MIXED[name]()
    assert torch.rdna.fallback_report() == {}  # and nothing moved without a word


def test_what_may_be_of_several_devices():
    assert (there(3) * torch.tensor(2.0)).tolist() == [2, 2, 2]  # a number
    assert there(3)[torch.tensor([0, 2])].tolist() == [1, 1]
    x = there(3)
    x[torch.tensor([1])] = 5
    x[torch.tensor([True, False, False])] = there(1) * 7
    assert x.tolist() == [7, 5, 1] and here(3).copy_(x).tolist() == [7, 5, 1]
    packed = torch.nn.utils.rnn.pack_padded_sequence(there(2, 3, 4), torch.tensor([3, 2]), batch_first=True)
    assert packed.data.shape == (5, 4) and packed.data.is_rdna
    torch._foreach_mul_([there(2), here(2)], 2.0)
    loss = F.ctc_loss(there(5, 1, 4).log_softmax(2), torch.tensor([[1, 2]]), torch.tensor([5]), torch.tensor([2]))
    assert loss.is_rdna


@pytest.mark.parametrize("use", [
    lambda: torch.ones(1, device="rdna:9"), lambda: torch.ones(1).to("rdna:9"), lambda: torch.ones(1).rdna(9),
    lambda: torch.Stream(device="rdna:9"), lambda: torch.rdna.Stream(9), lambda: torch.rdna.Event(device=9),
    lambda: torch.rdna.get_device_properties(9), lambda: torch.rdna.memory_allocated(9), lambda: torch.rdna.memory_stats("rdna:9"),
    lambda: torch.rdna.memory_summary(300), lambda: torch.rdna.mem_get_info(9), lambda: torch.rdna.synchronize(9),
    lambda: torch.rdna.set_device(9), lambda: torch.rdna.device(9).__enter__(), lambda: torch.rdna.current_stream(9),
    lambda: torch.Generator("rdna:9"), lambda: torch.rdna.get_rng_state(9), lambda: torch.rdna.manual_seed_all(1) or torch.rdna.set_device(99),
    lambda: torch.empty_like(torch.ones(1), device="rdna:9"), lambda: torch.rdna.reset_peak_memory_stats(9)])
def test_devices_that_are_not_there(use):
    with pytest.raises((RuntimeError, AssertionError), match="rdna:(9|99|300) was asked for; there"):
        use()
    assert torch.rdna.current_device() == 0


@pytest.mark.parametrize("call,error,words", [
    (lambda: torch.empty(3, dtype=torch.qint8, device="rdna"), NotImplementedError, "no quantized tensors"),
    (lambda: there(3).to(torch.float8_e4m3fn) + 1, RuntimeError, "Float8_e4m3fn"),
    (lambda: there(3).to(torch.uint16) + 1, RuntimeError, "UInt16"),
    (lambda: there(2, 2) @ there(2, 2, dtype=torch.float16), RuntimeError, "same dtype"),
    (lambda: F.conv2d(there(1, 1, 4, 4, dtype=torch.float16), there(1, 1, 2, 2)), RuntimeError, "type"),
    (lambda: torch.ops.rdna.addmm(None, there(2, 2, dtype=torch.int32), there(2, 2, dtype=torch.int32), 0, None), NotImplementedError, "i32"),
    (lambda: torch.ops.rdna.fused([there(2, dtype=torch.complex64)], [0, 0, 0, 0], [0.0, 0.0], []), NotImplementedError, "ComplexFloat"),
    (lambda: there(3).pin_memory(), RuntimeError, "only dense CPU tensors"),
    (lambda: torch.empty(3, device="rdna", pin_memory=True), RuntimeError, "CPU"),
    (lambda: there(3).to_mkldnn(), (RuntimeError, NotImplementedError), "mkldnn"),
])
def test_types_and_layouts(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("call", [
    lambda: there(2, 3) @ there(2, 3), lambda: torch.empty(-1, device="rdna"), lambda: torch.empty(1 << 40, 1 << 40, device="rdna"),
    lambda: there(3).expand(2, 2), lambda: there(3).view(2, 2), lambda: there(2, 3) + there(2, 2), lambda: torch.cat([there(2, 3), there(2, 2)]),
    lambda: F.conv2d(there(1, 1, 2, 2), there(1, 1, 5, 5)), lambda: F.conv2d(there(1, 3, 4, 4), there(1, 2, 2, 2)),
    lambda: there(3).sum(4), lambda: there(3).index_select(1, there(1, dtype=torch.int64)), lambda: torch.bmm(there(2, 3, 4), there(3, 4, 2)),
    lambda: F.layer_norm(there(2, 3), (4,)), lambda: F.cross_entropy(there(2, 3), there(3, dtype=torch.int64)),
    lambda: F.max_pool2d(there(1, 1, 2, 2), 5), lambda: F.embedding(there(2), there(3, 3)), lambda: there(2, 2).backward()])
def test_shapes(call):
    with pytest.raises((RuntimeError, IndexError, ValueError)) as raised:
        call()
    assert len(str(raised.value)) > 15


@pytest.mark.parametrize("use", [
    lambda: torch.empty(1 << 44, device="rdna"), lambda: there(1).expand(1 << 44).contiguous(),
    lambda: there(1 << 21, 1) @ there(1, 1 << 21), lambda: there(1 << 20, 1) + there(1 << 22),
    lambda: torch.empty(1, device="rdna").resize_(1 << 44), lambda: there(2).repeat(1 << 43),
    lambda: torch.ops.rdna.fused([there(1 << 22, 1), there(1 << 22)], [0, 1, 1, 0], [0.0, 0.0], [])])
def test_more_memory_than_there_is(use):
    times = torch.rdna.memory_stats()["ooms"]
    with pytest.raises(torch.OutOfMemoryError) as raised:
        use()
    sentence = str(raised.value)
    assert re.match(r"rdna out of memory\. Tried to allocate \d+\.\d\d GiB for 'PyTorch' on ", sentence)
    for words in ("free of", "this process holds", "the largest holders are"):
        assert words in sentence
    assert torch.rdna.memory_stats()["ooms"] > times


def padded_encoder():
    """An encoder that is told not to look whether nested tensors can be made."""
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 1, mask_check=False).eval().to("rdna")
    with torch.no_grad():
        model(torch.ones(2, 3, 8, device="rdna"), src_key_padding_mask=torch.zeros(2, 3, dtype=torch.bool, device="rdna"))


@pytest.mark.parametrize("use, words", [
    (lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], device="rdna") + 1, "no nested tensors"),
    (lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]).to("rdna"), "no nested tensors"),
    (lambda: torch.nested.as_nested_tensor([there(2), there(3)]).to_padded_tensor(0.0), "no nested tensors"),
    (padded_encoder, "enable_nested_tensor=False"),
    (lambda: torch.quantize_per_tensor(there(3), 0.1, 0, torch.qint8), "no quantized tensors"),
    (lambda: torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.quint8).to("rdna"), "no quantized tensors"),
    (lambda: torch.quantize_per_channel(there(3, 2), there(3), there(3, dtype=torch.int64), 0, torch.qint8),
     "no quantized tensors"),
], ids=["nested", "nested moved", "nested of ours", "encoder", "quantized", "quantized moved", "per channel"])
@pytest.mark.filterwarnings("ignore")
def test_kinds_of_tensors_that_there_are_none_of(use, words):
    with pytest.raises(NotImplementedError, match=words):
        use()


def test_jagged_nested_tensors_are_there():
    x = torch.nested.nested_tensor([torch.ones(2, 4), torch.ones(3, 4)], layout=torch.jagged, device="rdna")
    y = (x * 2).to_padded_tensor(0.0)
    assert y.device.type == "rdna" and y.sum().item() == 40


CHILD = IMPORT + """
import ctypes, gc
def attempt(name, f):
    try: f()
    except Exception as error: print(name, type(error).__name__, error)
    else: print(name, 'worked')
model = torch.nn.Linear(8, 8).to('rdna')
optimizer = torch.optim.SGD(model.parameters(), 0.1)
x = torch.randn(4, 8, device='rdna')
def step():
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    loss.item()
"""
END = """
attempt('cpu', lambda: torch.ones(3).sum())
del model, optimizer, x
gc.collect()
print('held', torch.rdna.memory_allocated())
attempt('cache', torch.rdna.empty_cache)
print('alive', flush=True)
"""


def child(code, **environment):
    done = run(CHILD + code + END, PYTHONPATH=os.environ.get("PYTHONPATH", ""), **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert "cpu worked" in lines and lines[-1] == "alive" and "held 0" in lines, done.stdout + done.stderr
    return lines


def test_a_card_that_is_lost_in_the_middle():
    lines = child("for i in range(5): attempt(f'step {i}', step)\nattempt('wait', torch.rdna.synchronize)\n"
                  "attempt('read', lambda: x.cpu())\nattempt('make', lambda: torch.empty(1 << 24, device='rdna'))\n",
                  **emulated(RDNA_EMULATE_LOSE="40"))
    assert lines[0] == "step 0 worked" and "step 4 worked" not in lines
    for name in ("step 4", "wait", "read", "make"):
        line = next(line for line in lines if line.startswith(name))
        assert "RuntimeError" in line and "hip:0" in line and "hipErrorContextIsDestroyed" in line, line


WILD = """
capsule = torch.ones(1 << 20, device='rdna').__dlpack__()
pointer = ctypes.pythonapi.PyCapsule_GetPointer
pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
place = ctypes.c_void_p.from_address(pointer(capsule, b'dltensor'))
right, place.value = place.value, 0x10000
wild = torch.utils.dlpack.from_dlpack(capsule)
attempt('queue', lambda: wild + 1)
attempt('wait', torch.rdna.synchronize)
attempt('again', lambda: torch.ones(3, device='rdna').sum().item())
del wild, capsule
"""


def test_a_kernel_that_reads_where_nothing_is():
    lines = child(WILD, **emulated())
    wait = next(line for line in lines if line.startswith("wait"))
    assert "RuntimeError" in wait and "illegal memory access" in wait and "kernel(s) since" in wait, wait
    assert "again worked" in lines


@pytest.mark.skipif(torch.rdna.get_device_properties().driver not in ("cuda", "hip")
                    or torch.rdna.get_device_properties().emulated, reason="reads at a wild address of a GPU, and there is none here: RDNA_DRIVER=cuda or hip chooses one")
def test_a_kernel_that_reads_where_nothing_is_on_a_gpu():
    lines = child(WILD, RDNA_DRIVER=torch.rdna.get_device_properties().driver)
    wait = next(line for line in lines if line.startswith("wait"))
    assert "RuntimeError" in wait and "illegal" in wait.lower(), wait

"""The device itself: what torch.rdna says, streams, events, memory, random numbers, saving, falling back."""

import functools
import io
import os
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from only_cpu import halved


def run(code, **environment):
    env = {k: v for k, v in os.environ.items() if not k.startswith("RDNA_") or k == "RDNA_KERNEL_PATH"}
    env.update(environment)
    return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=600)


IMPORT = "import torch\nif not hasattr(torch, 'rdna'): import torch_rdna\n"


@functools.cache
def emulator_is_missing(target):
    done = run(IMPORT + "print(torch.rdna.device_count(), torch.rdna._C.unavailable())", RDNA_DRIVER="hip",
               RDNA_EMULATE=target, PYTHONPATH=os.environ.get("PYTHONPATH", ""))
    return done.stdout if done.stdout.startswith("0 ") and "librdna_emulator.so" in done.stdout else ""


def emulated(target="gfx1100", **more):
    """The environment of a child that computes on an emulated card. Skips where librdna has no emulator beside it."""
    if missing := emulator_is_missing(target):
        pytest.skip(missing)
    return {"RDNA_DRIVER": "hip", "RDNA_EMULATE": target, **more}


def test_the_device_has_a_name_and_a_number():
    assert torch.device("rdna").type == "rdna"
    assert torch.rdna.is_available() and torch.rdna.device_count() >= 1
    x = torch.ones(3, device="rdna") + 1
    assert x.device == torch.device("rdna", torch.rdna.current_device()) and x.is_rdna
    assert repr(x) == "tensor([2., 2., 2.], device='rdna:0')"
    assert torch.rdna.get_device_name() == torch.rdna.get_device_properties("rdna:0").name
    assert torch.rdna.get_arch_list()
    with torch.rdna.device(0):
        assert torch.rdna.current_device() == 0
    assert torch.accelerator.current_accelerator().type == "rdna"
    torch.accelerator.synchronize()


def test_a_device_that_is_not_there_is_named():
    with pytest.raises(RuntimeError, match="rdna:9 was asked for; there"):
        torch.ones(3, device="rdna:9")
    with pytest.raises(RuntimeError, match="rdna:9 was asked for"):
        torch.rdna.set_device(9)
    assert torch.rdna.current_device() == 0
    with pytest.raises(ValueError, match="expected a device of rdna"):
        torch.rdna.synchronize("cpu")


def test_without_a_gpu_it_is_not_available_and_says_why():
    done = run(IMPORT + "print(torch.rdna.is_available(), torch.rdna.device_count())\n"
               "torch.manual_seed(1)\n"
               "try: torch.ones(1, device='rdna')\nexcept RuntimeError as e: print(e)",
               RDNA_HIP_LIBRARY="/nowhere", RDNA_CUDA_LIBRARY="/nowhere", PYTHONPATH=os.environ.get("PYTHONPATH", ""))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("False 0\ntorch.device('rdna') cannot be used: no GPU was found; RDNA_DRIVER=host")


def test_a_broken_plugin_never_breaks_torch(tmp_path):
    (tmp_path / "torch_rdna.py").write_text("raise OSError('librdna.so.0: cannot open shared object file')")
    autoload = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    done = run("import torch_rdna_autoload as a, torch\na.load()\nprint(torch.ones(2).sum().item())",
               PYTHONPATH=f"{tmp_path}:{autoload}", TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "2.0\n" and "torch.device('rdna') is not there: librdna.so.0" in done.stderr


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int8, torch.uint8,
                                   torch.int16, torch.int32, torch.int64, torch.bool, torch.complex64,
                                   torch.complex128, torch.uint16, torch.float8_e4m3fn])
@pytest.mark.parametrize("view", [lambda t: t, lambda t: t.t(), lambda t: t[1:, ::2], lambda t: t[:, 3:4].expand(5, 6),
                                  lambda t: t[:0], lambda t: t[2, 2]])
def test_copies_keep_every_value(dtype, view):
    x = torch.randint(0, 2 if dtype == torch.bool else 100, (5, 7)).to(dtype)
    there = x.to("rdna")
    assert torch.equal(view(there).cpu().view(torch.uint8) if dtype == torch.float8_e4m3fn and view(x).dim() else view(there).cpu().float(),
                       view(x).contiguous().view(torch.uint8) if dtype == torch.float8_e4m3fn and view(x).dim() else view(x).float())
    target = torch.zeros(7, 9, dtype=dtype)
    mine = target.to("rdna")
    if view(x).dim() == 2 and view(x).numel():
        rows, cols = view(x).shape
        target.t()[:rows, :cols].copy_(view(x))
        mine.t()[:rows, :cols].copy_(view(there))
        assert torch.equal(mine.cpu().float(), target.float())


def test_conversions_are_those_of_the_cpu():
    types = [torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int8, torch.uint8, torch.int16,
             torch.int32, torch.int64, torch.bool]
    x = torch.tensor([-3.75, -1, -0.0, 0.5, 1, 2.5, 100, 127])
    for a in types:
        for b in types:
            if b == torch.uint8:  # negative floats there are not defined
                source = x.abs().to(a)
            else:
                source = x.to(a)
            assert torch.equal(source.to("rdna").to(b).cpu(), source.to(b)), (a, b)
            out = torch.empty(8, dtype=b)
            out.copy_(source.to("rdna"))
            assert torch.equal(out, source.to(b)), (a, b)


def test_lazy_bits_are_honoured():
    c = torch.randn(3, 4, dtype=torch.complex64)
    d = c.to("rdna")
    assert torch.equal(d.conj().cpu(), c.conj()) and torch.equal(d.conj().clone().cpu(), c.conj())
    assert torch.equal(d.conj().imag.cpu(), c.conj().imag)
    e = torch.zeros_like(d)
    e.conj().copy_(d)
    assert torch.equal(e.cpu(), c.conj())
    f = torch.zeros_like(c)
    f.conj().imag.copy_(d.real)
    g = torch.zeros_like(d)
    g.conj().imag.copy_(d.real)
    assert torch.equal(g.cpu(), f)


def test_views_share_memory():
    x = torch.arange(24.0, device="rdna").reshape(2, 3, 4)
    for view in (x.transpose(0, 2), x[:, 1], x.unfold(2, 2, 2), x.as_strided((2, 2), (5, 1), 1), x.view(-1),
                 torch.view_as_complex(x.view(2, 3, 2, 2))):
        before = x.cpu()
        view.fill_(7)
        assert not torch.equal(x.cpu(), before)
        x.copy_(torch.arange(24.0).reshape(2, 3, 4))
    y = torch.arange(6.0, device="rdna")
    y.resize_(10)[6:] = 1
    assert y.cpu().tolist() == [0, 1, 2, 3, 4, 5, 1, 1, 1, 1]
    z = torch.empty(0, device="rdna").set_(y.untyped_storage(), 2, (3,), (2,))
    assert z.cpu().tolist() == [2, 4, 1]


def test_streams_and_events():
    x = torch.randn(64, 64, device="rdna")
    torch.rdna.synchronize()
    side = torch.rdna.Stream()
    assert side != torch.rdna.current_stream() and isinstance(side, torch.rdna.Stream)
    start, end = torch.rdna.Event(enable_timing=True), torch.rdna.Event(enable_timing=True)
    with torch.rdna.stream(side):
        assert torch.rdna.current_stream() == side
        start.record()
        y = x @ x
        x.record_stream(side)
        end.record()
    assert torch.rdna.current_stream() == torch.rdna.default_stream()
    torch.rdna.current_stream().wait_stream(side)
    z = y + 0
    end.synchronize()
    assert end.query() and start.elapsed_time(end) >= 0
    torch.testing.assert_close(z.cpu(), x.cpu() @ x.cpu(), rtol=1e-4, atol=1e-4)
    side.synchronize()
    assert side.query()
    if hasattr(torch.Stream, "__enter__"):  # torch 2.7 brought it
        with torch.Stream("rdna"):
            pass


def test_memory_is_counted():
    torch.rdna.empty_cache()
    before = torch.rdna.memory_allocated()
    x = torch.empty(1 << 20, dtype=torch.uint8, device="rdna")
    assert torch.rdna.memory_allocated() == before + (1 << 20)
    if hasattr(torch.accelerator, "memory_allocated"):  # torch 2.9 brought it
        assert torch.accelerator.memory_allocated() == before + (1 << 20)
    assert torch.rdna.memory_reserved() >= torch.rdna.memory_allocated()
    del x
    assert torch.rdna.memory_allocated() == before
    assert torch.rdna.max_memory_allocated() >= before + (1 << 20)
    torch.rdna.reset_peak_memory_stats()
    assert torch.rdna.max_memory_allocated() == before
    free, total = torch.rdna.mem_get_info()
    assert 0 < free <= total
    assert torch.rdna.memory_stats()["allocated_bytes.all.current"] == before
    assert "allocated" in torch.rdna.memory_summary() and torch.rdna.memory_snapshot()


@pytest.mark.parametrize("module", [torch.rdna, torch.accelerator], ids=["rdna", "accelerator"])
def test_peaks_and_counts_of_memory(module):
    if module is torch.accelerator and not hasattr(module, "reset_accumulated_memory_stats"):
        pytest.skip("torch 2.9 brought torch.accelerator's memory functions")
    torch.rdna.empty_cache()
    module.reset_peak_memory_stats()
    module.reset_accumulated_memory_stats()
    kept = torch.empty(1000, dtype=torch.uint8, device="rdna")
    a = module.memory_stats()
    some = [torch.empty(size, dtype=torch.uint8, device="rdna") for size in (100, 5 << 20, 21 << 20)]
    high = module.memory_stats()
    del some
    torch.rdna.empty_cache()
    low = module.memory_stats()
    grown = {"requested_bytes": 100 + (26 << 20), "allocated_bytes": 512 + (27 << 20), "active_bytes": 512 + (27 << 20),
             "allocation": 3}
    for name, by in grown.items():
        name += ".all."
        now = a[name + "current"]
        assert high[name + "current"] == high[name + "peak"] == low[name + "peak"] == now + by
        assert low[name + "current"] == now
    for name in ("segment", "reserved_bytes"):
        name += ".all."
        assert low[name + "peak"] == high[name + "current"] > low[name + "current"]
    assert [low[f"allocation.all.{what}"] for what in ("allocated", "freed")] == [4, 3]
    assert [low[f"allocated_bytes.all.{what}"] for what in ("allocated", "freed")] == [1536 + (27 << 20), 512 + (27 << 20)]
    with pytest.raises(torch.OutOfMemoryError):
        torch.empty(1 << 60, dtype=torch.uint8, device="rdna")
    assert module.memory_stats()["num_ooms"] == 1 and low["num_ooms"] == 0
    module.reset_peak_memory_stats()
    module.reset_accumulated_memory_stats()
    end = module.memory_stats()
    for name in (*grown, "segment", "reserved_bytes"):
        assert end[f"{name}.all.peak"] == end[f"{name}.all.current"] == low[f"{name}.all.current"]
    counts = ("allocation.all.allocated", "allocation.all.freed", "allocated_bytes.all.allocated", "num_ooms",
              "num_alloc_retries", "num_device_alloc", "num_device_free")
    assert {name: end[name] for name in counts} == dict.fromkeys(counts, 0)
    del kept


def test_out_of_memory_has_a_report():
    assert issubclass(torch.rdna.OutOfMemoryError, torch.OutOfMemoryError)
    with pytest.raises(torch.rdna.OutOfMemoryError, match="(?s)PyTorch|GiB|bytes"):
        torch.empty(1 << 60, dtype=torch.uint8, device="rdna")
    assert torch.ones(2, device="rdna").sum().item() == 2
    done = run(IMPORT + "torch.rdna.set_per_process_memory_fraction(1e-3)\n"
               "keep = [torch.empty(1 << 20, device='rdna')]\n"
               "try:\n  while True: keep.append(torch.empty(1 << 20, device='rdna'))\n"
               "except torch.rdna.OutOfMemoryError as e: print('PyTorch' in str(e), len(keep) < 100)",
               RDNA_DRIVER="host", PYTHONPATH=os.environ.get("PYTHONPATH", ""))
    assert done.stdout == "True True\n", done.stderr


def test_pinned_memory():
    x = torch.randn(1000).pin_memory()
    assert x.is_pinned() and not torch.randn(3).is_pinned()
    for _ in range(20):  # freed while copies may be under way, and handed out again
        y = torch.randn(1000).pin_memory()
        value = y.clone()
        there = y.to("rdna", non_blocking=True)
        del y
        assert torch.equal(there.cpu(), value)
    back = torch.empty(1000).pin_memory()
    back.copy_(x.to("rdna"), non_blocking=True)
    torch.rdna.synchronize()
    assert torch.equal(back, x)


def keep_busy(seconds=0.1, bytes=1 << 26):
    """Copies that the current stream needs so long for, on whatever device; other streams go on."""
    a, b = torch.zeros(bytes, dtype=torch.uint8, device="rdna"), torch.zeros(bytes, dtype=torch.uint8, device="rdna")
    torch.rdna.synchronize()
    began = time.perf_counter()
    b.copy_(a)
    torch.rdna.synchronize()
    for _ in range(4 + int(seconds / (time.perf_counter() - began))):
        b.copy_(a)


@pytest.mark.parametrize("source", [lambda: torch.tensor(3.0), lambda: torch.randn(1000), lambda: torch.randn(50000),
                                    lambda: torch.randn(1000).pin_memory(), lambda: torch.randn(1000).double(),
                                    lambda: torch.randn(10, 100).t()],
                                    ids=["scalar", "short", "long", "pinned", "converted", "turned"])
def test_a_blocking_copy_has_arrived_for_every_stream(source):
    value, side = source(), torch.rdna.Stream()
    there = torch.full(value.shape, float("nan"), device="rdna")
    torch.rdna.synchronize()
    keep_busy()
    there.copy_(value)
    with torch.rdna.stream(side):
        found = (there * 1).cpu()
    assert torch.equal(found, value.float())


def test_operators_queue_numbers_that_are_on_the_cpu():
    x = torch.randn(100, device="rdna")

    def operators():
        return [torch.copysign(x, -1.0), torch.xlogy(x, torch.tensor(2.0)), torch.where(x > 0, x, torch.tensor(2.0)),
                torch.heaviside(x, torch.tensor(1.0)), x.clone().bernoulli_(torch.tensor(0.5))]

    operators()  # a GPU loads each kernel at its first launch, which takes longer than the copies
    keep_busy()
    results = operators()
    assert not torch.rdna.current_stream().query()
    torch.testing.assert_close(results[0].cpu(), -x.abs().cpu())


def test_pinned_memory_is_not_handed_out_while_a_queued_copy_uses_it():
    x = torch.ones(50000, device="rdna")
    for _ in range(3):
        source, target = torch.full((50000,), 2.0).pin_memory(), torch.zeros(50000).pin_memory()
        keep_busy()
        there = source.to("rdna", non_blocking=True)
        target.copy_(x, non_blocking=True)
        del source, target
        new = [torch.full((50000,), -1.0).pin_memory() for _ in range(2)]
        torch.rdna.synchronize()
        assert (there == 2).all() and all((n == -1).all() for n in new)


def test_saving_and_loading():
    x = torch.randn(3, 4)
    file = io.BytesIO()
    torch.save({"x": x.to("rdna"), "t": x.to("rdna").t()}, file)
    for where in (None, "cpu", "rdna", {"rdna:0": "cpu"}):
        file.seek(0)
        loaded = torch.load(file, map_location=where)
        assert loaded["x"].device.type == ("rdna" if where in (None, "rdna") else "cpu")
        assert torch.equal(loaded["x"].cpu(), x) and torch.equal(loaded["t"].cpu(), x.t())


def test_generators():
    torch.manual_seed(5)
    a = torch.randn(100, device="rdna")
    state = torch.rdna.get_rng_state()
    b = torch.randn(100, device="rdna")
    torch.rdna.set_rng_state(state)
    assert torch.equal(torch.randn(100, device="rdna").cpu(), b.cpu()) and not torch.equal(a.cpu(), b.cpu())
    torch.rdna.manual_seed(5)
    assert torch.equal(torch.randn(100, device="rdna").cpu(), a.cpu())
    g = torch.Generator("rdna").manual_seed(5)
    assert torch.equal(torch.randn(100, device="rdna", generator=g).cpu(), a.cpu())
    with torch.random.fork_rng(devices=[0], device_type="rdna"):
        torch.rdna.manual_seed(9)
    assert g.clone_state().initial_seed() == 5
    with pytest.raises(RuntimeError, match="16 bytes"):
        g.set_state(torch.zeros(3, dtype=torch.uint8))


def test_dlpack_keeps_the_memory():
    x = torch.arange(6.0, device="rdna").reshape(2, 3)
    y = torch.from_dlpack(x)
    assert y.device == x.device and y.data_ptr() == x.data_ptr()


def test_falling_back_is_counted_and_can_be_forbidden():
    x = torch.tensor([3.0, -1.0, 2.0], device="rdna")
    torch.rdna.reset_fallback_report()
    assert torch.equal(halved(x[:1]).cpu(), torch.tensor([1.5]))
    assert torch.rdna.fallback_report() == {"only_cpu::halved": 1}
    torch.rdna.reset_fallback_report()
    assert torch.rdna.fallback_report() == {}
    torch.rdna.set_fallback_mode("error")
    try:
        with pytest.raises(NotImplementedError, match="only_cpu::halved has no rdna kernel"):
            halved(x)
        assert torch.equal((x + 1).cpu(), torch.tensor([4.0, 0.0, 3.0]))
    finally:
        torch.rdna.set_fallback_mode("allow")
    with pytest.raises(RuntimeError, match="allow, warn or error"):
        torch.rdna.set_fallback_mode("maybe")


@pytest.mark.parametrize("mode, said", [
    ("warn", "1 time(s), 1 warning(s)"),
    ("maybe", "RuntimeError RDNA_FALLBACK is allow, warn or error, not 'maybe'")])
def test_the_environment_says_what_falling_back_does(mode, said):
    done = run(IMPORT + """
import warnings
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    try:
        torch.linalg.eigvals(torch.ones(257, 257, device="rdna"))
        print(*torch.rdna.fallback_report().values(), "time(s),", len(seen), "warning(s)")
    except Exception as error:
        print(type(error).__name__, error)
""", RDNA_DRIVER="host", RDNA_FALLBACK=mode, PYTHONPATH=os.environ.get("PYTHONPATH", ""))
    assert done.returncode == 0 and done.stdout.startswith(said), done.stdout + done.stderr


def test_the_fallback_writes_where_it_was_told():
    x = torch.zeros(4, 6, device="rdna")
    halved(torch.full((3, 2), 2.0, device="rdna"), out=x[:3, ::3])
    expected = torch.zeros(4, 6)
    expected[:3, ::3] = 1.0
    assert torch.equal(x.cpu(), expected)
    out = torch.empty(0, device="rdna")
    assert halved(torch.ones(3, device="rdna"), out=out) is out and out.shape == (3,)
    y = torch.full((2, 3), 2.0, device="rdna")
    assert y.igamma_(2 * y) is y and torch.equal(y.cpu(), torch.igamma(torch.full((2, 3), 2.0), torch.full((2, 3), 4.0)))
    with pytest.raises(RuntimeError, match="same device|on rdna"):
        torch.ones(2, device="rdna") + torch.ones(2)


def test_fork_is_refused_with_a_sentence():
    done = run(IMPORT + "import os\ntorch.ones(1, device='rdna')\n"
               "if os.fork() == 0:\n  print(torch.rdna._is_in_bad_fork(), flush=True)\n  os._exit(0)\nos.wait()",
               RDNA_DRIVER="host", PYTHONPATH=os.environ.get("PYTHONPATH", ""))
    assert done.stdout == "True\n", done.stderr


@pytest.mark.parametrize("use", [lambda x, i: x[i], lambda x, i: x.index_select(0, i), lambda x, i: x.gather(0, i),
                                 lambda x, i: torch.nn.functional.embedding(i, x[:, None]),
                                 lambda x, i: x.clone().index_add_(0, i, torch.ones(2, device="rdna"))])
def test_an_index_that_is_out_of_range_raises_when_the_device_is_waited_for(use):
    x = torch.arange(4.0, device="rdna")
    use(x, torch.tensor([0, 3], device="rdna")).cpu()
    out = use(x, torch.tensor([1, 4], device="rdna"))
    with pytest.raises(IndexError, match="an index was out of range"):
        out.cpu()
    assert out[0].item() in (0, 1)  # raised once; the rest goes on


def test_a_device_before_another_is_entered_and_left():
    done = run(IMPORT + """
current = torch.rdna.current_device
torch.rdna.set_device(1)
with torch.rdna.device(0):
    print(current(), torch.empty(1, device='rdna').device)
    with torch.rdna.device(1): print(current())
    with torch.rdna.device(None): print(current())
    print(current())
print(current())
""", PYTHONPATH=os.environ.get("PYTHONPATH", ""), **emulated("gfx1100,gfx1030"))
    assert (done.returncode, done.stdout) == (0, "0 rdna:0\n1\n0\n0\n1\n"), done.stdout + done.stderr


def test_reports_of_the_environment_have_the_card(tmp_path):
    """torch.utils.collect_env, called and as the program that bug reports ask for."""
    name = torch.rdna.get_device_properties(0).name
    assert f"\nrdna 0: {name}, " in torch.utils.collect_env.get_pretty_env_info()
    installed = tmp_path / "installed-0.dist-info"  # what a build folder lacks of an installed plugin
    installed.mkdir()
    (installed / "METADATA").write_text("Name: installed\nVersion: 0\n")
    (installed / "entry_points.txt").write_text("[torch.backends]\nrdna = torch_rdna_autoload:load\n")
    done = subprocess.run([sys.executable, "-m", "torch.utils.collect_env"], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"})
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(f"\nrdna 0: {name}, ") == 1, done.stdout

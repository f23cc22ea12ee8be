"""HIPUtilities: streams that order work, events, regions as the device measures them, and the file for Chrome."""

import json
import os
import subprocess
import sys
import time

import pytest
import torch

import torch_rdna  # noqa: F401
from rdna.amd import AMDConfig, HIPUtilities
from rdna.amd.amd_exceptions import AMDBackendError, AMDConfigurationError, AMDDeviceError

CARD = torch.rdna.get_device_properties(0)


@pytest.fixture
def utils():
    made = HIPUtilities(AMDConfig(enable_profiling=True))
    yield made
    made.cleanup()


def work(size=200, times=3):
    a = torch.ones(size, size, device="rdna")
    for _ in range(times):
        a = a @ a * (1 / size)
    return a


def test_streams(utils):
    stream = utils.create_stream("compute", priority=0)
    assert (stream.name, stream.device_id, stream.priority) == ("compute", 0, 0) and isinstance(stream.stream, torch.Stream)
    urgent = utils.create_stream("urgent", -1, device_id=0)
    assert urgent.stream != stream.stream and urgent.priority == -1
    assert utils._streams == {"compute": stream, "urgent": urgent}
    assert utils.get_stream("urgent") is urgent and utils.get_stream("none") is None
    assert utils.create_stream("compute") is stream  # again
    with pytest.raises(AMDConfigurationError, match="is there"):
        utils.create_stream("compute", -1)
    before = torch.rdna.current_stream()
    for name in ("compute", stream):
        with utils.stream_context(name) as inside:
            assert inside is stream and torch.rdna.current_stream() == stream.stream
            result = work()
        assert torch.rdna.current_stream() == before
        stream.synchronize()
        assert stream.stream.query() and result.cpu().max() == pytest.approx(1)
    with pytest.raises(KeyError):
        with utils.stream_context("compute"):
            raise KeyError
    assert torch.rdna.current_stream() == before
    with pytest.raises(AMDConfigurationError, match="create_stream") as raised:
        with utils.stream_context("other"):
            pass
    assert raised.value.value == "other"
    for priority in ("high", 0.5, None):
        with pytest.raises(AMDConfigurationError, match="priority"):
            utils.create_stream("third", priority)
    assert "third" not in utils._streams


def test_devices(utils):
    count = torch.rdna.device_count()
    for number in (-1, count, 1.0, "0"):
        for call in (lambda: utils.create_stream("s", device_id=number), lambda: utils.create_event("e", device_id=number),
                     lambda: utils.synchronize_device(number), lambda: utils.set_device(number),
                     lambda: utils.get_device_properties(number), lambda: utils.get_memory_info(number),
                     lambda: utils.device_context(number).__enter__()):
            with pytest.raises(AMDDeviceError) as raised:
                call()
            assert raised.value.device_id is number and f"0 to {count - 1}" in str(raised.value)
    assert not utils._streams and not utils._events
    utils.synchronize_device()
    utils.synchronize_all_devices()
    for number in range(count):
        with utils.device_context(number) as inside:
            assert inside == number == torch.rdna.current_device()
            assert utils.create_stream(f"on {number}").device_id == number
        assert torch.rdna.current_device() == 0
    utils.set_device(count - 1)
    assert torch.rdna.current_device() == count - 1 == utils.create_event("e").device_id
    utils.set_device(0)
    found = utils.get_device_properties()
    assert found["available"] is True and found["name"] == CARD.name and found["total_memory"] == CARD.total_memory
    free, total = utils.get_memory_info()
    assert total == torch.rdna.mem_get_info()[1] and 0 < free <= total


def test_events(utils):
    start, end = utils.create_event("start"), utils.create_event("end", device_id=0)
    assert utils._events == {"start": start, "end": end} and utils.get_event("end") is end
    for a, b in ((start, end), (end, start)):
        with pytest.raises(AMDBackendError, match="was not recorded"):
            a.elapsed_time(b)
    start.synchronize()  # nothing to wait for
    begin = time.perf_counter()
    start.record()
    work(400, 6)
    end.record()
    took = start.elapsed_time(end)  # waits by itself
    assert 0 < took <= (time.perf_counter() - begin) * 1e3 + 1
    stream = utils.create_stream("side")
    with utils.stream_context("side"):
        work(400, 6)
    for where in (stream, stream.stream):
        end.record(where)
        end.synchronize()
        assert stream.stream.query()
    assert start.elapsed_time(end) > took


def test_regions_are_what_events_measure(utils):
    assert utils.get_profiling_summary() == {"total_regions": 0} and utils.get_profiling_data() == []
    work()
    before, after = torch.rdna.Event(enable_timing=True), torch.rdna.Event(enable_timing=True)
    before.record()
    for times in (1, 12, 3):
        with utils.profile_region("products"):
            work(300, times)
    with utils.profile_region("all"):
        with utils.profile_region("inner"):
            work(300, 4)
        with utils.profile_region("nothing"):
            pass
    after.record()
    after.synchronize()
    summary = utils.get_profiling_summary()
    assert (summary["total_regions"], summary["unique_regions"]) == (6, 4)
    regions = summary["regions"]
    assert list(regions) == ["products", "inner", "nothing", "all"]
    products = regions["products"]
    assert products["count"] == 3 and products["min_ms"] < products["avg_ms"] < products["max_ms"] < products["total_ms"]
    assert products["avg_ms"] == pytest.approx(products["total_ms"] / 3)
    data = utils.get_profiling_data()
    assert sorted(each["duration_ms"] for each in data if each["name"] == "products") == pytest.approx(
        sorted([products["min_ms"], products["max_ms"], products["total_ms"] - products["min_ms"] - products["max_ms"]]))
    assert data[1]["duration_ms"] > data[0]["duration_ms"]  # twelve products against one
    inner, outer = regions["inner"]["total_ms"], regions["all"]["total_ms"]
    assert regions["nothing"]["total_ms"] < inner <= outer
    assert products["total_ms"] + outer <= before.elapsed_time(after) * 1.01
    for earlier, later in zip(data, data[1:3]):
        assert later["start_ms"] >= earlier["start_ms"] + earlier["duration_ms"] - 1e-3
    utils.clear_profiling_data()
    assert utils.get_profiling_summary() == {"total_regions": 0}


def test_a_region_does_not_wait(utils, monkeypatch):
    def waits(*arguments):
        raise AssertionError("a region waited")

    monkeypatch.setattr(torch.rdna, "synchronize", waits)
    monkeypatch.setattr("rdna.amd.utilities.HIPEvent.synchronize", waits)
    with utils.profile_region("products"):
        work()
    monkeypatch.undo()
    assert utils.get_profiling_summary()["regions"]["products"]["count"] == 1


def test_regions_that_raise_are_measured_and_those_switched_off_are_not(utils):
    with pytest.raises(KeyError):
        with utils.profile_region("fails"):
            raise KeyError
    assert utils.get_profiling_summary()["regions"]["fails"]["count"] == 1
    off = HIPUtilities(AMDConfig())
    with off.profile_region("nothing"):
        pass
    assert off.get_profiling_summary() == {"total_regions": 0}


def test_very_many_regions(utils, monkeypatch):
    monkeypatch.setattr("rdna.amd.utilities._MOST_PENDING", 16)
    for i in range(50):
        with utils.profile_region(f"{i % 3}"):
            pass
        assert len(utils._pending) <= 16
    assert [each["name"] for each in utils.get_profiling_data()] == [f"{i % 3}" for i in range(50)]


def test_a_trace_for_chrome(utils, tmp_path):
    utils.create_stream("side")
    with utils.profile_region("first"):
        work()
    with utils.stream_context("side"), utils.profile_region("second"):
        work()
    path = tmp_path / "trace.json"
    utils.export_chrome_trace(path)
    events = json.loads(path.read_text())["traceEvents"]
    spans = {e["name"]: e for e in events if e["ph"] == "X"}
    assert spans.keys() == {"first", "second"} and spans["first"]["tid"] != spans["second"]["tid"]
    data = {each["name"]: each for each in utils.get_profiling_data()}
    first, second = data["first"], data["second"]
    assert spans["second"]["ts"] - spans["first"]["ts"] == pytest.approx((second["start_ms"] - first["start_ms"]) * 1e3)
    assert min(span["ts"] for span in spans.values()) == 0
    for name, span in spans.items():
        assert span["dur"] == pytest.approx(data[name]["duration_ms"] * 1e3) and span["pid"] == 0
    names = {(e["name"], e["tid"]): e["args"]["name"] for e in events if e["ph"] == "M"}
    assert names["thread_name", spans["second"]["tid"]] == "stream side"
    assert names["process_name", spans["first"]["tid"]] == "rdna:0"


def test_copies(utils):
    utils.create_stream("copies")
    source = torch.randn(1000, 7)
    there = torch.full((1000, 7), float("nan"), device="rdna")
    torch.rdna.synchronize()
    assert utils.memory_copy_async(there, source, "copies") is there
    utils.get_stream("copies").synchronize()
    assert torch.equal(there.cpu(), source)
    back = torch.empty(1000, 7, pin_memory=True).fill_(float("nan"))
    utils.memory_copy_async(back, there, utils.get_stream("copies"))
    utils.synchronize_device()
    assert torch.equal(back, source)
    other = torch.empty(1000, 7, device="rdna", dtype=torch.float64)
    utils.memory_copy_async(other, there)
    assert torch.equal(other.cpu(), source.double())
    # memory that is freed before the copy has passed is not another's meanwhile
    for _ in range(20):
        a = torch.full((1 << 16,), 3.0, device="rdna")
        torch.rdna.current_stream().synchronize()
        target = torch.empty(1 << 16, device="rdna")
        with utils.stream_context("copies"):
            work(150, 2)
        utils.memory_copy_async(target, a, "copies")
        del a
        torch.full((1 << 16,), 9.0, device="rdna")
        utils.get_stream("copies").synchronize()
        assert float(target.min()) == float(target.max()) == 3
    for wrong in (torch.ones(7, 1000), torch.ones(1)):
        with pytest.raises(AMDConfigurationError, match="shape"):
            utils.memory_copy_async(there, wrong)
    for arguments in ((there, None), ([1.0], there)):
        with pytest.raises(AMDConfigurationError, match="tensor"):
            utils.memory_copy_async(*arguments)
    with pytest.raises(AMDConfigurationError, match="no stream"):
        utils.memory_copy_async(there, there.clone(), "other")


def test_cleanup(utils):
    utils.create_stream("s")
    utils.create_event("e")
    with utils.profile_region("r"):
        pass
    utils.cleanup()
    assert utils._streams == {} == utils._events and utils.get_profiling_summary() == {"total_regions": 0}
    utils.create_stream("s")


NO_DEVICE = """
import json, time, warnings, torch
warnings.simplefilter("ignore")
from rdna.amd import AMDConfig, HIPUtilities
utils = HIPUtilities(AMDConfig(enable_profiling=True))
stream = utils.create_stream("compute", priority=0)
assert stream.stream is None and utils._streams == {"compute": stream}
stream.synchronize()
with utils.stream_context("compute"), utils.device_context(0):
    with utils.profile_region("sleep"):
        time.sleep(0.02)
sleep = utils.get_profiling_summary()["regions"]["sleep"]
assert 19 < sleep["total_ms"] < 2000
a, b = utils.create_event("a"), utils.create_event("b")
a.record(); time.sleep(0.01); b.record(stream); b.synchronize()
assert 9 < a.elapsed_time(b) < 1000
properties = utils.get_device_properties()
assert properties["available"] is False and properties["reason"] == utils.fallback_reason
free, total = utils.get_memory_info()
assert 0 < free <= total
assert torch.equal(utils.memory_copy_async(torch.zeros(3), torch.ones(3), "compute"), torch.ones(3))
utils.synchronize_device(); utils.synchronize_all_devices(); utils.set_device(0)
try:
    utils.set_device(1)
except Exception as error:
    assert type(error).__name__ == "AMDDeviceError"
else:
    raise SystemExit("device 1")
utils.cleanup()
"""


def test_without_a_device():
    environment = {**os.environ, "RDNA_DRIVER": "hip", "RDNA_EMULATE": "", "RDNA_HIP_LIBRARY": "/nonexistent"}
    subprocess.run([sys.executable, "-c", NO_DEVICE], env=environment, check=True)

"""HIPUtilities: streams, events and named regions whose time the device measures."""

import contextlib
import json
import threading
import time
from dataclasses import dataclass, field

import torch

from ._room import as_amd_errors, memory_info
from .amd_exceptions import AMDBackendError, AMDConfigurationError, AMDDeviceError
from .backend import _amd_config, choose_device

_MOST_PENDING = 4096  # regions whose events are kept before the oldest are waited for


@dataclass(eq=False)
class HIPStream:
    name: str
    device_id: int
    priority: int = 0
    stream: object = None  # a torch.Stream; None in fallback

    def synchronize(self):
        """Waits for the work of the stream."""
        if self.stream is not None:
            with as_amd_errors(self.stream.device, f"synchronizing stream {self.name!r}", 0):
                self.stream.synchronize()


@dataclass(eq=False)
class HIPEvent:
    """A mark in a stream's work; in fallback, in the processor's time."""

    name: str
    device_id: int
    event: object = None  # a torch.Event; None in fallback
    _time: float = field(default=None, repr=False)
    _recorded: bool = field(default=False, repr=False)

    def record(self, stream=None):
        """Into |stream|, a HIPStream or torch.Stream, or the current one."""
        if self.event is None:
            self._time = time.perf_counter()
        else:
            stream = getattr(stream, "stream", stream)
            self.event.record(torch.rdna.current_stream(self.device_id) if stream is None else stream)
        self._recorded = True

    def synchronize(self):
        """Waits until the work before the mark is done."""
        if self.event is not None and self._recorded:
            self.event.synchronize()

    def elapsed_time(self, end):
        """Milliseconds from this event to |end|, which is waited for. AMDBackendError: one was not recorded."""
        for each in (self, end):
            if not each._recorded:
                raise AMDBackendError(f"elapsed_time: event {each.name!r} was not recorded: call its record() first")
        if self.event is None or end.event is None:
            return (end._time - self._time) * 1e3
        self.synchronize()
        end.synchronize()
        return self.event.elapsed_time(end.event)


@dataclass
class _Region:
    name: str
    device_id: int
    stream: str
    start: HIPEvent
    end: HIPEvent


class HIPUtilities:
    """Streams, events and regions on the device of |config|. Without a device, regions are measured by the processor's
    clock and streams are names."""

    def __init__(self, config=None):
        self.config = _amd_config(config)
        self.config.validate()
        self.device, self.fallback_reason = choose_device(self.config)
        self._streams, self._events = {}, {}
        self._pending, self._data = [], []
        self._origins = {}  # of each device: the event from which start_ms counts
        self._lock = threading.Lock()

    @property
    def _on_device(self):
        return self.fallback_reason is None

    def _number(self, device_id, operation):
        """A device's number, None being the current one, or AMDDeviceError."""
        if device_id is None:
            return torch.rdna.current_device() if self._on_device and self._chosen() else self.config.device_id
        count = torch.rdna.device_count() if self._on_device else 1
        if not isinstance(device_id, int) or isinstance(device_id, bool) or not 0 <= device_id < count:
            raise AMDDeviceError(device_id, operation, f"there is no such device; numbers are 0 to {count - 1}")
        return device_id

    def _chosen(self):
        return getattr(self, "_set", False)

    def create_stream(self, name, priority=0, device_id=None):
        """A HIPStream of that name; the one that there is if it is on the same device and as urgent. Priority 0 is normal,
        -1 more urgent. AMDConfigurationError: the name is another stream's, or the priority is no whole number."""
        number = self._number(device_id, f"creating stream {name!r}")
        if not isinstance(priority, int) or isinstance(priority, bool):
            raise AMDConfigurationError("priority", priority, "expected a whole number: 0 is normal, -1 more urgent")
        known = self._streams.get(name)
        if known is not None:
            if (known.device_id, known.priority) != (number, priority):
                raise AMDConfigurationError(
                    "name", name, f"that stream is there, on device {known.device_id} with priority {known.priority}")
            return known
        stream = None
        if self._on_device:
            with as_amd_errors(torch.device("rdna", number), f"creating stream {name!r}", 0):
                stream = torch.rdna.Stream(number, priority=priority)
        self._streams[name] = HIPStream(name, number, priority, stream)
        return self._streams[name]

    def get_stream(self, name):
        """The HIPStream of that name, or None."""
        return self._streams.get(name)

    def create_event(self, name, device_id=None):
        """A HIPEvent that can be timed; it takes the place of one of the same name."""
        self._events[name] = self._event(name, self._number(device_id, f"creating event {name!r}"))
        return self._events[name]

    def _event(self, name, number):
        if not self._on_device:
            return HIPEvent(name, number)
        with as_amd_errors(torch.device("rdna", number), f"creating event {name!r}", 0):
            return HIPEvent(name, number, torch.rdna.Event(enable_timing=True, device=number))

    def get_event(self, name):
        """The HIPEvent of that name, or None."""
        return self._events.get(name)

    def synchronize_device(self, device_id=None):
        """Waits for all work on a device."""
        number = self._number(device_id, "synchronize")
        if self._on_device:
            with as_amd_errors(torch.device("rdna", number), "synchronize", 0):
                torch.rdna.synchronize(number)

    def synchronize_all_devices(self):
        for number in range(torch.rdna.device_count() if self._on_device else 0):
            self.synchronize_device(number)

    def set_device(self, device_id):
        """The device becomes the current one, of this object's calls without a number too."""
        number = self._number(device_id, "set_device")
        if self._on_device:
            torch.rdna.set_device(number)
        self._set = True

    @contextlib.contextmanager
    def device_context(self, device_id):
        """Within, the device is the current one, of this object's calls without a number too."""
        number = self._number(device_id, "device_context")
        before, self._set = self._chosen(), True
        try:
            with torch.rdna.device(number) if self._on_device else contextlib.nullcontext():
                yield number
        finally:
            self._set = before

    def _named(self, stream):
        if isinstance(stream, str):
            if stream not in self._streams:
                raise AMDConfigurationError("stream", stream, "there is no stream of that name; create_stream makes it")
            return self._streams[stream]
        return stream

    @contextlib.contextmanager
    def stream_context(self, name):
        """Within, work is queued in that stream, of create_stream. Nothing is waited for, neither before nor after."""
        stream = self._named(name)
        raw = getattr(stream, "stream", stream)
        with torch.rdna.stream(raw) if raw is not None else contextlib.nullcontext():
            yield stream

    def memory_copy_async(self, dst, src, stream=None):
        """Queues the copy of |src| into |dst|, tensors of one shape, in |stream| (a name, a HIPStream, or the current one),
        and returns |dst|. From and to pageable memory of the host the call waits; pinned memory has to stay as it is until
        the stream is through. What another stream has queued is not waited for."""
        for name, tensor in (("dst", dst), ("src", src)):
            if not isinstance(tensor, torch.Tensor):
                raise AMDConfigurationError(name, tensor, "expected a tensor")
        if dst.shape != src.shape:
            raise AMDConfigurationError("src", tuple(src.shape), f"expected the shape of dst, {tuple(dst.shape)}")
        stream = self._named(stream)
        raw = getattr(stream, "stream", stream)
        on_device = [t for t in (dst, src) if t.device.type == self.device.type]
        with as_amd_errors(self.device, "memory_copy_async", 0), torch.no_grad():
            with torch.rdna.stream(raw) if raw is not None else contextlib.nullcontext():
                dst.copy_(src, non_blocking=True)
            if raw is not None:
                for tensor in on_device:
                    tensor.record_stream(raw)  # so that it may be freed before the stream is through
        return dst

    @contextlib.contextmanager
    def profile_region(self, name):
        """With config.enable_profiling, the time between two events on the current stream, before and behind what is queued
        within. It is read when it is asked for, so that nothing waits here. Without it nothing is measured."""
        if not self.config.enable_profiling:
            yield
            return
        number = torch.rdna.current_device() if self._on_device else self.config.device_id
        stream = torch.rdna.current_stream(number) if self._on_device else None
        with self._lock:
            if number not in self._origins:
                self._origins[number] = self._event("origin", number)
                self._origins[number].record(stream)
        region = _Region(str(name), number, self._name_of(stream), self._event(name, number), self._event(name, number))
        region.start.record(stream)
        try:
            yield
        finally:
            region.end.record(stream)
            with self._lock:
                self._pending.append(region)
                if len(self._pending) > _MOST_PENDING:
                    self._read(self._pending[: _MOST_PENDING // 2])
                    del self._pending[: _MOST_PENDING // 2]

    def _name_of(self, stream):
        if stream is None:
            return "cpu"
        names = (known.name for known in self._streams.values() if known.stream == stream)
        return next(names, "default" if stream == torch.rdna.default_stream(stream.device_index) else str(stream.stream_id))

    def _read(self, regions):
        for each in regions:
            self._data.append({
                "name": each.name,
                "duration_ms": each.start.elapsed_time(each.end),
                "start_ms": self._origins[each.device_id].elapsed_time(each.start),
                "device_id": each.device_id,
                "stream": each.stream,
            })

    def get_profiling_data(self):
        """Of each region that ended, in that order, a dict: name, duration_ms, start_ms (from the first region of the
        device; below 0 where another stream was ahead of that), device_id, stream. Waits for their events."""
        with self._lock:
            self._read(self._pending)
            self._pending.clear()
            return list(self._data)

    def clear_profiling_data(self):
        with self._lock:
            self._pending.clear()
            self._data.clear()
            self._origins.clear()

    def get_profiling_summary(self):
        """{"total_regions", "unique_regions", "regions": {name: {"count", "total_ms", "avg_ms", "min_ms", "max_ms"}}}, or
        {"total_regions": 0} where there is none."""
        times = {}
        for each in self.get_profiling_data():
            times.setdefault(each["name"], []).append(each["duration_ms"])
        if not times:
            return {"total_regions": 0}
        regions = {
            name: {"count": len(ms), "total_ms": sum(ms), "avg_ms": sum(ms) / len(ms), "min_ms": min(ms), "max_ms": max(ms)}
            for name, ms in times.items()
        }
        return {"total_regions": sum(map(len, times.values())), "unique_regions": len(regions), "regions": regions}

    def export_chrome_trace(self, path):
        """Writes the regions as a file for chrome://tracing or Perfetto: a process a device, a thread a stream."""
        events, threads, data = [], {}, self.get_profiling_data()
        first = min((each["start_ms"] for each in data), default=0.0)
        for each in data:
            thread = threads.setdefault((each["device_id"], each["stream"]), len(threads))
            events.append({
                "name": each["name"], "cat": "region", "ph": "X", "ts": (each["start_ms"] - first) * 1e3,
                "dur": each["duration_ms"] * 1e3, "pid": each["device_id"], "tid": thread})
        for (number, stream), thread in threads.items():
            named = {"name": f"{self.device.type}:{number}" if self._on_device else "cpu"}
            events.append({"name": "process_name", "ph": "M", "pid": number, "tid": thread, "args": named})
            events.append({"name": "thread_name", "ph": "M", "pid": number, "tid": thread, "args": {"name": f"stream {stream}"}})
        with open(path, "w") as out:
            json.dump({"traceEvents": events, "displayTimeUnit": "ms"}, out)

    def get_device_properties(self, device_id=None):
        """{"available": True} and what torch.rdna.get_device_properties has, or {"available": False, "reason": …}."""
        if not self._on_device:
            return {"available": False, "reason": self.fallback_reason}
        number = self._number(device_id, "get_device_properties")
        return {"available": True, "device_id": number, **vars(torch.rdna.get_device_properties(number))}

    def get_memory_info(self, device_id=None):
        """(free, total) bytes of the device, of the machine in fallback."""
        number = self._number(device_id, "get_memory_info")
        return memory_info(torch.device("rdna", number) if self._on_device else self.device)

    def cleanup(self):
        """Waits for the devices of its streams, and forgets streams, events and what was measured."""
        for number in {each.device_id for each in self._streams.values()} if self._on_device else ():
            self.synchronize_device(number)
        self._streams.clear()
        self._events.clear()
        self.clear_profiling_data()

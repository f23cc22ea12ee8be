"""Streams and events of rdna devices, as torch.Stream and torch.Event are."""

import torch

from . import _C
from ._device import _index, is_ours


class _Plain(type):
    """Makes a class whose instances are PyTorch's own objects: torch.Event compares with exactly its type."""

    def __instancecheck__(cls, thing):
        return isinstance(thing, cls.kind) and is_ours(thing.device)


class Stream(metaclass=_Plain):
    """A queue of work on a device; a torch.Stream. Priority 0 is normal, -1 is more urgent."""

    kind = torch.Stream

    def __new__(cls, device=None, priority=0):
        return torch.Stream(torch.device("rdna", _index(device)), priority=priority)


class Event(metaclass=_Plain):
    """A mark in a stream; a torch.Event. Times can be asked for only between events with timing."""

    kind = torch.Event

    def __new__(cls, enable_timing=False, blocking=False, interprocess=False, device=None):
        if interprocess:
            raise NotImplementedError("events of rdna cannot be shared between processes")
        return torch.Event(torch.device("rdna", _index(device)), enable_timing=enable_timing)


class ExternalStream:
    def __init__(self, *unused, **named):
        raise NotImplementedError("streams that another library made cannot be used: rdna's streams are librdna's")


def get_stream_from_external(data_ptr, device=None):
    return ExternalStream(data_ptr, device)


_DEVICE_TYPE = 20  # c10::DeviceType::PrivateUse1


def _stream(index, stream_id):
    return torch.Stream(stream_id=stream_id, device_index=index, device_type=_DEVICE_TYPE)


def current_stream(device=None):
    index = _index(device)
    return _stream(index, _C.current_stream(index))


def default_stream(device=None):
    index = _index(device)
    return _stream(index, _C.default_stream(index))


def set_stream(stream):
    if stream is not None:
        _C.set_stream(stream.device_index, stream.stream_id)


class StreamContext:
    """Context in which |stream| is the current stream of its device, and its device the current one."""

    def __init__(self, stream):
        self.stream = stream

    def __enter__(self):
        if self.stream is not None:
            self.device = _C.current_device()
            self.before = _C.current_stream(self.stream.device_index)
            _C.set_device(self.stream.device_index)
            _C.set_stream(self.stream.device_index, self.stream.stream_id)
        return self.stream

    def __exit__(self, *unused):
        if self.stream is not None:
            _C.set_stream(self.stream.device_index, self.before)
            _C.set_device(self.device)
        return False


def stream(stream):
    return StreamContext(stream)

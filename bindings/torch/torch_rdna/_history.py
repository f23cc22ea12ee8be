"""The history of memory, in the format that PyTorch's viewer (pytorch.org/memory_viz) reads."""

import atexit
import pickle
import sys

import torch

from . import _C
from .memory import memory_snapshot


def _record_memory_history(
    enabled="all", context="all", stacks="python", max_entries=sys.maxsize, device=None, clear_history=False
):
    """Records from now on where memory is allocated and freed, for _snapshot(). |enabled|: None ends it, "state" keeps
    only where living memory came from, "all" keeps the last |max_entries| allocations and frees too. |context|: of what
    stacks are kept, None, "state" or "alloc" of allocations, "all" of frees too. Stacks are Python's."""
    if enabled is None or enabled is False:
        return _C.stop_history()
    if enabled not in ("state", "all", True) or context not in (None, "state", "alloc", "all"):
        raise ValueError(f"expected enabled=None, 'state' or 'all' and context=None, 'state', 'alloc' or 'all', "
                         f"got {enabled!r} and {context!r}")
    _C.record_history(enabled != "state", context is not None, context == "all", max_entries)


def _frames(stacks):
    """The frames of each of |stacks|, which may be None."""
    there = [stack for stack in stacks if stack is not None]
    found = iter(torch._C._profiler.symbolize_tracebacks(there))
    return [next(found) if stack is not None else [] for stack in stacks]


def _segments(index, frames):
    for segment in memory_snapshot(index)["segments"]:
        blocks = [
            {
                "address": block["address"],
                "size": block["size"],
                "requested_size": block.get("requested", 0),
                "state": "active_allocated" if block["state"] == "live" else "inactive",
                "frames": frames.get(block["address"], []),
            }
            for block in segment["blocks"]
        ]
        used = sum(block["size"] for block in blocks if block["state"] == "active_allocated")
        yield {
            "device": index,
            "address": segment["address"],
            "total_size": segment["size"],
            "allocated_size": used,
            "active_size": used,
            "requested_size": sum(block["requested_size"] for block in blocks),
            "stream": segment["stream"],
            "segment_type": segment["kind"],
            "segment_pool_id": (0, 0),
            "is_expandable": False,
            "frames": [],
            "blocks": blocks,
        }


def _snapshot(device=None):
    """What all open devices hold, and their history if one is recorded, as torch.cuda.memory._snapshot has it."""
    there = [i for i in range(_C.device_count()) if _C.is_open(i)]
    live = _C.live_stacks()
    frames = dict(zip(live, _frames(live.values())))
    events = _C.history()
    traces = [[] for _ in range(_C.device_count())]
    for (allocation, index, address, size, stream, time, _), stack in zip(events, _frames([e[-1] for e in events])):
        entry = {"addr": address, "size": size, "stream": stream, "time_us": time, "frames": stack}
        # Memory is the pool's again as soon as it is freed: what uses it later is in stream order.
        for action in ("alloc",) if allocation else ("free_requested", "free_completed"):
            traces[index].append({"action": action, **entry})
    return {"segments": [s for i in there for s in _segments(i, frames)], "device_traces": traces}


def _dump_snapshot(filename="dump_snapshot.pickle"):
    with open(filename, "wb") as file:
        pickle.dump(_snapshot(), file)


atexit.register(_C.stop_history)  # before the interpreter's end, after which stacks cannot be freed

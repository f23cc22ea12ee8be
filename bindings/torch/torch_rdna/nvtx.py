"""Named ranges of a program by the names that torch.cuda.nvtx has: torch.profiler shows them beside the operators."""

import contextlib
import itertools
import threading

import torch

_thread = threading.local()
_started = {}
_numbers = itertools.count(1)


def _enter(message):
    range = torch.profiler.record_function(str(message))
    range.__enter__()
    return range


def range_push(message):
    """Begins a range inside of this thread's last one. Returns how many are around it."""
    stack = _thread.__dict__.setdefault("stack", [])
    stack.append(_enter(message))
    return len(stack) - 1


def range_pop():
    """Ends this thread's last range. Returns how many are still around it."""
    stack = _thread.__dict__.get("stack")
    if not stack:
        raise RuntimeError("range_pop: no range was pushed in this thread")
    stack.pop().__exit__(None, None, None)
    return len(stack)


def range_start(message):
    """Begins a range that range_end(number) ends, whatever other ranges do meanwhile. Returns its number."""
    number = next(_numbers)
    _started[number] = _enter(message)
    return number


def range_end(number):
    if number not in _started:
        raise RuntimeError(f"range_end: there is no range {number}, or it has ended")
    _started.pop(number).__exit__(None, None, None)


def mark(message):
    """A range without length."""
    _enter(message).__exit__(None, None, None)


@contextlib.contextmanager
def range(message, *arguments, **named):
    """Context, or decorator, that is a range; |message| is formatted with what follows."""
    range_push(message.format(*arguments, **named))
    try:
        yield
    finally:
        range_pop()

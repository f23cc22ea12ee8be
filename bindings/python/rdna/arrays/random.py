"""Random numbers, made on the device from a seed and the place in its row alone: the same on every device. Within compile each run draws others."""

from . import _core
from ._array import empty_on, run
from ._core import F32, I32, I64
from ._grad import drawn_anew, recording_plan
from ._making import shape_of
from ._types import known

_state = {"seed": 0, "offset": 0}


def manual_seed(seed):
    """Random numbers from now on are those of |seed|: initial values of layers and dropout too."""
    _state.update(seed=int(seed), offset=0)


def take_place(count):
    """The seed, and the place of |count| numbers that nobody has had."""
    offset = _state["offset"]
    _state["offset"] += (count + 3) // 4
    return _state["seed"], offset


def _draw(name, shape, low, high, dtype, device):
    stream, shape = _core.stream(device), shape_of(shape)
    if recording_plan():  # each run has others
        return drawn_anew(stream, dtype, shape, lambda: _draw(name, shape, low, high, dtype, device))
    made = empty_on(stream, shape, dtype)
    run("random_" + name, made, *take_place(made.size * 2 if name == "integers" else made.size), low, high, made)  # of an integer twice as many bits
    return made


def _floats(name, dtype):
    dtype = known(dtype)
    if dtype.kind != "f":
        raise TypeError(f"random.{name} is of floats, not of {dtype}")
    return dtype


def uniform(shape, low=0.0, high=1.0, *, dtype=F32, device=None):
    """From low to below high."""
    return _draw("uniform", shape, low, high, _floats("uniform", dtype), device)


def normal(shape, mean=0.0, std=1.0, *, dtype=F32, device=None):
    return _draw("normal", shape, mean, std, _floats("normal", dtype), device)


def integers(low, high, shape, *, dtype=I64, device=None):
    """From low to high - 1."""
    dtype = known(dtype)
    if dtype not in (I32, I64):
        raise TypeError(f"random.integers is of int32 and int64, not of {dtype}")
    return _draw("integers", shape, low, high, dtype, device)

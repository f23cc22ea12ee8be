"""Where arrays were made, in the sentences of what fails: for programs that are being looked into, as it costs some microseconds an array."""

import functools
import os
import sys
import types
import weakref

from ._array import Array

_OF_FUNCTIONS = {"trace_origins", "origin", "compile", "grad", "value_and_grad", "graph", "checkpoint", "vjp", "jvp"}
_BOTH = "add sub mul truediv floordiv mod pow and or xor lshift rshift matmul"
_OPERATORS = {f"__{name}__" for name in (*_BOTH.split(), *("r" + name for name in _BOTH.split()), "eq", "ne", "lt", "le", "gt", "ge", "neg", "pos", "abs", "invert",
                                         "getitem", "setitem")}
_FOLDER = os.path.dirname(__file__)
_made = {}  # by the id of an array: a weak reference to it, and where it was made
_plain = []  # what was changed: (holder, name, what it was)


def _here():
    """The first caller outside of this package."""
    frame = sys._getframe(1)
    while frame and frame.f_code.co_filename.startswith(_FOLDER):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else "?"


def _note(made, place):
    for x in made if isinstance(made, (list, tuple)) else (made,):
        if isinstance(x, Array) and id(x) not in _made:
            number = id(x)
            _made[number] = weakref.ref(x, lambda _, number=number: _made.pop(number, None)), place


def origin(x):
    """Where |x| was made, "file:line"; "" where that is not known."""
    found = _made.get(id(x))
    return found[1] if found and found[0]() is x else ""


def _said(arguments):
    found = []
    for x in arguments:
        if isinstance(x, (list, tuple)):
            found += _said(x)
        elif isinstance(x, Array) and origin(x):
            found.append(f"{x.dtype} {x.shape} was made at {origin(x)}")
    return found


def _traced(function):
    @functools.wraps(function)
    def wrapped(*arguments, **keywords):
        try:
            made = function(*arguments, **keywords)
        except Exception as error:
            said = dict.fromkeys(_said([*arguments, *keywords.values()]))
            if said and not getattr(error, "told", False) and error.args and isinstance(error.args[0], str):
                error.args, error.told = (f"{error.args[0]} ({'; '.join(said)})", *error.args[1:]), True
            raise
        _note(made, _here())
        return made
    return wrapped


def trace_origins(on=True):
    """From now on sentences of what fails say where the arrays that are given were made, "(float32 (2, 3) was made at train.py:7)"; False: no longer. Of functions
    by the name of their module, `ra.matmul`, of methods and of operators."""
    if not on:
        while _plain:
            holder, name, was = _plain.pop()
            setattr(holder, name, was) if was is not None else delattr(holder, name)
        _made.clear()
        return
    if _plain:
        return
    import rdna.arrays
    from rdna.arrays import fft, linalg, nn

    for name in rdna.arrays._LATER:  # what is imported when it is asked for is now
        getattr(rdna.arrays, name)
    for module in (rdna.arrays, linalg, fft, nn):
        for name, value in list(vars(module).items()):
            if isinstance(value, types.FunctionType) and value.__module__.startswith("rdna.arrays") and not name.startswith("_") and name not in _OF_FUNCTIONS:
                _plain.append((module, name, value))
                setattr(module, name, _traced(value))
    for name in dir(Array):
        if callable(getattr(Array, name)) and (name in _OPERATORS or not name.startswith("_")):
            _plain.append((Array, name, vars(Array).get(name)))
            setattr(Array, name, _traced(getattr(Array, name)))

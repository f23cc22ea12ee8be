"""The end of a program that has run backward passes."""
import atexit
import pathlib
import time

from . import _C

_PATIENCE = 1.0  # seconds for threads that have nothing left to do but end


def _threads_of_autograd():
    try:
        return any(name.read_text().startswith("pt_autograd") for name in pathlib.Path("/proc/self/task").glob("*/comm"))
    except OSError:  # a thread ended while its name was read
        return True


def _end_threads():
    """Ends autograd's threads while the interpreter still stands.

    backward() returns when its results are there; the device's thread then still drops the pass's copy of the caller's
    context, a Python object, for which it takes the interpreter's lock. Once the interpreter is ending, a thread that
    asks for the lock is ended by it in the middle of C++, and the process aborts. A child of fork has no such thread."""
    if not _threads_of_autograd():
        return
    _C.stop_autograd()
    end = time.monotonic() + _PATIENCE  # a daemon's backward pass that goes on keeps its thread
    while _threads_of_autograd() and time.monotonic() < end:
        time.sleep(0.001)


def register():
    """Handlers run in the opposite order, so that those of the program, which may run backward passes, come before."""
    atexit.register(_end_threads)

"""librdna's own functions through ctypes, on the library that a framework's plugin has loaded where there is one, so that both
see the same devices and memory."""

import ctypes
import functools
import os

import rdna


def path():
    """RDNA_LIBRARY, else the one that this process has already, as PyTorch's plugin brings it, else the package's own."""
    chosen = os.environ.get("RDNA_LIBRARY")
    if chosen:
        return chosen
    with open("/proc/self/maps") as maps:
        for line in maps:
            found = line.rstrip("\n").partition("/")[2]
            if os.path.basename(found).startswith("librdna.so"):
                return "/" + found
    return rdna.library()


@functools.cache
def library():
    """librdna as a ctypes.CDLL. OSError where it is not."""
    found = ctypes.CDLL(path())
    found.rdna_last_error.restype = ctypes.c_char_p
    found.rdna_status_name.restype = ctypes.c_char_p
    return found


def last_error():
    """The sentence of this thread's last failed call."""
    return library().rdna_last_error().decode(errors="replace")

"""librdna's image networks, called by tests through ctypes on rdna_program.DEVICE."""
import ctypes
import pathlib

import rdna_program

LIBRARY = ctypes.CDLL(pathlib.Path(rdna_program.PROGRAM).parent.parent / "lib/librdna.so")
POINTER, TEXT, INT = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
F32, F16, BF16, F64, I32 = 0, 1, 2, 3, 7  # rdna_dtype
INVALID, NOT_FOUND, UNSUPPORTED, BAD_DATA = 1, 3, 4, 7  # rdna_status
LIBRARY.rdna_last_error.restype = TEXT
LIBRARY.rdna_device_open.argtypes = [TEXT, POINTER]
DEVICE = POINTER()
if LIBRARY.rdna_device_open(rdna_program.DEVICE.encode(), ctypes.byref(DEVICE)):
    raise SystemExit(LIBRARY.rdna_last_error().decode())


def declare(prefix, functions):
    """|functions|: (name behind |prefix|, its result, its arguments)."""
    for name, result, arguments in functions:
        function = getattr(LIBRARY, prefix + name)
        function.restype, function.argtypes = result, arguments

"""The emulator's library through ctypes: calls, kernels of a source text, buffers as NumPy's arrays."""
import ctypes
import os

import numpy as np

from emulator import compile_hip

TO_DEVICE, TO_HOST, BETWEEN = 1, 2, 3
SUCCESS, INVALID_VALUE, NO_MEMORY, INVALID_DEVICE, INVALID_HANDLE = 0, 1, 2, 101, 400
NOT_READY, ILLEGAL_ADDRESS, LAUNCH_FAILURE, NOT_SUPPORTED = 600, 700, 719, 801
size = ctypes.c_size_t


def struct(**fields):
    """A ctypes structure of these fields, zero or as given: (type, value)."""
    kind = type("struct", (ctypes.Structure,), {"_fields_": [(n, f[0] if isinstance(f, tuple) else f) for n, f in fields.items()]})
    return kind(**{n: f[1] for n, f in fields.items() if isinstance(f, tuple)})


class Hip:
    def __init__(self, library, targets, source=""):
        self.library = ctypes.CDLL(library)
        self.targets = targets
        self.modules = []
        for i, target in enumerate(targets if source else []):
            self.ok("hipSetDevice", i)
            with open(compile_hip(source, target, ("-O2",)), "rb") as f:
                self.modules.append(self.made("hipModuleLoadData", f.read()))
        self.ok("hipSetDevice", 0)

    def code(self, name, *arguments):
        code = getattr(self.library, name)(*arguments)
        self.library.hipGetLastError()
        return code

    def ok(self, name, *arguments):
        code = self.code(name, *arguments)
        if code:
            raise RuntimeError(f"{name}: {code}")

    def made(self, name, *arguments, kind=ctypes.c_void_p):
        """What the call writes to the place that its first argument points to."""
        out = kind()
        self.ok(name, ctypes.byref(out), *arguments)
        return out

    def told(self, name, *arguments, kind=ctypes.c_int):
        """The number that the call writes to the place that its last argument points to."""
        out = kind()
        self.ok(name, *arguments, ctypes.byref(out))
        return out.value

    def function(self, name, device=0):
        return self.made("hipModuleGetFunction", self.modules[device], name.encode())

    def launch(self, name, *values, groups=1, threads=32, device=0, stream=None, lds=0):
        """The code of the launch. |values| are ctypes' numbers and pointers."""
        pointers = (ctypes.c_void_p * len(values))(*[ctypes.addressof(v) for v in values])
        return self.code("hipModuleLaunchKernel", self.function(name, device), groups, 1, 1, threads, 1, 1, lds, stream, pointers, None)

    def run(self, name, *values, **more):
        """The same, and what comes of it."""
        return self.launch(name, *values, **more) or self.code("hipDeviceSynchronize")

    def write(self, to, array):
        array = np.ascontiguousarray(array)
        return self.code("hipMemcpy", to, array.ctypes.data_as(ctypes.c_void_p), size(array.nbytes), TO_DEVICE)

    def read(self, at, count, dtype=np.int32):
        out = np.zeros(count, dtype)
        self.ok("hipMemcpy", out.ctypes.data_as(ctypes.c_void_p), at, size(out.nbytes), TO_HOST)
        return out


def said(action):
    """What `action` returns, and what it writes to standard error."""
    keep, (reading, writing) = os.dup(2), os.pipe()
    os.dup2(writing, 2)
    try:
        result = action()
    finally:
        os.dup2(keep, 2)
        os.close(writing)
        os.close(keep)
    with os.fdopen(reading, "rb") as f:
        return result, f.read().decode()

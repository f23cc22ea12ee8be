"""Launches kernels "name:groups:by", one after the other, and prints as JSON what each returned and left in its buffer.
Usage: debug_program.py librdna_emulator.so CODE LAUNCH..."""
import ctypes
import json
import os
import sys

THREADS = 128


def child(library, path, launches):
    """Launches kernels "name:groups:by", one after the other, and prints what each returned and left."""
    hip = ctypes.CDLL(library)
    module, out, function = (ctypes.c_void_p() for _ in range(3))
    with open(path, "rb") as f:
        code = hip.hipModuleLoadData(ctypes.byref(module), f.read())
    if code:
        print(json.dumps([[code, []]]))
        return 0
    assert hip.hipMalloc(ctypes.byref(out), ctypes.c_size_t(2048)) == 0
    results = []
    for name, groups, by in ((text + "::").split(":")[:3] for text in launches):
        if name == "fork":  # a child that launches nothing and ends as programs do
            child_number = os.fork()
            if child_number == 0:
                sys.exit(0)
            os.waitpid(child_number, 0)
            continue
        assert hip.hipMemset(out, 0, ctypes.c_size_t(2048)) == 0
        assert hip.hipModuleGetFunction(ctypes.byref(function), module, name.encode()) == 0
        number = ctypes.c_int(int(by))
        arguments = (ctypes.c_void_p * 2)(ctypes.addressof(out), ctypes.addressof(number))
        code = hip.hipModuleLaunchKernel(function, int(groups), 1, 1, THREADS, 1, 1, 0, None, arguments, None)
        code = code or hip.hipDeviceSynchronize()
        back = (ctypes.c_int * 512)()
        hip.hipMemcpy(back, out, ctypes.c_size_t(2048), 2)
        results.append([code, list(back)])
    print(json.dumps(results))
    return 0


if __name__ == "__main__":
    sys.exit(child(sys.argv[1], sys.argv[2], sys.argv[3:]))

"""include/rdna/compile.h through ctypes: code, its kernels, and launches with checked arguments."""

import ctypes
import re
import struct
import threading

import torch

from .._library import last_error, library
from ._plugin import devices
from .amd_exceptions import HIPKernelError, ROCmNotAvailableError

_UNKNOWN, _INTEGER, _FLOAT, _BFLOAT = range(4)
_KINDS = ("unknown", "integer", "float", "bfloat")
INVALID_ARGUMENT = 1  # of rdna_status


class _Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("target", ctypes.c_char_p), ("name", ctypes.c_char_p),
                ("flags", ctypes.POINTER(ctypes.c_char_p)), ("flag_count", ctypes.c_int), ("cache", ctypes.c_char_p),
                ("cache_entries", ctypes.c_uint64), ("cache_bytes", ctypes.c_uint64)]


class _Report(ctypes.Structure):
    _fields_ = [("target", ctypes.c_char_p), ("compiler", ctypes.c_char_p), ("notice", ctypes.c_char_p),
                ("warnings", ctypes.c_char_p), ("cached", ctypes.c_bool), ("milliseconds", ctypes.c_double)]


class _Argument(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_char_p), ("space", ctypes.c_char_p),
                ("offset", ctypes.c_uint32), ("size", ctypes.c_uint32), ("is_pointer", ctypes.c_bool),
                ("number", ctypes.c_int), ("number_size", ctypes.c_uint32)]


class _Kernel(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("symbol", ctypes.c_char_p), ("argument_count", ctypes.c_int),
                ("arguments", ctypes.POINTER(_Argument))] + [(name, ctypes.c_uint32) for name in (
                    "group_memory", "private_memory", "max_group_threads", "vector_registers", "scalar_registers",
                    "vector_spills", "scalar_spills", "wave_size")]


class _Shape(ctypes.Structure):
    _fields_ = [("grid", ctypes.c_uint32 * 3), ("block", ctypes.c_uint32 * 3), ("group_memory", ctypes.c_uint32)]


class _Given(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("is_pointer", ctypes.c_bool), ("number", ctypes.c_int),
                ("size", ctypes.c_uint32)]


def _c():
    c = library()
    c.rdna_code_data.restype = ctypes.c_void_p
    c.rdna_code_get_kernel.restype = ctypes.POINTER(_Kernel)
    c.rdna_stream_device.restype = ctypes.c_void_p
    for released in ("rdna_code_release", "rdna_code_get_report"):
        getattr(c, released).restype = None
    return c


class Code:
    """Compiled code. Raises CodeError."""

    def __init__(self, source, target, name, flags, folder, entries):
        c = _c()
        words = [flag.encode() for flag in flags]
        options = _Options(ctypes.sizeof(_Options), target.encode(), name.encode(),
                           (ctypes.c_char_p * max(len(words), 1))(*words), len(words), folder.encode(), entries, 0)
        self._handle, self._modules, self._lock = ctypes.c_void_p(), {}, threading.Lock()
        status = c.rdna_compile(source.encode(), ctypes.byref(options), ctypes.byref(self._handle))
        if status:
            raise CodeError(status, last_error())
        report = _Report()
        c.rdna_code_get_report(self._handle, ctypes.byref(report))
        self.target, self.compiler, self.notice = (text.decode(errors="replace") for text in
                                                   (report.target, report.compiler, report.notice))
        self.cached, self.milliseconds = report.cached, report.milliseconds
        size = ctypes.c_size_t()
        data = c.rdna_code_data(self._handle, ctypes.byref(size))
        self.binary = ctypes.string_at(data, size.value)
        self.kernels = [Kernel(self, i, c.rdna_code_get_kernel(self._handle, i).contents)
                        for i in range(c.rdna_code_kernel_count(self._handle))]

    def __del__(self):
        if self._handle:
            library().rdna_code_release(self._handle)

    def find(self, name):
        """The kernel of that name or symbol. Raises CodeError with those that there are."""
        number = ctypes.c_int()
        status = library().rdna_code_find(self._handle, name.encode(), ctypes.byref(number))
        if status:
            raise CodeError(status, last_error())
        return self.kernels[number.value]

    def module(self, index, stream, kernel_name):
        """The code on device |index|. It stays there, as a recorded graph may hold its kernels."""
        with self._lock:
            if index not in self._modules:
                module, device = ctypes.c_void_p(), ctypes.c_void_p(library().rdna_stream_device(stream))
                status = library().rdna_module_load(device, self._handle, ctypes.byref(module))
                if status:
                    raise HIPKernelError(kernel_name, status, last_error())
                self._modules[index] = module
            return self._modules[index]


class CodeError(Exception):
    """A call of compile.h failed with |status|."""

    def __init__(self, status, sentence):
        self.status, self.sentence = status, sentence
        super().__init__(sentence)


# Kind and bytes of a tensor's numbers; complex ones are two, which kernels have as structs.
def _number_of(dtype):
    if dtype.is_complex:
        return _UNKNOWN, 0
    kind = _BFLOAT if dtype == torch.bfloat16 else _FLOAT if dtype.is_floating_point else _INTEGER
    return kind, dtype.itemsize


class Kernel:
    """A kernel of |code|, with what its arguments must be."""

    def __init__(self, code, index, found):
        self.code, self.index = code, index
        self.name, self.symbol = found.name.decode(), found.symbol.decode()
        self.arguments = [found.arguments[i] for i in range(found.argument_count)]
        self.texts = [" ".join(t for t in (a.type.decode() or ("pointer" if a.is_pointer else f"{a.size} bytes"),
                                           a.name.decode()) if t) for a in self.arguments]
        self.is_ptx = code.target.startswith("sm_")

    def launch(self, shown, grid, block, shared, given):
        """Queues it on the current stream of the tensors' device. |shown|: its name in sentences."""
        if len(given) != len(self.arguments):
            raise TypeError(f"kernel {shown!r} takes {len(self.arguments)} arguments ({', '.join(self.texts)}), and "
                            f"{len(given)} were given")
        rdna, reason = devices()
        if rdna is None:
            raise ROCmNotAvailableError(f"kernel {shown!r} cannot run: {reason}")
        index = self._device(shown, given, rdna)
        values = [self._value(shown, i, each) for i, each in enumerate(given)]
        packed = (_Given * max(len(values), 1))()
        for slot, (memory, is_pointer, number, size) in zip(packed, values):
            slot.data, slot.is_pointer, slot.number, slot.size = ctypes.addressof(memory), is_pointer, number, size
        shape = _Shape((ctypes.c_uint32 * 3)(*grid), (ctypes.c_uint32 * 3)(*block), shared)
        stream = ctypes.c_void_p(rdna._C.native_stream(index))
        module = self.code.module(index, stream, shown)
        status = library().rdna_module_launch(stream, module, self.index, ctypes.byref(shape), packed, len(values))
        if status:
            kind = TypeError if status == INVALID_ARGUMENT and "argument " in last_error() else None
            raise kind(last_error()) if kind else HIPKernelError(shown, status, last_error())
        for argument, each in zip(self.arguments, given):
            if isinstance(each, torch.Tensor) and not argument.type.startswith(b"const ") and not each.is_inference():
                torch.autograd.graph.increment_version(each)  # it may be written

    def _device(self, shown, given, rdna):
        """The number of the device that all tensors are on; the current one where there is none."""
        places = {each.device for each in given if isinstance(each, torch.Tensor)}
        for i, each in enumerate(given):
            if isinstance(each, torch.Tensor) and not rdna._device.is_ours(each.device):
                raise HIPKernelError(shown, INVALID_ARGUMENT, f"argument {i + 1}, {self.texts[i]}, is on {each.device}; "
                                     "move it to an rdna device with .to('rdna')")
        if len(places) > 1:
            raise HIPKernelError(shown, INVALID_ARGUMENT, "its tensors are on several devices, "
                                 f"{', '.join(sorted(map(str, places)))}; move them to one")
        return places.pop().index if places else rdna.current_device()

    def _value(self, shown, i, given):
        """(memory with its bytes, whether it is a pointer, kind, bytes) of an argument."""
        wanted = self.arguments[i]

        def wrong(what):
            return TypeError(f"kernel {shown!r}, argument {i + 1}, {self.texts[i]}: {what}")

        if isinstance(given, torch.Tensor):
            if given.is_conj() or given.is_neg():
                raise wrong("the tensor is a lazy conjugate or negative; call .resolve_conj() or .resolve_neg()")
            if given.layout is not torch.strided:
                raise wrong(f"a tensor of layout {given.layout} has no memory of its own; call .to_dense()")
            if not wanted.is_pointer and not (self.is_ptx and not wanted.type and wanted.size == 8):
                raise wrong("it is a value, and a tensor was given; call .item()")
            kind, size = _number_of(given.dtype)
            if wanted.number != _UNKNOWN and kind != _UNKNOWN and (wanted.number, wanted.number_size) != (kind, size):
                raise wrong(f"a tensor of {given.dtype} was given, whose numbers are {size}-byte {_KINDS[kind]}s, not "
                            f"{wanted.number_size}-byte {_KINDS[wanted.number]}s")
            return ctypes.c_uint64(given.data_ptr()), True, kind, size
        if wanted.is_pointer:
            if given is None:
                return ctypes.c_uint64(0), True, _UNKNOWN, 0
            raise wrong(f"it is a pointer to the GPU's memory, and {type(given).__name__} was given; pass a tensor of rdna")
        if isinstance(given, bytes):  # a struct
            if len(given) != wanted.size:
                raise wrong(f"it has {wanted.size} bytes, and {len(given)} were given")
            return ctypes.create_string_buffer(given, len(given)), False, _UNKNOWN, len(given)
        return self._number(wanted, given, wrong)

    def _number(self, wanted, given, wrong):
        whole = hasattr(type(given), "__index__")
        if not whole and not hasattr(type(given), "__float__"):
            raise wrong(f"{type(given).__name__} is no number; numbers, tensors, and bytes for structs can be passed")
        kind = wanted.number if wanted.number != _UNKNOWN else _INTEGER if whole else _FLOAT
        if kind == _INTEGER:
            if not whole:
                raise wrong(f"it is an integer, and {given!r} was given")
            number, bits = given.__index__(), 8 * wanted.size
            unsigned = re.match(rb"unsigned|bool", wanted.type)
            low, high = (0, 1 << bits) if unsigned else (-(1 << bits - 1), 1 << bits if not wanted.type else 1 << bits - 1)
            if wanted.type == b"bool":
                high = 2
            if not wanted.size in (1, 2, 4, 8) or not low <= number < high:
                raise wrong(f"{number} does not fit into its {wanted.size} bytes")
            data = (number % (1 << bits)).to_bytes(wanted.size, "little")
        elif kind == _BFLOAT:
            data = torch.tensor(float(given), dtype=torch.float32).bfloat16().view(torch.int16).numpy().tobytes()
        elif wanted.size in (2, 4, 8):
            data = torch.tensor(float(given), dtype={2: torch.float16, 4: torch.float32, 8: torch.float64}[wanted.size])
            data = data.numpy().tobytes() if wanted.size != 8 else struct.pack("<d", float(given))
        else:
            raise wrong(f"it has {wanted.size} bytes, which no float has")
        return ctypes.create_string_buffer(data, len(data)), False, kind, len(data)

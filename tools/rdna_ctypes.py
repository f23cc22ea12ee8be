"""librdna through ctypes: what the benches share. PyTorch is needed by view() and torch_time() alone."""
import ctypes
import itertools
import math

try:
    import torch
except ImportError:  # the counts on emulated cards do without
    torch = None

NAMES = ["float32", "float16", "bfloat16", "float64", "int8", "uint8", "int16", "int32", "int64", "bool"]
if torch:
    BF16, F32 = torch.bfloat16, torch.float32
    DTYPES = {getattr(torch, name): i for i, name in enumerate(NAMES)}


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("dtype", ctypes.c_int), ("rank", ctypes.c_int),
                ("shape", ctypes.c_int64 * 8), ("stride", ctypes.c_int64 * 8)]


class Scalar(ctypes.Structure):
    _fields_ = [("real", ctypes.c_double), ("integer", ctypes.c_int64)]


class Options(ctypes.Structure):
    """A struct of options, which begins with its size."""
    _fields_ = [("size", ctypes.c_size_t)]

    def __init__(self, *args, **fields):
        super().__init__(ctypes.sizeof(self), *args, **fields)


class Optim(Options):
    _fields_ = [("kind", ctypes.c_int)] + [(n, ctypes.c_float) for n in (
        "learning_rate", "weight_decay", "momentum", "dampening")] + [("nesterov", ctypes.c_bool)] + [
        ("beta1", ctypes.c_float), ("beta2", ctypes.c_float), ("epsilon", ctypes.c_double)] + [
        (n, ctypes.c_bool) for n in ("decoupled", "amsgrad", "centered", "maximize")] + [("step", ctypes.c_int64)]


class OptimItem(ctypes.Structure):
    _fields_ = [("param", ctypes.POINTER(Tensor)), ("grad", ctypes.POINTER(Tensor)),
                ("state", ctypes.POINTER(Tensor) * 3), ("step", ctypes.POINTER(Tensor))]


class CrossEntropy(Options):
    _fields_ = [("reduction", ctypes.c_int), ("ignore_index", ctypes.c_int64), ("label_smoothing", ctypes.c_float),
                ("log_probabilities", ctypes.c_bool), ("outside", ctypes.c_void_p)]


class FusedStep(ctypes.Structure):
    _fields_ = [("op", ctypes.c_int), ("is_zip", ctypes.c_bool), ("input_first", ctypes.c_bool), ("input", ctypes.c_int),
                ("p", ctypes.c_float), ("q", ctypes.c_float)]


class Pool(Options):
    _fields_ = [("spatial_dims", ctypes.c_int)] + [
        (n, ctypes.c_int64 * 3) for n in ("window", "stride", "pad_before", "pad_after", "dilation")] + [
        ("ceil", ctypes.c_bool), ("count_padding", ctypes.c_bool), ("divisor", ctypes.c_int64)]


class QuantGroups(Options):
    _fields_ = [(name, ctypes.POINTER(Tensor)) for name in ("codes", "scales", "zeros")]


class MoeProduct(Options):
    _fields_ = [("add", ctypes.c_bool), ("bias", ctypes.POINTER(Tensor)), ("shares", ctypes.POINTER(Tensor))]


class Sdpa(Options):
    _fields_ = [(n, ctypes.c_float) for n in ("scale", "softcap", "dropout")] + [
        ("causal", ctypes.c_bool), ("windowed", ctypes.c_bool), ("diagonal", ctypes.c_int), ("left", ctypes.c_int32),
        ("right", ctypes.c_int32), ("seed", ctypes.c_uint64), ("offset", ctypes.c_uint64)] + [
        (n, ctypes.c_void_p) for n in ("mask", "slopes", "q_starts", "k_starts")] + [
        ("max_queries", ctypes.c_int64), ("max_keys", ctypes.c_int64)]


class Convolution(Options):
    _fields_ = [("spatial_dims", ctypes.c_int)] + [
        (n, ctypes.c_int64 * 3) for n in ("stride", "pad_before", "pad_after", "dilation")] + [
        ("groups", ctypes.c_int64)]

    @classmethod
    def square(cls, window, stride=1):
        """2-d, with as many zeros around as keep the size at stride 1."""
        c = cls(spatial_dims=2, groups=1)
        for i in range(2):
            c.stride[i], c.dilation[i], c.pad_before[i], c.pad_after[i] = stride, 1, window // 2, window // 2
        return c


def view(t):
    if t is None:
        return None
    r = Tensor(t.data_ptr(), DTYPES[t.dtype], t.dim())
    for i in range(t.dim()):
        r.shape[i], r.stride[i] = t.shape[i], t.stride(i)
    return ctypes.pointer(r)


def blocks_of(lib, name, weight):
    """|weight|, f32, quantized to a type of blocks such as "q4_K": its description, and the memory, to be kept."""
    r = view(weight)
    r.contents.dtype = lib.number("dtype", name)
    lib.c.rdna_dtype_bytes.restype = ctypes.c_size_t
    memory = torch.empty(lib.c.rdna_dtype_bytes(r.contents.dtype, ctypes.c_int64(weight.numel())), device=weight.device,
                         dtype=torch.uint8)
    r.contents.data = memory.data_ptr()
    torch.cuda.synchronize()
    lib.op("quantize", view(weight), r)()
    lib.check(lib.c.rdna_stream_synchronize(lib.stream))
    return r, memory


def real(v):
    return Scalar(v, int(v) if math.isfinite(v) else 0)


class Library:
    def __init__(self, path, driver):
        self.c = ctypes.CDLL(path)
        self.c.rdna_last_error.restype = ctypes.c_char_p
        self.device, self.stream = ctypes.c_void_p(), ctypes.c_void_p()
        self.check(self.c.rdna_device_open(driver.encode(), ctypes.byref(self.device)))
        self.check(self.c.rdna_stream_create(self.device, 0, ctypes.byref(self.stream)))
        self.events = []
        for _ in range(2):
            e = ctypes.c_void_p()
            self.check(self.c.rdna_event_create(self.device, True, ctypes.byref(e)))
            self.events.append(e)

    def check(self, status):
        if status:
            raise RuntimeError(self.c.rdna_last_error().decode())

    def number(self, kind, operation):
        """Of a pointwise operation, as the library has it: number("map", "silu")."""
        name_of = getattr(self.c, f"rdna_{kind}_name")
        name_of.restype = ctypes.c_char_p
        names = itertools.takewhile(lambda name: name != b"?", map(name_of, itertools.count()))
        return list(names).index(operation.encode())

    def op(self, name, *args):
        """A call of rdna_op_<name>(stream, args…) with everything converted beforehand. A pointwise operation is given by
        its name: op("map", "silu", …)."""
        function = getattr(self.c, "rdna_op_" + name)
        args = [self.number(name, a) if isinstance(a, str) else a for a in args]
        return lambda: self.check(function(self.stream, *args))

    def time(self, call, calls, rounds, before=3):
        """Milliseconds of one of |calls| in a row, the median of |rounds|, after |before| calls that are not timed."""
        for _ in range(before):
            call()
        self.check(self.c.rdna_stream_synchronize(self.stream))
        times = []
        for _ in range(rounds):
            self.check(self.c.rdna_event_record(self.events[0], self.stream))
            for _ in range(calls):
                call()
            self.check(self.c.rdna_event_record(self.events[1], self.stream))
            self.check(self.c.rdna_event_synchronize(self.events[1]))
            ms = ctypes.c_float()
            self.check(self.c.rdna_event_elapsed(self.events[0], self.events[1], ctypes.byref(ms)))
            times.append(ms.value / calls)
        return sorted(times)[rounds // 2]


def torch_time(call, calls, rounds, before=3):
    for _ in range(before):
        call()
    torch.cuda.synchronize()
    times = []
    for _ in range(rounds):
        start, end = torch.cuda.Event(True), torch.cuda.Event(True)
        start.record()
        for _ in range(calls):
            call()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) / calls)
    return sorted(times)[rounds // 2]

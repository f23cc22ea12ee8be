"""Products, convolutions and a few other operations on addresses of device memory, or on buffers of the host, which are copied."""

import ctypes
import dataclasses

from . import _devices, _memory
from ._native import MAX_RANK, Convolution, Scalar, Tensor, call, functions, number

_TYPES = {0: ("f32", 4), 1: ("f16", 2), 2: ("bf16", 2)}


def get_data_type_size(data_type):
    """Bytes of 0 float32, 1 float16, 2 bfloat16. ValueError: another."""
    if data_type not in _TYPES:
        raise ValueError(f"data_type is 0 (float32), 1 (float16) or 2 (bfloat16), not {data_type!r}")
    return _TYPES[data_type][1]


class TensorDesc:
    """Shape, data_type (0 float32, 1 float16, 2 bfloat16) and strides in elements, which are set where it is not contiguous."""

    def __init__(self, shape=(), data_type=0, strides=None):
        get_data_type_size(data_type)
        self.shape, self.data_type = [int(n) for n in shape], data_type
        if len(self.shape) > MAX_RANK or any(n < 0 for n in self.shape):
            raise ValueError(f"a shape has up to {MAX_RANK} sizes of at least 0, not {self.shape}")
        self.strides = self._plain() if strides is None else [int(n) for n in strides]

    def _plain(self):
        strides, step = [], 1
        for size in reversed(self.shape):
            strides.insert(0, step)
            step *= size
        return strides

    @property
    def contiguous(self):
        return list(self.strides) == self._plain()

    def num_elements(self):
        count = 1
        for size in self.shape:
            count *= size
        return count

    def get_size(self):
        """Bytes of the elements."""
        return self.num_elements() * get_data_type_size(self.data_type)

    def span(self):
        """Bytes from the first element to behind the last."""
        if not self.num_elements():
            return 0
        if len(self.strides) != len(self.shape) or any(step < 0 for step in self.strides):
            raise ValueError(f"strides {self.strides} of shape {self.shape}: one of at least 0 for each dimension")
        return (1 + sum((n - 1) * step for n, step in zip(self.shape, self.strides))) * get_data_type_size(self.data_type)

    def tensor(self, address):
        made = Tensor(address, number("dtype", _TYPES[self.data_type][0]), len(self.shape))
        made.shape[: len(self.shape)], made.stride[: len(self.shape)] = self.shape, self.strides
        return made

    def __repr__(self):
        return f"TensorDesc({self.shape}, data_type={self.data_type})"


@dataclasses.dataclass
class MatmulConfig:
    """c = alpha a b + beta c; of a transposed operand the last two dimensions are swapped first."""

    transpose_a: bool = False
    transpose_b: bool = False
    alpha: float = 1.0
    beta: float = 0.0


@dataclasses.dataclass
class ConvConfig:
    """For height and width each, a number for both, or empty for 0 and 1. |benchmark|: librdna's tuner measures anyway, it changes nothing."""

    padding: object = ()
    stride: object = ()
    dilation: object = ()
    groups: int = 1
    benchmark: bool = False

    def convolution(self):
        made = Convolution(size=ctypes.sizeof(Convolution), spatial_dims=2, groups=self.groups)
        for name, fields, otherwise in (("padding", ("pad_before", "pad_after"), 0), ("stride", ("stride",), 1), ("dilation", ("dilation",), 1)):
            given = getattr(self, name)
            values = [given] * 2 if isinstance(given, int) else list(given) or [otherwise] * 2
            if len(values) != 2:
                raise ValueError(f"{name} has a number for height and one for width, not {given!r}")
            for field in fields:
                getattr(made, field)[:] = [*values, otherwise]
        return made


class _Work:
    """A call on one device: addresses stay what they are, buffers of the host are copied there, and back where they are written."""

    def __init__(self, context, stream):
        self.context, self.device = context, context.address()
        self.stream = _memory.stream_address(stream, self.device)
        self.allocator, self._taken, self._back = _memory.MemoryAllocator(context), [], []

    def tensor(self, desc, data, written=False):
        if not isinstance(desc, TensorDesc):
            raise TypeError(f"a TensorDesc says what is in the data, not {type(desc).__name__}")
        if isinstance(data, int):
            return desc.tensor(data)
        view, size = memoryview(data), desc.span()
        if not view.c_contiguous or view.nbytes < size or (written and view.readonly):
            raise ValueError(f"{desc} needs a contiguous buffer of {size} bytes{', which can be written' * written}; this one has {view.nbytes}")
        address, host = self.allocator.allocate(size), _memory.host_address(data)
        self._taken.append(address)
        if size:
            call("rdna_copy_to_device", self.stream, address, host, size)
        if written and size:
            self._back.append((host, address, size))
        return desc.tensor(address)

    def __enter__(self):
        return self

    def __exit__(self, kind, *error):
        try:
            for host, address, size in self._back if kind is None else ():
                call("rdna_copy_to_host", self.stream, host, address, size)
            if self._taken:
                call("rdna_stream_synchronize", self.stream)
        finally:
            for address in self._taken:
                self.allocator.deallocate(address)


class _Kernels:
    """initialize() opens the device; the calls do too. Each call returns True, or raises what librdna says."""

    _name = ""

    def __init__(self, context):
        self._context = context

    def initialize(self):
        return self._context.initialize()

    def is_initialized(self):
        return self._context.is_valid()

    def get_name(self):
        return self._name

    def _run(self, function, *operands, stream=None):
        """|function| of the stream and of a tensor for each (desc, data) of |operands|, the last of which is written."""
        with _Work(self._context, stream) as work:
            tensors = [work.tensor(desc, data, written=i == len(operands) - 1) for i, (desc, data) in enumerate(operands)]
            function(work.stream, *tensors)
        return True


def _turned(tensor, transposed):
    if transposed:
        if tensor.rank < 2:
            raise ValueError("a tensor of less than two dimensions cannot be transposed")
        i, j = tensor.rank - 1, tensor.rank - 2
        tensor.shape[i], tensor.shape[j] = tensor.shape[j], tensor.shape[i]
        tensor.stride[i], tensor.stride[j] = tensor.stride[j], tensor.stride[i]
    return tensor


class MatmulKernel(_Kernels):
    _name = "matmul"

    def matmul(self, a, a_data, b, b_data, c, c_data, config=None, stream=None):
        """c (m, n) = alpha a (m, k) b (k, n) + beta c, or of rank 3 with the same first size."""
        config = config or MatmulConfig()

        def product(stream, x, y, out):
            call("rdna_op_gemm", stream, config.alpha, ctypes.byref(_turned(x, config.transpose_a)), ctypes.byref(_turned(y, config.transpose_b)),
                 config.beta, None, ctypes.byref(out))

        return self._run(product, (a, a_data), (b, b_data), (c, c_data), stream=stream)

    def batched_matmul(self, a_batch, a_data, b_batch, b_data, c_batch, c_data, config=None, stream=None):
        """Products of the same shapes, one behind the other in each of the three: lists of descriptions."""
        if not len(a_batch) == len(b_batch) == len(c_batch) or not a_batch:
            raise ValueError(f"batches of {len(a_batch)}, {len(b_batch)} and {len(c_batch)} matrices")
        descs = []
        for batch in (a_batch, b_batch, c_batch):
            first = batch[0]
            if any((d.shape, d.data_type) != (first.shape, first.data_type) or not d.contiguous or len(d.shape) != 2 for d in batch):
                raise ValueError("a batch has contiguous matrices of one shape and type")
            descs.append(TensorDesc([len(batch), *first.shape], first.data_type))
        return self.matmul(descs[0], a_data, descs[1], b_data, descs[2], c_data, config, stream)


class ConvKernel(_Kernels):
    """Input (n, channels, height, width), filter (out channels, channels / groups, height, width), output (n, out channels, …)."""

    _name = "conv2d"

    def conv2d_forward(self, input, input_data, filter, filter_data, output, output_data, config=None, stream=None):
        conv = (config or ConvConfig()).convolution()
        return self._run(lambda stream, x, w, y: call("rdna_op_conv", stream, ctypes.byref(conv), ctypes.byref(x), ctypes.byref(w), None, ctypes.byref(y)),
                         (input, input_data), (filter, filter_data), (output, output_data), stream=stream)

    def conv2d_backward_data(self, filter, filter_data, output_grad, output_grad_data, input_grad, input_grad_data, config=None, stream=None):
        conv = (config or ConvConfig()).convolution()
        return self._run(
            lambda stream, w, dy, dx: call("rdna_op_conv_backward_data", stream, ctypes.byref(conv), ctypes.byref(dy), ctypes.byref(w), None, ctypes.byref(dx)),
            (filter, filter_data), (output_grad, output_grad_data), (input_grad, input_grad_data), stream=stream)

    def conv2d_backward_filter(self, input, input_data, output_grad, output_grad_data, filter_grad, filter_grad_data, config=None, stream=None):
        conv = (config or ConvConfig()).convolution()
        return self._run(
            lambda stream, x, dy, dw: call("rdna_op_conv_backward_weight", stream, ctypes.byref(conv), ctypes.byref(dy), ctypes.byref(x), ctypes.byref(dw)),
            (input, input_data), (output_grad, output_grad_data), (filter_grad, filter_grad_data), stream=stream)

    def find_best_algorithm(self, input, filter, output, config=None):
        """The kernel that a convolution of these shapes runs in the end, which computes it once."""
        work = _Work(self._context, None)
        taken = []
        try:
            for desc in (input, filter, output):
                taken.append(work.allocator.allocate(desc.span()))
                call("rdna_fill_bytes", work.stream, taken[-1], 0, desc.span())
            self.conv2d_forward(input, taken[0], filter, taken[1], output, taken[2], config)
            return functions().rdna_stream_last_kernel(work.stream).decode()
        finally:
            for address in taken:
                work.allocator.deallocate(address)


class CustomKernels(_Kernels):
    _name = "custom"

    def _zip(self, op, operands, stream):
        return self._run(lambda stream, a, b, out: call("rdna_op_zip", stream, number("zip", op), ctypes.byref(a), ctypes.byref(b), Scalar(1, 1),
                                                        Scalar(0, 0), ctypes.byref(out)), *operands, stream=stream)  # fmt: skip

    def _map(self, op, operands, stream):
        return self._run(lambda stream, x, out: call("rdna_op_map", stream, number("map", op), ctypes.byref(x), Scalar(0, 0), Scalar(0, 0),
                                                     ctypes.byref(out)), *operands, stream=stream)  # fmt: skip

    def add(self, a, a_data, b, b_data, c, c_data, stream=None):
        return self._zip("add", ((a, a_data), (b, b_data), (c, c_data)), stream)

    def multiply(self, a, a_data, b, b_data, c, c_data, stream=None):
        return self._zip("mul", ((a, a_data), (b, b_data), (c, c_data)), stream)

    def relu(self, input, input_data, output, output_data, stream=None):
        return self._map("relu", ((input, input_data), (output, output_data)), stream)

    def gelu(self, input, input_data, output, output_data, stream=None):
        """x/2 (1 + erf(x / sqrt 2))"""
        return self._map("gelu_erf", ((input, input_data), (output, output_data)), stream)

    def softmax(self, input, input_data, output, output_data, dim, stream=None):
        return self._run(lambda stream, x, out: call("rdna_op_softmax", stream, ctypes.byref(x), dim, 1.0, ctypes.byref(out)),
                         (input, input_data), (output, output_data), stream=stream)

    def _reduce(self, op, input, input_data, output, output_data, dims, stream):
        """Over |dims|, or over all where that is empty."""
        rank, bits = len(input.shape), 0
        for dim in dims if len(dims) else range(rank):
            if not -rank <= dim < rank:
                raise ValueError(f"dimension {dim} of a tensor of rank {rank}")
            bits |= 1 << dim % rank
        return self._run(lambda stream, x, out: call("rdna_op_reduce", stream, number("reduction", op), ctypes.byref(x), bits, 0.0, ctypes.byref(out)),
                         (input, input_data), (output, output_data), stream=stream)

    def sum(self, input, input_data, output, output_data, dims=(), stream=None):
        return self._reduce("sum", input, input_data, output, output_data, dims, stream)

    def mean(self, input, input_data, output, output_data, dims=(), stream=None):
        return self._reduce("mean", input, input_data, output, output_data, dims, stream)


class KernelManager(_devices.Only):
    """The one of the process: KernelManager.get_instance(). device_id -1 is this thread's current device."""

    def __init__(self):
        self._contexts = {}

    def _context(self, device_id):
        device_id = _devices.check_number(device_id)
        return self._contexts.setdefault(device_id, _devices.DeviceContext(device_id))

    def get_matmul_kernel(self, device_id=-1):
        return MatmulKernel(self._context(device_id))

    def get_conv_kernel(self, device_id=-1):
        return ConvKernel(self._context(device_id))

    def get_custom_kernels(self, device_id=-1):
        return CustomKernels(self._context(device_id))

    def initialize_kernels(self, device_id=-1):
        return self._context(device_id).initialize()

    def are_kernels_initialized(self, device_id=-1):
        return self._context(device_id).is_valid()

    def dispatch_matmul(self, a, a_data, b, b_data, c, c_data, config=None, device_id=-1, stream=None):
        return self.get_matmul_kernel(device_id).matmul(a, a_data, b, b_data, c, c_data, config, stream)

    def dispatch_conv2d(self, input, input_data, filter, filter_data, output, output_data, config=None, device_id=-1, stream=None):
        return self.get_conv_kernel(device_id).conv2d_forward(input, input_data, filter, filter_data, output, output_data, config, stream)


def matmul(a, a_data, b, b_data, c, c_data, config=None, device_id=-1, stream=None):
    """c = alpha a b + beta c. The data are addresses of device memory, or buffers of the host: c's is written."""
    return KernelManager.get_instance().dispatch_matmul(a, a_data, b, b_data, c, c_data, config, device_id, stream)


def conv2d(input, input_data, filter, filter_data, output, output_data, config=None, device_id=-1, stream=None):
    """The convolution of ConvKernel, on addresses of device memory or buffers of the host."""
    return KernelManager.get_instance().dispatch_conv2d(input, input_data, filter, filter_data, output, output_data, config, device_id, stream)

"""The array: what it is on the device, what it is to Python, and the way to the host. Functions stand in the other files, a family
each; _methods.py gives the array those that are also written as operators or behind a dot."""

import builtins
import ctypes

import numpy as np

from . import _core
from ._core import BOOL, ZERO, Scalar, Tensor, complex_of, fail, library, make, scalar, sizes
from ._types import known, promote, with_number

_byref, _Pointer = ctypes.byref, ctypes.c_void_p


class _PlainBase:
    """What an array holds, where bindings/python/arrays_extension.c is not there to hold it."""

    __slots__ = ("pointer", "pairs", "_shape", "_dtype", "_kind", "__weakref__")

    def __init__(self, pointer, pairs=False):
        self.pointer = pointer
        self.pairs = pairs
        self._shape = self._dtype = self._kind = None  # read when they are asked for

    def __del__(self, release=library.rdna_array_release):
        if getattr(self, "pointer", None):
            release(self.pointer)


extension = _core.extension()


class Array(extension.Base if extension else _PlainBase):
    """Values on a device. What assigns to a part of it leaves other arrays as they are, those too that were views of it. Array(pointer, pairs) takes over
    an rdna_array *, whose last dimension has real and imaginary parts where |pairs|."""

    __slots__ = ()

    def _read(self):
        tensor = Tensor.from_address(library.rdna_array_tensor(self.pointer))
        self._shape = tuple(tensor.shape[:tensor.rank - self.pairs])
        self._dtype = (complex_of if self.pairs else _core.dtype_of)[tensor.dtype]

    @property
    def shape(self):
        if self._shape is None:
            self._read()
        return self._shape

    @property
    def dtype(self):
        if self._dtype is None:
            self._read()
        return self._dtype

    ndim = property(lambda self: len(self.shape))
    nbytes = property(lambda self: self.size * self.dtype.itemsize)
    itemsize = property(lambda self: self.dtype.itemsize)
    device = property(lambda self: _core.device_name(stream_of(self)), doc="The name of the device that has the values.")

    @property
    def size(self):
        count = 1
        for n in self.shape:
            count *= n
        return count

    # ---- to the host ----

    def numpy(self):
        """A copy of the values as NumPy's array, after they have been computed; of bfloat16, which NumPy has not, as float32, which holds them."""
        if later:
            report(len(later))
        return self._values()

    def _values(self):
        narrow = self.dtype is _core.BF16
        out = np.empty(self.shape, np.uint16 if narrow else self.dtype)
        status = library.rdna_array_to_host(self.pointer, out.ctypes.data, out.nbytes)
        if status:
            if is_lazy(self):
                _refuse_without_values()
            fail(status)
        return widened(out) if narrow else out

    def __array__(self, dtype=None, copy=None):
        if copy is False:
            raise ValueError("an array of rdna becomes NumPy's only as a copy")
        values = self.numpy()
        return values if dtype is None else values.astype(dtype, copy=False)

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        """NumPy's functions of values, and operators of its arrays, with one of these among the operands."""
        from . import _dispatch

        return _dispatch.ufunc(ufunc, method, inputs, options)

    def __array_function__(self, function, types, arguments, options):
        """NumPy's other functions."""
        from . import _dispatch

        return _dispatch.function(function, arguments, options)

    def __buffer__(self, flags):
        """A copy of the values, read only: memoryview(x), from Python 3.12 on."""
        return memoryview(self.numpy()).toreadonly()

    def item(self):
        """The value of an array that has one."""
        if self.size != 1:
            raise ValueError(f"an array of {self.size} values is no single one")
        return self.numpy().item()

    def tolist(self):
        return self.numpy().tolist()

    def __bool__(self):
        return builtins.bool(self.item())

    def __int__(self):
        return int(self.item())

    def __float__(self):
        return float(self.item())

    def __complex__(self):
        return complex(self.item())

    def __index__(self):
        if self.ndim or self.dtype.kind not in "iu":
            raise TypeError("only an integer array of no dimensions is an index")
        return self.item()

    def __len__(self):
        if not self.shape:
            raise TypeError("an array of no dimensions has no length")
        return self.shape[0]

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __repr__(self):
        text = repr(self.numpy()).replace("array", "Array", 1)
        return text.replace("dtype=float32", "dtype=bfloat16") if self.dtype is _core.BF16 else text

    def __str__(self):
        return str(self.numpy())

    def __format__(self, spec):
        return format(self.item() if spec and not self.shape else str(self), spec)

    def __reduce__(self):
        """Files and copies hold the values, which go to the device that `auto` is where they are read."""
        return (_as_bfloat16 if self.dtype is _core.BF16 else from_numpy), (self.numpy(),)

    __hash__ = None


# ---- between files ----


later, MOST_LATER = [], 64  # answers of plans' runs that nobody has looked at, with the sentences for those that are no


def report(count):
    """Looks at the answers of the first |count| runs; one IndexError for all that are no, with the sentence of the first."""
    failed = []
    for _ in range(count):
        try:
            answers, sentences = later.pop(0)
        except IndexError:  # another thread has looked
            break
        failed += [sentence for answer, sentence in zip(answers, sentences) if not answer._values()]
    if failed:
        raise IndexError(failed[0] + (f"; there are {len(failed) - 1} more" if len(failed) > 1 else ""))


def _refuse_without_values():
    from ._grad import without_values

    if without_values():
        raise ValueError("a value is asked for within compile, or graph, where there is none yet: what a function does there must not depend on values; "
                         "where(condition, a, b) takes the place of a branch")


def from_numpy(values, device=None):
    """An array of NumPy's |values|, in their type."""
    dtype = known(values.dtype)  # ml_dtypes' bfloat16 too
    shape, pairs = values.shape, dtype.kind == "c"
    values = np.ascontiguousarray(values)  # of no dimensions has one then
    if pairs:
        dtype, shape = _core.part_of[dtype], (*shape, 2)
    return Array(make("rdna_array_from_host", _core.stream(device), _core.number_of[dtype], len(shape), sizes(shape), values.ctypes.data), pairs)


def widened(bits):
    """The values of bfloat16 that NumPy's array of uint16 has the bits of, as float32."""
    wide = bits.astype(np.uint32)
    wide <<= np.uint32(16)  # which leaves an array of no dimensions one; by a Python integer NumPy 1 makes it int64
    return wide.view(np.float32)


def _as_bfloat16(values):
    """float32 that bfloat16 holds, as that."""
    return cast(from_numpy(values), _core.BF16)


def need(name, x):
    """|x| as an array, if it is one or NumPy's."""
    if isinstance(x, Array):
        return x
    if isinstance(x, (np.ndarray, np.generic)):
        return from_numpy(np.asarray(x))
    raise TypeError(f"{name} is of arrays, not of {type(x).__name__}; asarray makes one")


def stream_of(x):
    return library.rdna_array_stream(x.pointer)


def tensor_of(x):
    """The address of x's rdna_tensor."""
    return library.rdna_array_tensor(x.pointer)


def make_tensor(shape, dtype):
    """An rdna_tensor without data, of a complex type with a dimension of its parts."""
    if dtype.kind == "c":
        dtype, shape = _core.part_of[dtype], (*shape, 2)
    made = Tensor(None, _core.number_of[dtype], len(shape))
    made.shape[:len(shape)] = shape
    return made


def empty_on(stream, shape, dtype):
    """An array for an operator to write."""
    pairs = dtype.kind == "c"
    if pairs:
        dtype, shape = _core.part_of[dtype], (*shape, 2)
    return Array(make("rdna_array_empty", stream, _core.number_of[dtype], len(shape), sizes(shape)), pairs)


def number(value, dtype):
    """A Python number as one of |dtype|, which is real: for integers without its fraction, as NumPy assigns it. OverflowError where the type
    has none such."""
    if isinstance(value, complex):
        raise TypeError(f"{value} is no value of type {dtype}")
    if dtype.kind == "b":
        return Scalar(value != 0, value != 0)
    if dtype.kind == "f":
        return scalar(value if -2**63 <= value < 2**63 else float(value))
    return scalar(in_range(int(value), dtype))


def full_on(stream, shape, value, dtype):
    if dtype.kind == "c":
        made = empty_on(stream, shape, dtype)
        for part, value_of in ((0, complex(value).real), (1, complex(value).imag)):
            run("fill", made, scalar(value_of), part_of(made, part))
        return made
    return Array(make("rdna_array_full", stream, _core.number_of[dtype], len(shape), sizes(shape), number(value, dtype)))


def is_lazy(x):
    """Whether x has no values yet."""
    return library.rdna_array_is_lazy(x.pointer)


def not_recorded(operator):
    return TypeError(f"{operator} is not recorded: it has no gradient and is no part of a plan; give it an array with values")


def run(operator, x, *arguments):
    """rdna_op_|operator| on x's stream; arrays among the arguments are given as tensors."""
    status = getattr(library, "rdna_op_" + operator)(stream_of(x), *[tensor_of(a) if type(a) is Array else a for a in arguments])
    if status:
        if builtins.any(type(a) is Array and is_lazy(a) for a in arguments):
            raise not_recorded(operator)
        fail(status)


def parts(x):
    """The pairs of a complex array as the last dimension of a real one, over the same memory."""
    return Array(library.rdna_array_retain(x.pointer)) if x.pairs else x


def joined(x):
    """A real array whose last dimension has pairs as a complex one, over the same memory."""
    return Array(library.rdna_array_retain(x.pointer), True)


def bits_of(x):
    """Values as the signed integers that their bits are, a view."""
    return Array(make("rdna_array_bits", x.pointer, _core.number_of[_core.NUMPY[f"i{x.dtype.itemsize * 8}"]]))


def from_bits(bits, dtype):
    """Values of |dtype| out of integers as wide, a view."""
    return Array(make("rdna_array_bits", bits.pointer, _core.number_of[dtype]))


def part_of(x, part):
    """The real (0) or imaginary (1) parts of a complex array, a view."""
    last = len(x.shape)
    one = Array(make("rdna_array_slice", x.pointer, last, part, 1, 1))
    return Array(make("rdna_array_squeeze", one.pointer, last))


def again(x):
    """The same values as another object."""
    return Array(library.rdna_array_retain(x.pointer), x.pairs)


def become(x, other):
    """x is from now on what |other| is, which has its type and shape; other arrays stay as they are, |other| too."""
    other = again(other)
    x.pointer, other.pointer = other.pointer, x.pointer


def cast(x, dtype):
    """x in another type; itself where it has that."""
    if x.dtype == dtype:
        return x
    if x.pairs and dtype.kind == "c":
        return Array(make("rdna_array_cast", x.pointer, _core.number_of[_core.part_of[dtype]]), True)
    if x.pairs:
        raise TypeError(f"{x.dtype} does not become {dtype}: take real or abs of it")
    if dtype.kind != "c":
        return Array(make("rdna_array_cast", x.pointer, _core.number_of[dtype]))
    if is_lazy(x):
        from ._pointwise import from_parts

        x = cast(x, _core.part_of[dtype])
        return from_parts(x, full_on(stream_of(x), x.shape, 0, x.dtype))
    made = full_on(stream_of(x), x.shape, 0, dtype)
    run("copy", x, x, part_of(made, 0))
    return made


def axes_of(name, axes, ndim):
    """|axes|, one or several, counted from the start; None: all."""
    if axes is None:
        return tuple(range(ndim))
    found = []
    for axis in axes if isinstance(axes, (tuple, list)) else (axes,):
        axis = axis.__index__()
        if not -ndim <= axis < ndim:
            raise ValueError(f"{name}: axis {axis} of an array of {ndim} dimensions")
        if axis % ndim in found:
            raise ValueError(f"{name}: axis {axis} is named twice")
        found.append(axis % ndim)
    return tuple(found)


def axis_of(name, axis, ndim):
    return axes_of(name, (axis,), ndim)[0]


def one_type(name, arrays):
    """The arrays, promoted."""
    dtype = arrays[0].dtype
    for x in arrays[1:]:
        dtype = promote(dtype, x.dtype)
    return [cast(x, dtype) for x in arrays]


# ---- value by value ----


def is_operand(value):
    return isinstance(value, (Array, int, float, complex, np.ndarray, np.generic))


def in_range(value, dtype):
    if dtype.kind in "iu" and not np.iinfo(dtype).min <= value <= np.iinfo(dtype).max:
        raise OverflowError(f"{value} is no value of type {dtype}")
    return value


def prepare(a, b):
    """Two operands, one of them an array: NumPy's as ours, and a number's partner in the type where they meet."""
    if isinstance(a, (np.ndarray, np.generic)):
        a = from_numpy(np.asarray(a))
    if isinstance(b, (np.ndarray, np.generic)):
        b = from_numpy(np.asarray(b))
    if isinstance(a, Array):
        if not isinstance(b, Array):
            a = cast(a, with_number(a.dtype, b))
            in_range(b, a.dtype)
    elif isinstance(b, Array):
        b = cast(b, with_number(b.dtype, a))
        in_range(a, b.dtype)
    else:
        raise TypeError(f"one of two operands must be an array, not {type(a).__name__} and {type(b).__name__}")
    return a, b


def operands(a, b):
    """Both as arrays."""
    a, b = prepare(a, b)
    if not isinstance(a, Array):
        a = full_on(stream_of(b), (), a, b.dtype)
    elif not isinstance(b, Array):
        b = full_on(stream_of(a), (), b, a.dtype)
    return a, b


_map, _zip, _zip_number = library.rdna_array_map, library.rdna_array_zip, library.rdna_array_zip_number
_question, _question_number = library.rdna_array_compare, library.rdna_array_compare_number


def unary(x, op, p=ZERO, q=ZERO):
    """rdna_map |op| of real values."""
    out = _Pointer()
    status = _map(x.pointer, op, p, q, _byref(out))
    if status:
        fail(status)
    made, dtype = Array(out.value), x._dtype
    made._shape = x._shape
    if dtype is not None and dtype.kind == "f":
        made._dtype = dtype
    return made


def binary(a, b, op):
    """rdna_zip |op| of two operands that are real."""
    out = _Pointer()
    if type(a) is Array and type(b) is Array:
        status = _zip(a.pointer, b.pointer, op, ZERO, ZERO, _byref(out))
        if not status:
            made, dtype = Array(out.value), a._dtype
            if dtype is not None and dtype is b._dtype and dtype.kind == "f":
                made._dtype = dtype
                if a._shape == b._shape:
                    made._shape = a._shape
            return made
    else:
        a, b = prepare(a, b)
        if not isinstance(b, Array):
            status = _zip_number(a.pointer, scalar(b), False, op, ZERO, ZERO, _byref(out))
        elif not isinstance(a, Array):
            status = _zip_number(b.pointer, scalar(a), True, op, ZERO, ZERO, _byref(out))
        else:
            status = _zip(a.pointer, b.pointer, op, ZERO, ZERO, _byref(out))
    if status:
        fail(status)
    return Array(out.value)


_scalars, _MOST_SCALARS = {}, 256  # those that were used first


def with_float(x, number, first, op):
    """rdna_zip |op| of an array of floats and one of Python's, before it with |first|: the short way of binary."""
    out = _Pointer()
    given = number and _scalars.get(number)  # 0 may be -0
    if not given:
        given = Scalar(number, 0)
        if number and number == number and len(_scalars) < _MOST_SCALARS:
            _scalars[number] = given
    status = _zip_number(x.pointer, given, first, op, ZERO, ZERO, _byref(out))
    if status:
        fail(status)
    made = Array(out.value)
    made._shape, made._dtype = x._shape, x._dtype
    return made


def compare(a, b, op, mirrored):
    """rdna_compare |op| of two operands that are real; |mirrored| is the question with a and b in each other's place."""
    out = _Pointer()
    if not (type(a) is Array and type(b) is Array):
        a, b = prepare(a, b)
    if not isinstance(b, Array):
        status = _question_number(a.pointer, scalar(b), op, _byref(out))
    elif not isinstance(a, Array):
        status = _question_number(b.pointer, scalar(a), mirrored, _byref(out))
    else:
        status = _question(a.pointer, b.pointer, op, _byref(out))
    if status:
        fail(status)
    return Array(out.value)


def ask(x, op):
    """rdna_compare |op| of one real array."""
    return Array(make("rdna_array_compare", x.pointer, None, op))


def choose(condition, a, b):
    """a where |condition|, an array of bool, is true, else b; either may be a number. Real."""
    a, b = operands(a, b)
    return Array(make("rdna_array_where", condition.pointer, a.pointer, b.pointer))


def is_complex(*values):
    """Whether one of the operands is complex."""
    return builtins.any(v.pairs if type(v) is Array else isinstance(v, complex) or getattr(v, "dtype", BOOL).kind == "c" for v in values)


def reduce(x, name, axes, keepdims, parameter=0.0):
    """rdna_reduction |name| of real values over |axes|, counted from the start."""
    dims = 0
    for axis in axes:
        dims |= 1 << axis
    return Array(make("rdna_array_reduce", x.pointer, _core.reductions[name], dims, keepdims, parameter))

"""Operators by their own names, and inputs for them: what test_sweep.py runs on the device and on TensorFlow's CPU."""

import ml_dtypes
import numpy as np
import tensorflow as tf
from tensorflow.python.framework import op_def_registry

R = tf.raw_ops
rng = np.random.default_rng(17)
F32, F64, F16, BF16 = np.float32, np.float64, np.float16, ml_dtypes.bfloat16
FLOATS = [F32, F64, F16, BF16]
WIDE = [F32, F64]
INTEGERS = [np.int32, np.int64, np.int8, np.int16, np.uint8]
MOVED = [F32, F16, np.int64, np.int32, bool, np.complex64]
SHAPES = [(5, 7), (3, 1, 4), (0, 3), ()]
CASES = {}  # name: [(types, function of a type that gives inputs, function of tensors, options of compare)]


def normal(t, *shape):
    return np.asarray(rng.standard_normal(shape)).astype(t)


def inside(t, *shape):
    return np.asarray(rng.uniform(-0.9, 0.9, shape)).astype(t)


def positive(t, *shape):
    return np.asarray(rng.uniform(0.3, 3, shape)).astype(t)


def above_one(t, *shape):
    return np.asarray(1 + positive(t, *shape)).astype(t)  # which older releases of NumPy and ml_dtypes widen


def numbers(t, *shape):
    """Of any type, exact in all of them."""
    if np.dtype(t) == bool:
        return rng.integers(0, 2, shape).astype(bool)
    if np.dtype(t).kind == "c":
        return (rng.integers(-9, 9, shape) + 1j * rng.integers(-9, 9, shape)).astype(t)
    return np.asarray(rng.integers(0 if np.dtype(t).kind == "u" else -9, 9, shape)).astype(t)


def complexes(t, *shape):
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(t)


def call(name, **attributes):
    """The operator with tensors for its arguments, in their order, but for those that |attributes| gives."""
    tf.zeros([1])  # TensorFlow has registered its operators
    free = [a.name for a in op_def_registry.get(name).input_arg if a.name not in attributes]
    return lambda *tensors: getattr(R, name)(**dict(zip(free, tensors)), **attributes)


def case(names, types, make, function=None, gradients=False, scale=64, **attributes):
    for name in names.split():
        CASES.setdefault(name, []).append((types, make, function or call(name, **attributes), {"gradients": gradients, "scale": scale}))


def shaped(domain, *shapes):
    return lambda t: [[domain(t, *shape)] for shape in shapes or SHAPES]


PAIRS = [((3, 5), (3, 5)), ((4, 1, 5), (3, 1)), ((0, 5), (5,)), ((), (2, 3))]


def paired(a, b):
    return lambda t: [[a(t, *one), b(t, *two)] for one, two in PAIRS]


# ---- value by value ----
case("Abs Neg Square Exp Expm1 Sin Cos Tanh Erf Erfc Sigmoid Relu Relu6 LeakyRelu Elu Selu Softplus Softsign Atan Sinh Cosh Asinh "
     "BesselI0e BesselI1e", FLOATS, shaped(normal), gradients=True)  # fmt: skip
case("Asin Acos Atanh Erfinv Tan", FLOATS, shaped(inside), gradients=True, scale=256)
case("Acosh", FLOATS, shaped(above_one), gradients=True)
case("Sqrt Rsqrt Reciprocal Log Log1p Lgamma BesselK0e BesselK1e", FLOATS, shaped(positive), gradients=True, scale=256)
case("Digamma", WIDE, shaped(positive), gradients=True, scale=256)  # of 16 bits it has no gradient
case("Digamma", [F16, BF16], shaped(positive))
case("Ndtri", WIDE, lambda t: [[np.abs(inside(t, 5, 7)) + t(0.01)]], gradients=True, scale=256)
case("BesselI0 BesselI1 BesselJ0 BesselJ1", WIDE, shaped(normal), gradients=True)
case("BesselY0 BesselY1 BesselK0 BesselK1", WIDE, shaped(positive), gradients=True, scale=256)
case("Ceil Floor Rint Round Sign", FLOATS, shaped(lambda t, *s: (normal(t, *s) * 4).astype(t)))
case("IsNan IsInf IsFinite", FLOATS, lambda t: [[np.array([0, -1, np.inf, -np.inf, np.nan], t)]])
case("ZerosLike OnesLike", [*FLOATS, *INTEGERS, bool, np.complex64], shaped(numbers))
case("Abs Neg", INTEGERS[:-1], shaped(numbers))
case("Invert PopulationCount", INTEGERS, shaped(numbers))
case("AddV2 Add Sub Mul Maximum Minimum SquaredDifference", FLOATS, paired(normal, normal), gradients=True)
case("RealDiv Div Atan2 DivNoNan MulNoNan Xdivy", FLOATS, paired(normal, positive), gradients=True, scale=128)
case("Pow Xlogy Xlog1py", FLOATS, paired(positive, positive), gradients=True, scale=256)
case("FloorDiv FloorMod Mod TruncateMod", FLOATS, paired(numbers, above_one), scale=128)
case("AddV2 Sub Mul Maximum Minimum", INTEGERS, paired(numbers, numbers))
case("FloorDiv FloorMod TruncateDiv Div", INTEGERS[1:], paired(numbers, lambda t, *s: rng.integers(1, 9, s).astype(t)))
case("BitwiseAnd BitwiseOr BitwiseXor", INTEGERS, paired(numbers, numbers))
case("LeftShift RightShift", INTEGERS, paired(numbers, lambda t, *s: rng.integers(0, 7, s).astype(t)))
case("Less LessEqual Greater GreaterEqual Equal NotEqual", [*FLOATS, *INTEGERS], paired(numbers, numbers))
case("Igamma Igammac", WIDE, paired(positive, positive), gradients=True, scale=512)
def outside(*more):
    """All pairs of values at the ends of domains, and outside."""
    def make(t):
        a, b = np.meshgrid(np.array([0, 0.5, 1, 2, 3, 10, -1, -2, -0.5, np.nan, np.inf, -np.inf, *more], t), [0, 0.5, 1, 2, 3, -1, -2, -0.5, np.nan, np.inf, -np.inf])
        return [[a.ravel(), b.ravel().astype(t)]]
    return make


case("Igamma Igammac Zeta Polygamma FloorDiv", WIDE, outside(), scale=512)
case("FloorDiv", [F16, BF16], outside(-7.5))
case("Digamma", WIDE, lambda t: [[np.array([0.0, -0.0, 1, np.nan], t)]])
case("IgammaGradA RandomGammaGrad", WIDE, paired(positive, positive), scale=2**12)
case("Zeta", WIDE, paired(above_one, positive), scale=512)
case("Polygamma", WIDE, lambda t: [[rng.integers(0, 5, (4, 6)).astype(t), positive(t, 4, 6)], [np.array([2.5, -1], t), positive(t, 2)]],
     scale=512)  # fmt: skip
case("ApproximateEqual", WIDE, lambda t: [[np.array([1, 2, 3], t), np.array([1.05, 2.5, 3], t)]], tolerance=0.1)
case("Cross", [*FLOATS, *INTEGERS], lambda t: [[numbers(t, 4, 5, 3), numbers(t, 4, 5, 3)], [numbers(t, 3), numbers(t, 3)]])
case("Cross", WIDE, lambda t: [[normal(t, 2, 3), normal(t, 2, 3)]], gradients=True)

# ---- complex numbers ----
COMPLEX = [np.complex64, np.complex128]
REAL_OF = {np.complex64: F32, np.complex128: F64}


def real_part(name):
    """Of tensors for real and imaginary parts, so that there are gradients to compare."""
    def function(*parts):
        result = call(name)(*[tf.complex(a, b) for a, b in zip(parts[::2], parts[1::2])])
        return [tf.math.real(result), tf.math.imag(result)]

    return function


for name in "Neg Square Exp Sin Cos Tanh Conj Sinh Cosh Sqrt Log Reciprocal Rsqrt Sign Tan Inv".split():
    case(name, WIDE, lambda t: [[positive(t, 3, 4), normal(t, 3, 4)], [normal(t, 0, 2), normal(t, 0, 2)]], real_part(name), scale=512,
         gradients=name not in ("Sign", "Inv"))  # fmt: skip
for name in "AddV2 Add Sub Mul RealDiv Div Pow".split():
    case(name, WIDE, lambda t: [[positive(t, 3, 4), normal(t, 3, 4), positive(t, 2, 1, 4), normal(t, 2, 1, 4)]], real_part(name),
         scale=512, gradients=name not in ("Pow", "Div"))  # fmt: skip
case("Complex", WIDE, lambda t: [[normal(t, 3, 1), normal(t, 4)]], lambda a, b: tf.complex(a, b))
case("Real", WIDE, paired(normal, normal), lambda a, b: tf.math.real(tf.complex(a, b)), gradients=True)
case("Imag", WIDE, paired(normal, normal), lambda a, b: tf.math.imag(tf.complex(a, b)), gradients=True)
case("ComplexAbs", WIDE, paired(normal, normal), lambda a, b: tf.abs(tf.complex(a, b)), gradients=True)
case("Angle", WIDE, paired(normal, positive), lambda a, b: tf.math.angle(tf.complex(a, b)), gradients=True)
case("Equal NotEqual", COMPLEX, lambda t: [[numbers(t, 50), numbers(t, 50)], [numbers(t, 3, 4), numbers(t, 4)]])
case("Sum Mean", COMPLEX, lambda t: [[complexes(t, 3, 4, 5)]], axis=[0, 2])
case("AddN", COMPLEX, lambda t: [[complexes(t, 3, 4), complexes(t, 3, 4)]], lambda a, b: R.AddN(inputs=[a, b]))
case("ZerosLike OnesLike", COMPLEX, shaped(complexes))
case("Cast", COMPLEX, lambda t: [[complexes(t, 3, 4)]], lambda x: [tf.cast(x, tf.complex64), tf.cast(x, tf.complex128), tf.cast(x, tf.float32)])
case("Cast", [F32, F16, np.int64], lambda t: [[numbers(t, 3, 4)]], lambda x: [tf.cast(x, tf.complex64), tf.cast(x, tf.complex128)])
UNSIGNED = [np.uint8, np.uint16, np.uint32, np.uint64]


def ends(t, *_):
    return np.array([0, 1, 77, 120, 5 if np.dtype(t).kind == "f" else np.iinfo(t).max], t)


case("Cast", [*UNSIGNED, F32, np.int64, np.int32], shaped(ends, ()),
     lambda x: [tf.cast(x, to) for to in (*UNSIGNED, F32, F64, np.int64, np.int32, np.int8) if to != x.dtype])  # fmt: skip
case("MatMul", COMPLEX, lambda t: [[complexes(t, 3, 4), complexes(t, 5, 4)]], transpose_b=True)
case("MatMul", COMPLEX, lambda t: [[complexes(t, 4, 3), complexes(t, 4, 5)]], transpose_a=True)
case("BatchMatMulV2 BatchMatMul", COMPLEX, lambda t: [[complexes(t, 2, 4, 3), complexes(t, 2, 5, 4)]], adj_x=True, adj_y=True)

# ---- Fourier transforms ----
PARTS = lambda t, *s: [normal(t, *s), normal(t, *s)]  # noqa: E731


def transformed(name, **attributes):
    def function(real, imag):
        result = call(name, **attributes)(tf.complex(real, imag))
        return [tf.math.real(result), tf.math.imag(result)] if result.dtype.is_complex else result

    return function


for name, shapes in {"FFT": [(3, 8), (2, 7)], "FFT2D": [(2, 4, 6), (5, 7)], "FFT3D": [(3, 4, 5), (2, 2, 3, 6)]}.items():
    for inverse in ("", "I"):
        case(inverse + name, WIDE, lambda t, s=shapes: [PARTS(t, *x) for x in s], transformed(inverse + name), gradients=True, scale=256)
    dims = 3 if name == "FFT3D" else len(shapes[0]) - 1
    for lengths in ([5, 4, 6], [5, 4, 5]):
        lengths, full = lengths[-dims:], [*lengths[-dims:-1], lengths[-1] // 2 + 1]

        def forward(x, name=name, lengths=lengths):
            result = getattr(R, "R" + name)(input=x, fft_length=lengths, Tcomplex=tf.complex128 if x.dtype == tf.float64 else tf.complex64)
            return [tf.math.real(result), tf.math.imag(result)]

        def backward(real, imag, name=name, lengths=lengths):
            return getattr(R, "IR" + name)(input=tf.complex(real, imag), fft_length=lengths, Treal=real.dtype)

        case("R" + name, [F32], lambda t, s=lengths: [[normal(t, 2, *s)], [normal(t, *s)]], forward, scale=256, gradients=name != "FFT3D")
        case("R" + name, [F64], lambda t, s=lengths: [[normal(t, 2, *s)], [normal(t, *s)]], forward, scale=256)
        case("R" + name, WIDE, lambda t, s=lengths: [[normal(t, 2, *[n + 2 for n in s])]], forward, scale=256)
        case("IR" + name, WIDE, lambda t, s=full: [PARTS(t, 2, *s), PARTS(t, *s)], backward, scale=256, gradients=name != "FFT3D")
        case("IR" + name, WIDE, lambda t, s=full: [PARTS(t, 2, *[n + 2 for n in s])], backward, scale=256)

# ---- linear algebra ----
def definite(t, *shape):
    x = rng.standard_normal(shape)
    return (x @ np.swapaxes(x, -1, -2) + shape[-1] * np.eye(shape[-1])).astype(t)


def regular(t, *shape):
    return (rng.standard_normal(shape) + 3 * np.eye(shape[-1])).astype(t)


def triangular(t, *shape):
    return (np.tril(rng.standard_normal(shape)) + 3 * np.eye(shape[-1])).astype(t)


SQUARES = [(4, 4), (2, 3, 7, 7), (1, 1), (2, 0, 0), (1, 45, 45)]
case("Cholesky", WIDE, shaped(definite, *SQUARES), gradients=True, scale=2**12)
case("MatrixInverse", WIDE, shaped(regular, *SQUARES), gradients=True, scale=2**12)
case("MatrixInverse", WIDE, shaped(regular, (3, 5, 5)), adjoint=True, scale=2**12)
case("MatrixDeterminant", WIDE, shaped(regular, *SQUARES[:-1]), gradients=True, scale=2**12)
case("MatrixDeterminant", WIDE, shaped(normal, (4, 3, 3), (5, 2, 2)), scale=2**10)
case("LogMatrixDeterminant", WIDE, shaped(regular, *SQUARES), gradients=True, scale=2**12)
case("LogMatrixDeterminant", WIDE, shaped(normal, (9, 3, 3), (5, 2, 2)), scale=2**12)
for adjoint in (False, True):
    case("MatrixSolve", WIDE, lambda t: [[regular(t, *s), normal(t, *s[:-1], 3)] for s in SQUARES], adjoint=adjoint, gradients=True, scale=2**12)
    for lower in (False, True):
        case("MatrixTriangularSolve", WIDE, lambda t, lower=lower: [
            [triangular(t, *s) if lower else np.swapaxes(triangular(t, *s), -1, -2), normal(t, *s[:-1], 3)] for s in SQUARES[:3]],
             adjoint=adjoint, lower=lower, gradients=True, scale=2**10)  # fmt: skip
case("MatrixTriangularSolve", WIDE, lambda t: [[triangular(t, 5, 5), normal(t, 2, 3, 5, 2)]], scale=2**10)
case("Lu", WIDE, shaped(normal, (4, 4), (3, 6, 6), (2, 0, 0), (40, 40)), scale=2**12)
RECTANGLES = [(5, 3), (3, 5), (2, 4, 4), (2, 0, 3), (40, 35)]


def qr(full):
    def function(x):
        q, r = R.Qr(input=x, full_matrices=full)
        return [q @ r, tf.matmul(q, q, transpose_a=True), tf.abs(r)]

    return function


def svd(full):
    def function(x):
        s, u, v = R.Svd(input=x, compute_uv=True, full_matrices=full)
        k = s.shape[-1]
        back = tf.matmul(u[..., :k] * s[..., tf.newaxis, :], v[..., :k], transpose_b=True)
        return [s, back, tf.matmul(u, u, transpose_a=True), tf.matmul(v, v, transpose_a=True),
                R.Svd(input=x, compute_uv=False, full_matrices=full)[0]]  # fmt: skip

    return function


for full in (False, True):
    case("Qr", WIDE, shaped(normal, *RECTANGLES), qr(full), scale=2**10)
    case("Svd", WIDE, shaped(normal, *RECTANGLES), svd(full), scale=2**11)


def symmetric_eigen(x):
    e, v = R.SelfAdjointEigV2(input=x, compute_v=True)
    return [e, tf.matmul(v * e[..., tf.newaxis, :], v, transpose_b=True), tf.matmul(v, v, transpose_a=True),
            R.SelfAdjointEigV2(input=x, compute_v=False)[0]]  # fmt: skip


case("SelfAdjointEigV2", WIDE, shaped(normal, (4, 4), (2, 3, 7, 7), (1, 1), (0, 3, 3), (40, 40)), symmetric_eigen, scale=2**11)
case("BatchMatMulV3", FLOATS, lambda t: [[normal(t, 2, 3, 4), normal(t, 1, 4, 5)]], lambda a, b: R.BatchMatMulV3(x=a, y=b, Tout=a.dtype))

# ---- diagonals ----
case("MatrixDiag", MOVED, shaped(numbers, (4,), (2, 3, 5), (0,), (2, 0)))
case("MatrixDiagPart", MOVED, shaped(numbers, (4, 4), (2, 3, 5), (2, 5, 3), (0, 3, 3)))
case("MatrixSetDiag", MOVED, lambda t: [[numbers(t, 2, 3, 5), numbers(t, 2, 3)], [numbers(t, 4, 2), numbers(t, 2)]])
case("MatrixBandPart", FLOATS, shaped(numbers, (2, 4, 5)), num_lower=1, num_upper=2)
case("Diag", [*FLOATS, np.int32, np.int64, np.complex64], shaped(numbers, (4,), (2, 3), (0, 2)))
case("DiagPart", [*FLOATS, np.int32, np.int64, np.complex64], shaped(numbers, (4, 4), (2, 3, 2, 3), (0, 0)))
for k in (0, 2, -1, [-1, 2], [-3, -1], [1, 3], [0, 0]):
    for align in ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT", None):
        version, extra = ("V2", {}) if align is None else ("V3", {"align": align})
        case("MatrixDiagPart" + version, [F32], shaped(numbers, (2, 4, 5), (5, 4)), k=k, padding_value=np.float32(7.5), **extra)

        def banded(x, k=k, version=version, extra=extra):
            band = getattr(R, "MatrixDiagPart" + version)(input=x, k=k, padding_value=tf.zeros([], x.dtype), **extra)
            return [getattr(R, "MatrixDiag" + version)(diagonal=band, k=k, num_rows=4, num_cols=5, padding_value=tf.ones([], x.dtype), **extra),
                    getattr(R, "MatrixSetDiag" + version)(input=tf.zeros_like(x), diagonal=band, k=k, **extra)]  # fmt: skip

        case(f"MatrixDiag{version} MatrixSetDiag{version}", [F32, BF16], shaped(numbers, (2, 4, 5)), banded)
case("MatrixDiagV2 MatrixDiagV3", MOVED, lambda t: [[numbers(t, 2, 3)]],
     lambda x: tf.linalg.diag(x, k=1, padding_value=tf.cast(1, x.dtype)))  # fmt: skip
case("MatrixDiagPartV2 MatrixDiagPartV3", MOVED, lambda t: [[numbers(t, 2, 3, 4)]], lambda x: tf.linalg.diag_part(x, k=(-1, 1)))
case("MatrixDiagV3", WIDE, shaped(normal, (2, 3)), lambda x: tf.linalg.diag(x, k=-1), gradients=True)
case("MatrixSetDiagV3", WIDE, lambda t: [[normal(t, 2, 4, 5), normal(t, 2, 3, 4)]], lambda x, d: tf.linalg.set_diag(x, d, k=(-1, 1)), gradients=True)

# ---- space ----
case("SpaceToBatch", [*FLOATS, np.int64], shaped(numbers, (2, 4, 6, 3)), paddings=[[0, 0], [2, 0]], block_size=2)
case("BatchToSpace", [*FLOATS, np.int64], shaped(numbers, (8, 2, 4, 3)), crops=[[0, 1], [2, 0]], block_size=2)
case("SpaceToBatchND", [*FLOATS, np.int32], shaped(numbers, (2, 5, 6, 3), (0, 5, 6)), block_shape=[3, 2], paddings=[[1, 0], [0, 2]])
case("SpaceToBatchND", WIDE, shaped(normal, (2, 4, 6, 3, 2)), block_shape=[2, 3, 1], paddings=[[1, 1], [0, 0], [2, 0]], gradients=True)
case("BatchToSpaceND", [*FLOATS, np.int32], shaped(numbers, (12, 2, 4, 3), (6, 1, 3)), block_shape=[3, 2], crops=[[1, 0], [0, 2]])
case("BatchToSpaceND", WIDE, shaped(normal, (4, 3, 2)), block_shape=[2], crops=[[1, 2]], gradients=True)
case("SpaceToDepth", [F32, F16], shaped(normal, (2, 4, 6, 3)), block_size=2, gradients=True)
case("DepthToSpace", [F32, F16], shaped(normal, (2, 2, 3, 12)), block_size=2, gradients=True)
case("ExtractImagePatches", FLOATS, shaped(numbers, (2, 7, 6, 3), (1, 3, 3, 1)), ksizes=[1, 3, 2, 1], strides=[1, 2, 1, 1], rates=[1, 1, 2, 1],
     padding="VALID")  # fmt: skip
case("ExtractImagePatches", WIDE, shaped(normal, (2, 7, 6, 3)), ksizes=[1, 3, 2, 1], strides=[1, 2, 3, 1], rates=[1, 2, 1, 1], padding="SAME",
     gradients=True)  # fmt: skip
case("ExtractVolumePatches", FLOATS, shaped(numbers, (1, 4, 5, 6, 2)), ksizes=[1, 2, 3, 2, 1], strides=[1, 2, 1, 2, 1], padding="SAME")
case("ExtractVolumePatches", WIDE, shaped(numbers, (2, 4, 5, 6, 2)), ksizes=[1, 2, 3, 2, 1], strides=[1, 1, 2, 2, 1], padding="VALID")
case("Reverse", [*WIDE, np.int64, np.uint8, bool], shaped(numbers, (3, 4, 5)), dims=[True, False, True])
case("ReverseSequence", MOVED, lambda t: [[numbers(t, 3, 5, 4), np.array([5, 0, 2], np.int64)]], seq_dim=1, batch_dim=0)
case("ReverseSequence", WIDE, lambda t: [[normal(t, 5, 2, 3), np.array([5, 1, 3], np.int32)]], seq_dim=0, batch_dim=2, gradients=True)
for mode, pads in (("REFLECT", [[1, 2], [0, 3], [0, 0]]), ("SYMMETRIC", [[3, 2], [0, 4], [1, 0]])):
    case("MirrorPad", FLOATS, shaped(normal, (3, 4, 2)), paddings=pads, mode=mode, gradients=True)
    case("MirrorPadGrad", FLOATS, shaped(normal, (3 + sum(pads[0]), 4 + sum(pads[1]), 2 + sum(pads[2]))), paddings=pads, mode=mode)
case("Snapshot", [*FLOATS, *INTEGERS, bool], shaped(numbers))
case("DeepCopy", [F32, F64, F16, np.int64], shaped(numbers))
case("Empty", [F32], lambda t: [[]], lambda: R.Empty(shape=[2, 3], dtype=tf.float32, init=True))
case("DynamicStitch", [F32, F16, np.int32, np.int64, np.complex64], lambda t: [[numbers(t, 2, 3), numbers(t, 2, 2, 3), numbers(t, 3)]],
     lambda a, b, c: R.DynamicStitch(indices=[[4, 0], [[1, 2], [3, 0]], 5], data=[a, b, c]))  # fmt: skip
case("DynamicStitch", WIDE, lambda t: [[normal(t, 2, 3), normal(t, 3, 3)]], lambda a, b: R.DynamicStitch(indices=[[4, 0], [1, 2, 3]], data=[a, b]),
     gradients=True)  # fmt: skip
case("DynamicPartition", [F32, BF16, np.int64], lambda t: [[numbers(t, 5, 3), np.array([2, 0, 2, 1, 0], np.int32)],
                                                       [numbers(t, 0, 3), np.zeros(0, np.int32)], [numbers(t, 2), np.array([3, 3], np.int32)]],
     num_partitions=4)  # fmt: skip
case("DynamicPartition", WIDE, lambda t: [[normal(t, 5, 3)]], lambda x: R.DynamicPartition(data=x, partitions=[2, 0, 2, 1, 0], num_partitions=3),
     gradients=True)  # fmt: skip

# ---- places ----
PLACES = np.array([[[4, 0], [1, 2]], [[0, 0], [4, 0]]])
for t_index in (np.int32, np.int64):
    case("GatherNd", [*FLOATS, *INTEGERS], lambda t, i=t_index: [[numbers(t, 5, 3, 2), PLACES.astype(i)]])
    case("ScatterNd", [*FLOATS, np.int64], lambda t, i=t_index: [[PLACES.astype(i), numbers(t, 2, 2, 4), np.array([5, 3, 4], i)]])
    case("TensorScatterAdd TensorScatterSub", [*FLOATS, np.int64], lambda t, i=t_index: [[numbers(t, 5, 3, 4), PLACES.astype(i), numbers(t, 2, 2, 4)]])
    case("TensorScatterMin TensorScatterMax", [*FLOATS, np.int64, np.uint8], lambda t, i=t_index: [
        [numbers(t, 5, 3, 4), PLACES.astype(i), numbers(t, 2, 2, 4)], [numbers(t, 5), np.array([[2], [2]], i), numbers(t, 2)]])  # fmt: skip
    case("TensorScatterUpdate", [*FLOATS, np.int64, bool], lambda t, i=t_index: [[numbers(t, 5, 3), np.array([[4], [0]], i), numbers(t, 2, 3)]])
case("TensorScatterMin TensorScatterMax", WIDE, lambda t: [[normal(t, 5, 3), np.array([[4], [0]]), normal(t, 2, 3)]], gradients=True)
case("GatherNd", WIDE, lambda t: [[normal(t, 5, 3), np.array([[4], [0], [4]])]], gradients=True)

# ---- segments ----
SEGMENTS = np.array([0, 0, 2, 2, 2, 5])
for name in "Sum Mean Prod Min Max".split():
    for t_index in (np.int32, np.int64):
        case("Segment" + name, FLOATS, lambda t, i=t_index: [[numbers(t, 6, 3), SEGMENTS.astype(i)], [numbers(t, 0, 3), np.zeros(0, i)],
                                                             [numbers(t, 6), SEGMENTS.astype(i)]])  # fmt: skip
        if name != "Mean":
            case("UnsortedSegment" + name, [*FLOATS, np.int32, np.int64], lambda t, i=t_index: [
                [numbers(t, 6, 3), np.array([3, -1, 0, 3, 3, 0], i)], [numbers(t, 2, 3, 2), np.array([[1, 0, 1], [4, 4, -1]], i)]],
                 num_segments=5)  # fmt: skip
    case("Segment" + name, WIDE, lambda t: [[normal(t, 6, 3), SEGMENTS]], gradients=name != "Prod")
ROWS = np.array([3, 1, 3, 0, 2, 2])
for name in "Sum Mean SqrtN".split():
    case("SparseSegment" + name, FLOATS, lambda t: [[numbers(t, 4, 3), ROWS.astype(np.int32), SEGMENTS.astype(np.int32)]])
    case("SparseSegment" + name, WIDE, lambda t: [[normal(t, 4, 3), ROWS, SEGMENTS.astype(np.int32)]], gradients=True)
    case(f"SparseSegment{name}WithNumSegments", FLOATS, lambda t: [[numbers(t, 4, 3), ROWS.astype(np.int32), SEGMENTS.astype(np.int32)]], num_segments=8)
    case(f"SparseSegment{name}Grad", FLOATS, lambda t: [[numbers(t, 6, 3), ROWS.astype(np.int32), SEGMENTS.astype(np.int32)]], output_dim0=5)

# ---- order and counts ----
def different(t, *shape):
    return (rng.permutation(int(np.prod(shape))) % 120).reshape(shape).astype(t)


case("TopKV2", [*FLOATS, *INTEGERS], lambda t: [[different(t, 3, 9)], [np.ones((2, 5), t)], [different(t, 2, 3, 4)]], k=3)
case("TopKV2", WIDE, lambda t: [[normal(t, 3, 50)]], k=7, gradients=True)
case("ApproxTopK", [F32, F16, BF16], lambda t: [[different(t, 3, 9)]], k=4, reduction_dimension=-1, is_max_k=True)
case("InTopKV2", [np.int32, np.int64], lambda t: [[normal(F32, 40, 6), rng.integers(0, 6, 40).astype(t)],
                                                  [np.array([[1, np.nan], [1, 2], [3, np.inf], [2, 1]], F32), np.array([0, 5, 0, -1], t)]], k=2)  # fmt: skip
case("LowerBound UpperBound", [*FLOATS, *INTEGERS], lambda t: [[np.sort(numbers(t, 3, 8), 1), numbers(t, 3, 20)], [np.zeros((2, 0), t), numbers(t, 2, 3)]])
case("Bucketize", [F32, F64, np.int32, np.int64], shaped(numbers, (4, 50), (0,)), boundaries=[-3.0, 0.0, 2.5, 4.0])
case("Bincount", [F32, np.int32], lambda t: [[np.array([3, 0, 3, 7, 1], np.int32), numbers(t, 5)], [np.array([3, 0, 3, 7, 1], np.int32), np.zeros(0, t)]], 
     lambda a, w: R.Bincount(arr=a, size=5, weights=w))  # fmt: skip
for binary in (False, True):
    case("DenseBincount", [F32, F64, np.int32, np.int64], lambda t, binary=binary: [
        [rng.integers(0, 9, shape), w] for shape in ((20,), (3, 8)) for w in (np.zeros(0, t), *([] if binary else [numbers(t, *shape)]))],
         lambda a, w, binary=binary: R.DenseBincount(input=a, size=6, weights=w, binary_output=binary))  # fmt: skip
case("HistogramFixedWidth", WIDE, lambda t: [[normal(t, 300), np.array([-1.5, 2], t)], [np.zeros(0, t), np.array([0, 1], t)]], nbins=7)
case("Where", [F32, F64, *INTEGERS, bool], shaped(numbers, (4, 5, 3), (0, 2), (7,)), lambda x: R.Where(condition=x))
for name, more in (("NonMaxSuppressionV2", {}), ("NonMaxSuppressionV3", {"score_threshold": 0.2}), ("NonMaxSuppressionV4", {"score_threshold": 0.2}),
                   ("NonMaxSuppressionV4", {"score_threshold": 0.2, "pad_to_max_output_size": True})):  # fmt: skip
    for most in (5, 100):
        case(name, [F32], lambda t: [[positive(t, 60, 4), rng.permutation(60).astype(t) / 60], [np.zeros((0, 4), t), np.zeros(0, t)]],
             max_output_size=most, iou_threshold=0.4, **more)  # fmt: skip
for exclusive in (False, True):
    for reverse in (False, True):
        case("Cumsum", [*FLOATS, np.int32, np.int64], shaped(numbers, (3, 5, 2), (0, 4), (7,)), axis=0, exclusive=exclusive, reverse=reverse)
        case("Cumprod", [*FLOATS, np.int32, np.int64], shaped(lambda t, *s: rng.integers(1, 3, s).astype(t), (3, 5, 2), (0, 4)), axis=-1,
             exclusive=exclusive, reverse=reverse)  # fmt: skip
        case("CumulativeLogsumexp", [F32, F16], shaped(normal, (3, 5, 2)), axis=1, exclusive=exclusive, reverse=reverse, gradients=True)

# ---- norms ----
for training in (True, False):
    for name in ("FusedBatchNorm", "FusedBatchNormV2"):
        case(name, [F32], lambda t, training=training: [[normal(t, 3, 4, 5, 6), normal(t, 6), normal(t, 6),
                                                         *([np.zeros(0, t)] * 2 if training else [normal(t, 6), positive(t, 6)])]],
             lambda x, s, o, m, v, name=name, training=training: getattr(R, name)(x=x, scale=s, offset=o, mean=m, variance=v,
                                                                               is_training=training)[:3], scale=512)  # fmt: skip


def norm_gradient(name):
    def function(dy, x, scale):
        forward = getattr(R, name)(x=x, scale=scale, offset=scale, mean=scale[:0], variance=scale[:0], is_training=True)
        return getattr(R, name.replace("Norm", "NormGrad"))(y_backprop=dy, x=x, scale=scale, reserve_space_1=forward[3],
                                                           reserve_space_2=forward[4], is_training=True)[:3]  # fmt: skip

    return function


for name in ("FusedBatchNorm", "FusedBatchNormV2"):
    case(name.replace("Norm", "NormGrad"), [F32], lambda t: [[normal(t, 3, 4, 5, 6), normal(t, 3, 4, 5, 6), normal(t, 6)]], norm_gradient(name), scale=512)

# ---- images of other sizes, colors ----
IMAGES = [((2, 5, 4, 3), (9, 7)), ((1, 6, 8, 2), (3, 4)), ((2, 3, 3, 1), (1, 1)), ((1, 1, 1, 2), (4, 3)), ((0, 3, 3, 2), (2, 2))]
for corners, half in ((False, False), (True, False), (False, True)):
    for shape, size in IMAGES:
        options = {"align_corners": corners, "half_pixel_centers": half}
        case("ResizeBilinear", [F32, F16, BF16], shaped(normal, shape), size=size, gradients=True, scale=128, **options)
        case("ResizeBilinear", [F64], shaped(normal, shape), size=size, scale=128, **options)
        case("ResizeNearestNeighbor", WIDE, shaped(normal, shape), size=size, gradients=True, **options)
        case("ResizeNearestNeighborGrad", FLOATS, shaped(numbers, (shape[0], *size, shape[3])), size=shape[1:3], **options)
        for kinds, scale in (([F32, F16, BF16], 128), ([F64], 2**31)):  # f64 in f32 too, which the gradients come in
            case("ResizeBilinearGrad", kinds, lambda t, a=shape, b=size: [[normal(F32, a[0], *b, a[3]), normal(t, *a)]], scale=scale, **options)
    case("ResizeBilinear ResizeNearestNeighbor", [np.uint8, np.int32], shaped(numbers, (1, 5, 4, 2)), size=(7, 9), scale=128,
         align_corners=corners, half_pixel_centers=half)  # fmt: skip


def unit(t, *shape):
    return np.asarray(rng.uniform(0, 1, shape)).astype(t)


def unit_and_greys(t, *shape):
    x = unit(t, *shape)
    x.reshape(-1, 3)[::3] = x.reshape(-1, 3)[::3, :1]
    x.reshape(-1, 3)[:1] = 0
    return x


case("RGBToHSV", WIDE, lambda t: [[unit_and_greys(t, 4, 5, 3)], [unit(t, 3)]])
case("HSVToRGB", FLOATS, lambda t: [[unit(t, 4, 5, 3)], [unit(t, 3)]])
case("AdjustHue", [F32], lambda t: [[unit(t, 2, 4, 5, 3), np.array(d, F32)] for d in (0.3, -0.8)], scale=256)
case("AdjustSaturation", [F32], lambda t: [[unit(t, 2, 4, 5, 3), np.array(d, F32)] for d in (0.3, 1.8)], scale=256)
case("AdjustContrastv2", [F32, F16], lambda t: [[unit(t, 2, 4, 5, 3), np.array(d, F32)] for d in (0.3, 1.8)], scale=128)

# ---- pools and norms of images ----
for padding in ("SAME", "VALID"):
    window = {"ksize": [1, 3, 2, 1], "strides": [1, 2, 2, 1], "padding": padding}
    pooled = (2, 4, 3, 3) if padding == "SAME" else (2, 3, 3, 3)
    case("MaxPoolV2", FLOATS, shaped(normal, (2, 7, 6, 3)), gradients=True, **window)
    for batch in (False, True):
        case("MaxPoolWithArgmax", FLOATS, shaped(normal, (2, 7, 6, 3)), include_batch_in_index=batch, **window)
        case("MaxPoolWithArgmax", WIDE, shaped(normal, (2, 7, 6, 3)), lambda x, w=window, b=batch: R.MaxPoolWithArgmax(
            input=x, include_batch_in_index=b, **w)[0], gradients=True)  # fmt: skip

        def back(x, d, w=window, b=batch):
            where = R.MaxPoolWithArgmax(input=x, include_batch_in_index=b, **w)[1]
            return R.MaxPoolGradWithArgmax(input=x, grad=d, argmax=where, include_batch_in_index=b, **w)

        case("MaxPoolGradWithArgmax", WIDE, lambda t, s=pooled: [[normal(t, 2, 7, 6, 3), normal(t, *s)]], back)
    case("MaxPoolGradV2", FLOATS, lambda t, s=pooled: [[normal(t, 2, 7, 6, 3), normal(t, *s)]], lambda x, d, w=window: R.MaxPoolGradV2(
        orig_input=x, orig_output=R.MaxPoolV2(input=x, **w), grad=d, **w))  # fmt: skip
    for name in ("MaxPoolGradGrad", "MaxPoolGradGradV2"):
        case(name, FLOATS, lambda t: [[normal(t, 2, 7, 6, 3), normal(t, 2, 7, 6, 3)]], lambda x, d, w=window, n=name: getattr(R, n)(
            orig_input=x, orig_output=R.MaxPoolV2(input=x, **w), grad=d, **w))  # fmt: skip
    cube = {"ksize": [1, 2, 2, 3, 1], "strides": [1, 2, 1, 2, 1], "padding": padding}
    case("MaxPool3DGradGrad", [F32], lambda t: [[normal(t, 1, 4, 5, 6, 2), normal(t, 1, 4, 5, 6, 2)]], lambda x, d, w=cube: R.MaxPool3DGradGrad(
        orig_input=x, orig_output=R.MaxPool3D(input=x, **w), grad=d, **w))  # fmt: skip
case("LRN", [F32, F16], shaped(normal, (2, 3, 4, 9), (0, 2, 2, 3)), depth_radius=2, bias=1.2, alpha=0.3, beta=0.6, gradients=True, scale=128)
case("LRNGrad", [F32], lambda t: [[normal(t, 2, 3, 4, 9) for _ in range(3)]], bias=1.0, alpha=0.2, beta=0.75, scale=128)

# ---- quantization in training ----
for narrow in (False, True):
    for low, high in ((-1.3, 2.1), (0.4, 3.0), (-3.0, -0.2)):
        ends = {"min": np.float32(low), "max": np.float32(high), "narrow_range": narrow, "num_bits": 6}
        case("FakeQuantWithMinMaxArgs", [F32], lambda t: [[normal(t, 4, 5) * 3]], gradients=True, min=low, max=high, narrow_range=narrow,
             num_bits=6)  # fmt: skip
        case("FakeQuantWithMinMaxVars", [F32], lambda t: [[normal(t, 4, 5) * 3]], **ends)
        channels = {"min": np.array([low, low - 1, -0.5], F32), "max": np.array([high, high + 1, 1.5], F32), "narrow_range": narrow}
        case("FakeQuantWithMinMaxVarsPerChannel", [F32], lambda t: [[normal(t, 4, 5, 3) * 3]], **channels)
        case("FakeQuantWithMinMaxVarsGradient", [F32], lambda t: [[positive(t, 4, 5), normal(t, 4, 5) * 3]], **ends)  # sums of one sign
        case("FakeQuantWithMinMaxVarsPerChannelGradient", [F32], lambda t: [[positive(t, 4, 3), normal(t, 4, 3) * 3], [positive(t, 3), normal(t, 3)]], **channels)
empty = {"min": np.float32(0), "max": np.float32(0)}  # where TensorFlow says that all is 0 and gradients pass
edges = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan], F32)
empties = {"min": np.array([0, -1, 0], F32), "max": np.array([0, 1, 6], F32)}
case("FakeQuantWithMinMaxVars", [F32], lambda t: [[edges]], **empty)
case("FakeQuantWithMinMaxVarsGradient", [F32], lambda t: [[positive(t, 7), edges]], **empty)
case("FakeQuantWithMinMaxVarsPerChannel", [F32], lambda t: [[np.stack([edges] * 3, 1)]], **empties)
case("FakeQuantWithMinMaxVarsPerChannelGradient", [F32], lambda t: [[positive(t, 7, 3), normal(t, 7, 3)]], **empties)
case("FakeQuantWithMinMaxArgsGradient", [F32], lambda t: [[normal(t, 4, 5), normal(t, 4, 5) * 9]], min=-2.0, max=3.0)

# ---- the rest ----
case("CheckNumerics CheckNumericsV2", FLOATS, shaped(normal), message="here")
for turn in (False, True):
    case("SparseTensorDenseMatMul", WIDE, lambda t, turn=turn: [
        [np.array([[0, 1], [3, 0], [0, 1], [2, 2]]), normal(t, 4), np.array([4, 3]), normal(t, *((5, 4) if turn else (3, 5)))]],
         adjoint_a=turn, adjoint_b=turn)  # fmt: skip
case("TensorStridedSliceUpdate", MOVED[:4], lambda t: [[numbers(t, 5, 6), numbers(t, 2, 3)], [numbers(t, 5, 6), numbers(t, 1, 3)]],
     lambda x, v: R.TensorStridedSliceUpdate(input=x, begin=[1, 5], end=[5, -7], strides=[2, -2], value=v))  # fmt: skip
case("TensorStridedSliceUpdate", WIDE, lambda t: [[normal(t, 5, 6), normal(t, 6)]],
     lambda x, v: R.TensorStridedSliceUpdate(input=x, begin=[2], end=[3], strides=[1], value=v, shrink_axis_mask=1), gradients=True)  # fmt: skip


def of_variable(function):
    """What a variable holds after |function| of it and the other tensors."""
    def run(start, *others):
        v = tf.Variable(start)
        given = function(v.handle, *others)
        return v.read_value() if given is None else given

    return run


for mode in "Update Add Sub Min Max".split():
    name = "ResourceScatterNd" + mode
    ids = np.array([[4, 0], [1, 2], [0, 0]] + ([] if mode == "Update" else [[4, 0]]))
    case(name, [*FLOATS, np.int64], lambda t, ids=ids: [[numbers(t, 5, 3, 2), ids, numbers(t, len(ids), 2)]],
         of_variable(lambda v, i, u, name=name: getattr(R, name)(ref=v, indices=i, updates=u)))  # fmt: skip
case("ResourceGatherNd", FLOATS, lambda t: [[numbers(t, 5, 3, 2), PLACES]], 
     lambda x, i: R.ResourceGatherNd(resource=tf.Variable(x).handle, indices=i, dtype=x.dtype))  # fmt: skip
case("ResourceScatterDiv", WIDE, lambda t: [[positive(t, 5, 3), np.array([2, 0, 2]), positive(t, 3, 3)], [positive(t, 5, 3), np.array([2, 0]), positive(t)]],
     of_variable(lambda v, i, u: R.ResourceScatterDiv(resource=v, indices=i, updates=u)))  # fmt: skip
case("ResourceStridedSliceAssign", MOVED[:3], lambda t: [[numbers(t, 5, 6), numbers(t, 2, 3)]],
     of_variable(lambda v, u: R.ResourceStridedSliceAssign(ref=v, begin=[1, 0], end=[5, 6], strides=[2, 2], value=u)))  # fmt: skip


# ---- sparse tensors ----
SHAPE = np.array([5, 3, 4])


def sparse_of(t, count=9, shape=SHAPE, seed=5, ordered=True):
    """Places, values and the shape of a sparse tensor."""
    places = np.random.default_rng(seed).choice(int(np.prod(shape)), count, replace=False)
    at = np.stack(np.unravel_index(np.sort(places) if ordered else places, shape), axis=-1)
    return [at, numbers(t, count), np.array(shape)]


SPARSE_VALUES = [*FLOATS, *INTEGERS, bool]
case("SparseReorder", SPARSE_VALUES, lambda t: [sparse_of(t, ordered=False), sparse_of(t, 0), sparse_of(t, 4, np.array([7]), ordered=False)])
for i_type in (np.int32, np.int64):
    case("SparseToDense", SPARSE_VALUES, lambda t, i=i_type: [
        [at.astype(i), shape.astype(i), values, numbers(t)] for at, values, shape in (sparse_of(t), sparse_of(t, 0), sparse_of(t, 4, np.array([7])))
    ] + [[np.array([1, 4], i), np.array([6], i), numbers(t, 2), numbers(t)], [np.array(3, i), np.array([6], i), numbers(t), numbers(t)],
         [np.array([[0, 1], [2, 2]], i), np.array([3, 3], i), numbers(t), numbers(t)]])  # fmt: skip
case("SparseReorder", [F32], lambda t: [sparse_of(t)], lambda at, v, s: tf.sparse.to_dense(tf.sparse.reorder(tf.SparseTensor(at, v, s))), gradients=True)
for shape in ([15, 4], [-1], [2, 5, 3, 2], [-1, 1, 6]):
    case("SparseReshape", [np.int64], lambda t: [sparse_of(t)[::2], sparse_of(t, 0)[::2]],
         lambda at, s, shape=shape: R.SparseReshape(input_indices=at, input_shape=s, new_shape=np.array(shape, np.int64)))  # fmt: skip
for start, size in (([1, 0, 1], [3, 3, 2]), ([0, 0, 0], [9, 9, 9]), ([4, 2, 3], [1, 1, 1]), ([7, 0, 0], [1, 3, 4])):
    case("SparseSlice", SPARSE_VALUES, lambda t: [sparse_of(t, 30), sparse_of(t, 0)], start=start, size=size)
    case("SparseSliceGrad", WIDE, lambda t: [sparse_of(t, 30)],
         lambda at, v, s, start=start, size=size: (lambda part: R.SparseSliceGrad(
             backprop_val_grad=part.output_values * 2, input_indices=at, input_start=start, output_indices=part.output_indices))(
                 R.SparseSlice(indices=at, values=v, shape=s, start=start, size=size)))  # fmt: skip
for dim in (0, 1, -1):
    case("SparseConcat", SPARSE_VALUES, lambda t, dim=dim: [sparse_of(t) + sparse_of(t, 12, np.where(np.arange(3) == dim % 3, 6, SHAPE), 7) + sparse_of(t, 0)],
         lambda *x, dim=dim: R.SparseConcat(indices=x[0::3], values=x[1::3], shapes=x[2::3], concat_dim=dim))  # fmt: skip
for dim, parts in ((0, 3), (1, 3), (2, 1), (2, 3)):
    case("SparseSplit", SPARSE_VALUES, lambda t: [sparse_of(t, 30), sparse_of(t, 0)],
         lambda at, v, s, dim=dim, parts=parts: sum(R.SparseSplit(split_dim=np.int64(dim), indices=at, values=v, shape=s, num_split=parts), []))  # fmt: skip


def filled(at, values, shape, otherwise):
    """The outputs, and the gradients of sums of them."""
    out = list(R.SparseFillEmptyRows(indices=at, values=values, dense_shape=shape, default_value=otherwise))
    if values.dtype in (tf.float32, tf.float64):
        weights = tf.range(1.0, tf.cast(tf.size(out[1]) + 1, tf.float32))
        out += R.SparseFillEmptyRowsGrad(reverse_index_map=out[3], grad_values=tf.cast(weights, values.dtype))
    return out


def filled_rows(rows, values, otherwise):
    out = list(R.RaggedFillEmptyRows(value_rowids=rows, values=values, nrows=np.int64(7), default_value=otherwise))
    if values.dtype in (tf.float32, tf.float64):
        weights = tf.range(1.0, tf.cast(tf.size(out[1]) + 1, tf.float32))
        out += R.RaggedFillEmptyRowsGrad(reverse_index_map=out[3], grad_values=tf.cast(weights, values.dtype))
    return out


case("SparseFillEmptyRows", SPARSE_VALUES, lambda t: [
    sparse_of(t, count, np.array([9, 4]), ordered=ordered) + [numbers(t)] for count, ordered in ((8, True), (8, False), (0, True), (36, False))
] + [sparse_of(t, 0, np.array([0, 4])) + [numbers(t)]], filled)  # fmt: skip
case("SparseFillEmptyRowsGrad", WIDE, lambda t: [sparse_of(t, 8, np.array([9, 4])) + [numbers(t)]], filled)
case("RaggedFillEmptyRows", SPARSE_VALUES, lambda t: [[np.array([1, 1, 4]), numbers(t, 3), numbers(t)], [np.zeros(0, np.int64), numbers(t, 0), numbers(t)]], filled_rows)
case("RaggedFillEmptyRowsGrad", WIDE, lambda t: [[np.array([1, 1, 4]), numbers(t, 3), numbers(t)]], filled_rows)
for name in "Sum Mean SqrtN".split():
    for i_type in (np.int32, np.int64):
        case(f"SparseSegment{name}GradV2", FLOATS, lambda t, i=i_type: [[numbers(t, 6, 3), ROWS.astype(i), SEGMENTS.astype(np.int32)],
                                                                     [numbers(t, 2, 3), np.zeros(0, i), np.zeros(0, np.int32)]], dense_output_dim0=5)  # fmt: skip
for i_type in (np.int32, np.int64):
    case("UniqueWithCounts", [*FLOATS, np.int64, np.uint8, bool], lambda t, i=i_type: [[numbers(t, 40)], [numbers(t, 1)], [numbers(t, 0)]], out_idx=i_type)
case("ScatterNdNonAliasingAdd", [*FLOATS, np.int64], lambda t: [[numbers(t, 5, 3, 4), PLACES, numbers(t, 2, 2, 4)]])


# ---- recurrent cells ----
CELL = ("x", "cs_prev", "h_prev", "w", "wci", "wcf", "wco", "b")


def cell(t, batch=3, width=4, cells=5, steps=()):
    return [normal(t, *steps, batch, width), normal(t, batch, cells), normal(t, batch, cells), (normal(t, width + cells, 4 * cells) / t(3)).astype(t),
            *(normal(t, cells) for _ in range(3)), normal(t, 4 * cells)]  # fmt: skip


def lstm_cell(peephole, clip):
    def function(*x):
        given = {**dict(zip(CELL, x)), "use_peephole": peephole}
        out = R.LSTMBlockCell(**given, forget_bias=0.7, cell_clip=clip)
        grads = R.LSTMBlockCellGrad(**given, **{name: getattr(out, name) for name in ("i", "cs", "f", "o", "ci", "co")}, cs_grad=out.f, h_grad=out.o)
        return [*out, *grads[: 5 if peephole else 2]]  # the CPU leaves the others as its memory was

    return function


def lstm_sequence(name, steps, peephole, clip):
    def function(*x):
        out = getattr(R, name)(seq_len_max=tf.constant(steps, tf.int64), **dict(zip(CELL, x)), cell_clip=clip, use_peephole=peephole)
        return [*(each[:steps] for each in out), out.cs, out.h]  # of the others the CPU leaves what is behind as its memory was

    return function


def gru_cell(*x):
    given = dict(zip(("x", "h_prev", "w_ru", "w_c", "b_ru", "b_c"), x))
    out = R.GRUBlockCell(**given)
    return [*out, *R.GRUBlockCellGrad(**given, r=out.r, u=out.u, c=out.c, d_h=out.r)]


for peephole, clip in ((False, 0.0), (True, 0.4), (True, -1.0)):
    case("LSTMBlockCell LSTMBlockCellGrad", [F32, F16], lambda t: [cell(t), cell(t, 1, 1, 1)], lstm_cell(peephole, clip))
    for name, steps in ((name, steps) for name in ("BlockLSTM", "BlockLSTMV2") for steps in (6, 4)):
        case(f"{name} BlockLSTMGrad", [F32], lambda t: [cell(t, steps=(6,))], lstm_sequence(name, steps, peephole, clip),
             gradients=True, scale=256)  # fmt: skip
        case(name, [F16], lambda t: [cell(t, steps=(6,))], lstm_sequence(name, steps, peephole, clip))


def second_gradient(*x):  # TensorFlow's own gradient of the second version is the first's
    given = {"seq_len_max": tf.constant(6, tf.int64), **dict(zip(CELL, x)), "use_peephole": True}
    out = R.BlockLSTMV2(**given)
    return list(R.BlockLSTMGradV2(**given, **{name: getattr(out, name) for name in ("i", "cs", "f", "o", "ci", "co", "h")}, cs_grad=out.f, h_grad=out.o))


case("BlockLSTMGradV2", [F32, F16], lambda t: [cell(t, steps=(6,))], second_gradient, scale=256)
case("GRUBlockCell GRUBlockCellGrad", [F32], lambda t: [
    [normal(t, b, 4), normal(t, b, 5), normal(t, 9, 10), normal(t, 9, 5), normal(t, 10), normal(t, 5)] for b in (3, 1)], gru_cell, scale=128)  # fmt: skip

# ---- boxes out of images ----
BOXES = np.array([[0, 0, 1, 1], [0.1, 0.7, 0.8, 0.2], [-0.3, 0.2, 0.5, 1.4], [1.2, 1.2, 1.5, 1.5], [0.25, 0.5, 0.25, 0.5]], F32)
IMAGES_OF_BOXES = np.array([1, 0, 1, 1, 0], np.int32)


def crops(method, size):
    return lambda x, boxes, of: R.CropAndResize(image=x, boxes=boxes, box_ind=of, crop_size=size, method=method, extrapolation_value=-2.5)


for method in ("bilinear", "nearest"):
    for size in ([4, 3], [1, 5], [3, 1], [9, 11]):
        case("CropAndResize", [F32, F64, F16, *INTEGERS, np.uint16], lambda t: [[numbers(t, 2, 5, 7, 3), BOXES, IMAGES_OF_BOXES]], crops(method, size))
        case("CropAndResize CropAndResizeGradImage CropAndResizeGradBoxes" if method == "bilinear" else "CropAndResize", [F32, F64, F16], lambda t: [
            [normal(t, 2, 5, 7, 3), BOXES, IMAGES_OF_BOXES]], crops(method, size), gradients=method == "bilinear", scale=128)  # fmt: skip
        case("CropAndResizeGradImage", [F32, F64, F16], lambda t, size=size: [[normal(F32, 5, *size, 3), BOXES, IMAGES_OF_BOXES]] if t else [],
             lambda dy, boxes, of, method=method: [R.CropAndResizeGradImage(grads=dy, boxes=boxes, box_ind=of, image_size=[2, 5, 7, 3], T=t, method=method)
                                                   for t in (tf.float32, tf.float64, tf.float16)])  # fmt: skip
    case("CropAndResize", [F32], lambda t: [[normal(t, 2, 5, 7, 3), BOXES[:0], IMAGES_OF_BOXES[:0]], [normal(t, 2, 5, 7, 0), BOXES, IMAGES_OF_BOXES]], crops(method, [2, 2]))
case("CropAndResizeGradBoxes", [F32, F64, F16, *INTEGERS, np.uint16], lambda t: [[normal(F32, 5, 4, 3, 3), numbers(t, 2, 5, 7, 3), BOXES, IMAGES_OF_BOXES]])

# ---- numbers next to others ----
ENDS = [0, -0.0, 1, -1, 2.5, np.nan, np.inf, -np.inf]


def next_bits(a, b):
    """Bits, as a step is less than any tolerance; all NaN are the same."""
    x = R.NextAfter(x1=a, x2=b)
    return tf.bitcast(tf.where(tf.math.is_nan(x), tf.zeros_like(x), x), tf.int64 if x.dtype == tf.float64 else tf.int32)


case("NextAfter", WIDE, paired(normal, normal), next_bits)
case("NextAfter", WIDE, lambda t: [[np.array([*ENDS, np.finfo(t).max, -np.finfo(t).max, np.finfo(t).tiny * 2], t)[:, None], np.array(ENDS, t)]], next_bits)

# ---- three diagonals ----
BANDS = [(5, 2), (1, 3), (2, 1), (7, 1)]


def diagonals_of(t, batch, rows):
    return [normal(t, *batch, 1, rows), normal(t, *batch, 1, rows) + t(3), normal(t, *batch, 1, rows)]


def complex_matrices(function):
    def joined(*parts):
        result = function(*[tf.complex(a, b) for a, b in zip(parts[::2], parts[1::2])])
        return [tf.math.real(result), tf.math.imag(result)]

    return joined


def of_bands(*batches, joined=False, parts=1):
    """Diagonals, in one tensor if |joined|, and right sides; |parts| of each, real and imaginary."""
    def one(t, batch, rows, columns):
        diagonals = diagonals_of(t, batch, rows)
        return [np.concatenate(diagonals, -2)] if joined else diagonals, [normal(t, *batch, rows, columns)]

    return lambda t: [[x for same in zip(*(sum(one(t, batch, *sizes), []) for _ in range(parts))) for x in same] for batch in batches for sizes in BANDS]


case("TridiagonalMatMul", WIDE, of_bands((), (2, 3)), gradients=True)
case("TridiagonalMatMul", WIDE, lambda t: [[*diagonals_of(t, (0,), 3), normal(t, 0, 3, 2)], [*diagonals_of(t, (2,), 3), normal(t, 2, 3, 0)]])
case("TridiagonalSolve", WIDE, of_bands((), (2, 3), joined=True), gradients=True, scale=2**12)
case("TridiagonalMatMul", WIDE, of_bands((2,), parts=2), complex_matrices(call("TridiagonalMatMul")))
case("TridiagonalSolve", WIDE, of_bands((2,), joined=True, parts=2), complex_matrices(call("TridiagonalSolve")), scale=2**12)
case("TridiagonalSolve", WIDE, lambda t: [[np.zeros((2, 3, 4), t), normal(t, 2, 4, 1)], [np.array([[1, 2, 0], [0, 0, 4], [0, 1, 1]], t), np.ones((3, 1), t)]])

# ---- steps of a few bits ----
for extra in ({}, {"narrow_range": True}, {"signed_input": False}):
    for given in (False, True):
        for bits in (3, 8):
            inputs = lambda t: [[(normal(t, 5, 7) * 2).astype(t), t(-1.5), t(1.25)], [normal(t, 3), t(0.5), t(1.25)], [normal(t, 3), t(-2), t(-1)], [np.zeros((2, 2), t), t(0), t(0)], [normal(t, 0), t(-1), t(1)]]
            case("QuantizeAndDequantizeV2 QuantizeAndDequantizeV4", WIDE, inputs, range_given=given, num_bits=bits, **extra)
            case("QuantizeAndDequantizeV3", WIDE, inputs, range_given=given, num_bits=bits, **extra)
    for axis in (0, 1, 2):
        case("QuantizeAndDequantizeV2 QuantizeAndDequantizeV4", WIDE, lambda t, axis=axis: [[normal(t, 3, 4, 5), -positive(t, 3 + axis), positive(t, 3 + axis)]],
             axis=axis, round_mode="HALF_UP", **extra)  # fmt: skip
        case("QuantizeAndDequantizeV3", WIDE, lambda t, axis=axis: [[normal(t, 3, 4, 5), -positive(t, 3 + axis), positive(t, 3 + axis)]], axis=axis,
             range_given=False, num_bits=5, **extra)  # fmt: skip
case("QuantizeAndDequantizeV4", WIDE, lambda t: [[normal(t, 5, 7), t(-0.5), t(1.25)]], gradients=True, range_given=True)
case("QuantizeAndDequantizeV4Grad", WIDE, lambda t: [[normal(t, 5, 7), normal(t, 5, 7), t(-0.5), t(1.25)], [normal(t, 0), normal(t, 0), t(-1), t(1)]])
for axis in (0, 1, 2):
    case("QuantizeAndDequantizeV4Grad", WIDE, lambda t, axis=axis: [[normal(t, 3, 4, 5), normal(t, 3, 4, 5), -positive(t, 3 + axis), positive(t, 3 + axis)]], axis=axis)
case("QuantizeAndDequantizeV2", WIDE, lambda t: [[normal(t, 5, 7), t(-0.5), t(1.25)]], lambda x, a, b: tf.quantization.quantize_and_dequantize(x, -0.5, 1.25, range_given=True), gradients=True)

# ---- convolutions of any number of dimensions ----
for batches, more in ((1, {}), (2, {}), (1, {"dilations": [1, 2, 1, 1]})):
    case("Conv", [F32, F16, BF16], lambda t, batches=batches: [[normal(t, *[2] * batches, 6, 5, 3), normal(t, 3, 2, 3, 4)]], strides=[1, 1 if more else 2, 1, 1],
         padding="SAME", batch_dims=batches, **more)  # fmt: skip
case("Conv", [F32, F16, BF16], lambda t: [[normal(t, 2, 4, 5, 3, 3), normal(t, 2, 3, 1, 3, 4)]], strides=[1, 1, 2, 1, 1], padding="VALID")
case("Conv", [F32], lambda t: [[normal(t, 2, 6, 5, 3), normal(t, 3, 2, 3, 4)]], strides=[1, 1, 1, 1], padding="EXPLICIT", explicit_paddings=[0, 0, 2, 1, 0, 3, 0, 0])


# ---- more dimensions than librdna has, of which neighbours are one ----
MANY = (2, 1, 3, 2, 1, 2, 2, 1, 3, 2)
case("Sum Mean Max Prod", [F32, F64], lambda t: [[positive(t, *MANY)]], axis=[1, 3, 5, 7, 9], scale=128)
case("Sum", [F32, np.int64], lambda t: [[numbers(t, *MANY)]], axis=[0, 1, 2, 5], keep_dims=False)
case("ScatterNd", [np.int32], lambda t: [[PLACES, numbers(t, 2, 2)]], lambda i, u: tf.cast(R.ScatterNd(indices=tf.cast(i, tf.int32), updates=u, shape=[5, 3]), tf.float32))

# ---- values that only move, or are compared, of types that count from 0 and of complex ones ----
UNSIGNED = [np.uint16, np.uint32, np.uint64]
case("Pad", [*UNSIGNED, np.complex64], shaped(numbers, (3, 4)), paddings=[[1, 2], [0, 3]])
case("MirrorPad", [*UNSIGNED, np.complex64], shaped(numbers, (3, 4)), paddings=[[1, 2], [0, 3]], mode="REFLECT")
case("MatrixBandPart", [*UNSIGNED, np.complex64], shaped(numbers, (2, 4, 5)), num_lower=1, num_upper=2)
case("TensorScatterUpdate", [*UNSIGNED, np.complex64], lambda t: [[numbers(t, 5, 3), np.array([[4], [0]]), numbers(t, 2, 3)]])
case("ScatterNd", UNSIGNED, lambda t: [[np.array([[4], [0], [4]]), numbers(t, 3, 2), np.array([5, 2])]])
case("ZerosLike OnesLike", UNSIGNED, shaped(numbers))
case("Equal NotEqual", UNSIGNED, lambda t: [[numbers(t, 3, 4), numbers(t, 4)]])
case("Where", UNSIGNED, shaped(numbers, (4, 5, 3)), lambda x: R.Where(condition=x))

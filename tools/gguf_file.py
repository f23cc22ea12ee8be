"""GGUF files from Python: writing for the demo model and the tests, reading for the tests' reference.

Format: github.com/ggml-org/ggml, docs/gguf.md. Shapes are slowest dimension first here, as in NumPy.
"""
import pathlib
import re
import struct

import numpy as np

U8, I8, U16, I16, U32, I32, F32, BOOL, TEXT, ARRAY, U64, I64, F64 = range(13)
SCALARS = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", BOOL: "?", U64: "Q", I64: "q", F64: "d"}
TENSOR_F32, TENSOR_F16, TENSOR_Q8_0, TENSOR_BF16 = 0, 1, 8, 30
TENSOR_Q4_0, TENSOR_Q4_1, TENSOR_Q5_0, TENSOR_Q5_1, TENSOR_IQ4_NL, TENSOR_MXFP4 = 2, 3, 6, 7, 20, 39
TENSOR_Q2_K, TENSOR_Q3_K, TENSOR_Q4_K, TENSOR_Q5_K, TENSOR_Q6_K, TENSOR_IQ4_XS = 10, 11, 12, 13, 14, 23
TENSOR_TQ1_0, TENSOR_TQ2_0 = 34, 35
TENSOR_IQ2_XXS, TENSOR_IQ2_XS, TENSOR_IQ2_S, TENSOR_IQ3_XXS, TENSOR_IQ3_S = 16, 17, 22, 18, 21
TENSOR_IQ1_S, TENSOR_IQ1_M = 19, 29


def encode_q8_0(matrix):
    """Blocks of 32 values: an f16 scale, the largest magnitude / 127, and 32 signed bytes."""
    blocks = np.asarray(matrix, np.float32).reshape(-1, 32)
    scale = np.abs(blocks).max(1, keepdims=True) / 127
    inverse = np.divide(1, scale, out=np.zeros_like(scale), where=scale > 0)
    values = np.rint(blocks * inverse).astype(np.int8)
    return np.concatenate([scale.astype("<f2").view(np.uint8), values.view(np.uint8)], 1).tobytes()


def encode_bf16(matrix):
    """To the nearest, ties to even; numbers only."""
    bits = np.asarray(matrix, "<f4").view("<u4")
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("<u2").tobytes()


ENCODERS = {
    TENSOR_F32: lambda x: np.asarray(x, "<f4").tobytes(),
    TENSOR_F16: lambda x: np.asarray(x, "<f2").tobytes(),
    TENSOR_Q8_0: encode_q8_0,
    TENSOR_BF16: encode_bf16,
}


# values and bytes of a block
BLOCKS = {TENSOR_Q8_0: (32, 34), TENSOR_Q4_0: (32, 18), TENSOR_Q4_1: (32, 20), TENSOR_Q5_0: (32, 22),
          TENSOR_Q5_1: (32, 24), TENSOR_IQ4_NL: (32, 18), TENSOR_MXFP4: (32, 17), TENSOR_Q2_K: (256, 84),
          TENSOR_Q3_K: (256, 110), TENSOR_Q4_K: (256, 144), TENSOR_Q5_K: (256, 176), TENSOR_Q6_K: (256, 210),
          TENSOR_IQ4_XS: (256, 136), TENSOR_TQ1_0: (256, 54), TENSOR_TQ2_0: (256, 66), TENSOR_IQ2_XXS: (256, 66),
          TENSOR_IQ2_XS: (256, 74), TENSOR_IQ2_S: (256, 82), TENSOR_IQ3_XXS: (256, 98), TENSOR_IQ3_S: (256, 110),
          TENSOR_IQ1_S: (256, 50), TENSOR_IQ1_M: (256, 56)}
GRIDS = (TENSOR_IQ2_XXS, TENSOR_IQ2_XS, TENSOR_IQ2_S, TENSOR_IQ3_XXS, TENSOR_IQ3_S, TENSOR_IQ1_S, TENSOR_IQ1_M)
IQ4_TABLE = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113])
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


def grid(name):
    """The grid |name| of src/math/quant/quant_grids.h as (entries, 8 or 4) magnitudes; its head has the layout."""
    text = (pathlib.Path(__file__).resolve().parent.parent / "src/math/quant/quant_grids.h").read_text()
    body = re.search(rf"quant_grid_{name}\[\d+\] = {{(.*?)}}", text, re.DOTALL).group(1)
    entries = np.array([int(word, 0) for word in body.split(",")])[:, None]
    if name.startswith("iq3"):
        level = entries >> np.array([0, 8, 4, 12]) & 7
        return 2 * level + 1 if name == "iq3_s" else np.array([4, 12, 20, 28, 36, 44, 52, 62])[level]
    level = entries >> np.array([0, 8, 2, 10, 4, 12, 6, 14]) & 3
    return level - 1 if name == "iq1" else np.array([8, 25, 43])[level]


def decode_grid(kind, raw):
    """As decode_blocks, of the types that number entries of a grid."""
    count = len(raw)

    def words(first, size, dtype):
        return raw[:, first : first + size].copy().view(dtype).astype(np.int64)

    def bits(first, size, width):
        """Numbers of |width| bits, lowest first."""
        data = raw[:, first : first + size]
        return (data[:, :, None] >> np.arange(0, 8, width) & (1 << width) - 1).reshape(count, -1).astype(int)

    def even(seven):
        """Eight signs of seven bits: the number of minus signs is even."""
        minus = seven[:, :, None] >> np.arange(7) & 1
        return 1 - 2 * np.concatenate([minus, minus.sum(2, keepdims=True) & 1], 2).reshape(count, 256)

    def values(name, index, scale, sign=1.0, delta=0.0):
        g = grid(name)[index].reshape(count, 256)
        return np.repeat(half * scale, 256 // scale.shape[1], 1) * sign * (g + delta)

    half = raw[:, :2].copy().view("<f2").astype(np.float64)
    if kind == TENSOR_IQ2_XXS:
        pairs = words(2, 64, "<u4").reshape(count, 8, 2)
        index = (pairs[:, :, :1] >> np.arange(0, 32, 8) & 255).reshape(count, 32)
        signs = (pairs[:, :, 1:] >> np.arange(0, 28, 7) & 127).reshape(count, 32)
        return values("iq2_xxs", index, (0.5 + (pairs[:, :, 1] >> 28)) / 4, even(signs))
    if kind == TENSOR_IQ2_XS:
        both = words(2, 64, "<u2")
        return values("iq2_xs", both & 511, (0.5 + bits(66, 8, 4)) / 4, even(both >> 9))
    if kind == TENSOR_IQ2_S:
        index = raw[:, 2:34] + 256 * bits(66, 8, 2)
        return values("iq2_s", index, (0.5 + bits(74, 8, 4)) / 4, 1 - 2 * bits(34, 32, 1))
    if kind == TENSOR_IQ3_XXS:
        signs = words(66, 32, "<u4")
        seven = (signs[:, :, None] >> np.arange(0, 28, 7) & 127).reshape(count, 32)
        return values("iq3_xxs", raw[:, 2:66].astype(int), (0.5 + (signs >> 28)) / 2, even(seven))
    if kind == TENSOR_IQ3_S:
        index = raw[:, 2:66] + 256 * bits(66, 8, 1)
        return values("iq3_s", index, 1 + 2 * bits(106, 4, 4), 1 - 2 * bits(74, 32, 1))
    if kind == TENSOR_IQ1_S:
        high = words(34, 16, "<u2")
        index = raw[:, 2:34] + 256 * (high[:, :, None] >> np.arange(0, 12, 3) & 7).reshape(count, 32)
        return values("iq1", index, 1 + 2 * (high >> 12 & 7), delta=np.repeat(0.125 - 0.25 * (high >> 15), 32, 1))
    scales, nibbles = words(48, 8, "<u2"), bits(32, 16, 4)
    bits_of_d = (scales >> 12) << np.array([0, 4, 8, 12])
    half = bits_of_d.sum(1, keepdims=True).astype("<u2").view("<f2").astype(np.float64)
    scale = 1 + 2 * (scales[:, :, None] >> np.arange(0, 12, 3) & 7).reshape(count, 16)
    index = raw[:, :32] + 256 * (nibbles & 7)
    return values("iq1", index, scale, delta=np.repeat(0.125 - 0.25 * (nibbles >> 3), 8, 1))


def decode_trits(raw):
    """As decode_blocks, of TQ1_0."""
    half = raw[:, 52:].copy().view("<f2").astype(np.float64)
    numbers = raw[:, :52].astype(int) * 243 // 256
    digits = numbers[:, None, :] // np.array([81, 27, 9, 3, 1])[None, :, None] % 3
    parts = digits[:, :, :32], digits[:, :, 32:48], digits[:, :4, 48:]
    return half * (np.concatenate([part.reshape(len(raw), -1) for part in parts], 1) - 1)


def decode_blocks(kind, raw):
    """|raw| (blocks, bytes) as float64 (blocks, values), by the formulas of src/base/block_formats.h."""
    count = len(raw)

    def half(at):
        return raw[:, at : at + 2].copy().view("<f2").astype(np.float64)

    def fields(first, size, bits):
        """Each byte's parts of |bits|, lowest first: (count, 8 / bits, size)."""
        data = raw[:, None, first : first + size].astype(int)
        return data >> np.arange(0, 8, bits)[None, :, None] & (1 << bits) - 1

    def flat(*parts):
        return np.concatenate([part.reshape(count, -1) for part in parts], 1)

    if kind in GRIDS:
        return decode_grid(kind, raw)
    if kind == TENSOR_TQ1_0:
        return decode_trits(raw)
    if kind == TENSOR_TQ2_0:
        return half(64) * (flat(*(fields(32 * h, 32, 2) for h in range(2))) - 1)
    if kind == TENSOR_Q8_0:
        return half(0) * raw[:, 2:].view(np.int8)
    if BLOCKS[kind][0] == 32:
        q = fields(BLOCKS[kind][1] - 16, 16, 4).reshape(count, 32)
        if kind in (TENSOR_Q5_0, TENSOR_Q5_1):
            at = 2 if kind == TENSOR_Q5_0 else 4
            q = q + 16 * np.unpackbits(raw[:, at : at + 4], axis=1, bitorder="little")
        if kind == TENSOR_IQ4_NL:
            return half(0) * IQ4_TABLE[q]
        if kind == TENSOR_MXFP4:
            return 2.0 ** (raw[:, :1].astype(int) - 127) * E2M1[q]
        if kind in (TENSOR_Q4_1, TENSOR_Q5_1):
            return half(0) * q + half(2)
        return half(0) * (q - (8 if kind == TENSOR_Q4_0 else 16))
    if kind == TENSOR_IQ4_XS:
        scale = fields(4, 4, 4).transpose(0, 2, 1).reshape(count, 8) + 16 * fields(2, 2, 2).transpose(0, 2, 1).reshape(
            count, 8)
        q = np.concatenate([fields(8 + 16 * j, 16, 4).reshape(count, 32) for j in range(8)], 1)
        return np.repeat(half(0) * (scale - 32), 32, 1) * IQ4_TABLE[q]
    if kind in (TENSOR_Q4_K, TENSOR_Q5_K):
        low, top = fields(4, 8, 8)[:, 0] & 63, fields(4, 8, 8)[:, 0] >> 6
        rest = fields(12, 4, 4)
        scale, least = flat(low[:, :4], rest[:, 0] + 16 * top[:, :4]), flat(low[:, 4:], rest[:, 1] + 16 * top[:, 4:])
        first = 16 if kind == TENSOR_Q4_K else 48
        q = flat(*(fields(first + 32 * g, 32, 4) for g in range(4)))
        if kind == TENSOR_Q5_K:
            q = q + 16 * fields(16, 32, 1).reshape(count, 256)
        return np.repeat(half(0) * scale, 32, 1) * q - np.repeat(half(2) * least, 32, 1)
    if kind == TENSOR_Q6_K:
        low = flat(*(fields(64 * h, 64, 4) for h in range(2)))
        high = flat(*(fields(128 + 32 * h, 32, 2) for h in range(2)))
        return np.repeat(half(208) * raw[:, 192:208].view(np.int8), 16, 1) * (low + 16 * high - 32)
    pairs = 16 if kind == TENSOR_Q2_K else 32
    q = flat(*(fields(pairs + 32 * h, 32, 2) for h in range(2)))
    if kind == TENSOR_Q2_K:
        scale = fields(0, 16, 4)
        return np.repeat(half(80) * scale[:, 0], 16, 1) * q - np.repeat(half(82) * scale[:, 1], 16, 1)
    scale = flat(fields(96, 8, 4)) + 16 * flat(fields(104, 4, 2))
    return np.repeat(half(108) * (scale - 32), 16, 1) * (q + 4 * fields(0, 32, 1).reshape(count, 256) - 4)


def random_blocks(kind, rng, shape, deviation):
    """Blocks of random codes and scales, with values of about |deviation|, and no matrix behind them."""
    values, size = BLOCKS[kind]
    raw = rng.integers(0, 256, (int(np.prod(shape)) // values, size), np.uint8)

    def put(at, unit, sign=1.0):
        """An f16 with which what it multiplies, |unit| on average, is about |deviation|."""
        scale = sign * deviation / unit * rng.uniform(0.5, 1.5, len(raw))
        raw[:, at : at + 2] = scale.astype("<f2")[:, None].view(np.uint8)

    if kind == TENSOR_MXFP4:
        raw[:, 0] = 127 + round(np.log2(deviation / 3)) + rng.integers(-1, 2, len(raw))
    elif kind in (TENSOR_Q4_1, TENSOR_Q5_1):
        half = 7.5 if kind == TENSOR_Q4_1 else 15.5
        put(0, half)
        put(2, 1, -1.0)
    elif kind in (TENSOR_Q4_K, TENSOR_Q5_K):
        put(0, 32 * (7.5 if kind == TENSOR_Q4_K else 15.5))
        put(2, 32)
    elif kind == TENSOR_IQ1_M:  # d is the highest nibble of four words
        d = (deviation / (8 * 0.8) * rng.uniform(0.5, 1.5, len(raw))).astype("<f2").view("<u2")
        words = raw[:, 48:].copy().view("<u2") & 0xFFF
        raw[:, 48:] = (words | (d[:, None] >> np.array([0, 4, 8, 12]) & 15) << 12).astype("<u2").view(np.uint8)
    elif kind == TENSOR_Q2_K:
        put(80, 7.5 * 1.5)
        put(82, 7.5)
    else:
        put({TENSOR_Q3_K: 108, TENSOR_Q6_K: 208, TENSOR_TQ1_0: 52, TENSOR_TQ2_0: 64}.get(kind, 0),
            {TENSOR_Q8_0: 74, TENSOR_Q4_0: 4.6, TENSOR_Q5_0: 9.2, TENSOR_Q3_K: 18 * 2.3, TENSOR_Q6_K: 74 * 18,
             TENSOR_IQ4_NL: 65, TENSOR_IQ4_XS: 18 * 65, TENSOR_TQ1_0: 0.8, TENSOR_TQ2_0: 1.2, TENSOR_IQ2_XXS: 50,
             TENSOR_IQ2_XS: 50, TENSOR_IQ2_S: 50, TENSOR_IQ3_XXS: 140, TENSOR_IQ3_S: 140, TENSOR_IQ1_S: 8 * 0.8}[kind])
    return raw.tobytes()


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def encode_value(kind, value):
    if kind == TEXT:
        return text(value)
    if isinstance(kind, tuple):
        return struct.pack("<IQ", kind[1], len(value)) + b"".join(encode_value(kind[1], item) for item in value)
    return struct.pack("<" + SCALARS[kind], value)


class Blocks:
    """A matrix as the bytes of its blocks."""

    def __init__(self, shape, data):
        self.shape, self.ndim, self.data = shape, len(shape), data

    def tobytes(self):
        return self.data


def typed(value):
    """The kind of key that a Python value makes, and the value: an int is a U32 or I32, a list what its first is."""
    if isinstance(value, (list, tuple)):
        return (ARRAY, typed(value[0])[0]), list(value)
    if isinstance(value, int) and value < 0:
        return I32, value
    return {bool: BOOL, int: U32, float: F32, str: TEXT}[type(value)], value


def write(path, entries, tensors):
    """|entries|: (key, kind, value), where an array's kind is (ARRAY, kind). |tensors|: (name, tensor kind, array or Blocks)."""
    head, data = b"", []
    size = 0
    for name, kind, array in tensors:
        raw = array.tobytes() if isinstance(array, Blocks) else ENCODERS[kind](array)
        head += text(name) + struct.pack("<I", array.ndim) + struct.pack(f"<{array.ndim}Q", *array.shape[::-1])
        head += struct.pack("<IQ", kind, size)
        data += [raw, bytes(-len(raw) % 32)]
        size += len(raw) + len(data[-1])
    keys = b"".join(
        text(key) + struct.pack("<I", kind[0] if isinstance(kind, tuple) else kind) + encode_value(kind, value)
        for key, kind, value in entries
    )
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(entries)) + keys + head
    with open(path, "wb") as file:
        file.writelines([head, bytes(-len(head) % 32), *data])


class Reader:
    """Keys as Python values, tensors as float64 arrays and their types' numbers, of trusted files."""

    def __init__(self, path):
        self.bytes, self.at = pathlib.Path(path).read_bytes(), 4
        assert self.bytes[:4] == b"GGUF"
        _, tensor_count, key_count = self.take("I"), self.take("Q"), self.take("Q")
        self.keys = {}
        for _ in range(key_count):
            name = self.text()
            self.keys[name] = self.value(self.take("I"))
        infos = []
        for _ in range(tensor_count):
            name, rank = self.text(), self.take("I")
            shape = [self.take("Q") for _ in range(rank)][::-1]
            infos.append((name, shape, self.take("I"), self.take("Q")))
        align = self.keys.get("general.alignment", 32)
        start = (self.at + align - 1) // align * align
        self.tensors = {name: self.tensor(shape, kind, start + offset) for name, shape, kind, offset in infos}
        self.kinds = {name: kind for name, _, kind, _ in infos}

    def take(self, kind):
        (value,) = struct.unpack_from("<" + kind, self.bytes, self.at)
        self.at += struct.calcsize("<" + kind)
        return value

    def text(self):
        size = self.take("Q")
        self.at += size
        return self.bytes[self.at - size : self.at].decode("utf-8", "replace")

    def value(self, kind):
        if kind == TEXT:
            return self.text()
        if kind == ARRAY:
            element, count = self.take("I"), self.take("Q")
            return [self.value(element) for _ in range(count)]
        return self.take(SCALARS[kind])

    def tensor(self, shape, kind, offset):
        count = int(np.prod(shape))
        if kind in (TENSOR_F32, TENSOR_F16):
            data = np.frombuffer(self.bytes, "<f4" if kind == TENSOR_F32 else "<f2", count, offset)
        elif kind == TENSOR_BF16:  # the upper half of an f32
            data = (np.frombuffer(self.bytes, "<u2", count, offset).astype("<u4") << 16).view("<f4")
        elif kind in BLOCKS:
            values, size = BLOCKS[kind]
            raw = np.frombuffer(self.bytes, np.uint8, count // values * size, offset)
            data = decode_blocks(kind, raw.reshape(-1, size))
        else:
            raise ValueError(f"tensor type {kind} is not read here")
        return data.astype(np.float64).reshape(shape)

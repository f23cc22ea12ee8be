"""GGUF files from Python: writing for the demo model and the tests, reading for the tests' reference.

Format: github.com/ggml-org/ggml, docs/gguf.md. Shapes are slowest dimension first here, as in NumPy.
"""
import pathlib
import struct

import numpy as np

U8, I8, U16, I16, U32, I32, F32, BOOL, TEXT, ARRAY, U64, I64, F64 = range(13)
SCALARS = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", BOOL: "?", U64: "Q", I64: "q", F64: "d"}
TENSOR_F32, TENSOR_F16, TENSOR_Q8_0, TENSOR_BF16 = 0, 1, 8, 30


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


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def encode_value(kind, value):
    if kind == TEXT:
        return text(value)
    if isinstance(kind, tuple):
        return struct.pack("<IQ", kind[1], len(value)) + b"".join(encode_value(kind[1], item) for item in value)
    return struct.pack("<" + SCALARS[kind], value)


def write(path, entries, tensors):
    """|entries|: (key, kind, value), where an array's kind is (ARRAY, kind). |tensors|: (name, tensor kind, array)."""
    head, data = b"", []
    size = 0
    for name, kind, array in tensors:
        raw = ENCODERS[kind](array)
        head += text(name) + struct.pack("<I", array.ndim) + struct.pack(f"<{array.ndim}Q", *array.shape[::-1])
        head += struct.pack("<IQ", kind, size)
        data.append(raw + bytes(-len(raw) % 32))
        size += len(data[-1])
    keys = b"".join(
        text(key) + struct.pack("<I", kind[0] if isinstance(kind, tuple) else kind) + encode_value(kind, value)
        for key, kind, value in entries
    )
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(entries)) + keys + head
    with open(path, "wb") as file:
        file.write(head + bytes(-len(head) % 32) + b"".join(data))


class Reader:
    """Keys as Python values, tensors as float64 arrays, of trusted files."""

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
        elif kind == TENSOR_Q8_0:
            blocks = np.frombuffer(self.bytes, np.dtype([("d", "<f2"), ("q", "i1", 32)]), count // 32, offset)
            data = blocks["d"].astype(np.float64)[:, None] * blocks["q"]
        else:
            raise ValueError(f"tensor type {kind} is not read here")
        return data.astype(np.float64).reshape(shape)

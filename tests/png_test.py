"""PNG files: every kind of them read, written ones read by a decoder of this file's own, and broken ones refused."""
import os
import pathlib
import random
import struct
import subprocess
import tempfile
import unittest
import zlib

import numpy as np

import rdna_program

PROGRAM = os.environ.get("RDNA_PNG_PIXELS", str(rdna_program.ROOT / "build/release/bin/png_pixels"))
INVALID, NOT_FOUND, UNSUPPORTED, IO_ERROR, BAD_DATA = 1, 3, 4, 6, 7  # rdna_status
SIGNATURE = b"\x89PNG\r\n\x1a\n"
GREY, COLOUR, PALETTE, GREY_ALPHA, COLOUR_ALPHA = 0, 2, 3, 4, 6
SAMPLES = {GREY: 1, COLOUR: 3, PALETTE: 1, GREY_ALPHA: 2, COLOUR_ALPHA: 4}
DEPTHS = {GREY: [1, 2, 4, 8, 16], COLOUR: [8, 16], PALETTE: [1, 2, 4, 8], GREY_ALPHA: [8, 16], COLOUR_ALPHA: [8, 16]}
ADAM7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]


# ---- files, by the standard ----

def chunk(kind, data=b""):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def header(width, height, depth, colour, interlaced=0):
    return chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlaced))


def paeth(a, b, c):
    p = a + b - c
    distances = abs(p - a), abs(p - b), abs(p - c)
    return (a, b, c)[distances.index(min(distances))]


def filtered(rows, size, chance):
    """|rows| of bytes, each by some filter; |size| bytes of a pixel."""
    out, above = bytearray(), bytes(len(rows[0]) if rows else 0)
    for row in rows:
        kind = chance.randrange(5)
        out.append(kind)
        for i, value in enumerate(row):
            a, b, c = (row[i - size] if i >= size else 0), above[i], (above[i - size] if i >= size else 0)
            out.append((value - [0, a, b, (a + b) // 2, paeth(a, b, c)][kind]) % 256)
        above = row
    return bytes(out)


def packed(samples, depth):
    """(height, width, samples) as rows of bytes."""
    rows = []
    for row in samples.reshape(samples.shape[0], -1):
        bits = "".join(f"{int(v):0{depth}b}" for v in row)
        bits += "0" * (-len(bits) % 8)
        rows.append(bytes(int(bits[i:i + 8], 2) for i in range(0, len(bits), 8)))
    return rows


def png(samples, depth, colour, interlaced, chance, before=b"", behind=b"", pieces=1):
    height, width, count = samples.shape
    size = max(1, depth * count // 8)
    passes = [samples[y::dy, x::dx] for x, y, dx, dy in ADAM7] if interlaced else [samples]
    data = zlib.compress(b"".join(filtered(packed(p, depth), size, chance) for p in passes if p.size))
    cuts = sorted(chance.randrange(len(data)) for _ in range(pieces - 1))
    parts = [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)])]
    return (SIGNATURE + header(width, height, depth, colour, interlaced) + before +
            b"".join(chunk(b"IDAT", part) for part in parts) + behind + chunk(b"IEND"))


def read_png(data):
    """Pixels and texts of a file of 8 bits a sample that is not interlaced."""
    assert data[:8] == SIGNATURE
    at, body, texts, shape = 8, b"", {}, None
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        part = data[at + 8:at + 8 + size]
        assert struct.unpack(">I", data[at + 8 + size:at + 12 + size])[0] == zlib.crc32(kind + part)
        at += 12 + size
        if kind == b"IHDR":
            width, height, depth, colour, *rest = struct.unpack(">IIBBBBB", part)
            assert depth == 8 and rest == [0, 0, 0]
            shape = height, width, SAMPLES[colour]
        elif kind == b"IDAT":
            body += part
        elif kind == b"tEXt":
            key, _, text = part.partition(b"\0")
            texts[key] = text.decode("ascii")
        elif kind == b"iTXt":
            key, _, rest = part.partition(b"\0")
            assert rest[:4] == b"\0\0\0\0"  # not compressed, of no language
            texts[key] = rest[4:].decode()
    assert kind == b"IEND"
    lines, line = zlib.decompress(body), 1 + shape[1] * shape[2]
    assert len(lines) == line * shape[0]
    above, rows = [0] * (line - 1), []
    for y in range(shape[0]):
        kind, row = lines[y * line], list(lines[y * line + 1:(y + 1) * line])
        for i in range(line - 1):
            a, b = (row[i - shape[2]] if i >= shape[2] else 0), above[i]
            c = above[i - shape[2]] if i >= shape[2] else 0
            row[i] = (row[i] + [0, a, b, (a + b) // 2, paeth(a, b, c)][kind]) % 256
        above = row
        rows.append(row)
    return np.array(rows, np.uint8).reshape(shape), texts


# ---- what is tested ----

class Program:
    def __init__(self):
        self.process = subprocess.Popen([PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        assert self.process.wait(60) == 0

    def ask(self, *parts):
        for part in parts:
            self.process.stdin.write(struct.pack("<I", part) if isinstance(part, int) else
                                     part if isinstance(part, bytearray) else struct.pack("<I", len(part)) + part)
        self.process.stdin.flush()
        return self.number()

    def number(self):
        return struct.unpack("<I", self.process.stdout.read(4))[0]

    def bytes(self):
        return self.process.stdout.read(self.number())

    def decode(self, data, kind=b"d"):
        """Pixels and parameters, or a status and a sentence."""
        status = self.ask(bytearray(kind), data)
        if status:
            return status, self.bytes().decode()
        width, height, channels, has, text = self.number(), self.number(), self.number(), self.number(), self.bytes()
        return np.frombuffer(self.bytes(), np.uint8).reshape(height, width, channels), text.decode() if has else None

    def encode(self, pixels, text=None, path=None):
        height, width, channels = pixels.shape
        text_bytes = text.encode() if isinstance(text, str) else text or b""
        status = self.ask(bytearray(b"s" if path else b"e"), *([path.encode()] if path else []), width, height, channels,
                          int(text is not None), text_bytes, pixels.tobytes())
        return status, self.bytes()


class PngTest(unittest.TestCase):
    def setUp(self):
        self.program = Program()
        self.addCleanup(self.program.close)
        self.chance = random.Random(11)
        self.numbers = np.random.default_rng(11)

    def wanted(self, samples, depth, colour, palette, clear):
        """What a file shows, 8 bits a channel. |clear|: the palette's opacities, or the sample that is not there."""
        most = 2**depth - 1
        eights = (samples.astype(np.int64) * 510 + most) // (2 * most)  # to the nearest
        if colour == PALETTE:
            shown = palette[samples[..., 0]]
            return shown if clear is None else np.concatenate([shown, clear[samples]], 2)
        if colour in (GREY, GREY_ALPHA):
            eights = np.concatenate([eights[..., :1]] * 3 + [eights[..., 1:]], 2)
        if clear is not None:
            opacity = np.where((samples == clear).all(2, keepdims=True), 0, 255)
            eights = np.concatenate([eights, opacity], 2)
        return eights

    def test_kinds(self):
        for colour, depths in DEPTHS.items():
            for depth in depths:
                for interlaced in [0, 1]:
                    for clears in [False, True] if colour in (GREY, COLOUR, PALETTE) else [False]:
                        for height, width in [(1, 1), (9, 13), (2, 3)]:
                            with self.subTest(f"{colour} {depth} {interlaced} {clears} {height} {width}"):
                                self.check_kind(colour, depth, interlaced, clears, height, width)

    def check_kind(self, colour, depth, interlaced, clears, height, width):
        samples = self.numbers.integers(0, 2**depth, (height, width, SAMPLES[colour]))
        palette, clear, before = None, None, b""
        if colour == PALETTE:
            palette = self.numbers.integers(0, 256, (2**depth, 3))
            before = chunk(b"PLTE", palette.astype(np.uint8).tobytes())
            if clears:
                clear = self.numbers.integers(0, 256, 2**depth)
                before += chunk(b"tRNS", clear.astype(np.uint8).tobytes())
        elif clears:
            clear = samples[height // 2, width // 2]
            before = chunk(b"tRNS", clear.astype(">u2").tobytes())
        # gamma and resolution change nothing, and an unknown chunk neither
        before = chunk(b"gAMA", struct.pack(">I", 45455)) + chunk(b"pHYs", struct.pack(">IIB", 3, 4, 1)) + before + chunk(b"abCd", b"x")
        data = png(samples, depth, colour, interlaced, self.chance, before, pieces=self.chance.choice([1, 3]))
        pixels, text = self.program.decode(data)
        self.assertIsNone(text)
        np.testing.assert_array_equal(pixels, self.wanted(samples, depth, colour, palette, clear))

    def test_written(self):
        for channels in [3, 4]:
            for height, width in [(1, 1), (7, 5), (40, 64)]:
                pixels = self.numbers.integers(0, 256, (height, width, channels)).astype(np.uint8)
                for text in [None, "", "a cat\nSteps: 20, Seed: 7", "猫 на крыше 🙂 é"]:
                    status, data = self.program.encode(pixels, text)
                    self.assertEqual(status, 0, data)
                    got, texts = read_png(data)
                    np.testing.assert_array_equal(got, pixels)
                    self.assertEqual(texts, {} if text is None else {b"parameters": text})
                    again, read = self.program.decode(data)
                    np.testing.assert_array_equal(again, pixels)
                    self.assertEqual(read, text)
                    self.assertEqual(self.program.encode(pixels, text), (0, data))

    def test_text(self):
        """Of other programs: Latin-1, compressed or not, the first of that name that can be read."""
        pixels = np.zeros((1, 1, 1), int)
        def itxt(text, compressed=False):
            return chunk(b"iTXt", b"parameters\0" + bytes([compressed]) + b"\0en\0name\0" + (zlib.compress(text) if compressed else text))
        for chunks, text in [
                (chunk(b"tEXt", b"Software\0x"), None), (chunk(b"tEXt", b"parameters\0caf\xe9 \xff"), "café ÿ"),
                (chunk(b"zTXt", b"parameters\0\0" + zlib.compress(b"a" * 100_000 + b"\xe9")), "a" * 100_000 + "é"),
                (itxt("猫".encode()), "猫"), (itxt("猫".encode() * 5000, True), "猫" * 5000), (itxt(b"\xff\xfe"), None),
                (itxt(b"\xff") + chunk(b"tEXt", b"parameters\0b"), "b"),
                (chunk(b"tEXt", b"parameters\0one") + chunk(b"tEXt", b"parameters\0two"), "one"),
                (chunk(b"tEXt", b"parameters\0"), ""),
                # more than is kept, and more than memory
                (chunk(b"zTXt", b"parameters\0\0" + zlib.compress(b"a" * 5_000_000)), None),
                (chunk(b"zTXt", b"parameters\0\0" + zlib.compress(bytes(60_000_000))), None)]:
            for behind in [False, True]:
                data = png(pixels, 8, GREY, 0, self.chance, *((b"", chunks) if behind else (chunks,)))
                got, read = self.program.decode(data)
                self.assertEqual(got.shape, (1, 1, 3))
                self.assertEqual(read, text)

    def test_files(self):
        pixels = self.numbers.integers(0, 256, (5, 6, 3)).astype(np.uint8)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "a.png"
            for _ in range(2):
                self.assertEqual(self.program.encode(pixels, "x", str(path)), (0, b""))
                got, text = self.program.decode(str(path).encode(), b"l")
                np.testing.assert_array_equal(got, pixels)
                self.assertEqual(text, "x")
                pixels = 255 - pixels
            self.assertEqual([p.name for p in path.parent.iterdir()], ["a.png"])
            for where, status in [(f"{folder}/none.png", NOT_FOUND), (folder, IO_ERROR)]:
                got, sentence = self.program.decode(where.encode(), b"l")
                self.assertIn(got, (status, NOT_FOUND))
                self.assertIn(where, sentence)
            path.write_bytes(b"")
            self.assertEqual(self.program.decode(str(path).encode(), b"l")[0], BAD_DATA)
            for where in [f"{folder}/none/a.png", folder, "x" * 5000 + ".png"]:
                status, sentence = self.program.encode(pixels, None, where)
                self.assertIn(status, (IO_ERROR, INVALID))
                self.assertIn("cannot write", sentence.decode())
            self.assertEqual([p.name for p in path.parent.iterdir()], ["a.png"])

    def test_refused(self):
        samples = self.numbers.integers(0, 256, (6, 5, 3))
        data = png(samples, 8, COLOUR, 0, self.chance)
        for cut in range(len(data) - 12):  # of IEND its name is enough
            got, sentence = self.program.decode(data[:cut])
            self.assertEqual(got, BAD_DATA, sentence)
        lines = zlib.compress(bytes(6 * 16))
        start = SIGNATURE + header(5, 6, 8, COLOUR)
        whole = start + chunk(b"IDAT", lines) + chunk(b"IEND")
        self.assertEqual(self.program.decode(whole)[0].shape, (6, 5, 3))
        for bad, status in [
                (b"\xff\xd8\xff\xe0" + bytes(100), BAD_DATA), (whole[8:], BAD_DATA), (SIGNATURE + chunk(b"IEND"), BAD_DATA),
                (start + chunk(b"IEND"), BAD_DATA), (start + chunk(b"IDAT", lines[:-6]) + chunk(b"IEND"), BAD_DATA),
                (start + chunk(b"IDAT", zlib.compress(bytes(5 * 16))) + chunk(b"IEND"), BAD_DATA),
                (start + chunk(b"IDAT", zlib.compress(b"\x09" * 6 * 16)) + chunk(b"IEND"), BAD_DATA),
                (start + chunk(b"IDAT", bytes(40)) + chunk(b"IEND"), BAD_DATA),
                (start + chunk(b"CRIT", b"x") + chunk(b"IDAT", lines) + chunk(b"IEND"), BAD_DATA),
                (whole.replace(lines, lines[:4] + bytes([lines[4] ^ 1]) + lines[5:]), BAD_DATA),
                (SIGNATURE + header(5, 6, 3, GREY), BAD_DATA), (SIGNATURE + header(5, 6, 8, 5), BAD_DATA),
                (SIGNATURE + header(0, 6, 8, GREY), BAD_DATA), (SIGNATURE + header(5, 6, 8, GREY, 7), BAD_DATA),
                (SIGNATURE + header(5, 6, 8, PALETTE) + chunk(b"IDAT", zlib.compress(bytes(36))) + chunk(b"IEND"), BAD_DATA),
                # of a few bytes that say that they are many
                (start + struct.pack(">I", 2**31 - 1) + b"tEXtparameters\0" + bytes(40), BAD_DATA),
                (start + chunk(b"IDAT", lines) + struct.pack(">I", 2**31 - 1) + b"iCCPx\0\0" + bytes(40), BAD_DATA),
                (SIGNATURE + header(2**31 - 1, 2**31 - 1, 16, COLOUR_ALPHA) + chunk(b"IDAT", lines) + chunk(b"IEND"), BAD_DATA),
                (SIGNATURE + header(20000, 1, 8, GREY) + chunk(b"IDAT", lines) + chunk(b"IEND"), BAD_DATA),
                (SIGNATURE + header(16384, 16384, 8, GREY) + chunk(b"IDAT", lines) + chunk(b"IEND"), UNSUPPORTED)]:
            got, sentence = self.program.decode(bad)
            self.assertEqual(got, status, sentence)
            self.assertIn("PNG", sentence)
        pixels = np.zeros((1, 1, 3), np.uint8)
        self.assertEqual(self.program.encode(pixels, b"\xff\xfe")[0], INVALID)
        self.assertEqual(self.program.encode(pixels, "a" * 5_000_000)[0], INVALID)

    def test_damaged(self):
        """Any bytes are a picture or a sentence."""
        taken = 0
        for i in range(600):
            colour = self.chance.choice(list(DEPTHS))
            depth = self.chance.choice(DEPTHS[colour])
            samples = self.numbers.integers(0, 2**depth, (self.chance.randrange(1, 9), self.chance.randrange(1, 9), SAMPLES[colour]))
            before = chunk(b"PLTE", bytes(3 * 2**depth)) if colour == PALETTE else b""
            data = bytearray(png(samples, depth, colour, i % 2, self.chance, before, chunk(b"tEXt", b"parameters\0cat")))
            for _ in range(self.chance.randrange(1, 4)):
                data[self.chance.randrange(len(data))] ^= 1 << self.chance.randrange(8)
            got, sentence = self.program.decode(bytes(data))
            taken += not isinstance(got, int)
            if isinstance(got, int):
                self.assertIn(got, (BAD_DATA, UNSUPPORTED), sentence)
        self.assertGreater(taken, 5)

    def test_values(self):
        values = self.numbers.normal(0, 0.7, (3, 17, 9)).astype(np.float32)
        values[0, 0] = [np.nan, np.inf, -np.inf, -1, 1, 0, 1e-9, 0.99999, -0.99999]
        self.assertEqual(self.program.ask(bytearray(b"v"), 9, 17, values.tobytes()), 0)
        pixels = np.frombuffer(self.program.bytes(), np.uint8).reshape(17, 9, 3)
        back = np.frombuffer(self.program.bytes(), np.float32).reshape(3, 17, 9)
        wanted = np.clip(127.5 * (np.nan_to_num(values, nan=-1, posinf=9, neginf=-9).astype(np.float64) + 1), 0, 255)
        # halves go to either side
        self.assertLessEqual(np.abs(pixels.transpose(2, 0, 1) - wanted).max(), 0.5 + 1e-4)
        np.testing.assert_allclose(back, pixels.transpose(2, 0, 1) / 127.5 - 1, atol=1e-6)
        self.assertEqual(self.program.ask(bytearray(b"v"), 0, 17, b""), INVALID)
        self.program.bytes()


if __name__ == "__main__":
    unittest.main()

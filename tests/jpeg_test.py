"""JPEG files of every kind that is read, against Pillow, which reads them with a libjpeg of its own, and broken ones; which
way up pictures are, PNGs too; and those that are written, with what they were made with."""
import io
import itertools
import os
import struct
import pathlib
import subprocess
import tempfile
import unittest

import transformers_python  # first: this goes on in a Python that has transformers, and so Pillow
import numpy as np
from PIL import Image, ImageOps

import rdna_program

PROGRAM = os.environ.get("RDNA_PNG_PIXELS", str(rdna_program.ROOT / "build/release/bin/png_pixels"))
UNSUPPORTED, BAD_DATA = 4, 7  # rdna_status


def ask(*parts):
    """(status, the rest of the answer); numbers and bytes as png_pixels.c has them."""
    asked = b"".join(part if i == 0 else struct.pack("<I", part if isinstance(part, int) else len(part)) + (b"" if isinstance(part, int) else part) for i, part in enumerate(parts))
    said = subprocess.run([PROGRAM], input=asked, capture_output=True, check=True).stdout
    return struct.unpack_from("<I", said)[0], said[4:]


def decode_with_text(data):
    """(status, pixels or a sentence, parameters)."""
    status, said = ask(b"a", data)
    if status:
        return status, said[4:].decode(), None
    width, height, channels, has, size = struct.unpack_from("<5I", said)
    assert channels == 3
    return 0, np.frombuffer(said, np.uint8, offset=24 + size).reshape(height, width, 3), said[20 : 20 + size].decode() if has else None


def decode(data):
    """(status, pixels or a sentence) of a picture that says nothing."""
    status, got, text = decode_with_text(data)
    assert text is None
    return status, got


def comment(value, order=">"):
    """EXIF with this as the comment of its user, tables in an order that we do not write."""
    first = struct.pack(order + "HHHII", 2, 0x0112, 3, 1, 0x10000 if order == ">" else 1) + struct.pack(order + "HHIII", 0x8769, 4, 1, 38, 0)
    second = struct.pack(order + "HHHII", 1, 0x9286, 7, len(value), 56) + bytes(4)
    return b"Exif\0\0" + (b"II" if order == "<" else b"MM") + struct.pack(order + "HI", 42, 8) + first + second + value


def smooth(rng, height, width):
    """Like a photograph: codes of noise say little."""
    noise = Image.fromarray(rng.integers(0, 256, (4, 5, 3), np.uint8))
    return noise.resize((width, height), Image.Resampling.BICUBIC)


def written(image, **options):
    file = io.BytesIO()
    image.save(file, "JPEG", **options)
    return file.getvalue()


def png(image, **options):
    file = io.BytesIO()
    image.save(file, "PNG", **options)
    return file.getvalue()


class Jpeg(unittest.TestCase):
    def test_kinds(self):
        rng = np.random.default_rng(1)
        for size in ((1, 1), (7, 3), (16, 16), (33, 70), (100, 41)):
            for options in ({}, dict(progressive=True), dict(quality=20), dict(subsampling=0), dict(subsampling=1),
                            dict(subsampling=2, restart_marker_blocks=2), dict(optimize=True)):
                for kind in ("RGB", "L"):
                    with self.subTest(size=size, kind=kind, **options):
                        data = written(smooth(rng, *size).convert(kind), **options)
                        status, got = decode(data)
                        want = np.asarray(Image.open(io.BytesIO(data)).convert("RGB")).astype(int)
                        self.assertEqual(status, 0, got)
                        self.assertLessEqual(np.abs(got - want).max(), 2)

    def test_orientations(self):
        """Of both kinds of files, as a short number and as a long one, of either order of bytes; Pillow says what is meant."""
        image = smooth(np.random.default_rng(2), 24, 40)
        for orientation in range(10):
            for order, kind in itertools.product("<>", (3, 4)):
                value = struct.pack(order + ("HH" if kind == 3 else "I"), *([orientation, 0] if kind == 3 else [orientation]))
                exif = (b"Exif\0\0" + (b"II" if order == "<" else b"MM") + struct.pack(order + "HI", 42, 8) +
                        struct.pack(order + "HHHI", 1, 0x0112, kind, 1) + value + bytes(4))
                for data in (written(image, exif=exif, quality=95, subsampling=0), png(image, exif=exif), png(image.convert("RGBA"), exif=exif)):
                    want = np.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(data))).convert("RGB")).astype(int)
                    status, got = decode(data)
                    self.assertEqual((status, got.shape), (0, want.shape), (orientation, order, kind))
                    self.assertLessEqual(np.abs(got - want).max(), 2 if data[:1] == b"\xff" else 0, (orientation, order, kind))
        for end in b"MM\0*\0\0\0\x08", b"II*\0\xff\xff\xff\xff", b"II*\0\x08\0\0\0\xff\xff", b"":  # that say nothing
            self.assertEqual(decode(written(image, exif=b"Exif\0\0" + end))[0], 0)
            np.testing.assert_array_equal(decode(png(image, exif=b"Exif\0\0" + end))[1], image)

    def test_opacity_is_left_out(self):
        pixels = np.random.default_rng(3).integers(0, 256, (5, 6, 4), np.uint8)
        np.testing.assert_array_equal(decode(png(Image.fromarray(pixels, "RGBA")))[1], pixels[..., :3])

    def test_printed(self):
        """Of printers' four colours, as all programs write them, greys of one, and the kind whose colours are turned."""
        rng = np.random.default_rng(5)
        pixels = np.concatenate([np.asarray(smooth(rng, 33, 47)), np.asarray(smooth(rng, 33, 47))[..., :1]], 2)
        data = written(Image.fromarray(pixels, "CMYK"), quality=95, subsampling=0)
        want = np.asarray(Image.open(io.BytesIO(data)).convert("RGB")).astype(int)
        status, got = decode(data)
        self.assertEqual(status, 0, got)
        self.assertLessEqual(np.abs(got - want).max(), 2)
        turned = data.replace(b"Adobe\0d\0\0\0\0\0", b"Adobe\0d\0\0\0\0\2")  # YCCK
        self.assertNotEqual(turned, data)
        want = np.asarray(Image.open(io.BytesIO(turned)).convert("RGB")).astype(int)
        status, got = decode(turned)
        self.assertEqual(status, 0, got)
        self.assertLessEqual(np.abs(got - want).max(), 2)

    def test_comments(self):
        """As other programs write them: of UTF-16 in both orders, whatever the file's own, and of ASCII."""
        image, text = smooth(np.random.default_rng(6), 9, 8), "a löwe 🦁\nSteps: 3"
        for order in "<>":
            for value, want in ((b"UNICODE\0" + text.encode("utf-16-be"), text), (b"UNICODE\0" + text.encode("utf-16-le"), text), (b"ASCII\0\0\0Steps: 3", "Steps: 3"),
                                (b"UNICODE\0" + b"\xd8\x3e\0a", "\ufffda"), (b"JIS\0\0\0\0\0x", None), (b"UNICODE\0", None), (b"ASCII\0\0\0\xff", None), (b"", None)):
                self.assertEqual(decode_with_text(written(image, exif=comment(value, order)))[2], want)
            whole = comment(b"ASCII\0\0\0Steps: 3", order)
            for end in range(7, len(whole)):  # cut anywhere
                self.assertIsNone(decode_with_text(written(image, exif=whole[:end]))[2])

    def test_written(self):
        rng = np.random.default_rng(7)
        texts = (None, "Steps: 3", "ein Löwe, 獅子 🦁\nNegative prompt: x", "x" * 32736)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "a.JPG"
            for channels, text in itertools.product((3, 4), texts):
                pixels = np.concatenate([np.asarray(smooth(rng, 30, 41)), np.asarray(smooth(rng, 30, 41))[..., :1]], 2)[..., :channels]
                pixels = np.ascontiguousarray(pixels)
                asked = (41, 30, channels, int(text is not None), (text or "").encode(), pixels.tobytes())
                self.assertEqual(ask(b"s", bytes(path), *asked)[0], 0)
                self.assertEqual(path.read_bytes()[:3], b"\xff\xd8\xff")
                with Image.open(path) as image:
                    self.assertEqual((image.format, image.size), ("JPEG", (41, 30)))
                    said = image.getexif().get_ifd(0x8769).get(0x9286)
                    self.assertEqual(said and said.decode("latin-1").encode("latin-1")[8:].decode("utf-16-be") if isinstance(said, bytes) else said, text)
                    got = np.asarray(image.convert("RGB")).astype(int)
                opacity = pixels[..., 3:].astype(float) / 255 if channels == 4 else 1
                want = pixels[..., :3] * opacity + 255 * (1 - opacity)
                self.assertLess(np.abs(got - want).mean(), 1.5)
                self.assertEqual(decode_with_text(path.read_bytes())[2], text)
            status, said = ask(b"s", bytes(path), 41, 30, 3, 1, b"x" * 32741, pixels[..., :3].tobytes())
            self.assertIn(b"a JPEG has room for", said)
            for name in ("a.webp", "a.gif", "a.b"):
                status, said = ask(b"s", bytes(path.with_name(name)), 41, 30, 3, 0, b"", pixels[..., :3].tobytes())
                self.assertEqual((status, b"as .png and .jpg, and it ends in" in said), (UNSUPPORTED, True), said)
            self.assertEqual([p.name for p in path.parent.iterdir()], ["a.JPG"])

    def test_broken(self):
        rng = np.random.default_rng(4)
        data = written(smooth(rng, 60, 50))
        for end in (0, 1, 2, 3, 20, len(data) // 2, len(data) - 200):
            status, sentence = decode(data[:end])
            self.assertIn(status, (BAD_DATA, UNSUPPORTED), end)
            self.assertTrue(sentence)
        frame = data.index(b"\xff\xc0") + 5
        for sides, wrong in ((struct.pack(">HH", 65500, 65500), UNSUPPORTED), (struct.pack(">HH", 16384, 16384), UNSUPPORTED),
                             (struct.pack(">HH", 0, 5), BAD_DATA)):
            self.assertEqual(decode(data[:frame] + sides + data[frame + 4 :])[0], wrong)
        for format, sentence in (("GIF", "this is a GIF"), ("BMP", "this is a bitmap"), ("TIFF", "this is a TIFF")):
            file = io.BytesIO()
            Image.new("RGB", (9, 9)).save(file, format)
            status, said = decode(file.getvalue())
            self.assertEqual((status, sentence in said), (UNSUPPORTED, True), said)
        progressive = written(smooth(rng, 20, 20), progressive=True)
        scan = progressive.rindex(b"\xff\xda")
        status, said = decode(progressive[:-2] + progressive[scan:-2] * 120 + progressive[-2:])
        self.assertEqual((status, "more scans" in said), (UNSUPPORTED, True), said)
        for _ in range(300):  # whatever comes of it, it comes back
            broken = bytearray(data)
            for at in rng.integers(2, len(data), 3):
                broken[at] = rng.integers(256)
            decode(bytes(broken))


if __name__ == "__main__":
    unittest.main()

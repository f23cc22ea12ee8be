"""JPEG files of every kind that is read, against Pillow, which reads them with a libjpeg of its own, and broken ones; and
which way up pictures are, PNGs too."""
import io
import itertools
import os
import struct
import subprocess
import unittest

import transformers_python  # first: this goes on in a Python that has transformers, and so Pillow
import numpy as np
from PIL import Image, ImageOps

import rdna_program

PROGRAM = os.environ.get("RDNA_PNG_PIXELS", str(rdna_program.ROOT / "build/release/bin/png_pixels"))
UNSUPPORTED, BAD_DATA = 4, 7  # rdna_status


def decode(data):
    """(status, pixels or a sentence)."""
    asked = b"a" + struct.pack("<I", len(data)) + data
    said = subprocess.run([PROGRAM], input=asked, capture_output=True, check=True).stdout
    status, = struct.unpack_from("<I", said)
    if status:
        return status, said[8:].decode()
    width, height, channels, _, parameters = struct.unpack_from("<5I", said, 4)
    assert channels == 3 and parameters == 0
    return 0, np.frombuffer(said, np.uint8, offset=28).reshape(height, width, 3)


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
        for kind, format, sentence in (("CMYK", "JPEG", "four colours of printers"), ("RGB", "GIF", "this is a GIF"),
                                       ("RGB", "BMP", "this is a bitmap"), ("RGB", "TIFF", "this is a TIFF")):
            file = io.BytesIO()
            Image.new(kind, (9, 9)).save(file, format)
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

"""Arrays, textures and surfaces, and the image instructions that HIP's texture functions compile to, by kernels in assembly.
Samples are held against NumPy's doubles: the formulas of the guides to HIP and CUDA, with weights of eight bits; whole numbers,
copies and gathers bit by bit. Usage: texture_test.py librdna_emulator.so"""
import ctypes
import os
import sys

import numpy as np

from emulator import Checks
from hip_library import INVALID_HANDLE, INVALID_VALUE, LAUNCH_FAILURE, NOT_SUPPORTED, SUCCESS, Hip, said, size

TARGETS = ["gfx1030", "gfx1100", "gfx1201"]
P = ctypes.c_void_p
TO_DEVICE, TO_HOST, BETWEEN, DEFAULT = 1, 2, 3, 4
SIGNED, UNSIGNED, FLOAT = 0, 1, 2
WRAP, CLAMP, MIRROR, BORDER = range(4)
LAYERED, SURFACE, CUBE, GATHER = 1, 2, 4, 8
ARRAY, LEVELS, LINEAR, PITCH_2D = range(4)
N = 64

# A kernel for each instruction: coordinates of any number of words, four words out. The registers of an address are named one by
# one, which all three encodings have.
SOURCE = """
typedef unsigned v4 __attribute__((ext_vector_type(4)));
typedef unsigned v8 __attribute__((ext_vector_type(8)));
#define ID __builtin_amdgcn_workitem_id_x() + 64 * __builtin_amdgcn_workgroup_id_x()
#if defined(__gfx1201__)
#define WAIT "s_wait_samplecnt 0x0\\ns_wait_loadcnt 0x0\\ns_wait_storecnt 0x0"
#else
#define WAIT "s_waitcnt vmcnt(0)\\ns_waitcnt_vscnt null, 0x0"
#endif
#define KERNEL(name, ...) extern "C" __attribute__((global)) void name(unsigned *out, const unsigned *in, const unsigned *t, int stride) { \\
  int i = ID; const v8 image = *(const __attribute__((address_space(4))) v8 *)t; const v4 sampler = *(const __attribute__((address_space(4))) v4 *)(t + 12); \\
  unsigned a = in[i], b = in[i + stride], c = in[i + 2 * stride], d = in[i + 3 * stride], e = in[i + 4 * stride]; v4 r = {0, 0, 0, 0}; \\
  __VA_ARGS__; out[i] = r.x; out[i + stride] = r.y; out[i + 2 * stride] = r.z; out[i + 3 * stride] = r.w; }
#define SAMPLE(name, op, address, rest) KERNEL(name, asm volatile(op " %0, " address ", %1, %2 dmask:" rest "\\n" WAIT \\
  : "=&v"(r) : "s"(image), "s"(sampler), "v"(a), "v"(b), "v"(c), "v"(d), "v"(e)))
#define LOAD(name, op, address, rest) KERNEL(name, asm volatile(op " %0, " address ", %1 dmask:" rest "\\n" WAIT \\
  : "=&v"(r) : "s"(image), "v"(a), "v"(b), "v"(c), "v"(d)))
#define STORE(name, address, rest) KERNEL(name, r.x = out[i]; r.y = out[i + stride]; r.z = out[i + 2 * stride]; r.w = out[i + 3 * stride]; \\
  asm volatile("image_store %4, " address ", %0 dmask:" rest "\\n" WAIT : : "s"(image), "v"(a), "v"(b), "v"(c), "v"(r) : "memory"))
SAMPLE(sample_1d, "image_sample_lz", "%3", "0xf dim:SQ_RSRC_IMG_1D")
SAMPLE(sample_2d, "image_sample_lz", "[%3, %4]", "0xf dim:SQ_RSRC_IMG_2D")
SAMPLE(sample_3d, "image_sample_lz", "[%3, %4, %5]", "0xf dim:SQ_RSRC_IMG_3D")
SAMPLE(sample_1d_array, "image_sample_lz", "[%3, %4]", "0xf dim:SQ_RSRC_IMG_1D_ARRAY")
SAMPLE(sample_2d_array, "image_sample_lz", "[%3, %4, %5]", "0xf dim:SQ_RSRC_IMG_2D_ARRAY")
SAMPLE(sample_l, "image_sample_l", "[%3, %4, %5]", "0xf dim:SQ_RSRC_IMG_2D")
SAMPLE(sample_b, "image_sample_b", "[%5, %3, %4]", "0xf dim:SQ_RSRC_IMG_2D")
SAMPLE(sample_d, "image_sample_d", "[%5, %6, %3, %4]", "0xf dim:SQ_RSRC_IMG_1D_ARRAY")
SAMPLE(sample_g16, "image_sample_d_g16", "[%5, %6, %3, %4]", "0xf dim:SQ_RSRC_IMG_2D")
SAMPLE(sample_a16, "image_sample_lz", "%3", "0xf dim:SQ_RSRC_IMG_2D a16")
SAMPLE(sample_cube, "image_sample_lz", "[%3, %4, %5]", "0xf dim:SQ_RSRC_IMG_CUBE")
SAMPLE(sample_unorm, "image_sample_lz", "[%3, %4]", "0xf dim:SQ_RSRC_IMG_2D unorm")
SAMPLE(gather_0, "image_gather4_lz", "[%3, %4]", "0x1 dim:SQ_RSRC_IMG_2D")
SAMPLE(gather_2, "image_gather4_lz", "[%3, %4]", "0x4 dim:SQ_RSRC_IMG_2D")
LOAD(load_1d, "image_load", "%2", "0xf dim:SQ_RSRC_IMG_1D")
LOAD(load_2d, "image_load", "[%2, %3]", "0xf dim:SQ_RSRC_IMG_2D")
LOAD(load_3d, "image_load", "[%2, %3, %4]", "0xf dim:SQ_RSRC_IMG_3D")
LOAD(load_2d_array, "image_load", "[%2, %3, %4]", "0xf dim:SQ_RSRC_IMG_2D_ARRAY")
LOAD(load_mip, "image_load_mip", "[%2, %3, %4]", "0xf dim:SQ_RSRC_IMG_2D")
KERNEL(load_part, asm volatile("image_load %0, [%2, %3], %1 dmask:0xa dim:SQ_RSRC_IMG_2D\\n" WAIT : "=&v"(*(unsigned long long *)&r) : "s"(image), "v"(a), "v"(b)))
KERNEL(load_d16, asm volatile("image_load %0, [%2, %3], %1 dmask:0xf dim:SQ_RSRC_IMG_2D d16\\n" WAIT : "=&v"(*(unsigned long long *)&r) : "s"(image), "v"(a), "v"(b)))
STORE(store_1d, "%1", "0xf dim:SQ_RSRC_IMG_1D")
STORE(store_2d, "[%1, %2]", "0xf dim:SQ_RSRC_IMG_2D")
STORE(store_3d, "[%1, %2, %3]", "0xf dim:SQ_RSRC_IMG_3D")
KERNEL(fetch, const v4 buffer = *(const __attribute__((address_space(4))) v4 *)t;
  asm volatile("buffer_load_format_xyzw %0, %1, %2, %3 idxen\\n" WAIT : "=&v"(r) : "v"(a), "s"(buffer), "s"(0)))
#if defined(__gfx1201__)
#define FEW "s_wait_storecnt 0x0"
#else
#define FEW "s_nop 0"
#endif
KERNEL(no_wait, asm volatile("image_sample_lz %0, [%3, %4], %1, %2 dmask:0xf dim:SQ_RSRC_IMG_2D\\n" FEW : "=&v"(r) : "s"(image), "s"(sampler), "v"(a), "v"(b)))
"""


class Channels(ctypes.Structure):
    _fields_ = [("bits", ctypes.c_int * 4), ("kind", ctypes.c_int)]


class Extent(ctypes.Structure):
    _fields_ = [("width", size), ("height", size), ("depth", size)]


class Pitched(ctypes.Structure):
    _fields_ = [("at", P), ("pitch", size), ("width", size), ("height", size)]


class Copy(ctypes.Structure):
    _fields_ = [("src_array", P), ("src_at", size * 3), ("src", Pitched), ("dst_array", P), ("dst_at", size * 3), ("dst", Pitched),
                ("extent", Extent), ("kind", ctypes.c_int)]


class Resource(ctypes.Structure):
    class Of(ctypes.Union):
        class Linear(ctypes.Structure):
            _fields_ = [("at", P), ("channels", Channels), ("bytes", size)]

        class Rows(ctypes.Structure):
            _fields_ = [("at", P), ("channels", Channels), ("width", size), ("height", size), ("pitch", size)]
        _fields_ = [("array", P), ("linear", Linear), ("rows", Rows)]
    _fields_ = [("type", ctypes.c_int), ("of", Of)]


class Settings(ctypes.Structure):
    _fields_ = [("address", ctypes.c_int * 3), ("filter", ctypes.c_int), ("normalized", ctypes.c_int), ("srgb", ctypes.c_int), ("border", ctypes.c_float * 4),
                ("unit", ctypes.c_int), ("anisotropy", ctypes.c_uint), ("level_filter", ctypes.c_int), ("bias", ctypes.c_float), ("low", ctypes.c_float),
                ("high", ctypes.c_float)]


class View(ctypes.Structure):
    _fields_ = [("format", ctypes.c_int), ("width", size), ("height", size), ("depth", size), ("levels", ctypes.c_uint * 2), ("layers", ctypes.c_uint * 2)]


def channels(dtype, count):
    kind = {"f": FLOAT, "i": SIGNED, "u": UNSIGNED}[dtype.kind]
    return Channels((ctypes.c_int * 4)(*[8 * dtype.itemsize if c < count else 0 for c in range(4)]), kind)


class Images:
    """What a test makes of arrays; texels are NumPy's, indexed [z][y][x][component]."""

    def __init__(self, hip, device):
        self.hip, self.device = hip, device
        self.out, self.inp = hip.made("hipMalloc", size(16 * N)), hip.made("hipMalloc", size(20 * N))

    def array(self, texels, shape, flags=0):
        """An array with these texels; |shape|: width, height, depth, as the call takes them."""
        kind = channels(texels.dtype, texels.shape[-1])
        array = self.hip.made("hipMalloc3DArray", ctypes.byref(kind), Extent(*shape), flags)
        self.fill(array, texels)
        return array

    def box(self, texels):
        data = np.ascontiguousarray(texels)
        return data, Pitched(data.ctypes.data, data.shape[2] * data.strides[2], data.shape[2], data.shape[1])

    def fill(self, array, texels):
        data, memory = self.box(texels)
        self.hip.ok("hipMemcpy3D", ctypes.byref(Copy(src=memory, dst_array=array, extent=Extent(*data.shape[2::-1]), kind=TO_DEVICE)))

    def read(self, array, like):
        data, memory = self.box(np.zeros_like(like))
        self.hip.ok("hipMemcpy3D", ctypes.byref(Copy(src_array=array, dst=memory, extent=Extent(*data.shape[2::-1]), kind=TO_HOST)))
        return data

    def texture(self, resource, address=CLAMP, linear=0, normalized=0, unit=0, srgb=0, view=None):
        settings = Settings((ctypes.c_int * 3)(address, address, address), linear, normalized, srgb, (0, 0, 0, 0), unit)
        return self.hip.made("hipCreateTextureObject", ctypes.byref(resource), ctypes.byref(settings), view)

    def run(self, kernel, texture, words, out=None):
        """The code, and four words of each lane. |words|: rows of N coordinates."""
        given = np.zeros((5, N), np.uint32)
        for i, row in enumerate(words):
            given[i] = np.ascontiguousarray(row).view(np.uint32)
        self.hip.write(self.inp, given)
        self.hip.write(self.out, np.zeros((4, N), np.uint32) if out is None else out)
        code, text = said(lambda: self.hip.run(kernel, self.out, self.inp, texture, ctypes.c_int(N), threads=N, device=self.device))
        self.text = text
        return code, self.hip.read(self.out, 4 * N, np.uint32).reshape(4, N)


def resource(array):
    return Resource(ARRAY, Resource.Of(array=array.value))


def value_of(texels, normalized, srgb=False):
    """Components as doubles."""
    kind = texels.dtype
    if kind.kind == "f" or not normalized or kind.itemsize == 4:
        return texels.astype(np.float64)
    most = np.iinfo(kind).max
    value = np.maximum(texels.astype(np.float64) / most, -1)
    if srgb:
        curved = np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)
        value = np.concatenate([curved[..., :3], value[..., 3:]], -1)
    return value


def turned(i, n, address):
    """The texel of a place along a dimension, and whether it is the border."""
    if address == WRAP:
        return i % n, np.zeros(i.shape, bool)
    if address == MIRROR:
        m = i % (2 * n)
        return np.where(m < n, m, 2 * n - 1 - m), np.zeros(i.shape, bool)
    return np.clip(i, 0, n - 1), (address == BORDER) & ((i < 0) | (i >= n))


def oracle(values, coordinates, address, linear, unit, eight=True):
    """Samples of values[z][y][x][c] at rows of coordinates (x, y, z), as many as the image has dimensions."""
    sizes = values.shape[2::-1]
    taps = []
    for x, n in zip(coordinates, sizes):
        x = x.astype(np.float64) * (n if unit else 1)
        if linear:
            fixed = np.floor((x - 0.5) * 256 + 0.5) / 256 if eight else x - 0.5
            i = np.floor(fixed)
            taps.append([(i, 1 - (fixed - i)), (i + 1, fixed - i)])
        else:
            taps.append([(np.floor(np.floor(x * 256 + 0.5) / 256), np.ones(x.shape))])
    total = np.zeros((coordinates[0].size, values.shape[3]))
    for choice in np.ndindex(*[len(t) for t in taps]):
        weight, place, out = np.ones(coordinates[0].shape), [0, 0, 0], np.zeros(coordinates[0].shape, bool)
        for d, k in enumerate(choice):
            at, w = taps[d][k]
            place[d], border = turned(at.astype(np.int64), sizes[d], address)
            weight, out = weight * w, out | border
        total += np.where(out, 0, weight)[:, None] * values[place[2], place[1], place[0]]
    return total


def random_texels(random, dtype, shape):
    if dtype.kind == "f":
        return random.standard_normal(shape).astype(dtype)
    info = np.iinfo(dtype)
    return random.integers(info.min, info.max, shape, dtype, endpoint=True)


def floats(rows, count):
    return rows[:count].view(np.float32).T.astype(np.float64)


def test_samples(im, c, random):
    """Every way to clamp, both filters, both kinds of coordinates, of one to three dimensions, of odd sizes."""
    types = [np.dtype(t) for t in ("float32", "float16", "uint8", "int8", "uint16", "int16")]
    for dimensions, kernel, shape in ((1, "sample_1d", (13,)), (2, "sample_2d", (13, 7)), (3, "sample_3d", (5, 6, 7))):
        for number, (address, linear, unit) in enumerate(np.ndindex(4, 2, 2)):
            if not unit and address in (WRAP, MIRROR):
                continue  # test_settings
            dtype, count = types[number % len(types)], (1, 2, 4)[number % 3]
            full = tuple(shape[::-1]) + (count,)
            texels = random_texels(random, dtype, (1,) * (4 - len(full)) + full)
            array = im.array(texels, shape + (0,) * (3 - len(shape)))
            texture = im.texture(resource(array), address, linear, 1, unit)
            spans = [np.float32(1) if unit else np.float32(n) for n in shape]
            places = [(random.uniform(-1.5, 2.5, N) * s).astype(np.float32) for s in spans]
            for p, n in zip(places, shape):  # between texels and on them
                p[:8] = (np.arange(8) * 0.5 / (n if unit else 1)).astype(np.float32)
            code, got = im.run(kernel, texture, places)
            want = oracle(value_of(texels, True), places, address, linear, unit)
            error = np.abs(floats(got, count) - want).max() if code == SUCCESS else np.inf
            rounding = 2e-6 * max(1.0, np.abs(value_of(texels, True)).max())
            name = f"{dtype} x {count}, {dimensions}D, address {address}, linear {linear}, unit {unit}"
            c.expect(name, error <= rounding, (code, error, im.text))
            if linear:
                near = np.abs(floats(got, count) - oracle(value_of(texels, True), places, address, linear, unit, eight=False)).max()
                spread = 2 * np.abs(value_of(texels, True)).max()
                c.expect(name + ", without rounded weights", near <= dimensions * spread / 512 + rounding, near)
            rest = {1: (0, 0, 1.0), 2: (0, 1.0), 4: ()}[count]
            tail = got[count:].view(np.float32).T
            c.expect(name + ", components that are not there", (tail == np.array(rest, np.float32)).all())
            im.hip.ok("hipDestroyTextureObject", texture)
            im.hip.ok("hipFreeArray", array)


def test_places_that_are_none(im, c, random):
    texels = random_texels(random, np.dtype("float32"), (1, 4, 4, 1))
    array = im.array(texels, (4, 4, 0))
    odd = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, 2.0 ** 31, -2.0 ** 31, 1e-30] * 8, np.float32)
    for address in (WRAP, CLAMP, MIRROR, BORDER):
        for linear in (0, 1):
            texture = im.texture(resource(array), address, linear, 0, 1)
            code, got = im.run("sample_2d", texture, [odd, np.full(N, 0.4, np.float32)])
            c.expect(f"odd places, address {address}, linear {linear}", code == SUCCESS and np.isfinite(got.view(np.float32)).all(), (code, im.text))
            if address == CLAMP and not linear:
                c.expect("ends of rows", (got[0].view(np.float32)[1:7] == texels[0, 1, [3, 0, 3, 0, 3, 0], 0]).all(), got[0].view(np.float32)[:8])
            im.hip.ok("hipDestroyTextureObject", texture)
    im.hip.ok("hipFreeArray", array)


def test_other_forms(im, c, random):
    """Level, bias, gradients, halves of coordinates: with one level all are the same sample."""
    texels = random_texels(random, np.dtype("float32"), (1, 9, 11, 4))
    array = im.array(texels, (11, 9, 0))
    for linear, unit in ((1, 1), (0, 0)):
        texture = im.texture(resource(array), CLAMP, linear, 0, unit)
        x = random.uniform(0, 1, N).astype(np.float16) if unit else (random.integers(0, 11, N) + 0.5).astype(np.float16)
        y = random.uniform(0, 1, N).astype(np.float16) if unit else (random.integers(0, 9, N) + 0.5).astype(np.float16)
        places, noise = [x.astype(np.float32), y.astype(np.float32)], random.uniform(-3, 3, (2, N)).astype(np.float32)
        want = oracle(texels.astype(np.float64), places, CLAMP, linear, unit)
        for kernel in ("sample_l", "sample_b", "sample_g16"):
            code, got = im.run(kernel, texture, places + list(noise))
            c.expect(f"{kernel}, linear {linear}", code == SUCCESS and np.abs(floats(got, 4) - want).max() < 2e-5, (code, im.text))
        code, got = im.run("sample_a16", texture, [x.view(np.uint16).astype(np.uint32) | y.view(np.uint16).astype(np.uint32) << 16])
        c.expect(f"halves, linear {linear}", code == SUCCESS and np.abs(floats(got, 4) - want).max() < 2e-5, (code, im.text))
        im.hip.ok("hipDestroyTextureObject", texture)
    texture = im.texture(resource(array), CLAMP, 0, 0, 1)
    places = [(random.integers(0, 11, N) + 0.5).astype(np.float32), (random.integers(0, 9, N) + 0.5).astype(np.float32)]
    code, got = im.run("sample_unorm", texture, places)
    c.expect("coordinates that the instruction says count texels", code == SUCCESS and (floats(got, 4) == oracle(texels.astype(np.float64), places, CLAMP, 0, 0)).all())
    im.hip.ok("hipDestroyTextureObject", texture)
    im.hip.ok("hipFreeArray", array)


def test_layers(im, c, random):
    for kernel, shape, full in (("sample_1d_array", (12, 0, 5), (5, 1, 12, 2)), ("sample_2d_array", (6, 7, 4), (4, 7, 6, 2))):
        texels = random_texels(random, np.dtype("float32"), full)
        array = im.array(texels, shape, LAYERED)
        c.expect("what lies in layers", (im.read(array, texels) == texels).all())
        texture = im.texture(resource(array), CLAMP, 1, 0, 1)
        layers = np.concatenate([np.array([-3, 0.4, 0.6, 1.5, 2.5, 99], np.float32), random.integers(0, full[0], N - 6).astype(np.float32)])
        places = [random.uniform(0, 1, N).astype(np.float32) for _ in range(1 if full[1] == 1 else 2)]
        code, got = im.run(kernel, texture, places + [layers])
        which = np.clip(np.rint(layers).astype(int), 0, full[0] - 1)
        want = np.stack([oracle(texels[z:z + 1].astype(np.float64), [p[i:i + 1] for p in places], CLAMP, 1, 1)[0] for i, z in enumerate(which)])
        c.expect(kernel, code == SUCCESS and np.abs(floats(got, 2) - want).max() < 1e-5, (code, im.text))
        if full[1] == 1:
            code, got = im.run("sample_d", texture, places + [layers, layers, layers])
            c.expect("sample_d", code == SUCCESS and np.abs(floats(got, 2) - want).max() < 1e-5, (code, im.text))
        im.hip.ok("hipDestroyTextureObject", texture)
        im.hip.ok("hipFreeArray", array)


def test_gather(im, c, random):
    texels = random_texels(random, np.dtype("uint8"), (1, 6, 5, 4))
    array = im.array(texels, (5, 6, 0), GATHER)
    texture = im.texture(resource(array), CLAMP, 0, 0, 0)
    places = [(random.integers(-8, 40, N) / 8 + 1 / 16).astype(np.float32) for _ in range(2)]
    left, low = (np.floor(p.astype(np.float64) - 0.5).astype(int) for p in places)
    for component in (0, 2):
        code, got = im.run(f"gather_{component}", texture, places)
        want = [texels[0, np.clip(low + dy, 0, 5), np.clip(left + dx, 0, 4), component] for dx, dy in ((0, 1), (1, 1), (1, 0), (0, 0))]
        c.expect(f"a gather of component {component}", code == SUCCESS and (got == np.array(want)).all(), (code, im.text))
    im.hip.ok("hipDestroyTextureObject", texture)
    im.hip.ok("hipFreeArray", array)


def make_surface(im, array):
    out = P()
    code = im.hip.code("_Z22hipCreateSurfaceObjectPP13__hip_surfacePK15hipResourceDesc", ctypes.byref(out), ctypes.byref(resource(array)))
    return code, out


def test_surfaces(im, c, random):
    """Loads and stores bit by bit; outside zeros are read, and nothing is written."""
    for dtype, count in (("float32", 4), ("float16", 2), ("uint8", 4), ("int8", 1), ("uint16", 2), ("int32", 4), ("uint32", 1)):
        dtype = np.dtype(dtype)
        texels = random_texels(random, dtype, (1, 7, 9, count))
        array = im.array(texels, (9, 7, 0), SURFACE)
        code, surface = make_surface(im, array)
        c.expect("a surface", code == SUCCESS)
        x, y = random.integers(-3, 13, N).astype(np.int32), random.integers(-3, 11, N).astype(np.int32)
        inside = (x >= 0) & (x < 9) & (y >= 0) & (y < 7)
        code, got = im.run("load_2d", surface, [x, y])
        there = np.where(inside[:, None], texels[0, np.clip(y, 0, 6), np.clip(x, 0, 8)], np.zeros(1, dtype))
        as_words = there.astype(np.float32).view(np.uint32) if dtype.kind == "f" else there.astype(np.int64).astype(np.uint32)
        c.expect(f"loads of {dtype} x {count}", code == SUCCESS and (got[:count].T == as_words).all(), (code, im.text))
        order = random.permutation(63)
        x, y = np.append(order % 9, 50).astype(np.int32), np.append(order // 9, 50).astype(np.int32)
        new = random_texels(random, dtype, (N, count))
        given = np.zeros((4, N), np.uint32)
        given[:count] = (new.astype(np.float32).view(np.uint32) if dtype.kind == "f" else new.astype(np.int64).astype(np.uint32)).T
        code, got = im.run("store_2d", surface, [x, y], given)
        texels[0, order // 9, order % 9] = new[:63]
        c.expect(f"stores of {dtype} x {count}", code == SUCCESS and (im.read(array, texels) == texels).all(), (code, im.text))
        if (dtype, count) == (np.dtype("uint8"), 4):
            given[:] = np.array([300, 0xffffffff, 7, 255], np.uint32)[:, None]
            im.run("store_2d", surface, [x, y], given)
            c.expect("integers that do not fit", (im.read(array, texels)[0, :, :] == [255, 255, 7, 255]).all())
        im.hip.ok("_Z23hipDestroySurfaceObjectP13__hip_surface", surface)
        im.hip.ok("hipFreeArray", array)
    texels = random_texels(random, np.dtype("float32"), (1, 8, 8, 4))
    array = im.array(texels, (8, 8, 0))
    surface = make_surface(im, array)[1]
    x, y = np.arange(N, dtype=np.int32) % 8, np.arange(N, dtype=np.int32) // 8
    code, got = im.run("load_part", surface, [x, y])
    c.expect("two components", code == SUCCESS and (got[:2].view(np.float32).T == texels[0, y, x][:, [1, 3]]).all(), im.text)
    code, got = im.run("load_d16", surface, [x, y])
    halves = np.ascontiguousarray(got[:2].T).view(np.float16)
    c.expect("halves", code == SUCCESS and (halves == texels[0, y, x].astype(np.float16)).all(), im.text)
    code, got = im.run("load_mip", surface, [x, y, np.zeros(N, np.int32)])
    c.expect("the first level", code == SUCCESS and (got.view(np.float32).T == texels[0, y, x]).all(), im.text)
    code, got = im.run("load_mip", surface, [x, y, np.ones(N, np.int32)])
    c.expect("another level", code == LAUNCH_FAILURE and "A level beside the first" in im.text, (code, im.text))
    for kernel, shape, flags in (("load_3d", (4, 3, 5), 0), ("load_2d_array", (4, 3, 5), LAYERED)):
        box = random_texels(random, np.dtype("int16"), shape[::-1] + (1,))
        other = im.array(box, shape, flags)
        x, y, z = (random.integers(0, n + 1, N).astype(np.int32) for n in shape)
        there = (x < 4) & (y < 3) & (z < 5)
        code, got = im.run(kernel, make_surface(im, other)[1] if not flags else im.texture(resource(other)), [x, y, z])
        want = np.where(there, box[np.clip(z, 0, 4), np.clip(y, 0, 2), np.clip(x, 0, 3), 0], 0)
        c.expect(kernel, code == SUCCESS and (got[0].view(np.int32) == want).all(), (code, im.text))
        if not flags:
            box[:] = 0
            x, y, z = np.arange(N, dtype=np.int32) % 4, np.arange(N, dtype=np.int32) // 4 % 3, np.arange(N, dtype=np.int32) // 12
            given = np.zeros((4, N), np.uint32)
            given[0] = np.arange(N)
            im.fill(other, box)
            code, _ = im.run("store_3d", make_surface(im, other)[1], [x, y, z], given)
            box.reshape(-1)[:] = np.arange(60)
            c.expect("stores in a box", code == SUCCESS and (im.read(other, box) == box).all(), im.text)


def test_formats(im, c, random):
    """Views of another format, sRGB, whole numbers, and memory that is no array."""
    hip = im.hip
    texels = random_texels(random, np.dtype("uint8"), (1, 8, 8, 4))
    array = im.array(texels, (8, 8, 0))
    x, y = (np.arange(N) % 8 + 0.5).astype(np.float32), (np.arange(N) // 8 + 0.5).astype(np.float32)
    code, got = im.run("sample_2d", im.texture(resource(array)), [x, y])
    c.expect("whole numbers", code == SUCCESS and (got.T == texels[0].reshape(N, 4)).all(), im.text)
    code, got = im.run("sample_2d", im.texture(resource(array), normalized=1, srgb=1), [x, y])
    c.expect("sRGB", code == SUCCESS and np.abs(floats(got, 4) - value_of(texels, True, True)[0].reshape(N, 4)).max() < 1e-6, im.text)
    code, got = im.run("sample_2d", im.texture(resource(array), view=ctypes.byref(View(format=0x0d))), [x, y])
    c.expect("a view of words", code == SUCCESS and (got[0] == texels[0].reshape(-1).view(np.uint32)).all(), im.text)
    code, got = im.run("sample_2d", im.texture(resource(array), linear=1), [x, y])
    c.expect("a linear filter over integers", code == LAUNCH_FAILURE and "A linear filter over integers" in im.text, (code, im.text))
    code, got = im.run("sample_3d", im.texture(resource(array)), [x, y])
    c.expect("another kind of image", code == LAUNCH_FAILURE and "not that of such an image" in im.text, (code, im.text))
    code, got = im.run("sample_cube", im.texture(resource(array)), [x, y])
    c.expect("a cube", code == LAUNCH_FAILURE, (code, im.text))
    pitch, rows = 512, random_texels(random, np.dtype("int16"), (5, 256))
    memory = hip.made("hipMalloc", size(rows.nbytes))
    hip.write(memory, rows)
    flat = Resource(PITCH_2D, Resource.Of(rows=Resource.Of.Rows(memory.value, channels(rows.dtype, 2), 7, 5, pitch)))
    places = [random.uniform(-1, 8, N).astype(np.float32), random.uniform(-1, 6, N).astype(np.float32)]
    code, got = im.run("sample_2d", im.texture(flat, CLAMP, 1, 1, 0), places)
    want = oracle(value_of(rows.reshape(1, 5, 128, 2)[:, :, :7], True), places, CLAMP, 1, 0)
    c.expect("rows of memory", code == SUCCESS and np.abs(floats(got, 2) - want).max() < 2e-6, (code, im.text))
    for dtype, count, normalized in (("uint8", 4, 1), ("int16", 2, 0), ("float32", 1, 0), ("float16", 4, 0), ("uint32", 2, 0)):
        line = random_texels(random, np.dtype(dtype), (N, count))
        hip.write(memory, line)
        one = Resource(LINEAR, Resource.Of(linear=Resource.Of.Linear(memory.value, channels(line.dtype, count), line.nbytes)))
        at = random.permutation(N).astype(np.int32)
        code, got = im.run("fetch", im.texture(one, normalized=normalized), [at])
        value = value_of(line[at], normalized)
        want = value.astype(np.float32).view(np.uint32) if normalized or line.dtype.kind == "f" else line[at].astype(np.int64).astype(np.uint32)
        c.expect(f"fetches of {dtype} x {count}", code == SUCCESS and (got[:count].T == want).all(), (code, im.text))
    fields = (ctypes.c_uint * 20).from_buffer_copy(hip.read(im.texture(resource(array), normalized=1), 20, np.uint32).tobytes())
    c.expect("what device code finds behind the descriptor", list(fields[8:11]) == [2, 8, 8], list(fields[8:11]))
    got = Resource()
    hip.ok("hipGetTextureObjectResourceDesc", ctypes.byref(got), im.texture(flat))
    c.expect("what a texture is of", bytes(got) == bytes(flat))


def test_settings(im, c, random):
    """What CUDA and HIP make of coordinates that count texels with wrap and mirror: they clamp."""
    texels = random_texels(random, np.dtype("float32"), (1, 1, 9, 1))
    array = im.array(texels, (9, 0, 0))
    places = [random.uniform(-5, 14, N).astype(np.float32)]
    for address in (WRAP, MIRROR):
        code, got = im.run("sample_1d", im.texture(resource(array), address, 1, 0, 0), places)
        c.expect(f"address {address} without unit coordinates",
                 code == SUCCESS and np.abs(floats(got, 1) - oracle(texels.astype(np.float64), places, CLAMP, 1, 0)).max() < 1e-5, (code, im.text))
    hip, settings = im.hip, Settings()
    out, null = ctypes.byref(P()), None
    settings.anisotropy = 4
    c.expect("anisotropy", said(lambda: hip.code("hipCreateTextureObject", out, ctypes.byref(resource(array)), ctypes.byref(settings), null))[0] == NOT_SUPPORTED)
    settings.anisotropy = 0
    for text, code, what, view in (("levels", NOT_SUPPORTED, Resource(LEVELS), None), ("no array", INVALID_VALUE, Resource(ARRAY), None),
                                   ("memory at no multiple of 256", INVALID_VALUE, Resource(LINEAR, Resource.Of(linear=Resource.Of.Linear(im.out.value + 4, channels(np.dtype("f4"), 1), 64))), None),
                                   ("past the end", INVALID_VALUE, Resource(LINEAR, Resource.Of(linear=Resource.Of.Linear(im.out.value, channels(np.dtype("f4"), 1), 1 << 20))), None),
                                   ("a view of another size", INVALID_VALUE, resource(array), View(format=1)), ("a view of memory", INVALID_VALUE, Resource(LINEAR), View())):
        got = said(lambda w=what, v=view: hip.code("hipCreateTextureObject", out, ctypes.byref(w), ctypes.byref(settings), ctypes.byref(v) if v else None))[0]
        c.expect(text, got == code, got)
    c.expect("what is no texture", hip.code("hipDestroyTextureObject", im.out) == INVALID_VALUE and hip.code("hipDestroyTextureObject", None) == SUCCESS)
    kind = channels(np.dtype("u1"), 1)
    for text, shape, flags in (("a cube", (6, 6, 6), CUBE), ("a gather in three dimensions", (4, 4, 4), GATHER), ("nothing", (0, 0, 0), 0), ("no layers", (4, 4, 0), LAYERED),
                               ("too wide", (16385, 0, 0), 0), ("depth without height", (4, 0, 4), 0)):
        c.expect(text, hip.code("hipMalloc3DArray", out, ctypes.byref(kind), Extent(*shape), flags) == INVALID_VALUE)
    c.expect("three components", hip.code("hipMallocArray", out, ctypes.byref(channels(np.dtype("u1"), 3)), size(4), size(4), 0) == INVALID_VALUE)
    info, extent, flags = Channels(), Extent(), ctypes.c_uint(9)
    hip.ok("hipArrayGetInfo", ctypes.byref(info), ctypes.byref(extent), ctypes.byref(flags), array)
    c.expect("an array's shape", (extent.width, extent.height, extent.depth, flags.value, list(info.bits), info.kind) == (9, 0, 0, 0, [32, 0, 0, 0], FLOAT))
    hip.ok("hipFreeArray", array)
    c.expect("an array that is gone", hip.code("hipArrayGetInfo", None, None, None, array) == INVALID_HANDLE and hip.code("hipFreeArray", array) == 709)


def test_copies(im, c, random):
    """Rows and boxes into, out of and between arrays, by NumPy's slices."""
    hip = im.hip
    a = random_texels(random, np.dtype("uint16"), (1, 6, 10, 2))
    first, second = im.array(a, (10, 6, 0)), im.array(np.zeros_like(a), (10, 6, 0))
    rows = random.integers(0, 256, (6, 64), np.uint8)
    flat = a.view(np.uint8).reshape(6, 40)
    memory = hip.made("hipMalloc", size(rows.nbytes))
    hip.write(memory, rows)
    for name, at, kind, extra in (("hipMemcpy2DToArray", P(rows.ctypes.data), TO_DEVICE, []), ("hipMemcpy2DToArrayAsync", memory, BETWEEN, [None]),
                                  ("hipMemcpy2DToArray_spt", memory, DEFAULT, []), ("hipMemcpy2DToArrayAsync_spt", memory, DEFAULT, [None])):
        hip.ok(name, first, size(4), size(1), P(at.value + 8), size(64), size(20), size(3), kind, *extra)
        hip.ok("hipDeviceSynchronize")
        flat[1:4, 4:24] = rows[:3, 8:28]
        c.expect(name, (im.read(first, a) == a).all())
        flat[1:4, 4:24] = 0
        im.fill(first, a)
    a[:] = random_texels(random, np.dtype("uint16"), a.shape)
    im.fill(first, a)
    for name, extra in (("hipMemcpy2DFromArray", []), ("hipMemcpy2DFromArrayAsync", [None]), ("hipMemcpy2DFromArray_spt", []), ("hipMemcpy2DFromArrayAsync_spt", [None])):
        out = np.zeros((4, 32), np.uint8)
        hip.ok(name, out.ctypes.data_as(P), size(32), first, size(8), size(2), size(12), size(4), TO_HOST, *extra)
        hip.ok("hipDeviceSynchronize")
        c.expect(name, (out[:, :12] == flat[2:, 8:20]).all() and not out[:, 12:].any())
    hip.ok("hipMemcpy2DArrayToArray", second, size(4), size(0), first, size(8), size(3), size(16), size(2), BETWEEN)
    want = np.zeros_like(flat)
    want[:2, 4:20] = flat[3:5, 8:24]
    c.expect("between arrays", (im.read(second, a).view(np.uint8).reshape(6, 40) == want).all())
    hip.ok("hipMemcpyAtoA", second, size(0), first, size(4), size(12))
    want[0, :12] = flat[0, 4:16]
    hip.ok("hipMemcpyHtoA", second, size(20), rows.ctypes.data_as(P), size(8))
    want[0, 20:28] = rows[0, :8]
    hip.ok("hipMemcpyDtoA", second, size(28), memory, size(4))
    want[0, 28:32] = rows[0, :4]
    hip.ok("hipMemcpyToArray", second, size(0), size(4), rows.ctypes.data_as(P), size(80), TO_DEVICE)
    want[4:] = rows.reshape(-1)[:80].reshape(2, 40)
    c.expect("bytes into an array", (im.read(second, a).view(np.uint8).reshape(6, 40) == want).all())
    out = np.zeros(80, np.uint8)
    hip.ok("hipMemcpyFromArray", out.ctypes.data_as(P), second, size(0), size(4), size(80), TO_HOST)
    c.expect("bytes out of an array", (out == want[4:].reshape(-1)).all())
    hip.ok("hipMemcpyAtoH", out.ctypes.data_as(P), second, size(4), size(8))
    hip.ok("hipMemcpyAtoD", memory, second, size(0), size(8))
    c.expect("and by name", (out[:8] == want[0, 4:12]).all() and (hip.read(memory, 8, np.uint8) == want[0, :8]).all())
    for text, name, *arguments in (("past a row", "hipMemcpy2DToArray", first, size(30), size(0), memory, size(64), size(20), size(1), DEFAULT),
                                   ("past the rows", "hipMemcpy2DFromArray", memory, size(64), first, size(0), size(5), size(4), size(2), DEFAULT),
                                   ("bytes that end in a row", "hipMemcpyToArray", first, size(0), size(0), memory, size(50), DEFAULT),
                                   ("no memory", "hipMemcpy2DToArray", first, size(0), size(0), None, size(64), size(4), size(1), DEFAULT)):
        c.expect(text, hip.code(name, *arguments) == INVALID_VALUE)
    c.expect("no array", hip.code("hipMemcpyHtoA", memory, size(0), memory, size(4)) == INVALID_HANDLE)
    c.expect("a small pitch", hip.code("hipMemcpy2DToArray", first, size(0), size(0), memory, size(4), size(8), size(1), DEFAULT) == 12)
    box = random_texels(random, np.dtype("float32"), (4, 5, 6, 1))
    deep, other = im.array(box, (6, 5, 4)), im.array(np.zeros_like(box), (6, 5, 4))
    c.expect("a box", (im.read(deep, box) == box).all())
    copy = Copy(src_array=deep, dst_array=other, extent=Extent(3, 2, 2), kind=BETWEEN)
    copy.src_at[:], copy.dst_at[:] = (2, 1, 1), (1, 3, 2)
    hip.ok("hipMemcpy3DAsync", ctypes.byref(copy), None)
    moved = np.zeros_like(box)
    moved[2:4, 3:5, 1:4] = box[1:3, 1:3, 2:5]
    c.expect("a box between arrays", (im.read(other, box) == moved).all())
    copy.extent.depth = 3
    c.expect("a box that leaves its array", hip.code("hipMemcpy3D", ctypes.byref(copy)) == INVALID_VALUE)
    narrow = im.array(np.zeros((4, 5, 6, 1), np.uint8), (6, 5, 4))
    copy.dst_array, copy.extent.depth = narrow, 2
    c.expect("arrays of other elements", hip.code("hipMemcpy3D", ctypes.byref(copy)) == INVALID_VALUE)
    for it in (first, second, deep, other, narrow):
        hip.ok("hipFreeArray", it)


def test_checker(im, c, random):
    """What nobody wrote, and a sample that is used before its wait."""
    kind = channels(np.dtype("f4"), 1)
    array = im.hip.made("hipMallocArray", ctypes.byref(kind), size(8), size(8), 0)
    texels = random_texels(random, np.dtype("float32"), (1, 8, 8, 1))
    half = [np.full(N, 0.5, np.float32)] * 2
    code, _ = im.run("sample_2d", im.texture(resource(array), CLAMP, 1), half)
    c.expect("texels that nobody wrote", code == LAUNCH_FAILURE and "not defined" in im.text, (code, im.text))
    im.fill(array, texels)
    code, _ = im.run("sample_2d", im.texture(resource(array), CLAMP, 1), half)
    c.expect("and written ones", code == SUCCESS and not im.text, (code, im.text))
    counter = "samplecnt" if TARGETS[im.device] == "gfx1201" else "vmcnt"
    code, _ = im.run("no_wait", im.texture(resource(array), CLAMP, 1), half)
    c.expect("a missing wait", code == LAUNCH_FAILURE and f"no wait for {counter}" in im.text, (code, im.text))
    memory = im.hip.made("hipMalloc", size(4 * N))
    im.hip.write(memory, np.ones(N, np.float32))
    one = Resource(LINEAR, Resource.Of(linear=Resource.Of.Linear(memory.value, kind, 4 * N)))
    code, _ = im.run("fetch", im.texture(one), [np.arange(N, dtype=np.int32) + 1])
    c.expect("past the end of memory", code in (700, LAUNCH_FAILURE) and "past the end" in im.text, (code, im.text))


def main():
    if len(sys.argv) == 2:
        environment = dict(os.environ, RDNA_EMULATE=",".join(TARGETS + ["gfx942"]), RDNA_EMULATE_CHECK="1", RDNA_EMULATE_EXITCODE="0")
        return os.spawnve(os.P_WAIT, sys.executable, [sys.executable, __file__, sys.argv[1], "run"], environment)
    hip, checks = Hip(sys.argv[1], TARGETS, SOURCE), Checks("textures,")
    for device, target in enumerate(TARGETS):
        hip.ok("hipSetDevice", device)
        checks.label = f"textures on {target},"
        images = Images(hip, device)
        for test in (test_samples, test_places_that_are_none, test_other_forms, test_layers, test_gather, test_surfaces, test_formats, test_settings, test_copies,
                     test_checker):
            test(images, checks, np.random.default_rng(7))
        checks.expect("images are there", hip.made("hipDeviceGetAttribute", 10014, device, kind=ctypes.c_int).value == 1 and
                      hip.made("hipDeviceGetAttribute", 51, device, kind=ctypes.c_int).value == 8192)
    hip.ok("hipSetDevice", len(TARGETS))
    code, text = said(lambda: hip.code("hipMallocArray", ctypes.byref(P()), ctypes.byref(channels(np.dtype("f4"), 1)), size(4), size(4), 0))
    checks.expect("a card without images", code == NOT_SUPPORTED and "no images" in text and
                  hip.made("hipDeviceGetAttribute", 10014, len(TARGETS), kind=ctypes.c_int).value == 0, (code, text))
    return checks.report()


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""What our kernels move and issue on emulated AMD cards, beside what they must.

    tools/lean_table.py LIBRDNA_SO [--targets gfx1100,gfx1030]

One operator a process, so that the emulator's counters (RDNA_EMULATE_COUNTERS) are its own. "moved" is the bytes of all
loads and stores over the bytes that the operator must move. Of a product of quantized weights with a vector these are
the weights'; each work-group reads the vector once more, from a cache, which is shown apart, in vectors. "load" and
"store" are the bytes of a lane's access, 16 being the widest; "matrix" the share of vector issue cycles (WMMA 32,
transcendental 4, any other 1) in the matrix unit or in dot products. "loop of" is what a longer sum, or more keys, add
to the counts: the inner loop alone. "flat" are the flat accesses in all kernels' code, which should be global or LDS
ones (see global in kernel/prelude.h).
Counts of an emulator: they are not times. Exit status 1 when a limit is broken."""
import argparse
import ctypes
import functools
import glob
import itertools
import json
import os
import random
import re
import subprocess
import sys
import tempfile

from rdna_ctypes import FusedStep, Library, MoeProduct, NAMES, QuantGroups, Sdpa, Tensor, real

BYTES = [4, 2, 2, 8, 1, 1, 2, 4, 8, 1]
BLOCKS = {}  # name: number of the type, values and bytes of a block, as the library has them


class Card(Library):
    """Tensors of small random numbers on the device."""
    vector = 0  # bytes that every work-group reads again

    def make(self, dtype, *shape):
        count = 1
        for size in shape:
            count *= size
        if dtype in BLOCKS:
            number, values, size = BLOCKS[dtype]
            data = bytes(count // values * size)
        else:
            number = NAMES.index(dtype)
            pattern = {"float32": b"\x00\x00\x80\x3f", "float16": b"\x00\x3c", "bfloat16": b"\x80\x3f"}.get(dtype)
            data = pattern * count if pattern else random.Random(1).randbytes(count * BYTES[number])
        pointer = ctypes.c_void_p()
        self.check(self.c.rdna_memory_alloc(self.device, ctypes.c_size_t(len(data)), self.stream, ctypes.byref(pointer)))
        self.check(self.c.rdna_copy_to_device(self.stream, pointer, data, ctypes.c_size_t(len(data))))
        t = Tensor(pointer.value, number, len(shape))
        stride = 1
        for i in reversed(range(len(shape))):
            t.shape[i], t.stride[i] = shape[i], stride
            stride *= shape[i]
        self.size = len(data)
        return ctypes.pointer(t)

    def transposed(self, p):
        t = Tensor.from_buffer_copy(p.contents)
        t.shape[0], t.shape[1] = p.contents.shape[1], p.contents.shape[0]
        t.stride[0], t.stride[1] = p.contents.stride[1], p.contents.stride[0]
        return ctypes.pointer(t)


def streaming(op):
    def run(card):
        rows, cols = 64, 4096
        x, out = card.make("bfloat16", rows, cols), card.make("bfloat16", rows, cols)
        size = 2 * rows * cols
        one, eps = ctypes.c_float(1), ctypes.c_double(1e-5)
        if op == "silu":
            call, needed = card.op("map", "silu", x, real(0), real(0), out), 2 * size
        elif op == "add":
            call, needed = card.op("zip", "add", x, card.make("bfloat16", rows, cols), real(0), real(0), out), 3 * size
        elif op == "cast":
            f = card.make("float32", rows, cols)
            call, needed = card.op("cast", f, out), 3 * size
        elif op == "softmax":
            call, needed = card.op("softmax", x, 1, one, out), 2 * size
        elif op == "rms_norm":
            call, needed = card.op("rms_norm", x, None, eps, out), 2 * size
        elif op == "layer_norm":
            call, needed = card.op("layer_norm", x, None, None, eps, out), 2 * size
        elif op == "sum":
            call, needed = card.op("reduce", 0, x, ctypes.c_uint32(2), ctypes.c_double(0), card.make("bfloat16", rows)), size
        elif op == "fused":  # a bias, an activation, a residual
            add, relu = card.number("zip", "add"), card.number("map", "relu")
            steps = (FusedStep * 3)(FusedStep(add, True, False, 1), FusedStep(relu), FusedStep(add, True, False, 2))
            inputs = (ctypes.POINTER(Tensor) * 3)(x, card.make("bfloat16", cols), card.make("bfloat16", rows, cols))
            call, needed = card.op("fused", steps, 3, inputs, 3, out), 3 * size
        else:
            call, needed = card.op("copy", card.transposed(x), card.make("bfloat16", cols, rows)), 2 * size
        return call, needed
    return run


def mat_vec(dtype):
    def run(card):
        rows, cols = 2048, 4096
        weight = card.make(dtype, rows, cols)
        size = card.size
        card.vector = 4 * cols if dtype in BLOCKS else 0
        return card.op("linear", card.make("float32", 1, cols), weight, None, card.make("float32", 1, rows)), size
    return run


def mat_vec_groups(codes, group, with_zeros):
    def run(card):
        rows, cols, size = 2048, 4096, 0
        parts = []
        for dtype, width in ((codes, cols if codes == "int8" else cols // 2), ("float16", cols // group), (codes, cols // group)):
            parts.append(card.make(dtype, rows, width) if len(parts) < 2 or with_zeros else None)
            size += card.size if parts[-1] else 0
        card.vector = 4 * cols
        groups = QuantGroups(*parts)
        card.kept = parts, groups
        return card.op("linear_quant_groups", card.make("float32", 1, cols), ctypes.byref(groups), None, card.make("float32", 1, rows)), size
    return run


def experts(dtype, down):
    def run(card):  # the chosen ones of 5: 3, 0 and 4
        top, rows, cols = 3, 512, 1024
        x = card.make("float32", 1, top, cols) if down else card.make("float32", 1, cols)
        chosen = card.make("int32", 1, top)
        numbers = (ctypes.c_int32 * top)(3, 0, 4)
        card.check(card.c.rdna_copy_to_device(card.stream, ctypes.c_void_p(chosen.contents.data), numbers, ctypes.c_size_t(4 * top)))
        weights = card.make(dtype, 5, rows, cols)
        size = card.size // 5 * top
        out = card.make("float32", 1, rows) if down else card.make("float32", 1, top, rows)
        card.vector = 4 * cols * (top if down else 1)
        card.kept = MoeProduct(shares=card.make("float32", 1, top)) if down else MoeProduct()
        return card.op("moe_linear", ctypes.byref(card.kept), x, weights, chosen, out), size
    return run


def product(dtype):
    def run(card):
        a, b, c = (card.make(dtype, 256, 256) for _ in range(3))
        return card.op("gemm", ctypes.c_float(1), a, b, ctypes.c_float(0), None, c), None
    return run


def layer(rows, size):
    def run(card):  # a layer's: x (rows, size) times the transposed weight (rows, size)
        x, weight, out = (card.make("float16", *shape) for shape in ((rows, size), (rows, size), (rows, rows)))
        return card.op("gemm", ctypes.c_float(1), x, card.transposed(weight), ctypes.c_float(0), None, out), None
    return run


def attention(d, keys):
    def run(card):
        q, k, v, out = (card.make("float16", 1, 1, rows, d) for rows in (128, keys, keys, 128))
        card.kept = Sdpa(scale=d ** -0.5)
        return card.op("sdpa", ctypes.byref(card.kept), q, k, v, out, None), None
    return run


# name: (how, limit of bytes moved over needed or None, least bytes of a lane's load or None)
CASES = {name: (streaming(name), 1.05, 15.5)
         for name in ("silu", "add", "cast", "softmax", "rms_norm", "layer_norm", "sum", "transpose")}
CASES["fused"] = (streaming("fused"), 1.4, 15.5)  # the bias comes from a cache
CASES.update({"mat-vec int8 of 128": (mat_vec_groups("int8", 128, False), 1.03, None),
              "mat-vec int4 of 128": (mat_vec_groups("uint8", 128, True), 1.03, None),
              "mat-vec int4 of 32": (mat_vec_groups("uint8", 32, True), 1.03, None),
              "mat-vec float16": (mat_vec("float16"), None, None)})
CASES.update({f"experts {how} {d}": (experts(d, how == "down"), 1.03, None) for how in ("up", "down") for d in ("q8_0", "q4_K")})
CASES.update({f"product {d}": (product(d), None, None) for d in ("float16", "float32")})
# name: (how of one of two sizes, the sizes, least share of the matrix unit on gfx1100 in percent)
LOOPS = {f"loop of layer {rows}": (functools.partial(layer, rows), (256, 512), 82) for rows in (256, 1536)}
LOOPS.update({f"loop of attention {d}": (functools.partial(attention, d), (512, 1024), 62) for d in (64, 128, 256)})
for loop, (how_of, sizes, _) in LOOPS.items():
    CASES.update({f"{loop} {size}": (how_of(size), None, None) for size in sizes})


def add_blocks(library):
    c = ctypes.CDLL(library)
    c.rdna_dtype_name.restype, c.rdna_dtype_block_bytes.restype = ctypes.c_char_p, ctypes.c_size_t
    for number in itertools.takewhile(lambda n: c.rdna_dtype_name(n) != b"?", itertools.count()):
        if c.rdna_dtype_block_values(number) > 1:
            name = c.rdna_dtype_name(number).decode()
            BLOCKS[name] = number, c.rdna_dtype_block_values(number), c.rdna_dtype_block_bytes(number)
            CASES[f"mat-vec {name}"] = mat_vec(name), 1.03, None


def matrix_share(cycles):
    vector = sum(cycles[key] for key in ("valu", "valu64", "transcendental", "vopd", "dot", "wmma"))
    return 100 * (cycles["wmma"] + cycles["dot"]) / max(1, vector)


def cycles_of(kernels):
    return {key: sum(k["issue_cycles"][key] for k in kernels) for key in kernels[0]["issue_cycles"]}


def show_loops(library, targets):
    failed = False
    print(f"\n{'inner loop, float16':22} {'target':8} {'matrix':>6} {'least':>5}  kernels")
    for name, (_, sizes, least) in LOOPS.items():
        for target in targets:
            short, long = (measure(library, target, f"{name} {size}")[0] for size in sizes)
            if [k["name"] for k in short] != [k["name"] for k in long]:
                raise RuntimeError(f"{name}: the two sizes run different kernels")
            before, after = cycles_of(short), cycles_of(long)
            share = matrix_share({key: after[key] - before[key] for key in after})
            wrong = target == "gfx1100" and share < least
            failed |= wrong
            print(f"{name:22} {target:8} {share:5.1f}% {f'{least}%' if target == 'gfx1100' else '':>5}  "
                  f"{', '.join(k['name'] for k in long)}{'  BELOW THE LIMIT' if wrong else ''}", flush=True)
    return failed


def measure(library, target, name):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "counters.json")
        environment = dict(os.environ, RDNA_EMULATE=target, RDNA_EMULATE_COUNTERS=path, RDNA_VENDOR="off", RDNA_TUNE="off")
        subprocess.run([sys.executable, __file__, library, "--one", name, path + ".needed"], env=environment, check=True)
        with open(path, encoding="utf-8") as f:
            kernels = json.load(f)["kernels"]
        with open(path + ".needed", encoding="utf-8") as f:
            needed, vector = json.load(f)
    return kernels, needed, vector


def show_flat(library, targets):
    failed = False
    print(f"\n{'flat accesses':22} {'target':8} {'flat':>6}  kernels")
    for target in targets:
        with tempfile.TemporaryDirectory() as folder:
            command = os.path.join(os.path.dirname(os.path.abspath(library)), "..", "bin", "rdna")
            subprocess.run([command, "kernels", "--target", target, "--extract", folder], check=True, stdout=subprocess.DEVNULL)
            objects = sorted(glob.glob(os.path.join(folder, "*.hsaco")))
            if not objects:
                raise RuntimeError(f"rdna kernels --extract wrote no code object for {target}")
            text = "".join(subprocess.run(["llvm-objdump-19", "-d", path], check=True, capture_output=True, text=True).stdout
                           for path in objects)
        found, kernel = {}, None
        for line in text.splitlines():
            if match := re.match(r"[0-9a-f]+ <(\w+)>:", line):
                kernel = match[1]
            elif re.match(r"\s+flat_(load|store|atomic)", line):
                found[kernel] = found.get(kernel, 0) + 1
        failed |= bool(found)
        print(f"{'all kernels':22} {target:8} {sum(found.values()):6}  {', '.join(found)}"
              f"{'  OVER THE LIMIT' if found else ''}", flush=True)
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("--targets", default="gfx1100,gfx1030")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    add_blocks(args.library)
    if args.one:
        card = Card(args.library, "hip")
        call, needed = CASES[args.one[0]][0](card)
        call()
        card.check(card.c.rdna_stream_synchronize(card.stream))
        with open(args.one[1], "w", encoding="utf-8") as f:
            json.dump([needed, card.vector], f)
        return 0
    failed = False
    print(f"{'operator':20} {'target':8} {'needed':>9} {'moved':>6} {'vectors':>7} {'load':>5} {'store':>5} {'matrix':>6}  kernels")
    for name, (_, limit, lane) in CASES.items():
        for target in args.targets.split(",") if not name.startswith("loop of") else ():
            kernels, needed, again = measure(args.library, target, name)
            vectors = sum(k["groups"] for k in kernels) if again else 0
            total = {key: sum(k[key] for k in kernels) for key in ("load_bytes", "store_bytes")}
            count = {key: sum(k["instructions"][key] for k in kernels) for key in ("load", "store")}
            wave = kernels[0]["wave_size"]
            moved = (total["load_bytes"] + total["store_bytes"] - vectors * again) / needed if needed else None
            per_load = total["load_bytes"] / max(1, count["load"]) / wave
            per_store = total["store_bytes"] / max(1, count["store"]) / wave
            wrong = (limit and moved > limit) or (lane and per_load < lane)
            failed |= bool(wrong)
            print(f"{name:20} {target:8} {needed or 0:9} {moved or 0:6.3f} {vectors:7} {per_load:5.1f} {per_store:5.1f} "
                  f"{matrix_share(cycles_of(kernels)):5.1f}%  "
                  f"{', '.join(k['name'] for k in kernels)}{'  OVER THE LIMIT' if wrong else ''}", flush=True)
    failed |= show_loops(args.library, args.targets.split(","))
    failed |= show_flat(args.library, args.targets.split(","))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""rdna.arrays on a GPU beside PyTorch's own CUDA, eager and torch.compile, and beside its own results on the processor.

    python3 benchmarks/arrays_gpu.py [--parts chains,small,mlp,operators,gpt2,resnet] [--types f16,f32] [--sides ours,theirs]
        [--limit 230] [--json FILE] [--tiny]

Needs NumPy, librdna (RDNA_LIBRARY, or build/release/lib/librdna.so) with kernels for the GPU (RDNA_KERNEL_PATH), and for the other side PyTorch; nothing else.
Each side has a process of its own, ours first; the lines come as they are measured, and what would begin after |--limit| seconds is said to be left out.
Times are of steps queued one behind the other and waited for at the end, the median of rounds. Copy rate: what the driver's copy of the same bytes reads and
writes a second. f32 is f32 on both sides (no TF32); f16 is f32 weights cast in each step, and a scaled loss, ours by hand and PyTorch's by autocast.
Launches are what the profiler of rdna/profile.h sees, gigabytes what the plan's steps read and write by their types (RDNA_DRIVER=null counts without computing). GPT-2 small: 12 layers of 768, 12 heads, 50,257 tokens, 8 texts of 1,024, AdamW. ResNet-50: 64 images of
224 x 224, SGD with momentum. Both sides begin with the same weights, so that losses can be compared.
"""

import argparse
import json
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
PARTS = ("chains", "small", "mlp", "operators", "gpt2", "resnet")
SCALES = {"gpt2": 65536.0, "resnet": 256.0}  # of the loss in f16


# ---- sizes, data and weights, which both sides share ----


class Sizes:
    def __init__(self, tiny):
        self.tiny = tiny
        self.values = 1 << 12 if tiny else 1 << 27
        self.layers, self.width, self.heads, self.words = (2, 32, 4, 101) if tiny else (12, 768, 12, 50257)
        self.texts, self.length = (2, 16) if tiny else (8, 1024)
        self.images, self.side, self.blocks, self.base = (2, 32, (1, 1, 1, 1), 8) if tiny else (64, 224, (3, 4, 6, 3), 64)
        self.steps, self.rounds, self.warm = (1, 1, 1) if tiny else (5, 3, 4)


def gpt2_weights(s):
    random, c = np.random.default_rng(0), s.width
    shapes = {"words": (s.words, c), "places": (s.length, c), "end.weight": (c,), "end.bias": (c,)}
    for i in range(s.layers):
        for name, shape in (("first.weight", (c,)), ("first.bias", (c,)), ("qkv.weight", (c, 3 * c)), ("qkv.bias", (3 * c,)), ("out.weight", (c, c)),
                            ("out.bias", (c,)), ("second.weight", (c,)), ("second.bias", (c,)), ("up.weight", (c, 4 * c)), ("up.bias", (4 * c,)),
                            ("down.weight", (4 * c, c)), ("down.bias", (c,))):
            shapes[f"{i}.{name}"] = shape
    made = {}
    for name, shape in shapes.items():
        norm = "first" in name or "second" in name or "end" in name
        made[name] = np.full(shape, float(norm and "weight" in name), "f4") if len(shape) == 1 else random.standard_normal(shape, "f4") * np.float32(0.02)
    return made


def gpt2_data(s):
    ids = np.random.default_rng(1).integers(0, s.words, (s.texts, s.length + 1))
    return ids[:, :-1], ids[:, 1:]


def gpt2(F, p, s, ids):
    """The logits, by the functions of |F|, which either side gives."""
    c, d = s.width, s.width // s.heads
    x = F.embedding(ids, p["words"]) + p["places"]
    for i in range(s.layers):
        def linear(v, name):
            return F.matmul(v, p[f"{i}.{name}.weight"]) + p[f"{i}.{name}.bias"]
        h = linear(F.layer_norm(x, p[f"{i}.first.weight"], p[f"{i}.first.bias"]), "qkv")
        h = F.permute(h.reshape((s.texts, s.length, 3, s.heads, d)), (2, 0, 3, 1, 4))
        h = F.permute(F.attention(h[0], h[1], h[2]), (0, 2, 1, 3)).reshape((s.texts, s.length, c))
        x = x + linear(h, "out")
        h = F.gelu(linear(F.layer_norm(x, p[f"{i}.second.weight"], p[f"{i}.second.bias"]), "up"))
        x = x + linear(h, "down")
    return F.matmul(F.layer_norm(x, p["end.weight"], p["end.bias"]), F.transpose(p["words"]))


def resnet_plan(s):
    """Names, channels, window and stride of convolutions, and the blocks they stand in."""
    convs, blocks, width = {"stem": (3, s.base, 7, 2)}, [], s.base
    for stage, count in enumerate(s.blocks):
        inner = s.base << stage
        for i in range(count):
            name, stride = f"{stage}.{i}", 2 if stage and not i else 1
            convs[f"{name}.a"], convs[f"{name}.b"], convs[f"{name}.c"] = (width, inner, 1, 1), (inner, inner, 3, stride), (inner, 4 * inner, 1, 1)
            if not i:
                convs[f"{name}.skip"] = (width, 4 * inner, 1, stride)
            blocks.append((name, not i))
            width = 4 * inner
    return convs, blocks, width


def resnet_weights(s):
    random, (convs, _, width) = np.random.default_rng(2), resnet_plan(s)
    made = {}
    for name, (given, channels, window, _) in convs.items():
        made[f"{name}.conv"] = random.standard_normal((channels, given, window, window), "f4") * np.float32(math.sqrt(2 / (channels * window * window)))
        made[f"{name}.weight"], made[f"{name}.bias"] = np.ones(channels, "f4"), np.zeros(channels, "f4")
    made["head.weight"], made["head.bias"] = random.standard_normal((width, 1000), "f4") * np.float32(0.02), np.zeros(1000, "f4")
    return made


def resnet_data(s):
    random = np.random.default_rng(3)
    return random.standard_normal((s.images, 3, s.side, s.side), "f4"), random.integers(0, 1000, (s.images,))


def resnet(F, p, s, x):
    """Logits; F.conv_norm is a convolution and batch norm, which keeps running statistics."""
    convs, blocks, _ = resnet_plan(s)

    def unit(v, name):
        return F.conv_norm(v, p, name, convs[name][2] // 2, convs[name][3])
    x = F.max_pool(F.relu(unit(x, "stem")))
    for name, first in blocks:
        h = F.relu(unit(x, f"{name}.a"))
        h = unit(F.relu(unit(h, f"{name}.b")), f"{name}.c")
        x = F.relu(h + (unit(x, f"{name}.skip") if first else x))
    return F.matmul(F.mean(x), p["head.weight"]) + p["head.bias"]


def timed(call, wait, s, steps=None):
    """Milliseconds a call."""
    for _ in range(s.warm):
        call()
    wait()
    times = []
    for _ in range(s.rounds):
        began = time.perf_counter()
        for _ in range(steps or s.steps):
            call()
        wait()
        times.append((time.perf_counter() - began) * 1e3 / (steps or s.steps))
    return statistics.median(times)


def chain(F, x):
    """Ten operations on values, one after the other."""
    return F.square((F.tanh((F.relu(x * 1.5 + 0.5) - 2.0) * x) + 1.0) * 0.25) - x


def fork(F, x):
    """Ten of which two read another's result."""
    return F.square((F.tanh(F.relu(x * 1.5 + 0.5) * F.sigmoid(x) - x) + 1.0) * 0.25)


def short(F, x):
    """Eight, one after the other."""
    return F.tanh((F.relu(x * 1.5 + 0.5) - 2.0) * x) * 0.25 - x


CHAINS = {"chain of 8": short, "chain of 10": chain, "fork of 10": fork}


# ---- our side ----


def ours(s, parts, types, say):
    sys.path.insert(0, str(ROOT / "bindings/python"))
    os.environ.setdefault("RDNA_LIBRARY", str(ROOT / "build/release/lib/librdna.so"))
    import ctypes

    import rdna.arrays as ra
    from rdna.arrays import _core, nn, optim, random

    names = _core.devices()
    device = os.environ.get("RDNA_DRIVER") or next((n for n in names if n.startswith("cuda")), names[0])
    _core.set_default(device)
    stream = _core.stream()
    handle = _core.library.rdna_stream_device(stream)

    def wait():
        _core.check(_core.library.rdna_stream_synchronize(stream))

    class Record(ctypes.Structure):  # rdna_profile_record
        _fields_ = [("name", ctypes.c_char_p), ("kind", ctypes.c_int), ("stream", ctypes.c_int), ("mark", ctypes.c_uint64), ("bytes", ctypes.c_uint64),
                    ("start", ctypes.c_double), ("length", ctypes.c_double)]

    _core.library.rdna_profile_start.argtypes = [ctypes.c_void_p]
    _core.library.rdna_profile_stop.argtypes = [ctypes.c_void_p] * 3
    _core.library.rdna_copy_on_device.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_size_t]
    _core.library.rdna_device_get_info.restype = ctypes.c_void_p

    def launches(call):
        """What a call queues, by name, and how long it took on the device."""
        call()
        wait()
        records, count = ctypes.POINTER(Record)(), ctypes.c_size_t()
        _core.check(_core.library.rdna_profile_start(handle))
        kept = call()
        _core.check(_core.library.rdna_profile_stop(handle, ctypes.byref(records), ctypes.byref(count)))
        del kept
        found = [(records[i].name.decode(), records[i].length) for i in range(count.value)]
        ctypes.CDLL(None).free(records)
        return found

    def own_kernels(call, seconds=60):
        """Calls until chains run by kernels that were compiled for them; returns by what they run. The compiler works in the
        background once a chain has moved enough, or before the first launch with RDNA_FUSED_COMPILE=always. The processor
        has no such kernels, and tiny chains never move enough."""
        choice, began = os.environ.get("RDNA_FUSED_COMPILE"), time.perf_counter()
        if device.startswith("host") or choice == "off" or (s.tiny and choice != "always"):
            seconds = 0
        while True:
            names = [name for name, _ in launches(call)]
            if "graph" in names:
                return "recorded"  # as they were at the second run
            if not any(name.startswith("fused_") for name in names):
                return "compiled"
            if time.perf_counter() - began >= seconds:
                return "interpreted"
            for _ in range(1 if s.tiny else 20):
                call()
            wait()

    say(device=ctypes.string_at(_core.library.rdna_device_get_info(handle)).decode(), driver=device)

    if "chains" in parts:
        for kind in types:
            dtype = {"f32": ra.float32, "f16": ra.float16}[kind]
            x = ra.astype(random.normal((s.values,)), dtype)
            other = ra.empty((s.values,), dtype=dtype)
            size = x.nbytes
            source, target = (_core.Tensor.from_address(_core.library.rdna_array_tensor(a.pointer)).data for a in (x, other))
            copy = timed(lambda: _core.check(_core.library.rdna_copy_on_device(stream, target, source, size)), wait, s, 20)
            say(line=f"copy {kind}", ms=copy, gbytes=2 * size / copy / 1e6)
            for name, function in CHAINS.items():
                compiled = ra.compile(lambda v: function(ra, v))
                before = timed(lambda: compiled(x), wait, s, 20)  # by the kernel that interprets
                way = own_kernels(lambda: compiled(x))
                took, ran = timed(lambda: compiled(x), wait, s, 20), launches(lambda: compiled(x))
                say(line=f"{name} {kind}", ms=took, of_copy=copy / took, launches=len(ran), way=way, of_copy_before=copy / before,
                    kernels=[kernel for kernel, _ in ran])
            del x, other

    if "small" in parts:
        x = random.normal((16,))
        compiled = ra.compile(lambda v: chain(ra, v))
        for name, call in (("at once", lambda: chain(ra, x)), ("compiled", lambda: compiled(x))):
            say(line=f"chain on 16 values, {name}", us=timed(call, wait, s, 50 if s.tiny else 2000) * 1e3)

    if "mlp" in parts:
        model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))
        x, target = random.normal((32, 784)), random.integers(0, 10, (32,))
        forward = ra.compile(lambda v: model(v))
        found = launches(lambda: forward(x))
        say(line="MLP 784-256-128-10, batch 32, forward", launches=len(found), a_layer=len(found) / 3, ms=timed(lambda: forward(x), wait, s, 200),
            kernels=sorted({name for name, _ in found}))
        step = nn.value_and_grad(model, lambda v, t: nn.cross_entropy(model(v), t), compiled=True)
        rule = optim.SGD(lr=0.01)

        def train():
            _, slopes = step(x, target)
            rule.update(model, slopes)
        say(line="MLP training step", launches=len(launches(train)), ms=timed(train, wait, s, 100))

    if "operators" in parts:
        for name, worst, most, count in operators(ra, nn, device, s):
            say(line=f"{name} beside the processor", of_largest=worst, of_bound=most, values=count)

    def train(part, kind, weights, loss, rule):
        """A step of training, and where its losses go."""
        parameters, losses = {key: ra.asarray(w) for key, w in weights.items()}, []
        half, scale = kind == "f16", SCALES[part]

        def scaled(p, *data):
            value, kept = loss(p, *data)
            return value * scale if half else value, (value, kept)
        both = ra.value_and_grad(scaled, has_aux=True)

        def whole(p, *data):
            (_, (value, kept)), slopes = both({key: ra.astype(w, ra.float16) for key, w in p.items()} if half else p, *data)
            return value, kept, slopes
        compiled = ra.compile(whole)

        def step(*data):
            value, kept, slopes = compiled(parameters, *data)
            rule.update(parameters, slopes, scale if half else None)
            losses.append(value)
            return kept
        step.plan = lambda *data: plan_bytes(str(ra.graph(whole, parameters, *data).plan()))
        return step, losses

    if "gpt2" in parts:
        class F:
            embedding, matmul, permute, transpose = nn.embedding, ra.matmul, ra.permute_dims, ra.matrix_transpose
            layer_norm = nn.layer_norm
            attention = staticmethod(lambda q, k, v: nn.scaled_dot_product_attention(q, k, v, is_causal=True))
            gelu = staticmethod(lambda x: ra.gelu(x, approximate=True))
        ids, targets = (ra.asarray(a) for a in gpt2_data(s))
        for kind in types:
            def loss(p, ids, targets):
                logits = gpt2(F, p, s, ids)
                return ra.astype(nn.cross_entropy(ra.astype(logits, ra.float32).reshape((s.texts * s.length, s.words)), targets.reshape((s.texts * s.length,))), ra.float32), ()
            step, losses = train("gpt2", kind, gpt2_weights(s), loss, optim.AdamW(lr=1e-4))
            began = time.perf_counter()
            step(ids, targets)
            wait()
            first = time.perf_counter() - began
            found = launches(lambda: step(ids, targets))
            say(line=f"GPT-2 small step {kind}", ms=timed(lambda: step(ids, targets), wait, s), first_s=first, launches=len(found), on_device=sum(t for _, t in found),
                slowest=slowest(found), losses=[float(v) for v in losses[:6]], **step.plan(ids, targets))
            del step, losses

    if "resnet" in parts:
        for kind in types:
            kept = {}

            class F:
                relu, matmul = ra.relu, ra.matmul
                max_pool = staticmethod(lambda x: nn.max_pool2d(x, 3, 2, 1))
                mean = staticmethod(lambda x: ra.mean(x, axis=(2, 3)))

                @staticmethod
                def conv_norm(x, p, name, padding, stride):
                    x = nn.conv2d(x, p[f"{name}.conv"], None, stride, padding)
                    still = ra.stop_gradient(x)
                    kept[name] = ra.mean(still, axis=(0, 2, 3)), ra.var(still, axis=(0, 2, 3), correction=1)
                    return nn.batch_norm(x, None, None, p[f"{name}.weight"], p[f"{name}.bias"], True)

            def loss(p, running, images, labels):
                kept.clear()
                logits = resnet(F, p, s, ra.astype(images, p["stem.conv"].dtype))
                after = {name: [ra.astype(old * 0.9 + ra.astype(new, ra.float32) * 0.1, ra.float32) for old, new in zip(running[name], found)] for name, found in kept.items()}
                return ra.astype(nn.cross_entropy(ra.astype(logits, ra.float32), labels), ra.float32), after
            weights = resnet_weights(s)
            state = {"running": {name[:-5]: [ra.zeros((w.shape[0],)), ra.ones((w.shape[0],))] for name, w in weights.items() if name.endswith(".conv")}}
            run_step, losses = train("resnet", kind, weights, loss, optim.SGD(lr=0.05, momentum=0.9))
            images, labels = (ra.asarray(a) for a in resnet_data(s))

            def step():
                state["running"] = run_step(state["running"], images, labels)
            began = time.perf_counter()
            step()
            wait()
            first = time.perf_counter() - began
            found = launches(step)
            say(line=f"ResNet-50 step {kind}", ms=timed(step, wait, s), first_s=first, launches=len(found), on_device=sum(t for _, t in found), slowest=slowest(found),
                losses=[float(v) for v in losses[:6]], **run_step.plan(state["running"], images, labels))
            del step, run_step, losses, state


def plan_bytes(text):
    """What the steps of a printed plan read and write, each operand and result once: in all, and the kinds that move most. Views move nothing. Of further
    results of a step, and of what is given to the plan, a printed plan has no sizes: they are left out, but that what is cast has as many values as its cast."""
    size = {"f16": 2, "f32": 4, "f64": 8, "i64": 8, "i32": 4, "bool": 1}
    known, kinds = {}, {}
    for line in text.splitlines():
        found = re.match(r"(%\d+) = (.*?)((?: %\d+)*) : (\w+) \(([\d, ]*)\)", line)
        if not found:
            continue
        result, name, operands, dtype, shape = found.groups()
        made = size[dtype] * math.prod(int(n) for n in shape.split(",") if n.strip())
        known[result] = made
        if name in ("reshape", "permute", "slice", "broadcast"):
            continue
        moved = made + sum(known.get(operand, made if name == "cast" else 0) for operand in set(operands.split()))
        total, count = kinds.get(name, (0, 0))
        kinds[name] = total + moved, count + 1
    most = sorted(kinds.items(), key=lambda item: -item[1][0])[:8]
    return {"plan_gbytes": sum(total for total, _ in kinds.values()) / 1e9, "moves_most": [f"{name} {count}x {total / 1e9:.2f} GB" for name, (total, count) in most]}


def slowest(found):
    """The names that take most of the device's time, with their milliseconds and how often."""
    total = {}
    for name, length in found:
        t, n = total.get(name, (0.0, 0))
        total[name] = t + length, n + 1
    return [f"{name} {n}x {t:.2f} ms" for name, (t, n) in sorted(total.items(), key=lambda item: -item[1][0])[:5]]


def operators(ra, nn, device, s):
    """The document's operators at its shapes: the largest difference of the device's values from the processor's over the largest value, and the largest
    share of 1e-5 |value| + 1e-6, its own test."""
    random = np.random.default_rng(5)

    def normal(*shape):
        return random.standard_normal([min(n, 40) for n in shape] if s.tiny else shape, "f4")
    square, row, image, batch = (normal(1024, 1024), normal(1024, 1024)), normal(10000), normal(32, 3, 224, 224), normal(32, 784)
    window, positive = random.standard_normal((64, 3, 7, 7), "f4"), np.abs(normal(10000)) + np.float32(0.1)
    hidden = random.standard_normal((256, batch.shape[1]), "f4") * np.float32(0.03)
    labels = random.integers(0, 32, (batch.shape[0],))
    one = lambda name: (name, getattr(ra, name), [row])
    rows = [("matmul", ra.matmul, list(square)), ("linear + relu", lambda x, w: ra.relu(x @ ra.matrix_transpose(w)), [batch, hidden]),
            ("conv2d", lambda x, w: nn.conv2d(x, w, None, 2, 3), [image[:4], window]), ("max_pool2d", lambda x: nn.max_pool2d(x, 2), [image[:4]]),
            ("avg_pool2d", lambda x: nn.avg_pool2d(x, 2), [image[:4]]), ("adaptive_avg_pool2d", lambda x: nn.adaptive_avg_pool2d(x, 1), [image[:4]]),
            ("batch_norm", lambda x: nn.batch_norm(x, None, None, None, None, True), [image[:4]]), ("layer_norm", nn.layer_norm, [batch]),
            ("softmax", nn.softmax, [batch]), ("log_softmax", nn.log_softmax, [batch]), ("sum", ra.sum, [square[0]]), ("mean of rows", lambda x: ra.mean(x, axis=1), [square[0]]),
            ("max of rows", lambda x: ra.max(x, axis=1), [square[0]]), ("cross_entropy", lambda x, t: nn.cross_entropy(x, t), [batch, labels]),
            ("mse_loss", nn.mse_loss, [square[0], square[1]]), ("add", ra.add, list(square)), ("multiply", ra.multiply, list(square)), ("divide", lambda a, b: a / (ra.abs(b) + 1.0), list(square)),
            *map(one, ("relu", "sigmoid", "tanh", "gelu", "silu", "exp", "sin", "cos", "abs")), ("sqrt", ra.sqrt, [positive]), ("log", ra.log, [positive]),
            ("pow", lambda x: x ** 2.5, [positive])]
    for name, function, arrays in rows:
        here, there = (function(*[ra.asarray(a, device=place) for a in arrays]).numpy().astype("f8") for place in ("cpu", device))
        away = np.abs(here - there)
        yield name, float(away.max() / np.abs(here).max()), float((away / (1e-5 * np.abs(here) + 1e-6)).max()), here.size


# ---- PyTorch's side ----


def theirs(s, parts, types, say, late):
    try:
        import torch
        import torch.nn.functional as N
    except ImportError as error:
        say(device=f"{error}; ours stands alone", driver="PyTorch")
        return

    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    say(device=torch.cuda.get_device_name() if device == "cuda" else "the processor", driver=f"PyTorch {torch.__version__}")

    class F:
        relu, tanh, sigmoid, square = torch.relu, torch.tanh, torch.sigmoid, torch.square

    if "chains" in parts:
        for kind in types:
            x = torch.randn(s.values, device=device, dtype={"f32": torch.float32, "f16": torch.float16}[kind])
            y = torch.empty_like(x)
            copy = timed(lambda: y.copy_(x), wait, s, 20)
            say(line=f"copy {kind}", ms=copy, gbytes=2 * x.nbytes / copy / 1e6, how="eager")
            for name, function in CHAINS.items():
                for how in ("eager", "compiled"):
                    call = torch.compile(lambda v: function(F, v)) if how == "compiled" else lambda v: function(F, v)
                    if how == "eager" or not late():
                        took = timed(lambda: call(x), wait, s, 20)
                        say(line=f"{name} {kind}", ms=took, of_copy=copy / took, how=how)
            del x, y

    if "small" in parts:
        x = torch.randn(16, device=device)
        say(line="chain on 16 values, at once", us=timed(lambda: chain(F, x), wait, s, 50 if s.tiny else 2000) * 1e3, how="eager")

    if "mlp" in parts:
        model = torch.nn.Sequential(torch.nn.Linear(784, 256), torch.nn.ReLU(), torch.nn.Linear(256, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10)).to(device)
        x, target = torch.randn(32, 784, device=device), torch.randint(0, 10, (32,), device=device)
        rule = torch.optim.SGD(model.parameters(), 0.01)

        def forward():
            with torch.no_grad():
                return model(x)

        def train():
            rule.zero_grad()
            N.cross_entropy(model(x), target).backward()
            rule.step()
        say(line="MLP 784-256-128-10, batch 32, forward", ms=timed(forward, wait, s, 200), how="eager")
        say(line="MLP training step", ms=timed(train, wait, s, 100), how="eager")

    def train(line, part, kind, how, weights, loss, rule):
        p = {key: torch.nn.Parameter(torch.from_numpy(w).to(device)) for key, w in weights.items()}
        optimizer, losses, scale = rule(list(p.values())), [], SCALES[part]
        function = torch.compile(loss) if how == "compiled" else loss

        def step():
            optimizer.zero_grad()
            with torch.autocast(device, dtype=torch.float16, enabled=kind == "f16"):
                value = function(p)
            (value * scale if kind == "f16" else value).backward()
            if kind == "f16":
                torch._foreach_mul_([w.grad for w in p.values()], 1 / scale)
            optimizer.step()
            losses.append(value.detach())
        began = time.perf_counter()
        step()
        wait()
        first = time.perf_counter() - began
        took = timed(step, wait, s)
        say(line=line, ms=took, first_s=first, how=how, losses=[float(v) for v in losses[:6]])

    class Gpt:
        embedding = staticmethod(lambda ids, table: N.embedding(ids, table))
        matmul, gelu = torch.matmul, staticmethod(lambda x: N.gelu(x, approximate="tanh"))
        permute, transpose = staticmethod(lambda x, dims: x.permute(dims)), staticmethod(lambda x: x.t())
        layer_norm = staticmethod(lambda x, w, b: N.layer_norm(x, (x.shape[-1],), w, b))
        attention = staticmethod(lambda q, k, v: N.scaled_dot_product_attention(q, k, v, is_causal=True))

    class Res:
        relu, matmul = torch.relu, torch.matmul
        max_pool = staticmethod(lambda x: N.max_pool2d(x, 3, 2, 1))
        mean = staticmethod(lambda x: x.mean((2, 3)))

        def __init__(self, weights):
            self.running = {n[:-5]: (torch.zeros(w.shape[0], device=device), torch.ones(w.shape[0], device=device)) for n, w in weights.items() if n.endswith(".conv")}

        def conv_norm(self, x, p, name, padding, stride):
            x = N.conv2d(x, p[f"{name}.conv"], None, stride, padding)
            return N.batch_norm(x, *self.running[name], p[f"{name}.weight"], p[f"{name}.bias"], True)

    for how in ("eager", "compiled"):
        for part in ("gpt2", "resnet"):
            for kind in types:
                name = f"{'GPT-2 small' if part == 'gpt2' else 'ResNet-50'} step {kind}"
                if part not in parts:
                    continue
                if late():
                    say(line=name, how=how, left_out=True)
                    continue
                if part == "gpt2":
                    ids, targets = (torch.from_numpy(np.ascontiguousarray(a)).to(device) for a in gpt2_data(s))
                    train(name, part, kind, how, gpt2_weights(s), lambda p: N.cross_entropy(gpt2(Gpt, p, s, ids).float().view(-1, s.words), targets.reshape(-1)),
                          lambda w: torch.optim.AdamW(w, 1e-4, **({"fused": True} if device == "cuda" else {})))
                else:
                    weights, (images, labels) = resnet_weights(s), (torch.from_numpy(a).to(device) for a in resnet_data(s))
                    functions = Res(weights)
                    train(name, part, kind, how, weights, lambda p: N.cross_entropy(resnet(functions, p, s, images).float(), labels),
                          lambda w: torch.optim.SGD(w, 0.05, momentum=0.9))
                if device == "cuda":
                    torch.cuda.empty_cache()


# ---- the table ----


def shown(line, mine):
    """A line's figures; beside those of |mine|, the ratio of theirs to ours."""
    texts = []
    for name, form in (("ms", "{:.3f} ms"), ("us", "{:.1f} us"), ("gbytes", "{:.0f} GB/s"), ("of_copy", "{:.1%} of the copy rate"), ("way", "{}"),
                       ("of_copy_before", "{:.1%} before"), ("launches", "{} launches"),
                       ("a_layer", "{:.2f} a layer"), ("on_device", "{:.2f} ms on the device"), ("first_s", "first {:.1f} s"), ("of_largest", "{:.1e} of the largest"),
                       ("of_bound", "{:.2f} of 1e-5 |v| + 1e-6"), ("plan_gbytes", "{:.2f} GB by its plan")):
        if name in line:
            texts.append(form.format(line[name]))
    for unit in ("ms", "us"):
        if mine and unit in line and unit in mine and "gbytes" not in line:
            texts.append(f"ratio {line[unit] / mine[unit]:.2f}")
    if "losses" in line:
        texts.append("losses " + " ".join(f"{v:.4f}" for v in line["losses"][:4]))
    if line.get("left_out"):
        texts.append("left out: the time is over")
    return ", ".join(texts)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--types", default="f16,f32")
    parser.add_argument("--sides", default="ours,theirs", help="librdna's, PyTorch's, or both")
    parser.add_argument("--limit", type=float, default=230.0, help="seconds after which nothing more begins")
    parser.add_argument("--json", help="a file for all that was measured")
    parser.add_argument("--tiny", action="store_true", help="sizes at which only the script itself is tried")
    parser.add_argument("--side", choices=("ours", "theirs"), help=argparse.SUPPRESS)
    parser.add_argument("--began", type=float, help=argparse.SUPPRESS)
    args = parser.parse_args()
    parts, types = args.parts.split(","), args.types.split(",")
    sides = args.sides.split(",")
    for given, known in ((parts, PARTS), (types, ("f16", "f32")), (sides, ("ours", "theirs"))):
        if unknown := [g for g in given if g not in known]:
            parser.error(f"there is no {', '.join(unknown)}; there are {', '.join(known)}")
    if args.side:
        def say(**line):
            print(json.dumps(line), flush=True)
        late = lambda: time.time() - args.began > args.limit
        ours(Sizes(args.tiny), parts, types, say) if args.side == "ours" else theirs(Sizes(args.tiny), parts, types, say, late)
        return 0
    began, mine, everything, failed = time.time(), {}, [], False
    for side in sides:
        command = [sys.executable, __file__, "--side", side, "--began", str(began), "--limit", str(args.limit), "--parts", args.parts, "--types", args.types]
        environment = dict(os.environ, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
        with subprocess.Popen([*command, *["--tiny"] * args.tiny], env=environment, stdout=subprocess.PIPE, text=True) as process:
            for text in process.stdout:
                if not text.startswith("{"):
                    continue
                line = json.loads(text)
                everything.append({"side": side, **line})
                if "device" in line:
                    print(f"== {'rdna.arrays' if side == 'ours' else line['driver']}: {line['device']}, after {time.time() - began:.0f} s", flush=True)
                    continue
                if side == "ours":
                    mine[line["line"]] = line
                name = line["line"] + (f", {line['how']}" if "how" in line else "")
                print(f"{name:52} {shown(line, mine.get(line['line']) if side == 'theirs' else None)}", flush=True)
                for more in [*line.get("slowest", ()), *line.get("moves_most", ())]:
                    print(f"{'':52}   {more}", flush=True)
        if process.returncode:
            print(f"{side}: ended with {process.returncode}", flush=True)
            failed = True
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(everything, indent=1))
    print(f"{time.time() - began:.0f} s")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

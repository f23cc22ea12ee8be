#!/usr/bin/env python3
"""BERT-base's inference and ResNet-50's training on /device:RDNA:0 beside the same networks on our own PyTorch plugin.

    python bindings/tensorflow/bench/models.py [--tiny] [--only REGEX] [--torch-python PYTHON]
    python bindings/tensorflow/bench/models.py --losses 20       beside TensorFlow's CPU, small sizes

Each side is a process. PyTorch's comes first and makes the weights and the data, so that both compute the same; its
interpreter needs torch, transformers and torch_rdna. Soft placement is off: nothing of TensorFlow's runs on the processor.
Ratio: PyTorch's time over TensorFlow's, so that more is better. Apart: the largest difference of the results, of training of
its first losses, relative to the largest value. Exit status 1: a side failed, or they are further apart than their type allows."""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import numpy as np

SECONDS, LOSSES = 3.0, 3  # how long a line is measured, and how many losses are compared
SIZES = {"bert": ({"rows": 32, "length": 128, "vocabulary": 30522, "width": 768, "heads": 12, "layers": 12},
                  {"rows": 2, "length": 9, "vocabulary": 50, "width": 32, "heads": 4, "layers": 2}),
         "resnet": ({"rows": 64, "side": 224, "classes": 1000, "width": 64, "counts": (3, 4, 6, 3)},
                    {"rows": 2, "side": 64, "classes": 10, "width": 4, "counts": (1, 1)})}  # fmt: skip
LINES = {"BERT-base inference, 32 x 128, f32": ("bert", "float32"), "BERT-base inference, 32 x 128, f16": ("bert", "float16"),
         "ResNet-50 training, 64 x 224 x 224, f32": ("resnet", "float32")}  # fmt: skip
APART = {"float32": 2e-3, "float16": 3e-2}


def timed(step, wait):
    """Milliseconds of a step. |step| queues it, |wait| waits for what the last one gave."""
    for _ in range(3):
        wait(step())
    began = time.perf_counter()
    wait(step())
    steps = max(2, min(400, int(SECONDS / (time.perf_counter() - began))))
    began = time.perf_counter()
    for _ in range(steps):
        last = step()
    wait(last)
    return (time.perf_counter() - began) / steps * 1e3


# ---- PyTorch's side ----


def torch_bert(s, dtype, folder):
    import torch
    from transformers import BertConfig, BertModel

    config = BertConfig(vocab_size=s["vocabulary"], hidden_size=s["width"], num_hidden_layers=s["layers"], num_attention_heads=s["heads"],
                        intermediate_size=4 * s["width"], max_position_embeddings=s["length"])  # fmt: skip
    torch.manual_seed(0)
    model = BertModel(config, add_pooling_layer=False).eval()
    words = torch.randint(s["vocabulary"], (s["rows"], s["length"]))
    mask = (torch.arange(s["length"]) < torch.randint(s["length"] // 2, s["length"] + 1, (s["rows"], 1))).long()
    np.savez(folder / "bert.npz", words=words, mask=mask, **{"w." + name: x.numpy() for name, x in model.state_dict().items()})
    model, words, mask = model.to("rdna", getattr(torch, dtype)), words.to("rdna"), mask.to("rdna")

    @torch.no_grad()
    def step():
        return model(words, attention_mask=mask).last_hidden_state

    result = (step() * mask[:, :, None]).float().cpu().numpy()
    return result, timed(step, lambda x: torch.rdna.synchronize())


def torch_resnet(s, dtype, folder):
    import torch
    from torch import nn

    sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "torch" / "bench"))
    from zoo import blocks, classic

    torch.manual_seed(0)
    stages, last = classic.residual_stages(classic.bottleneck, 4, s["width"], s["counts"], s["width"])
    model = nn.Sequential(blocks.conv(3, s["width"], 7, 2), nn.MaxPool2d(3, 2, 1), *stages, classic.head(last, s["classes"]))
    x, y = torch.randn(s["rows"], 3, s["side"], s["side"]), torch.randint(s["classes"], (s["rows"],))
    weights = [v.numpy() for name, v in model.state_dict().items() if not name.endswith("num_batches_tracked")]
    np.savez(folder / "resnet.npz", x=x.permute(0, 2, 3, 1), y=y, **{f"w.{i}": v for i, v in enumerate(weights)})
    model, x, y = model.to("rdna"), x.to("rdna"), y.to("rdna")
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)

    def step():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    losses = np.array([float(step()) for _ in range(LOSSES)])
    return losses, timed(step, lambda x: torch.rdna.synchronize())


# ---- TensorFlow's ----


def begin_tensorflow():
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # without it the CPU's convolutions are slow on some processors
    import tf_rdna
    import tensorflow as tf

    if not tf_rdna.is_available():
        sys.exit(tf_rdna.why_none())
    tf.config.set_soft_device_placement(False)
    return tf


def saved(path):
    """What PyTorch's side has saved: data, and weights by their names."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    weights = {name[2:]: array for name, array in arrays.items() if name.startswith("w.")}
    return arrays, weights


def tensorflow_bert(s, dtype, folder):
    import networks

    tf = begin_tensorflow()
    arrays, weights = saved(folder / "bert.npz")
    with tf.device("/device:RDNA:0"):
        model = networks.Bert(weights, s["heads"], dtype=dtype)
        words, mask = tf.constant(arrays["words"]), tf.constant(arrays["mask"])
        step = tf.function(lambda: model(words, mask))
        return step().numpy().astype(np.float32) * arrays["mask"][:, :, None], timed(step, lambda x: x[0, 0, 0].numpy())


def training_step(tf, model, optimizer, x, y):
    import keras

    objective = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer.build(model.trainable_variables)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = objective(y, model(x, training=True))
        optimizer.apply(tape.gradient(loss, model.trainable_variables))
        return loss

    return step


def tensorflow_resnet(s, dtype, folder):
    import networks

    tf = begin_tensorflow()
    import keras

    arrays, weights = saved(folder / "resnet.npz")
    with tf.device("/device:RDNA:0"):
        model, load = networks.resnet(s["side"], s["classes"], s["width"], s["counts"])
        load(weights.values())
        step = training_step(tf, model, keras.optimizers.SGD(0.01, momentum=0.9), tf.constant(arrays["x"]), tf.constant(arrays["y"]))
        losses = np.array([float(step()) for _ in range(LOSSES)])
        return losses, timed(step, float)


# ---- both beside each other ----


def one(side, names, tiny, folder):
    """What a process of its own measures: a JSON object a line."""
    if side == "torch":
        import torch_rdna  # noqa: F401
    for name in names:
        kind, dtype = LINES[name]
        result, ms = globals()[f"{side}_{kind}"](SIZES[kind][tiny], dtype, folder)
        np.save(folder / f"{side}.{names.index(name)}.npy", result)
        print(json.dumps({"name": name, "ms": ms}), flush=True)


def run_side(side, python, names, options, folder):
    """{line: milliseconds}, printed as they come."""
    command = [python, __file__, "--side", side, "--folder", str(folder), "--only", options.only, *["--tiny"] * options.tiny]
    environment = dict(os.environ, TORCH_DEVICE_BACKEND_AUTOLOAD="0", HF_HUB_OFFLINE="1")
    times = {}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if line.startswith("{"):
                said = json.loads(line)
                times[said["name"]] = said["ms"]
                print(f"{side:10} {said['name']:42} {said['ms']:10.2f} ms", flush=True)
    if process.returncode:
        print(f"{side}: exit status {process.returncode}", flush=True)
    return times


def compare(names, options):
    good = True
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(made)
        theirs = run_side("torch", options.torch_python, names, options, folder)
        ours = run_side("tensorflow", sys.executable, names, options, folder)
        for i, name in enumerate(names):
            if name not in ours or name not in theirs:
                print(f"{name:42} a side is missing")
                good = False
                continue
            a, b = (np.load(folder / f"{side}.{i}.npy") for side in ("tensorflow", "torch"))
            apart = float(np.abs(a - b).max() / np.abs(b).max())
            good &= apart <= APART[LINES[name][1]]
            print(f"{name:42} ratio {theirs[name] / ours[name]:5.2f}  apart {apart:.1e}", flush=True)
    return good


def track(steps, only):
    """The losses of ResNet-50 and of a transformer on the device and on TensorFlow's CPU, from the same weights."""
    import networks

    tf = begin_tensorflow()
    import keras

    rng, good = np.random.default_rng(0), True
    pictures = rng.standard_normal((8, 32, 32, 3)).astype(np.float32), rng.integers(0, 10, 8)
    texts = (rng.integers(0, 20, (32, 1)) + rng.integers(1, 4, (32, 1)) * np.arange(13)) % 20
    cases = {"ResNet-50": (lambda: networks.resnet(32, 10, calm=True)[0], lambda: keras.optimizers.SGD(2e-3, momentum=0.9), pictures, 5e-3),
             "transformer": (lambda: networks.transformer(20, 12), lambda: keras.optimizers.Adam(5e-3), (texts[:, :-1], texts[:, 1:]), 5e-3)}  # fmt: skip
    for name, (build, optimizer, (x, y), allowed) in cases.items():
        if not re.search(only, name):
            continue
        curves = []
        for device in ("/device:RDNA:0", "/device:CPU:0"):
            keras.utils.set_random_seed(3)
            with tf.device("/device:CPU:0"):
                start = build().get_weights()
            with tf.device(device):
                model = build()
                model.set_weights(start)
                step = training_step(tf, model, optimizer(), tf.constant(x), tf.constant(y))
                curves.append([float(step()) for _ in range(steps)])
        ours, theirs = map(np.array, curves)
        apart = float(np.max(np.abs(ours - theirs)) / theirs[0])  # late losses of a network that has learnt its few pictures are near 0
        good &= apart <= allowed and ours[-1] < 0.9 * ours[0]
        print(f"{name:12} {steps} steps: losses {ours[0]:.4f} to {ours[-1]:.4f}, from the CPU's at most {apart:.1e} of the first", flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true", help="sizes at which only the script itself is tried")
    parser.add_argument("--only", default="", help="lines whose name this is found in")
    parser.add_argument("--torch-python", default=sys.executable, help="of an environment that has PyTorch and the plugin")
    parser.add_argument("--losses", type=int, metavar="STEPS", help="two networks' losses on the device and on the CPU")
    parser.add_argument("--side", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=pathlib.Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    names = [name for name in LINES if re.search(options.only, name)]
    if options.side:
        return one(options.side, names, options.tiny, options.folder)
    return 0 if (track(options.losses, options.only) if options.losses else compare(names, options)) else 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""ResNet-50 (224 x 224) and a GPT of 12 layers in training: the loss on device='rdna' beside the loss in float64.

    RDNA_DRIVER=host python bindings/torch/tests/tracking.py --model resnet50 --dtype float32
    python bindings/torch/tests/tracking.py --model resnet50,gpt --dtype float32,amp-bf16,amp-f16 --reference cuda

Three runs from the same weights over the same data: float64 on the reference device (the CPU, or PyTorch's own CUDA);
|dtype| on the reference device, by PyTorch's kernels; |dtype| on rdna. How far PyTorch's own kernels come from float64
says what the type costs in this very training, growth from step to step included: rdna may be FACTOR times as far, and
FLOOR units in the last place of the loss, at each step. The same holds for the distance of all weights at the end,
relative to the way that they have gone. Exit status 1 beyond that, when the loss does not fall, and when an operator fell
back to the CPU. Each run has a process of its own, since PyTorch's autograd knows one accelerator at a time."""
import argparse
import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import torch
import torch.nn.functional as F
from test_models import GPT2, Bottleneck
from torch import nn

TYPES = {"float64": torch.float64, "float32": torch.float32, "amp-bf16": torch.bfloat16, "amp-f16": torch.float16}
FACTOR = 4
# The loss is a mean of float32 values: a few roundings of that type. In mixed precision each of these values is rounded to
# the narrow type once, since PyTorch's cross entropy asks for a log_softmax of its input's type.
FLOOR = {"float32": 8 * torch.finfo(torch.float32).eps, "amp-bf16": torch.finfo(torch.bfloat16).eps / 2,
         "amp-f16": torch.finfo(torch.float16).eps / 2}


class ResNet50(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True),
                                  nn.MaxPool2d(3, 2, 1))
        blocks, inputs = [], 64
        for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
            for i in range(count):
                blocks.append(Bottleneck(inputs, width, stride if i == 0 else 1))
                inputs = 4 * width
        self.blocks, self.pool, self.head = nn.Sequential(*blocks), nn.AdaptiveAvgPool2d(1), nn.Linear(inputs, 1000)

    def forward(self, x, y):
        return F.cross_entropy(self.head(torch.flatten(self.pool(self.blocks(self.stem(x))), 1)), y)


def resnet50(batch):
    model = ResNet50()
    # With branches that begin at full strength the first steps of so small a batch multiply a rounding error by a
    # thousand each, and float32 and float64 part at once; begun small, as recipes for this net do, they stay comparable.
    for block in model.blocks:
        nn.init.constant_(block.body[-1].weight, 0.1)
    return model, [(torch.randn(batch, 3, 224, 224), torch.randint(1000, (batch,))) for _ in range(2)]


def gpt(batch):
    return (GPT2(vocabulary=8192, width=768, length=128, heads=12, layers=12),
            [(torch.randint(8192, (batch, 128)),) for _ in range(2)])


OPTIMIZERS = {"resnet50": lambda p: torch.optim.SGD(p, lr=1e-3, momentum=0.9, weight_decay=1e-4),
              "gpt": lambda p: torch.optim.AdamW(p, lr=1e-4, fused=True)}
MODELS = {"resnet50": resnet50, "gpt": gpt}


def train(model_name, device, dtype, steps, batch, path):
    """What a process of its own does: trains, and leaves losses and weights in |path|."""
    if device == "rdna" and not hasattr(torch, "rdna"):
        import torch_rdna  # noqa: F401
    torch.backends.cudnn.allow_tf32 = False
    torch.manual_seed(0)
    model, batches = MODELS[model_name](batch)
    start = nn.utils.parameters_to_vector(model.parameters()).detach().clone()
    double, mixed = dtype == "float64", dtype.startswith("amp")
    model = model.to(device, torch.float64 if double else torch.float32)
    batches = [[(t.double() if double and t.is_floating_point() else t).to(device) for t in b] for b in batches]
    optimizer = OPTIMIZERS[model_name](model.parameters())
    # a scale that nothing overflows at: a step that one side leaves out would be another training
    scaler = torch.amp.GradScaler(device, init_scale=256.0, growth_interval=1 << 30, enabled=dtype == "amp-f16")
    losses, began = [], time.perf_counter()
    for step in range(steps):
        optimizer.zero_grad()
        with torch.autocast(device, TYPES[dtype] if mixed else torch.bfloat16, enabled=mixed):
            loss = model(*batches[step % len(batches)])
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    seconds = time.perf_counter() - began
    assert scaler.get_scale() in (256.0, 1.0), "a gradient overflowed: choose a smaller scale"
    weights = nn.utils.parameters_to_vector(model.parameters()).detach().cpu().double() - start.double()
    fell_back = torch.rdna.fallback_report() if device == "rdna" else {}
    torch.save({"losses": losses, "way": weights, "seconds": seconds, "fell back": fell_back,
                "name": torch.rdna.get_device_name() if device == "rdna" else device}, path)


def run(folder, *arguments):
    path = str(pathlib.Path(folder) / "-".join(arguments))
    if os.path.exists(path) and "rdna" not in arguments:
        return torch.load(path)
    environment = dict(os.environ, TORCH_DEVICE_BACKEND_AUTOLOAD="0" if arguments[1] == "cuda" else "1")
    subprocess.run([sys.executable, __file__, "--one", *arguments, path], env=environment, check=True)
    return torch.load(path)


def compare(name, dtype, double, theirs, ours):
    """Prints the curves; the sentences of what is wrong."""
    wrong, allowed, worst = [], [], 0.0
    print(f"\n{name} {dtype}, {len(ours['losses'])} steps on {ours['name']}: {ours['seconds']:.1f} s"
          f" ({theirs['name']}: {theirs['seconds']:.1f} s, float64 {double['seconds']:.1f} s)")
    print("step   float64   PyTorch's      rdna   PyTorch's off   rdna off    allowed")
    for step, (d, t, o) in enumerate(zip(double["losses"], theirs["losses"], ours["losses"])):
        worst = max(worst, abs(t - d))
        allowed.append(FACTOR * worst + FLOOR[dtype] * abs(d))
        print(f"{step:4} {d:9.5f}   {t:9.5f} {o:9.5f}      {abs(t - d):10.2e} {abs(o - d):10.2e} {allowed[-1]:10.2e}")
        if not abs(o - d) <= allowed[-1]:
            wrong.append(f"the loss of step {step} is {abs(o - d):.2e} from float64's, {allowed[-1]:.2e} is allowed")
    way = double["way"].norm()
    their_off, our_off = (((x["way"] - double["way"]).norm() / way).item() for x in (theirs, ours))
    limit = FACTOR * their_off + FLOOR[dtype]
    print(f"weights, distance over the way gone: PyTorch's {their_off:.2e}, rdna {our_off:.2e}, allowed {limit:.2e}")
    if not our_off <= limit:
        wrong.append(f"the weights ended {our_off:.2e} of the way from float64's, {limit:.2e} is allowed")
    if not ours["losses"][-1] < ours["losses"][0]:
        wrong.append("the loss did not fall")
    if ours["fell back"]:
        wrong.append(f"fell back to the CPU: {ours['fell back']}")
    return [f"{name} {dtype}: {sentence}" for sentence in wrong]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="rdna")
    parser.add_argument("--model", default="resnet50,gpt")
    parser.add_argument("--dtype", default="float32,amp-bf16")
    parser.add_argument("--reference", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--keep", help="a folder: the references' runs are left there, and not run again if they are")
    parser.add_argument("--one", nargs=6, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        name, device, dtype, steps, batch, path = args.one
        train(name, device, dtype, int(steps), int(batch), path)
        return 0
    wrong, sizes = [], (str(args.steps), str(args.batch))
    if args.keep:
        os.makedirs(args.keep, exist_ok=True)
    with contextlib.nullcontext(args.keep) if args.keep else tempfile.TemporaryDirectory() as folder:
        for name in args.model.split(","):
            double = run(folder, name, args.reference, "float64", *sizes)
            for dtype in args.dtype.split(","):
                theirs, ours = (run(folder, name, device, dtype, *sizes) for device in (args.reference, args.device))
                wrong += compare(name, dtype, double, theirs, ours)
    print("\n" + ("\n".join(wrong) or "all within what is allowed"))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

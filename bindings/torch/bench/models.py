#!/usr/bin/env python3
"""Models of some fifty kinds on device='rdna' beside PyTorch's own CUDA: training steps and inference, on one NVIDIA GPU.

    python bindings/torch/bench/models.py [--only REGEX] [--compile] [--json FILE] [--plot FILE.svg]
    python bindings/torch/bench/models.py --losses 50        how far each side's losses are from float64's, tiny sizes
    python bindings/torch/bench/models.py --check            rdna against the CPU in this process, tiny sizes
    python bindings/torch/bench/models.py --list

The models are in zoo/. A side is a process, since PyTorch's autograd knows one accelerator at a time; both have the same
weights and data. One that dies, or takes too long over a model, is begun again behind that model. f32 is f32 (no TF32);
bf16 training is autocast, 16-bit inference has weights of that type. With --compile the CUDA side takes torch.compile's
default and rdna its own backend, or Inductor with RDNA_INDUCTOR=1, loss and model in one graph.

Ratio: the other side's time over ours, so that more is better. Peak: our memory over theirs. Apart: the largest
difference of the first eight losses, or of what inference gave, relative. On the CPU: operators that fell back there."""
import argparse
import gc
import json
import math
import os
import re
import signal
import sys
import time

import torch

import check
import picture
import sides
import zoo
from check import TYPES, prepared, sample

SECONDS, BLOCKS = 0.4, 3  # each line is measured for so long, in blocks of which the middle one counts
PATIENCE = 120  # seconds for a line; with --compile five times as many


def every_line():
    return [(name, mode, getattr(model, kind)) for name, model in zoo.MODELS.items()
            for mode, kind in (("training", "train"), ("inference", "infer"))]


def wanted_lines(options):
    return [line for line in every_line() if re.search(options.only, " ".join(line))
            and (line[1] == "training" or not options.losses)
            and (line[1] != "training" or not options.compile or zoo.MODELS[line[0]].compiles)]


def compiled(function, device):
    ours = device == "rdna" and os.environ.get("RDNA_INDUCTOR", "0") == "0"
    return torch.compile(function, **({"backend": "rdna"} if ours else {}))


def stepper(model, work, mode, dtype, device, through):
    """What is timed: a training step that returns its loss, or a pass. |through| wraps what computes: torch.compile."""
    if mode == "inference":
        module = through(work.module.eval())

        def infer():
            with torch.no_grad():
                module(*work.inputs)
            return 0.0
        return infer
    optimizer = check.OPTIMIZERS[model.optimizer](p for p in work.module.parameters() if p.requires_grad)
    objective = through(work.training_loss)
    narrow = dtype in ("bf16", "f16")

    def train():
        optimizer.zero_grad()
        with torch.autocast(device, TYPES[dtype] if narrow else torch.bfloat16, enabled=narrow):
            loss = objective(work.inputs, work.targets)
        loss.backward()
        optimizer.step()
        return loss.detach()
    return train


def timed(device, step, tiny):
    """Milliseconds, GiB, losses of the first steps."""
    _, _, losses = sides.measure(device, step, 2, 2)  # warm: kernels are loaded, plans made
    once, _, more = sides.measure(device, step, 2, 0)
    steps = 1 if tiny else max(1, min(50, int(SECONDS * 1e3 / BLOCKS / once)))
    blocks = [sides.measure(device, step, steps, 0) for _ in range(BLOCKS)]
    losses += more + [loss for block in blocks for loss in block[2]]
    return sorted(block[0] for block in blocks)[BLOCKS // 2], max(block[1] for block in blocks), losses[:8]


def measured(options, name, mode, dtype):
    """A line's numbers, of this process's side. The side "float64" is the CPU with that type."""
    model, device = zoo.MODELS[name], "cpu" if options.one == "float64" else options.one
    if options.one == "float64":
        dtype = "f64"
    work = prepared(model, dtype, mode, device, options.tiny or options.losses)
    step = stepper(model, work, mode, dtype, device, (lambda f: compiled(f, device)) if options.compile else lambda f: f)
    sides.fallbacks(device)
    if options.losses:
        return {"values": [float(step()) for _ in range(options.losses)], "fallbacks": sides.fallbacks(device)}
    ms, peak, losses = timed(device, step, options.tiny)
    fallen = sides.fallbacks(device)
    values = losses if mode == "training" else sample(work.module.eval(), work.inputs, 256).tolist()
    return {"ms": ms, "peak_gib": peak, "values": values, "fallbacks": fallen}


def one(options):
    """A side: prints the numbers of each line from the first that is asked for."""
    device = "cpu" if options.one == "float64" else options.one
    sides.begin(device)
    for line in wanted_lines(options)[options.first:]:
        signal.alarm(PATIENCE * (5 if options.compile else 1))  # its default ends the process
        try:
            result = measured(options, *line)
        except Exception as e:
            result = {"error": f"{type(e).__name__}: {str(e).strip().splitlines()[0][:300] if str(e).strip() else ''}"}
        print(json.dumps(result), flush=True)
        if options.compile:
            torch._dynamo.reset()
        gc.collect()
        if device != "cpu":
            sides.module_of(device).synchronize()  # raises where the line left the device unusable: another process goes on
            sides.module_of(device).empty_cache()


def side(options, device, count):
    """The results of a side, line by line, by as many processes as it takes."""
    passed = [argument for argument in ("--tiny", "--compile") if getattr(options, argument[2:])]
    passed += ["--only", options.only, "--losses", str(options.losses)]
    done, deaths = 0, 0
    while done < count:
        before = done
        for result in sides.lines(__file__, "--one", device, "--first", str(done), *passed):
            if done < count:
                yield result
            done += 1
        deaths = deaths + 1 if done == before + 1 else 0
        if deaths == 3 or done == before:
            raise SystemExit(f"{device}: no process of this side gets beyond its first model: {result['error']}")


def apart(line, a, b):
    """The largest difference of losses, relative; of inference that of all values."""
    a, b = (torch.tensor(line[device].get("values", []), dtype=torch.float64) for device in (a, b))
    if not len(a) or a.shape != b.shape:
        return None
    if line["mode"] == "training":
        return ((a - b).abs() / b.abs().clamp(min=1e-30)).max().item()
    return check.distance(a, b)


def report(lines, devices):
    """The table's last part: means, worst lines, and what fell back."""
    for what in ("all", "training", "inference"):
        ratios = [line["ratio"] for line in lines if what in ("all", line["mode"]) and line["ratio"]]
        if ratios:
            print(f"geometric mean, {what}: {sides.geometric_mean(ratios):.2f} of {len(ratios)} lines, "
                  f"{sum(r < 0.9 for r in ratios)} below 0.9")
    worst = sorted((line for line in lines if line["ratio"]), key=lambda line: line["ratio"])[:10]
    if worst:
        print("worst: " + "; ".join(f"{line['name']} {line['mode']} {line['ratio']:.2f}" for line in worst))
    failed = [f"{line['name']} {line['mode']} on {device}" for line in lines for device in devices if "error" in line[device]]
    print("failed: " + ("; ".join(failed) or "none"))
    fallen = {}
    for line in lines:
        for operator, calls in line.get("rdna", {}).get("fallbacks", {}).items():
            where = fallen.setdefault(operator, [0, 0, []])
            where[0], where[1] = where[0] + 1, where[1] + calls
            where[2] += [line["name"]] * (line["name"] not in where[2])
    for operator, (count, calls, names) in sorted(fallen.items(), key=lambda item: (-item[1][0], -item[1][1], item[0])):
        print(f"fell back: {operator}, {count} lines, {calls} calls: {', '.join(names)}")


def compare(options, devices):
    wanted = wanted_lines(options)
    # each side whole before the next, since two processes on a card would disturb each other
    results = {device: list(side(options, device, len(wanted))) for device in devices[1:]}
    width = max(len(name) for name, _, _ in wanted)
    print(f"{'':{width}} {'':9} {'':4}" + "".join(f"{device + ' ms':>12}" for device in reversed(devices))
          + f"{'ratio':>7}{'peak':>7}{'apart':>9}  on the CPU")
    lines = []
    for (name, mode, dtype), *numbers in zip(wanted, side(options, devices[0], len(wanted)), *results.values()):
        line = {"name": name, "mode": mode, "dtype": dtype, **dict(zip(devices, numbers))}
        line["ratio"], line["peak"] = sides.ratio_of(line), None
        if len(devices) == 2:
            peak = sides.ratio_of(line, "peak_gib")
            line["peak"], line["apart"] = 1 / peak if peak else None, apart(line, *devices)
        lines.append(line)
        errors = [f"{device} failed: {line[device]['error']}" for device in devices if "error" in line[device]]
        fallen = [f"{operator.removeprefix('aten::')} {calls}" for operator, calls in line[devices[0]].get("fallbacks", {}).items()]
        different = line.get("apart")
        print(f"{name:{width}} {mode:9} {dtype:4}"
              + "".join(sides.shown(line[device].get("ms"), 12, 3) for device in reversed(devices))
              + sides.shown(line["ratio"], 7) + sides.shown(line["peak"], 7)
              + (f"{different:9.1e}" if different is not None else f"{'-':>9}") + "  " + "; ".join(errors or fallen), flush=True)
    report(lines, devices)
    return lines


def follow(options, devices):
    """The distance of each side's losses from float64's, root mean square over the steps, relative."""
    wanted = wanted_lines(options)
    results = [list(side(options, device, len(wanted))) for device in [*devices, "float64"]]
    width = max(len(name) for name, _, _ in wanted)
    print(f"{'':{width}} {'':4}" + "".join(f"{device + ' off':>13}" for device in devices) + "  nearer")
    lines, near = [], dict.fromkeys(devices, 0)
    for (name, _, dtype), *numbers in zip(wanted, *results):
        line = {"name": name, "mode": "training", "dtype": dtype, **dict(zip([*devices, "float64"], numbers))}
        losses = {device: torch.tensor(side["values"], dtype=torch.float64) for device, side in line.items() if "values" in side}
        off = {device: check.distance(losses[device], losses["float64"]) for device in devices
               if device in losses and "float64" in losses}
        line["off"], lines = off, [*lines, line]
        nearer = min(off, key=lambda device: math.inf if math.isnan(off[device]) else off[device]) if len(off) == len(devices) else None
        if nearer:
            near[nearer] += 1
        errors = [f"{device} failed: {side['error']}" for device, side in line.items() if isinstance(side, dict) and "error" in side]
        print(f"{name:{width}} {dtype:4}" + "".join(f"{off.get(device, math.nan):13.2e}" for device in devices)
              + f"  {nearer or '-'}  " + "; ".join(errors))
    print("nearer to float64: " + ", ".join(f"{device} {count}" for device, count in near.items()))
    if len(devices) == 2:
        a, b = devices
        mean = sides.geometric_mean([line["off"][a] / line["off"][b] for line in lines if all(line["off"].get(d) for d in devices)])
        print(f"{a}'s distance over {b}'s, geometric mean: {mean:.2f}" if mean else "nothing to compare")
    return lines


def checked(options):
    """The models on rdna against the CPU, in this process; those of 16 bits also in f32, whose bounds are narrower."""
    sides.begin("rdna")
    wrong, began = 0, time.perf_counter()
    for name, mode, dtype in sorted({(name, mode, dtype) for name, mode, own in wanted_lines(options) for dtype in (own, "f32")}):
        off, allowed = check.off_and_allowed(zoo.MODELS[name], mode, dtype)
        fallen = ", ".join(sides.fallbacks("rdna"))
        wrong += not off <= allowed
        print(f"{name:34} {mode:9} {dtype:4} {off:9.1e} from float64, {allowed:9.1e} allowed"
              f"{'' if off <= allowed else '  WRONG'}  {fallen}", flush=True)
    print(f"{wrong} wrong, {time.perf_counter() - began:.0f} s")
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="a regular expression over 'name training|inference type'")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--tiny", action="store_true", help="sizes at which only the script itself is tried")
    parser.add_argument("--devices", default="rdna,cuda", help="one, or two that are compared")
    parser.add_argument("--compile", action="store_true", help="each side's torch.compile")
    parser.add_argument("--losses", type=int, default=0, metavar="STEPS")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--plot", metavar="FILE.svg")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--first", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        return one(options)
    if not wanted_lines(options):
        parser.error(f"--only {options.only}: no line of --list has it")
    if options.list:
        print("\n".join(" ".join(line) for line in wanted_lines(options)))
        return 0
    if options.check:
        return checked(options)
    devices, began = options.devices.split(","), time.perf_counter()
    print(f"PyTorch {torch.__version__}" + (f", {torch.cuda.get_device_name()}" if "cuda" in devices else ""))
    lines = (follow if options.losses else compare)(options, devices)
    print(f"{time.perf_counter() - began:.0f} s")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as f:
            json.dump(lines, f, indent=1)
    if options.plot:
        with open(options.plot, "w", encoding="utf-8") as f:
            f.write(picture.bars([(f"{line['name']} {line['mode']} {line['dtype']}", line.get("ratio")) for line in lines]))
    return 0


if __name__ == "__main__":
    sys.exit(main())

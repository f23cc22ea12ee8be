"""What the benches of this folder share: the sides, each in a process of its own, and the table that compares them.

PyTorch's autograd knows one accelerator at a time, so the processes do not load the plugin by themselves: who measures
rdna imports it. A side prints one JSON object a line; other lines are not for us."""
import argparse
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time

import torch


def module_of(device):
    return {"cuda": torch.cuda, "cpu": torch.cpu}.get(device) or torch.rdna


def measure(device, step, steps, warm):
    """Milliseconds a step, GiB at the peak, and what the steps returned."""
    module, losses = module_of(device), []
    if device != "cpu":
        module.reset_peak_memory_stats()
    for _ in range(warm):
        losses.append(step())
    module.synchronize()
    began = time.perf_counter()
    for _ in range(steps):
        losses.append(step())
    module.synchronize()
    ms = (time.perf_counter() - began) / steps * 1e3
    return ms, module.max_memory_allocated() / 2**30 if device != "cpu" else math.nan, [float(loss) for loss in losses]


def begin(device):
    """What a side does first: registers the device, and makes f32 mean f32."""
    if device == "rdna":
        import torch_rdna  # noqa: F401
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False


def fallbacks(device):
    """Operators that were computed on the CPU since the last call, with their counts."""
    if device != "rdna":
        return {}
    report = torch.rdna.fallback_report()
    torch.rdna.reset_fallback_report()
    return report


def lines(*command):
    """The JSON objects of a Python process as they come; where it ends badly, the last is {"error": its last word}."""
    environment = dict(os.environ, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    with tempfile.TemporaryFile("w+", errors="replace") as errors:
        with subprocess.Popen([sys.executable, *command], env=environment, stdout=subprocess.PIPE, stderr=errors,
                              text=True) as process:
            for line in process.stdout:
                if line.startswith("{"):
                    yield json.loads(line)
        if process.returncode:
            errors.seek(0)
            said = errors.read().strip().splitlines()
            how = (signal.Signals(-process.returncode).name if process.returncode < 0
                   else f"exit status {process.returncode}")
            yield {"error": f"{how}: {said[-1][:300] if said else 'no word'}"}


def geometric_mean(values):
    """Of those that are there (not None); None where none is."""
    values = [value for value in values if value is not None]
    return math.exp(math.fsum(map(math.log, values)) / len(values)) if values else None


def shown(value, width, digits=2):
    """A number in a column; a dash where there is none."""
    return f"{'-' if value is None or math.isnan(value) else f'{value:.{digits}f}':>{width}}"


def ratio_of(line, key="ms"):
    """The other side's over ours; None where one of them is missing or failed."""
    ours = line.get("rdna", {}).get(key)
    other = next((side.get(key) for device, side in line.items() if device != "rdna" and isinstance(side, dict)), None)
    return other / ours if other and ours else None


def table(names, sides, unit="ms"):
    """Prints a line for each name: the time of each side, the ratio, what fell back. |sides|: device to its lines."""
    width = max(map(len, names))
    print(f"{'':{width}}" + "".join(f"{device + ' ' + unit:>14}" for device in sides) + f"{'ratio':>8}")
    on_device = []
    for i, name in enumerate(names):
        line = {"name": name, **{device: side[i] for device, side in sides.items()}}
        fallen = line.get("rdna", {}).get("fallbacks")
        ratio = ratio_of(line, unit)
        on_device.append(None if fallen else ratio)
        print(f"{name:{width}}" + "".join(shown(line[device].get(unit), 14, 3) for device in sides)
              + shown(ratio, 8) + ("  on the CPU: " + ", ".join(sorted(fallen)) if fallen else ""))
    mean = geometric_mean(on_device)
    print("geometric mean of those on the device", "-" if mean is None else f"{mean:.2f}")


def main(script, doc, names, one, unit="ms"):
    """A bench: |names| of (tiny) are its lines, |one| of (device, tiny) yields {unit: time} for each in turn."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true", help="sizes at which only the script itself is tried")
    parser.add_argument("--devices", default="rdna,cuda", help="one, or two that are compared")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        begin(options.one)
        for line in one(options.one, options.tiny):
            print(json.dumps({**line, "fallbacks": fallbacks(options.one)}), flush=True)
        return 0
    sides, wanted = {}, names(options.tiny)
    for device in options.devices.split(","):
        side = list(lines(script, "--one", device, *["--tiny"] * options.tiny))
        if len(side) != len(wanted) or "error" in side[-1]:
            print(f"{device}: {side[-1].get('error', 'too few lines') if side else 'no lines'}", file=sys.stderr)
            return 1
        sides[device] = side
    table(wanted, sides, unit)
    return 0

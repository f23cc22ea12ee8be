#!/usr/bin/env python3
"""Types that PyTorch's CUDA takes and its CPU does not: RDNA_DRIVER=host python cuda_types.py [NAME…]

PyTorch's operator samples (OpInfo) say for each operator which types each device takes. opinfo.py compares with the CPU, and so
sees nothing of those that only CUDA takes, mostly of 16 bits: here the same samples are computed by the CPU in a wider type, and
rounded. It fails on what differs, raises or falls back and cuda_types.txt does not name, and on what is named there and works."""

import collections
import os
import pathlib
import signal
import sys

from opinfo import Differs, close, mapped, operators, tensors

import torch

LIST = pathlib.Path(__file__).with_name("cuda_types.txt")
WIDER = {torch.float16: torch.float32, torch.bfloat16: torch.float32, torch.complex32: torch.complex64}
WIDER |= {t: torch.float64 for t in (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.bool)}
TYPES = [*WIDER, torch.float32, torch.float64, torch.complex64, torch.complex128]
LIMIT = 60  # seconds


def listed():
    lines = (line.split(":: ")[0].split() for line in LIST.read_text().splitlines() if line and not line.startswith("#"))
    return {(name, dtype): outcome for name, dtype, outcome in lines}


def call(op, sample, f):
    parts = [mapped(part, f) for part in (sample.input, sample.args, sample.kwargs)]
    return op(parts[0], *parts[1], **parts[2])


def widened(sample, dtype):
    """The sample's result by the CPU, computed in what is wider than |dtype|; its tensors in |dtype| again."""
    wide = WIDER.get(dtype, dtype)
    halves = {torch.float16: torch.float32, torch.complex32: torch.complex64}
    wider = halves if dtype in halves else {dtype: wide}
    back = {b: a for a, b in wider.items()}

    def compute(op):
        kwargs = sample.kwargs
        if kwargs.get("dtype") in wider:
            kwargs["dtype"] = wider[kwargs["dtype"]]
        result = call(op, sample, lambda t: t.detach().to(wider.get(t.dtype, t.dtype)))
        return mapped(result, lambda t: t.to(back.get(t.dtype, t.dtype)))

    return compute


def compare(expected, actual):
    for e, a in zip(tensors(expected), tensors(actual), strict=True):
        assert a.device.type == "rdna", f"is on {a.device}"
        assert e.shape == a.shape, f"shape {tuple(a.shape)}, not {tuple(e.shape)}"
        e, a = e.detach(), a.detach().cpu()
        if e.dtype == torch.complex32:  # which has no comparison: two halves
            assert a.dtype == e.dtype, f"{a.dtype}, not {e.dtype}"
            e, a = (torch.view_as_real(t.resolve_conj()).float() for t in (e, a))
            finite = e[e.isfinite()].abs()
            size = finite.max().item() if finite.numel() else 1
            try:
                torch.testing.assert_close(a, e, rtol=4e-3, atol=2e-3 * max(size, 1), equal_nan=True)
            except AssertionError as error:
                raise Differs(str(error)) from None
        elif e.layout == torch.strided:
            close(e, a.to(e.dtype), "result")


def run(op, dtype):
    """(outcome, words): native, fallback, mismatch, error, or none where there is nothing to compare with."""
    torch.manual_seed(0)
    samples, used = 0, collections.Counter()
    for sample in op.sample_inputs("cpu", dtype, requires_grad=False):
        ours = type(sample)(*(mapped(p, lambda t: t.detach().to("rdna"), "rdna") for p in (sample.input,)),
                            args=mapped(sample.args, lambda t: t.detach().to("rdna"), "rdna"),
                            kwargs=mapped(sample.kwargs, lambda t: t.detach().to("rdna"), "rdna"))
        torch.manual_seed(1)
        before = torch.get_rng_state()
        try:
            expected = widened(sample, dtype)(op)
        except Exception:  # not in the wider type either
            continue
        if not torch.equal(before, torch.get_rng_state()):
            continue
        samples += 1
        torch.rdna.reset_fallback_report()
        try:
            actual = op(ours.input, *ours.args, **ours.kwargs)
            torch.rdna.synchronize()
        except Exception as error:
            return "error", f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        used.update(torch.rdna.fallback_report())
        try:
            compare(expected, actual)
        except (AssertionError, ValueError, RuntimeError) as error:
            return "mismatch", " ".join(str(error).split())[:200]
    return ("fallback", str(dict(used))) if used else ("native", "") if samples else ("none", "")


def expired(*_):
    raise TimeoutError(f"more than {LIMIT} s")


def main():
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    signal.signal(signal.SIGALRM, expired)
    named, counts, wrong = listed(), collections.Counter(), 0
    for name, op in sorted(operators("").items()):
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        only_cuda = set(op.supported_dtypes("cuda")) - set(op.supported_dtypes("cpu"))
        for dtype in (t for t in TYPES if t in only_cuda):
            signal.alarm(LIMIT)
            try:
                outcome, words = run(op, dtype)
            except Exception as error:  # the samples themselves
                outcome, words = "none", str(error)
            signal.alarm(0)
            key = name, str(dtype).split(".")[1]
            counts[outcome] += 1
            want = named.pop(key, None)
            if outcome in ("native", "none") and want or outcome not in ("native", "none") and want != outcome:
                wrong += 1
                print(f"{outcome:9} {key[0]} {key[1]}: {words or f'named in cuda_types.txt as {want}'}", flush=True)
    for key in named if not sys.argv[1:] else ():
        wrong += 1
        print(f"{' '.join(key)}: named in cuda_types.txt, and CUDA does not take it or the CPU does")
    print(", ".join(f"{n} {outcome}" for outcome, n in counts.items()) + f"; {len(listed())} are named")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()

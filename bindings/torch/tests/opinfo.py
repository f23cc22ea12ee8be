#!/usr/bin/env python3
"""PyTorch's own operator samples (OpInfo), each on rdna and on the CPU, compared.

    RDNA_DRIVER=host python opinfo.py [--grad] [--dtype float32] [--only REGEX] [--share K/N] [--jobs N] [--json FILE]

Each OpInfo runs in a process of its own, which may crash or hang without harm to the others. An OpInfo is
  native     right, and nothing fell back to the CPU        fallback   right, with operators on the CPU
  mismatch   a result differs                               error      raised, where the CPU did not
  crash      the process died                               timeout    longer than --limit seconds
  none       no samples of this type, or the CPU fails too, or results that are not defined (empty)
gaps.txt lists those that are neither native nor fallback, with the reason. The run fails on any that is not listed
and on any listed one that works: the list is always true.
"""

import argparse
import collections
import json
import os
import re
import signal
import sys
import time

os.environ.setdefault("RDNA_DRIVER", "host")
HERE = os.path.dirname(os.path.abspath(__file__))

import torch  # noqa: E402

if not hasattr(torch, "rdna"):  # from a build folder, where no entry point is installed
    import torch_rdna  # noqa: E402,F401

# results that are whatever was in memory, or random with another sequence than the CPU's
UNDEFINED = re.compile(
    r"^(empty|new_empty|empty_like|empty_strided|empty_permuted|new_empty_strided|__getitem__x|"
    r"bernoulli|cauchy|exponential|geometric|log_normal|multinomial|normal|rand|randn|randint|uniform|"
    r"rand_like|randn_like|randint_like|randperm|"
    r"nn\.functional\.(dropout|dropout2d|dropout3d|alpha_dropout|feature_alpha_dropout|rrelu|fractional_max_pool[23]d|"
    r"multi_head_attention_forward)|svd_lowrank|pca_lowrank|torch\.ops\.aten\._safe_softmax\.defaultx)$"
)


ARGUMENTS_ON_CPU = {"tensor_split"}  # their tensors say how to cut, not what


def tensors(tree):
    if isinstance(tree, torch.Tensor):
        yield tree
    elif isinstance(tree, (list, tuple)):
        for item in tree:
            yield from tensors(item)
    elif isinstance(tree, dict):
        for item in tree.values():
            yield from tensors(item)


def mapped(tree, f):
    if isinstance(tree, torch.Tensor):
        return f(tree)
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(mapped(item, f) for item in tree))
    if isinstance(tree, (list, tuple)):
        return type(tree)(mapped(item, f) for item in tree)
    if isinstance(tree, dict):
        return {k: mapped(v, f) for k, v in tree.items()}
    if isinstance(tree, torch.device):
        return torch.device("rdna")
    return tree


def to_rdna(tree):
    def move(t):
        if t.layout != torch.strided:
            return t
        moved = t.detach().to("rdna")
        return moved.requires_grad_(t.requires_grad) if t.requires_grad else moved

    return mapped(tree, move)


def close(expected, actual, dtype, path="result"):
    """Raises AssertionError where the two differ by more than the type explains."""
    if isinstance(expected, torch.Tensor):
        assert isinstance(actual, torch.Tensor), f"{path}: a tensor became {type(actual).__name__}"
        if actual.device.type == "rdna":
            actual = actual.cpu()
        if expected.layout != torch.strided:
            return
        expected, tolerance = expected.detach(), dict(TOLERANCE.get(expected.dtype, {}))
        if tolerance and expected.numel():  # sums cancel: what is small is as exact as what is large beside it
            finite = expected[torch.isfinite(expected)]
            if finite.numel():
                tolerance["atol"] *= max(1.0, finite.abs().max().item())
        torch.testing.assert_close(actual.detach(), expected, equal_nan=True, check_stride=False, **tolerance)
    elif isinstance(expected, (list, tuple)):
        assert len(expected) == len(actual), f"{path}: {len(actual)} results for {len(expected)}"
        for i, (e, a) in enumerate(zip(expected, actual)):
            close(e, a, dtype, f"{path}[{i}]")
    elif isinstance(expected, (int, float, complex, bool)):
        torch.testing.assert_close(torch.tensor(actual), torch.tensor(expected), equal_nan=True)


TOLERANCE = {
    torch.float32: {"rtol": 2e-5, "atol": 2e-5},
    torch.float16: {"rtol": 2e-3, "atol": 1e-3},
    torch.bfloat16: {"rtol": 1.6e-2, "atol": 1e-2},
}


def gradients(op, sample, result):
    """Of the sum of all floating results (absolute, where complex), for each input that wants one."""
    inputs = [t for t in tensors([sample.input, sample.args, sample.kwargs]) if t.requires_grad]
    outputs = [t for t in tensors(result) if t.requires_grad]
    if not inputs or not outputs:
        return None
    total = sum(((o.abs() if o.is_complex() else o) * 0.5).sum() for o in outputs)
    return torch.autograd.grad(total, inputs, allow_unused=True)


def run(op, dtype, grad):
    """(outcome, words, {overload: times})"""
    types = op.supported_dtypes("cpu")
    if dtype not in types or (grad and not op.supports_autograd):
        return "none", "", {}
    torch.manual_seed(0)
    outcome, words, samples = "native", "", 0
    torch.rdna.reset_fallback_report()
    used = collections.Counter()
    for sample in op.sample_inputs("cpu", dtype, requires_grad=grad):
        ours = [to_rdna(part) for part in (sample.input, sample.args, sample.kwargs)]
        if op.name in ARGUMENTS_ON_CPU:
            ours[1] = sample.args
        try:
            torch.manual_seed(1)
            expected = op(sample.input, *sample.args, **sample.kwargs)
            expected_grad = gradients(op, sample, expected) if grad else None
        except Exception:
            continue
        samples += 1
        torch.rdna.reset_fallback_report()
        try:
            torch.manual_seed(1)
            actual = op(ours[0], *ours[1], **ours[2])
            mine = type(sample)(ours[0], args=ours[1], kwargs=ours[2])
            actual_grad = gradients(op, mine, actual) if grad else None
            torch.rdna.synchronize()
        except Exception as error:
            return "error", f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}", dict(used)
        for name, times in torch.rdna.fallback_report().items():
            used[name] += times
        if UNDEFINED.match(op.name) or sample.kwargs.get("dropout_p", 0) > 0:
            continue
        try:
            close(expected, actual, dtype)
            if grad and expected_grad is not None:
                close([g for g in expected_grad if g is not None], [g for g in actual_grad if g is not None], dtype, "gradient")
        except (AssertionError, TypeError) as error:
            return "mismatch", " ".join(str(error).split())[:300], dict(used)
    if samples == 0:
        return "none", "", {}
    return ("fallback" if used else "native"), words, dict(used)


class Pool:
    """Forked children, |jobs| at a time, each for one OpInfo."""

    def __init__(self, jobs, limit):
        self.jobs, self.limit, self.running = jobs, limit, {}

    def start(self, key, work):
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(read)
            signal.alarm(self.limit)
            torch.set_num_threads(1)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            try:
                answer = work()
            except BaseException as error:
                answer = ("error", f"{type(error).__name__}: {str(error)[:200]}", {})
            with os.fdopen(write, "w") as out:
                json.dump(answer, out)
            os._exit(0)
        os.close(write)
        self.running[pid] = (key, read)

    def collect(self):
        """Waits for one child and returns (key, answer)."""
        pid, status = os.wait()
        key, read = self.running.pop(pid)
        with os.fdopen(read) as text:
            data = text.read()
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            kind = "timeout" if number == signal.SIGALRM else "crash"
            return key, (kind, signal.Signals(number).name, {})
        return key, tuple(json.loads(data)) if data else ("crash", f"exit {status}", {})


def read_gaps(path, section):
    """{name: (outcome, reason)} of the lines "section outcome name: reason"."""
    gaps = {}
    with open(path) as lines:
        for line in lines:
            line = line.split("#")[0].strip()
            if not line:
                continue
            head, reason = line.split(":: ", 1)
            where, outcome, name = head.split()
            if where == section:
                gaps[name] = (outcome, reason)
    return gaps


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--grad", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--share", default="1/1", help="K/N: each Nth OpInfo, from the Kth on")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--limit", type=int, default=120)
    parser.add_argument("--json")
    parser.add_argument("--gaps", default=os.path.join(HERE, "gaps.txt"))
    parser.add_argument("--no-gaps", action="store_true", help="report alone; fail on nothing")
    options = parser.parse_args()
    # PyTorch's test library asks which devices are there; that starts a GPU's driver, which no child could use then
    asked = [(torch.rdna, "is_available", True), (torch.cuda, "is_available", False), (torch.cuda, "device_count", 0)]
    kept = [getattr(module, name) for module, name, _ in asked]
    for module, name, answer in asked:
        setattr(module, name, lambda answer=answer: answer)
    from torch.testing._internal.common_methods_invocations import op_db

    for (module, name, _), function in zip(asked, kept):
        setattr(module, name, function)
    dtype = getattr(torch, options.dtype)
    k, n = map(int, options.share.split("/"))
    chosen = sorted((op for op in op_db if re.search(options.only, op.formatted_name)), key=lambda o: o.formatted_name)
    chosen = chosen[k - 1 :: n]
    start = time.time()
    pool, results, queue = Pool(options.jobs, options.limit), {}, list(reversed(chosen))
    while queue or pool.running:
        while queue and len(pool.running) < options.jobs:
            op = queue.pop()
            pool.start(op.formatted_name, lambda: run(op, dtype, options.grad))
        key, answer = pool.collect()
        results[key] = answer
    counts = collections.Counter(answer[0] for answer in results.values())
    fallen = collections.Counter()
    for _, _, used in results.values():
        for name in used:
            fallen[name] += 1
    section = f"{options.dtype}{'/grad' if options.grad else ''}"
    gaps = {} if options.no_gaps else read_gaps(options.gaps, section)
    wrong = 0
    for name, (outcome, words, _) in sorted(results.items()):
        if outcome in ("mismatch", "error", "crash", "timeout"):
            if name in gaps and gaps[name][0] == outcome:
                continue
            wrong += 1
            print(f"{outcome:9} {name}: {words}")
        elif name in gaps:
            wrong += 1
            print(f"works     {name}: is {outcome} now; remove its line from gaps.txt")
    print(f"{section}: " + ", ".join(f"{counts[c]} {c}" for c in
          ("native", "fallback", "mismatch", "error", "crash", "timeout", "none")) + f"; {len(results)} OpInfos, {time.time() - start:.0f} s")
    print("overloads on the CPU, by OpInfos: " + ", ".join(f"{name} {count}" for name, count in fallen.most_common(25)))
    if options.json:
        with open(options.json, "w") as out:
            json.dump({"section": section, "results": results, "fallbacks": fallen}, out, indent=1)
    sys.exit(1 if wrong and not options.no_gaps else 0)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""PyTorch's own operator samples (OpInfo), each on rdna and on the CPU, compared.

    RDNA_DRIVER=host python opinfo.py [--kind KIND,…] [--dtype float32] [--all] [--only REGEX] [--share K/N] [--json FILE]
    RDNA_DRIVER=host python opinfo.py --section float32/forward --section float32/grad:3/20 …

Kinds are forward; grad; inplace, the variant that writes its input; out, results into given tensors; errors, PyTorch's
samples of wrong arguments, which must raise what the CPU raises.

OpInfos run in --jobs processes, one after another in each; one that crashes, hangs or finds something is replaced, without
harm to the others. On a GPU each process has its own context. An OpInfo is
  native     right, and nothing fell back to the CPU        fallback   right, with operators on the CPU
  mismatch   a result differs                               error      raised, where the CPU did not
  crash      the process died                               timeout    longer than --limit seconds
  none       no samples of this type, or the CPU fails too
gaps.txt lists those that are neither native nor fallback, with the reason. The run fails on any that is not listed
and on any listed one that works: the list is always true. Sections "…/checked" of it hold on emulated cards whose checker
is on (RDNA_EMULATE_CHECK=1), where a finding is an error.

Compared are, for each sample: values, types, shapes, strides, devices, which results are views of which inputs and
where in them, requires_grad, what was written into the inputs and into the rest of their memory, and the
gradients. Results that are random (the CPU's generator moved) are compared in all but values; the same seed must give
the same bits and another seed others. RULES says where something else than the CPU's result is right, and why.

That nothing fell back is what PyTorch's profiler says too: it must show as many "aten::_to_cpu", the mark of any
device's fallback, as torch.rdna.fallback_report(), and no memory of the CPU taken where there is none.
"""

import argparse
import bisect
import collections
import contextlib
import json
import multiprocessing
import multiprocessing.connection
import os
import re
import signal
import sys
import time

os.environ.setdefault("RDNA_DRIVER", "host")
HERE = os.path.dirname(os.path.abspath(__file__))

import torch  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402
from torch.profiler import ProfilerActivity, profile, record_function  # noqa: E402

if not hasattr(torch, "rdna"):  # from a build folder, where no entry point is installed
    import torch_rdna  # noqa: E402,F401

DTYPES = "float32 float64 float16 bfloat16 int64 int32 int16 int8 uint8 bool complex64 complex128".split()
GRAD_DTYPES = "float32 float64 float16 bfloat16 complex64".split()

# Results that are whatever was in memory.
UNDEFINED = re.compile(r"^(empty|new_empty|empty_like|empty_strided|empty_permuted|new_empty_strided)$")

# Arguments that stay on the CPU with every device: they say how to cut, not what.
ARGUMENTS_ON_CPU = {"tensor_split"}

# Where something else than the CPU's result is right. Each is for the operators named alone, applies where the plain
# comparison fails, and --all fails on a name that no type needs.
RULES = {
    # Which of equal values is named is open ("the relative order is not guaranteed" of sort without stable=True,
    # topk's and kthvalue's notes; mode's on the CPU is what an unstable sort leaves). As PyTorch's own tests have it:
    # values as the CPU's, and the input has them where the indices say; of sort and topk, no place is named twice.
    "ties": {"argsort", "kthvalue", "mode", "sort", "topk"},
    # The type of saved means and inverse deviations of 16-bit inputs is the input's on the CPU and float32 on other
    # devices, as the function for PyTorch's meta device says. Values are compared in the CPU's type.
    "type": {"_batch_norm_with_update", "_native_batch_norm_legit", "native_batch_norm", "native_layer_norm"},
    # Ill-conditioned: ours is right where it is as near to the CPU's result in float64 as the CPU's own, or as
    # the result of inputs changed in their last place.
    "float64": {
        "cov",
        "grid_sampler_2d",  # in 16 bits the CPU rounds places to a quarter of an input
        "grid_sampler_3d",
        "linalg_householder_product",  # of reflections that are none; its gradient divides by what they are
        "logit",  # in 16 bits the CPU rounds x / (1 - x) before its logarithm
        "native_layer_norm",
        "nn_functional_grid_sample",
        "nn_functional_instance_norm",
        "nn_functional_nll_loss",
        "nn_functional_normalize",
        *(f"polygamma_polygamma_n_{n}" for n in range(5)),  # the CPU's series for n = 1 ends early
        "special_polygamma_special_polygamma_n_0",
    },
}

# The same of one architecture and section, where the host needs no rule. A run of that section fails on a name that does
# not need it. Of the attention, one sample has scores of 1e4 that are all but equal.
ELSEWHERE = {("gfx1100", "float32"): {"float64": {"nn_functional_multi_head_attention_forward"}}}


def section_of(dtype, kind):
    return dtype if kind == "forward" else kind if kind == "errors" else f"{dtype}/{kind}"


def needed_here(name, section):
    """The rules of ELSEWHERE for the OpInfo |name| on this device."""
    here = ELSEWHERE.get((torch.rdna.get_device_properties().arch, section), {})
    return {rule for rule, names in here.items() if name in names}


def tensors(tree):
    if isinstance(tree, torch.Tensor):
        yield tree
    elif isinstance(tree, (list, tuple)):
        for item in tree:
            yield from tensors(item)
    elif isinstance(tree, dict):
        for item in tree.values():
            yield from tensors(item)


def mapped(tree, f, device=None):
    """|tree| with |f| of each tensor, and |device| for each device."""
    if isinstance(tree, torch.Tensor):
        return f(tree)
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(mapped(item, f, device) for item in tree))
    if isinstance(tree, (list, tuple)):
        return type(tree)(mapped(item, f, device) for item in tree)
    if isinstance(tree, dict):
        return {k: mapped(v, f, device) for k, v in tree.items()}
    if device and (isinstance(tree, torch.device) or isinstance(tree, str) and tree == "cpu"):
        return torch.device(device)
    return tree


def memory_of(t):
    """The whole storage of |t|, as bytes."""
    storage = t.untyped_storage()
    return torch.empty(0, dtype=torch.uint8, device=t.device).set_(storage, 0, (storage.nbytes(),), (1,))


class Inputs:
    """A sample's inputs on rdna: each storage as a whole, and the tensors that look at it as the CPU's do."""

    def __init__(self, op, sample, earlier=None):
        """|earlier|: inputs of the same sample, made before it was used."""
        self.storages = {}  # of the CPU's storage: (a tensor on it, its bytes before, the bytes on rdna)
        self.pairs = {}  # of the CPU's tensor: it and ours
        self.earlier = earlier.storages if earlier else {}
        parts = [sample.input, sample.args, sample.kwargs]
        self.sample = type(sample)(
            mapped(parts[0], self.move, "rdna"),
            args=parts[1] if op.name in ARGUMENTS_ON_CPU else mapped(parts[1], self.move, "rdna"),
            kwargs=mapped(parts[2], self.move, "rdna"),
        )

    def move(self, t):
        if id(t) in self.pairs:
            return self.pairs[id(t)][1]
        if t.device.type != "cpu":
            return t
        if t.layout != torch.strided:
            ours = t.detach().to("rdna")
        else:
            plain = t.detach()
            key = plain.untyped_storage()._cdata
            if key not in self.storages:
                data = self.earlier[key][1] if key in self.earlier else memory_of(plain).clone()
                self.storages[key] = (plain, data, data.to("rdna"))
            home = self.storages[key][2].untyped_storage()
            ours = torch.empty(0, dtype=t.dtype, device="rdna")
            ours.set_(home, t.storage_offset(), t.size(), t.stride())
            if t.is_conj():
                ours = torch._conj(ours)
            if t.is_neg():
                ours = torch._neg_view(ours)
        ours.requires_grad_(t.requires_grad)
        self.pairs[id(t)] = (t, ours)
        return ours

    def check_writes(self, random):
        """What both wrote into the inputs, and into the memory around them."""
        for theirs, ours in self.pairs.values():
            if theirs.layout != torch.strided:
                continue
            shape = (theirs.shape, theirs.stride(), theirs.storage_offset())
            mine = (ours.shape, ours.stride(), ours.storage_offset())
            assert shape == mine, f"an input's shape, strides and offset are {mine} afterwards, not {shape}"
        for theirs, before, ours in self.storages.values():
            after, mine = memory_of(theirs), ours.cpu()
            if random:
                assert torch.equal(before, after) == torch.equal(before, mine), "only one of the two wrote an input"
            elif not torch.equal(after, mine):
                size = theirs.element_size()
                count = len(after) // size * size
                close(after[:count].view(theirs.dtype), mine[:count].view(theirs.dtype), "an input's memory")


class Differs(AssertionError):
    """Values are not the CPU's, though all else is so far: RULES may say that they are right."""


TOLERANCE = {
    torch.float64: {"rtol": 4e-14, "atol": 4e-14},  # as many units as float32's: what was computed in that is found
    torch.complex128: {"rtol": 4e-14, "atol": 4e-14},
    torch.float32: {"rtol": 2e-5, "atol": 2e-5},
    torch.complex64: {"rtol": 2e-5, "atol": 2e-5},
    torch.float16: {"rtol": 2e-3, "atol": 1e-3},
    torch.bfloat16: {"rtol": 1.6e-2, "atol": 1e-2},
}


def close(expected, actual, path, pointwise=False):
    """Raises where values, on the CPU, differ by more than the type explains."""
    tolerance = dict(TOLERANCE.get(expected.dtype, {}))
    if pointwise:  # what is computed in float32 and rounded is as exact near 0
        tolerance = {"rtol": tolerance["rtol"], "atol": min(tolerance["atol"], 2e-6)} if tolerance else {}
    elif tolerance and expected.numel():  # sums cancel: what is small is as exact as what is large beside it
        finite = expected[torch.isfinite(expected)]
        if finite.numel():
            tolerance["atol"] *= max(1.0, finite.abs().max().item())
    try:
        torch.testing.assert_close(actual, expected, equal_nan=True, check_stride=False, check_dtype=False, **tolerance)
    except AssertionError as error:
        raise Differs(f"{path}: {error}") from None


def significant_strides(t):
    """Those that say where values are: not of dimensions of one value, nor of no values at all."""
    return [s for n, s in zip(t.shape, t.stride()) if n > 1] if t.numel() else []


def compare_tensor(expected, actual, path, random, rules):
    assert isinstance(actual, torch.Tensor), f"{path}: a tensor became {type(actual).__name__}"
    assert actual.device.type == "rdna", f"{path}: is on {actual.device}"
    assert expected.layout == actual.layout, f"{path}: {actual.layout}, not {expected.layout}"
    assert expected.shape == actual.shape, f"{path}: shape {tuple(actual.shape)}, not {tuple(expected.shape)}"
    assert expected.requires_grad == actual.requires_grad, f"{path}: requires_grad is {actual.requires_grad}"
    expected, actual = expected.detach(), actual.detach()
    right = expected.dtype == actual.dtype or rules.type(path, actual)
    assert right, f"{path}: {actual.dtype}, not {expected.dtype}"
    if expected.layout != torch.strided:
        if not random:
            close(expected.to_dense(), actual.cpu().to_dense(), path)
        return
    right = not rules.strided or significant_strides(expected) == significant_strides(actual)
    assert right, f"{path}: strides {actual.stride()}, not {expected.stride()}"
    if not random:
        pointwise = rules.pointwise and path.startswith("result")
        close(expected.resolve_conj().resolve_neg(), actual.cpu().to(expected.dtype), path, pointwise)


def compare(expected, actual, path, random, rules):
    if isinstance(expected, torch.Tensor):
        compare_tensor(expected, actual, path, random, rules)
    elif isinstance(expected, (list, tuple)):
        assert isinstance(actual, type(expected)) and len(expected) == len(actual), f"{path}: {len(actual)} results"
        for i, (e, a) in enumerate(zip(expected, actual)):
            compare(e, a, f"{path}[{i}]", random, rules)
    elif isinstance(expected, (int, float, complex)):
        assert type(expected) is type(actual), f"{path}: {type(actual).__name__}, not {type(expected).__name__}"
        if not random:
            close(torch.tensor(expected), torch.tensor(actual), path)
    else:
        assert expected == actual, f"{path}: {actual}, not {expected}"


def compare_views(results, inputs, ours, our_inputs):
    """Which results look at which inputs, or are them, and from where."""
    for i, (e, a) in enumerate(zip(tensors(results), tensors(ours))):
        if e.layout != torch.strided:
            continue
        for j, (x, y) in enumerate(zip(tensors(inputs), tensors(our_inputs))):
            if x.layout != torch.strided or y.device.type != "rdna":
                continue
            assert (e is x) == (a is y), f"result {i} {'is not' if e is x else 'is'} input {j} itself"
            base = e._base is not None and (e._base is x or e._base is x._base)
            assert base == (a._base is y), f"result {i}: input {j} {'is not' if base else 'is'} its base"
            same = e.untyped_storage()._cdata == x.untyped_storage()._cdata
            mine = a.untyped_storage()._cdata == y.untyped_storage()._cdata
            assert same == mine, f"result {i} {'is no view' if same else 'is a view'} of input {j}"
            if same:
                there, here = (e.storage_offset(), e.stride()), (a.storage_offset(), a.stride())
                assert there == here, f"result {i}, a view: offset and strides {here}, not {there}"


def equal(a, b):
    """Whether two tensors on the CPU have the same values, NaN where NaN is."""
    return a.shape == b.shape and bool(((a == b) | ((a != a) & (b != b))).all())


def same_bits(a, b):
    return all(
        torch.equal(memory_of(x.cpu().contiguous()), memory_of(y.cpu().contiguous()))
        for x, y in zip(tensors(a), tensors(b))
        if x.layout == torch.strided
    )


class Rules:
    """RULES for one OpInfo and sample: what applied is in |used|."""

    def __init__(self, op, sample, ours, dtype, more):
        """|more|: rules that are the op's beside those of RULES."""
        self.op, self.sample, self.ours, self.dtype, self.more = op, sample, ours, dtype, more
        self.used, self.strided, self.meta_results = set(), True, None
        self.pointwise = type(op).__name__ in ("UnaryUfuncInfo", "BinaryUfuncInfo")

    def allows(self, rule):
        return self.op.formatted_name in RULES[rule] or rule in self.more

    def meta(self, path):
        """What PyTorch's functions for meta tensors say of the result at |path| on rdna, or None."""
        if self.meta_results is None:
            try:
                with FakeTensorMode(allow_non_fake_inputs=True) as mode:
                    shell = mode.from_tensor
                    parts = [mapped(p, shell) for p in (self.ours.input, self.ours.args, self.ours.kwargs)]
                    self.meta_results = [self.op(parts[0], *parts[1], **parts[2])]
            except Exception:
                self.meta_results = []
        if not self.meta_results:
            return None
        result = self.meta_results[0]
        for i in re.findall(r"\[(\d+)\]", path):
            result = result[int(i)]
        return result

    def type(self, path, actual):
        if not self.allows("type") or self.meta(path) is None or self.meta(path).dtype != actual.dtype:
            return False
        self.used.add("type")
        return True

    def ties(self, expected, actual):
        """Whether |actual| is another choice of equal values than |expected|."""
        if not self.allows("ties") or self.sample.kwargs.get("stable"):
            return False
        x = self.sample.input.detach()
        if isinstance(expected, torch.Tensor):  # argsort
            values, at, mine = None, expected, actual.detach().cpu()
        else:
            values, at, mine = expected[0].detach(), expected[1], actual[1].cpu()
            if not equal(values, actual[0].detach().cpu()):
                return False
        name, args, kwargs = self.op.name, self.sample.args, self.sample.kwargs
        first = 0 if name in ("sort", "argsort", "msort", "mode") else 1  # others have k before it
        dim = kwargs.get("dim", args[first] if len(args) > first else -1)
        if isinstance(dim, bool) or at.shape != mine.shape or at.dtype != mine.dtype:
            return False
        if x.dim() == 0:
            return False  # there is no other place
        if at.dim() < x.dim():  # kthvalue and mode without keepdim
            at, mine = at.unsqueeze(dim), mine.unsqueeze(dim)
        if mine.numel() and not (0 <= mine.min() and mine.max() < x.size(dim)):
            return False
        if not equal(x.gather(dim, at), x.gather(dim, mine)):
            return False
        in_order = mine.sort(dim).values
        if at.size(dim) > 1 and (in_order.diff(dim=dim) == 0).any():
            return False
        self.used.add("ties")
        self.chosen = dim, mine
        return True

    def ties_gradient(self, expected, gradient):
        """The gradient where |ties| named other places: of halves of the values, a half at each place."""
        dim, places = self.chosen
        x = torch.zeros_like(expected)
        close(x.scatter_add_(dim, places, torch.full_like(places, 0.5, dtype=x.dtype)), gradient.cpu(), "gradient")

    def near_float64(self, expected, actual, run):
        """Whether |actual| is as near to float64's result as |expected|, or as an input's last place explains."""
        if not self.allows("float64") or self.dtype not in TOLERANCE:
            return False

        def last_place(t):
            return t * (1 + (torch.rand(t.shape, dtype=t.dtype) * 2 - 1) * torch.finfo(self.dtype).eps)

        def result(changed):
            def wider(t):
                if not t.is_floating_point() and not t.is_complex():
                    return t.detach().clone()
                w = t.detach().to(torch.complex128 if t.is_complex() else torch.float64)
                return (last_place(w) if changed else w).requires_grad_(t.requires_grad)

            parts = [mapped(p, wider, "cpu") for p in (self.sample.input, self.sample.args, self.sample.kwargs)]
            sample = type(self.sample)(parts[0], args=parts[1], kwargs=parts[2])
            return list(tensors(run(sample, change=last_place if changed else None)))

        truth, others = result(False), [result(True) for _ in range(8)]
        for i, (t, e, a) in enumerate(zip(truth, tensors(expected), tensors(actual))):
            t, e, a = t.detach(), e.detach().to(t.dtype), a.detach().cpu().to(t.dtype)
            finite = t.isfinite() & a.isfinite()
            if not equal(t.where(~finite, 0), a.where(~finite, 0)):
                return False

            def far(other):
                return (other - t).nan_to_num().abs().max().item() if t.numel() else 0.0

            reach = max([far(e)] + [far(o[i].detach()) for o in others])
            tolerance = TOLERANCE[self.dtype]["atol"] * max(1.0, t.nan_to_num().abs().max().item() if t.numel() else 1.0)
            if far(a) > max(2 * reach, tolerance):
                return False
        self.used.add("float64")
        return True


def with_leaves(sample):
    """|sample| without leaves that are views of something, for which autograd gives no gradient."""
    known = {}

    def leaf(t):
        if t._base is not None and t.is_leaf and id(t) not in known:
            known[id(t)] = t.detach().requires_grad_(t.requires_grad)
        return known.get(id(t), t)

    parts = [mapped(p, leaf) for p in (sample.input, sample.args, sample.kwargs)]
    return type(sample)(parts[0], args=parts[1], kwargs=parts[2])


def gradients(sample, result, change=None):
    """Of the sum of all floating results (absolute, where complex), for each input that wants one; |change| changes
    what comes into the gradient."""
    inputs = [t for t in tensors([sample.input, sample.args, sample.kwargs]) if t.requires_grad]
    outputs = [t for t in tensors(result) if t.requires_grad]
    if not inputs or not outputs:
        return None
    halves = ((o.abs() if o.is_complex() else o) * 0.5 for o in outputs)
    total = sum((change(h) if change else h).sum() for h in halves)
    return torch.autograd.grad(total, inputs, allow_unused=True)


class Witness:
    """What PyTorch's profiler shows of our calls."""

    CPU = torch._C._autograd.DeviceType.CPU
    LEAST = 128  # bytes; numbers, sizes and lengths that Python or the host asked for are no larger

    def __init__(self):
        self.profile = profile(activities=[ProfilerActivity.CPU], profile_memory=True)

    def __enter__(self):
        self.profile.__enter__()
        return self

    def __exit__(self, *error):
        self.profile.__exit__(*error)

    def read(self):
        """(fallbacks, the most memory of the CPU taken at once, if above LEAST), within the calls marked "ours"."""
        calls, marks, memory = [], [], []
        for e in self.profile.profiler.kineto_results.events():
            name = e.name()
            if name == "ours":
                calls.append((e.start_ns(), e.start_ns() + e.duration_ns()))
            elif name == "aten::_to_cpu":
                marks.append(e.start_ns())
            elif name == "[memory]" and e.nbytes() > self.LEAST and e.device_type() == self.CPU:
                memory.append((e.start_ns(), e.nbytes()))
        calls.sort()

        def within(time):
            i = bisect.bisect_right(calls, (time, time))
            return i > 0 and time <= calls[i - 1][1]

        return sum(map(within, marks)), max((n for time, n in memory if within(time)), default=0)


class NotThis(Exception):
    """The variant is not for this sample."""


def inplace(op, sample):
    """The in-place variant's result on a copy of the input, which is what the variant writes."""
    if not isinstance(sample.input, torch.Tensor) or sample.broadcasts_input or "out" in sample.kwargs:
        raise NotThis
    x = sample.input.clone()
    result = op.inplace_variant(x, *sample.args, **sample.kwargs)
    assert result is x, "the in-place variant returned another tensor"
    return x


def into_given(op, sample):
    """Results written into tensors: too small ones, which are resized, and ones that are not contiguous."""
    plain = op(sample.input, *sample.args, **sample.kwargs)
    several = not isinstance(plain, torch.Tensor)
    given = list(plain) if several else [plain]
    if not all(isinstance(t, torch.Tensor) for t in given):
        raise NotThis

    def call(outs):
        out = type(plain)(outs) if several else outs[0]
        result = op(sample.input, *sample.args, **sample.kwargs, out=out)
        for r, o in zip(result if several else [result], outs):
            assert r is o, "out= is not what was returned"
        return outs

    small = call([torch.empty(0, dtype=t.dtype, device=t.device) for t in given])
    apart = [torch.full((2 * t.numel(),), 7, dtype=t.dtype, device=t.device)[::2].view(t.shape) for t in given]
    return [small, call(apart), plain]


def own_strides_ignored(results):
    """Whether the CPU itself wrote something else into tensors that are not contiguous than it returns without out=;
    then that is put right in |results|."""
    wrong = False
    for given, right in zip(tensors(results[1]), tensors(results[2])):
        wrong = wrong or not equal(given, right)
        given.copy_(right)
    return wrong


def run_errors(op):
    """As run(), of the samples of wrong arguments."""
    samples, used = 0, collections.Counter()
    for sample in op.error_inputs("cpu") if op.error_inputs_func else ():
        sample = sample.sample_input
        inputs, raised = Inputs(op, sample), []
        for s in (sample, inputs.sample):
            try:
                with torch.device("rdna") if s is inputs.sample and not inputs.pairs else contextlib.nullcontext():
                    op(s.input, *s.args, **s.kwargs)
                torch.rdna.synchronize()  # indices out of range are found on the device
                raised.append(None)
            except Exception as error:
                raised.append(error)
        theirs, ours = raised
        if theirs is None:
            continue
        samples += 1
        if ours is None:
            return "mismatch", f"nothing was raised for: {theirs}", {}, []
        # not isinstance: NotImplementedError is a RuntimeError, and would pass for one
        range_error = isinstance(ours, IndexError) and "out of range" in str(ours)
        if type(ours) is not type(theirs) and not range_error:
            return "mismatch", f"{type(ours).__name__}: {ours}; not {type(theirs).__name__}: {theirs}"[:400], {}, []
    return "native" if samples else "none", "", dict(used), []


def run(op, dtype, kind):
    """(outcome, words, {overload: times}, [rules that applied])"""
    if kind == "errors":
        return run_errors(op)
    grad = kind == "grad"
    if kind == "inplace" and not op.inplace_variant or kind == "out" and not op.supports_out:
        return "none", "", {}, []
    types = op.supported_dtypes("cpu")
    if dtype not in types or (grad and not op.supports_autograd):
        return "none", "", {}, []
    torch.manual_seed(0)
    used, rules, samples, seeds = collections.Counter(), set(), 0, collections.Counter()
    here = needed_here(op.formatted_name, section_of(str(dtype).split(".")[-1], kind))
    undefined = UNDEFINED.match(op.name) is not None

    def plain(op, sample):
        return op(sample.input, *sample.args, **sample.kwargs)

    calls = {"inplace": inplace, "out": into_given}

    def evaluate(sample, seed=1, device=None, change=None):
        torch.manual_seed(seed)
        with contextlib.nullcontext() if device is None else torch.device(device):
            result = calls.get(kind, plain)(op, sample)
        return result, gradients(sample, result, change) if grad else None

    with Witness() as witness:
        for sample in op.sample_inputs("cpu", dtype, requires_grad=grad):
            sample = with_leaves(sample) if grad else sample
            try:
                inputs = Inputs(op, sample)
            except Exception as error:
                return "error", f"{type(error).__name__}: {str(error).splitlines()[0]}", dict(used), sorted(rules)
            try:
                torch.manual_seed(1)
                before = torch.get_rng_state()
                expected, expected_grad = evaluate(sample)
                random = not torch.equal(before, torch.get_rng_state())
            except Exception:
                continue
            samples += 1
            # a sample that names no device anywhere makes its result on the default device
            names = list(tensors([sample.input, sample.args, sample.kwargs])) or "device" in sample.kwargs
            device = None if names else "rdna"
            torch.rdna.reset_fallback_report()
            try:
                with record_function("ours"):
                    actual, actual_grad = evaluate(inputs.sample, device=device)
                    torch.rdna.synchronize()
            except Exception as error:
                words = str(error).splitlines()[0] if str(error) else ""
                return "error", f"{type(error).__name__}: {words}", dict(used), sorted(rules)
            for name, times in torch.rdna.fallback_report().items():
                used[name] += times
            rule = Rules(op, sample, inputs.sample, dtype, here)
            try:
                try:
                    compare(expected, actual, "result", random or undefined, rule)
                    rule.strided = False
                    if grad:
                        compare(expected_grad, actual_grad, "gradient", random or undefined, rule)
                except Differs:
                    pairs = zip(expected, actual) if kind == "out" else [(expected, actual)]
                    if kind == "out" and own_strides_ignored(expected):
                        compare(expected, actual, "result", False, rule)
                    elif all(rule.ties(e, a) for e, a in pairs):
                        if grad:
                            rule.ties_gradient(expected_grad[0], actual_grad[0])
                    elif not rule.near_float64((expected, expected_grad), (actual, actual_grad), evaluate):
                        raise
                if not grad:
                    parts = [[s.input, s.args, s.kwargs] for s in (sample, inputs.sample)]
                    compare_views(expected, parts[0], actual, parts[1])
                    inputs.check_writes(random or undefined)
                if random:
                    again = evaluate(Inputs(op, sample, inputs).sample, device=device)
                    assert same_bits((actual, actual_grad), again), "one seed gave two results"
                    other = evaluate(Inputs(op, sample, inputs).sample, 2, device)
                    if sum(t.numel() for t in tensors(actual)) >= 16:
                        seeds[not same_bits((actual, actual_grad), other)] += 1
            except (AssertionError, TypeError) as error:
                return "mismatch", " ".join(str(error).split())[:300], dict(used), sorted(rules)
            rules |= rule.used
    if samples == 0:
        return "none", "", {}, []
    if seeds and not seeds[True]:
        return "mismatch", "another seed gives the same result", dict(used), sorted(rules)
    if here - rules:
        return "mismatch", f"needs no rule {sorted(here - rules)} here; remove it from ELSEWHERE", dict(used), sorted(rules)
    marks, most = witness.read()
    if marks != sum(used.values()):
        words = f"the profiler shows {marks} fallbacks, the report {sum(used.values())}"
        return "mismatch", words, dict(used), sorted(rules)
    if not used and most:
        return "mismatch", f"{most} bytes on the CPU, and no fallback reported", dict(used), sorted(rules)
    return ("fallback" if used else "native"), "", dict(used), sorted(rules)


def accumulate_alike():
    """PyTorch's chunked cross entropy picks by the device's name in what type it accumulates: here the CPU's pick."""
    try:
        from torch.nn.modules.linear_cross_entropy_options import _AUTO_DEFAULTS, LinearCrossEntropyOptions as Options
    except ImportError:  # of releases before it
        return
    for (device, dtype), pick in list(_AUTO_DEFAULTS.items()):
        if device == "cpu":
            _AUTO_DEFAULTS["rdna", dtype] = pick
    resolve = Options._resolve_auto_acc_dtype
    Options._resolve_auto_acc_dtype = staticmethod(lambda dtype, device: resolve(dtype, torch.device("cpu")))


def operators(pattern):
    """The OpInfos whose name |pattern| is found in, by name."""
    # The samples are the CPU's: where PyTorch has CUDA too, some would be of that, when the library is imported and later.
    torch.cuda.is_available, torch.cuda.device_count = lambda: False, lambda: 0
    from torch.testing._internal import common_methods_invocations

    # it would give random operators a seed of its own and put the generators back: the same result for every seed
    common_methods_invocations.wrapper_set_seed = lambda op, *args, **kwargs: op(*args, **kwargs)
    return {op.formatted_name: op for op in common_methods_invocations.op_db if re.search(pattern, op.formatted_name)}


def resident():
    """Bytes of memory that this process holds."""
    with open("/proc/self/statm") as text:
        return int(text.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def serve(connection, limit, share):
    """A worker: answers run()'s (name, dtype, kind) until there are no more, or what went wrong might reach the next;
    |share|: of the device's memory, at most."""
    signal.alarm(max(limit, 300))
    torch.set_num_threads(1)
    torch.rdna.set_per_process_memory_fraction(share)
    known = operators("")
    accumulate_alike()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    signal.alarm(0)
    fit = True
    while fit:
        connection.send("ready")
        task = connection.recv()
        if task is None:
            return
        name, dtype, kind = task
        torch.rdna.empty_cache()  # so that a checker sees what is read and was not written, as in a new process
        start = time.time()
        signal.alarm(limit)
        try:
            answer = run(known[name], getattr(torch, dtype), kind)
        except BaseException as error:
            answer = ("error", f"{type(error).__name__}: {str(error)[:200]}", {}, [])
        signal.alarm(0)
        connection.send((*answer, round(time.time() - start, 2)))
        fit = answer[0] in ("native", "fallback", "none") and resident() < MEMORY


MEMORY = 4 << 30  # bytes; a worker that holds more is replaced


class Pool:
    """|jobs| workers, each an interpreter of its own that never saw another's device, since what a driver knows does not
    survive a fork. A worker does one OpInfo after another, and another takes its place when it died."""

    def __init__(self, jobs, limit):
        self.jobs, self.limit = jobs, limit
        self.workers = {}  # of the pipe to it: (the process, its key or None)
        self.context = multiprocessing.get_context("spawn")

    def fill(self, most):
        """Starts what is missing of |jobs| workers, or of |most|."""
        while len(self.workers) < min(self.jobs, most):
            ours, theirs = self.context.Pipe()
            process = self.context.Process(target=serve, args=(theirs, self.limit, 0.8 / self.jobs), daemon=True)
            process.start()
            theirs.close()
            self.workers[ours] = (process, None)

    def run(self, tasks):
        """Yields (name, answer) of the |tasks|, (name, dtype, kind), as they are done."""
        left, failed = collections.deque(tasks), 0
        self.fill(len(left))
        idle = [pipe for pipe, (_, key) in self.workers.items() if key == "ready"]
        waiting = len(left)
        while waiting:
            while left and idle:
                pipe, task = idle.pop(), left.popleft()
                self.workers[pipe] = (self.workers[pipe][0], task[0])
                pipe.send(task)
            for pipe in multiprocessing.connection.wait([p for p in self.workers if p not in idle]):
                process, name = self.workers[pipe]
                try:
                    said = pipe.recv()
                except EOFError:
                    pipe.close()
                    del self.workers[pipe]
                    process.join()
                    if name == "answered":  # it thought better to be the last
                        pass
                    elif name is None:  # before its first OpInfo
                        failed += process.exitcode != 0
                        if failed == self.jobs:
                            raise RuntimeError(f"no worker can be started: exit code {process.exitcode}") from None
                    else:
                        waiting -= 1
                        yield name, ended(process.exitcode)
                    self.fill(waiting)
                    continue
                if said == "ready":
                    idle.append(pipe)
                    self.workers[pipe] = (process, "ready")
                else:
                    self.workers[pipe] = (process, "answered")
                    waiting -= 1
                    yield name, said

    def close(self):
        for process, _ in self.workers.values():
            process.terminate()


def ended(code):
    """The answer for a worker that gave none."""
    if code >= 0:
        return "crash", f"exit {code}", {}, [], 0
    return "timeout" if -code == signal.SIGALRM else "crash", signal.Signals(-code).name, {}, [], 0


def read_gaps(path, section):
    """{name: (outcome, reason)} of the lines "section outcome name:: reason"."""
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


KINDS = ("forward", "grad", "inplace", "out", "errors")
OUTCOMES = ("native", "fallback", "mismatch", "error", "crash", "timeout", "none")


def run_section(pool, dtype, kind, chosen, options):
    """(name, results, number of those that are not as gaps.txt says)"""
    start = time.time()
    results = dict(pool.run([(name, dtype, kind) for name in chosen]))
    section = section_of(dtype, kind)
    gaps = {} if options.no_gaps else read_gaps(options.gaps, section)
    if os.environ.get("RDNA_EMULATE_CHECK", "0") != "0" and not options.no_gaps:
        gaps |= read_gaps(options.gaps, section + "/checked")
    wrong = 0
    for name, (outcome, words, *_) in sorted(results.items()):
        if outcome in ("mismatch", "error", "crash", "timeout"):
            if name in gaps and gaps[name][0] == outcome:
                continue
            wrong += 1
            print(f"{outcome:9} {name}: {words}")
    for name in sorted(gaps.keys() & results.keys()):
        if results[name][0] in ("native", "fallback", "none"):
            outcome = results[name][0]
            wrong += 1
            print(f"works     {name}: is {outcome} now; remove its line from gaps.txt")
    counts = collections.Counter(answer[0] for answer in results.values())
    fallen = collections.Counter(name for answer in results.values() for name in answer[2])
    applied = collections.Counter(rule for answer in results.values() for rule in answer[3])
    print(f"{section}: " + ", ".join(f"{counts[c]} {c}" for c in OUTCOMES)
          + f"; {len(results)} OpInfos, {time.time() - start:.0f} s")
    print("overloads on the CPU, by OpInfos: " + ", ".join(f"{name} {count}" for name, count in fallen.most_common(25)))
    if applied:
        print("rules that applied, by OpInfos: " + ", ".join(f"{name} {count}" for name, count in applied.items()))
    sys.stdout.flush()
    return section, results, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--kind", default="forward", help="one or more of " + ",".join(KINDS))
    parser.add_argument("--grad", action="store_const", dest="kind", const="grad", help="--kind grad")
    parser.add_argument("--all", action="store_true", help="every type and kind, and one table")
    parser.add_argument("--only", default="")
    parser.add_argument("--share", default="1/1", help="K/N: each Nth OpInfo, from the Kth on")
    parser.add_argument("--section", action="append", metavar="DTYPE/KIND[:K/N]",
                        help="in place of --dtype, --kind and --share; many go through the same processes")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--limit", type=int, default=600)
    parser.add_argument("--json")
    parser.add_argument("--gaps", default=os.path.join(HERE, "gaps.txt"))
    parser.add_argument("--no-gaps", action="store_true", help="report alone; fail on nothing")
    options = parser.parse_args()
    pool = Pool(options.jobs, options.limit)
    if not options.only:
        pool.fill(options.jobs)  # they begin while the names are found here
    names = sorted(operators(options.only))
    sections = [(options.dtype, kind, options.share) for kind in options.kind.split(",")]
    if options.section:
        parts = [re.fullmatch(r"(\w+)/(\w+)(?::(\d+/\d+))?", text) or parser.error(f"--section {text}: write DTYPE/KIND:K/N")
                 for text in options.section]
        sections = [(part[1], part[2], part[3] or "1/1") for part in parts]
    if unknown := {kind for _, kind, _ in sections} - set(KINDS):
        parser.error(f"kind {','.join(unknown)}: choose from {', '.join(KINDS)}")
    if options.all:
        pairs = [(d, "forward") for d in DTYPES] + [(d, "grad") for d in GRAD_DTYPES]
        pairs += [("float32", kind) for kind in ("inplace", "out", "errors")]
        sections = [(*pair, options.share) for pair in pairs]
    answers, wrong = {}, 0
    for dtype, kind, share in sections:
        k, n = map(int, share.split("/"))
        section, results, bad = run_section(pool, dtype, kind, names[k - 1 :: n], options)
        answers[section] = results
        wrong += bad
        if options.json:
            with open(options.json, "w") as out:
                json.dump(answers, out, indent=1)
    pool.close()
    if options.all:
        print(f"{'':16}" + "".join(f"{outcome:>10}" for outcome in OUTCOMES))
        for section, results in answers.items():
            counts = collections.Counter(answer[0] for answer in results.values())
            print(f"{section:16}" + "".join(f"{counts[outcome]:10}" for outcome in OUTCOMES))
        if options.share == "1/1" and not options.only:
            applied = {(r, name) for results in answers.values() for name, a in results.items() for r in a[3]}
            for rule, names in RULES.items():
                for name in sorted(names):
                    if (rule, name) not in applied:
                        wrong += 1
                        print(f"works     {name}: no type needs the rule '{rule}' for it; remove it from RULES")
    sys.exit(1 if wrong and not options.no_gaps else 0)


if __name__ == "__main__":
    main()

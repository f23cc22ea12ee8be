"""AMDOptimizer: models changed so that they take fewer launches and less memory, and given back by one call."""

import types
import warnings
from collections import Counter
from dataclasses import dataclass, field
from typing import Optional

import torch
from torch import nn

from . import _float8, measuring, rewrites, running
from ._cards import has_float8
from ._plugin import is_ours
from ._precision import type_beside
from .amd_exceptions import AMDOptimizationError
from .config import OPTIMIZATION_LEVELS, AMDConfig
from .dataflow import Links, copied, tensors_of

_RECORD = "_rdna_optimized"
_MB = 1 << 20
_PRECISIONS = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp8": _float8.CODES}
_OPTIONAL = ("activation fused", "precision", "channels last", "compiled")  # is left out where it is slower, which is
_NOISE = 1.05  # so many times the time before


@dataclass
class Change:
    """One kind of change: how often it was made, the device memory that it saved, and what a forward takes after it,
    where that was measured."""

    name: str
    count: int
    memory_savings_mb: float = 0.0
    launches: Optional[int] = None
    milliseconds: Optional[float] = None


@dataclass
class OptimizationResult:
    """What optimize() did. |performance_improvement| is the time of a forward before over that after, None where there
    were no example inputs to measure with; so are the numbers after |warnings|."""

    optimizations_applied: list = field(default_factory=list)
    performance_improvement: Optional[float] = None
    memory_savings_mb: float = 0.0
    warnings: list = field(default_factory=list)
    changes: list = field(default_factory=list)
    launches_before: Optional[int] = None
    launches_after: Optional[int] = None
    milliseconds_before: Optional[float] = None
    milliseconds_after: Optional[float] = None
    difference: Optional[float] = None  # of the results, relative to their largest value


class _Record:
    """What an optimized model remembers. Copies and files of the model do not have the original."""

    def __init__(self, level, training, original=None, restore=None, result=None, called=None):
        self.level, self.training = level, training
        self.original, self.restore, self.result, self.called = original, restore, result, called

    def __getstate__(self):
        return {"level": self.level, "training": self.training, "original": None, "restore": None, "result": None,
                "called": None}


def _cannot(model):
    """Why a model is left as it is, or None."""
    wrappers = (nn.parallel.DistributedDataParallel, nn.DataParallel)
    for name, module in model.named_modules():
        where = f"its module {name}" if name else "it"
        if isinstance(module, wrappers) or type(module).__name__.startswith(("FullyShardedDataParallel", "FSDP")):
            return f"{where} is a {type(module).__name__}: optimize the model inside, and wrap that"
        if isinstance(module, torch.jit.ScriptModule):
            return f"{where} was compiled by torch.jit"
        if hasattr(module, "_orig_mod") or getattr(module, "_compiled_call_impl", None) is not None:
            return f"{where} was compiled by torch.compile already"
    for t in tensors_of(model):
        if isinstance(t, (nn.UninitializedParameter, nn.UninitializedBuffer)):
            return "it has lazy parameters: call it once before"
        if t.is_meta:
            return "it is on the device meta, which has no values: load them before"
    return None


def _own(t):
    """A parameter of the copy's own, over the same memory, so that moving or packing it leaves the original; buffers,
    which a forward may write, are copied."""
    if isinstance(t, nn.Parameter):
        if type(t) is not nn.Parameter:
            return t
        made = nn.Parameter(t.detach(), requires_grad=t.requires_grad and not t.is_inference())
        made.__dict__.update(t.__dict__)
        return made
    return t if t.grad_fn is not None else t.clone()


def _is_on_rdna(model):
    return any(is_ours(t.device) for t in tensors_of(model))


def train(self, mode=True):  # of an optimized model: its name is how pickle finds the model's own one
    """Refuses before any module's mode has changed."""
    if mode:
        raise AMDOptimizationError(
            self.__dict__[_RECORD].level,
            "this model was optimized for inference and cannot be trained: take the model that undo() gives back",
        )
    return type(self).train(self, mode)


class _Inference:
    """A copy of a model that is changed step by step."""

    def __init__(self, model, level, config, example, without=()):
        self.level, self.config, self.example, self.without = level, config, example, without
        self.changes, self.notes, self.called = [], [], None
        self.model = copied(model, _own).eval()
        self.links = Links(self.model)
        self.on_rdna = _is_on_rdna(self.model)
        self.bytes = measuring.memory_of(self.model)

    def types(self):
        """In which the model computes, of which the narrowest says what rounding is."""
        return {type_beside(self.config), *(t.dtype for t in (*self.model.parameters(), *self.model.buffers()))}

    def done(self, name, count):
        if not count:
            return
        after = measuring.memory_of(self.model)
        change = Change(name, count, (self.bytes - after) / _MB)
        self.bytes = after
        if self.example is not None:
            change.launches = self.example.launches(self.model)
            change.milliseconds = self.example.milliseconds(self.model)
        self.changes.append(change)

    def run(self):
        fuses = self.config.enable_operator_fusion
        self.done("dropout removed", rewrites.drop_dropout(self.model, self.links))
        self.done("batch norm folded", rewrites.fold_norms(self.model, self.links))
        self.notes += rewrites.left_norms(self.model, self.links)
        narrow = self.config.default_precision == "fp8" and self.level == "aggressive"
        if narrow:  # before layers become what they are with an activation, of which there is none in 8 bits
            self.precision()
        if fuses and self.on_rdna and "activation fused" not in self.without:
            self.done("activation fused", rewrites.fuse_activations(self.model, self.links))
        if self.level == "aggressive" and not narrow:
            self.precision()
        if self.level == "conservative":
            return
        if not self.on_rdna:
            self.notes.append("the model is not on rdna, where channels last and fused launches would be: move it there before")
            return
        if "channels last" not in self.without:
            self.channels_last()
        if fuses and "compiled" not in self.without:
            self.compile()

    def slower(self, before):
        """(name, sentence) of the first change after which a forward took longer than before it; |before|: milliseconds of
        the model that was given. None where nothing is timed."""
        if self.example is None or not self.example.is_timed:
            return None
        for change in self.changes:
            name = "precision" if change.name.startswith("weights in") else change.name
            if name in _OPTIONAL and change.milliseconds > _NOISE * before:
                return name, f"a forward took {change.milliseconds:.3g} ms with it and {before:.3g} ms without"
            before = min(before, change.milliseconds)
        return None

    def precision(self):
        name, dtype = wanted_precision(self.config, self.notes)
        if dtype is None or "precision" in self.without:
            return
        if dtype is _float8.CODES and self.on_rdna and not has_float8(torch.rdna.get_device_properties()):
            arch = torch.rdna.get_device_properties().arch
            self.notes.append(f"weights stay in f32: the matrix units of {arch} take no 8-bit floats")
            return
        buffers = any(b.dtype == torch.float32 for m in self.model.modules()
                      if not isinstance(m, rewrites._NORMS) for b in m._buffers.values() if b is not None)
        if self.example is None and (buffers or not self.links.whole):
            self.notes.append(f"weights stay in f32: whether this model computes in {name} is seen with example_inputs only")
            return
        count = 0
        if dtype is _float8.CODES:
            count, _ = _float8.narrow(self.model)
            dtype = type_beside(self.config)
        count += running.narrow_weights(self.model, dtype)
        if count:
            cast = running.Cast(torch.float32, dtype)
            self.model.register_forward_pre_hook(cast.before, with_kwargs=True)
            self.model.register_forward_hook(cast.after)
        self.done(f"weights in {name}", count)

    def channels_last(self):
        """Where convolutions would otherwise copy their inputs into this layout, or would at least take no more launches."""
        before = None
        if self.example is not None:
            before = self.example.launches(self.model)
        elif torch.rdna.get_device_properties().driver == "host":
            return  # which has no use for it
        count = running.weights_channels_last(self.model)
        if not count:
            return
        handle = self.model.register_forward_pre_hook(running.ChannelsLast().before, with_kwargs=True)
        self.done("channels last", count)
        after = self.changes[-1].launches
        if before is not None and after > before:
            handle.remove()
            running.weights_channels_last(self.model, torch.contiguous_format)
            self.changes.pop()
            self.notes.append(f"channels last was not taken: a forward would be {after} launches, not {before}")

    def compile(self):
        self.called = running.Running(self.model, packs=self.level == "aggressive")
        self.model._compiled_call_impl = self.called
        broken = running.graph_breaks()
        self.done("compiled", 1)
        self.notes += [f"Dynamo split the model: {why.splitlines()[0]}"
                       for why in running.graph_breaks() - broken if why.strip()]
        if self.called.reason:
            self.changes = [c for c in self.changes if c.name != "compiled"]
            self.notes.append(f"torch.compile cannot follow this model: {self.called.reason}")


def wanted_precision(config, notes):
    """(name, dtype) that the configuration asks for; dtype None where it is f32, or not allowed, of which a note says why."""
    name = config.default_precision
    if name == "fp32" or not config.enable_mixed_precision:
        return name, None
    if not getattr(config, f"allow_{name}", True):
        notes.append(f"weights stay in f32: allow_{name} is off for {config.architecture.value}")
        return name, None
    return name, _PRECISIONS[name]


class AMDOptimizer:
    """Changes models as |config|, an AMDConfig, and a level ask. docs/amd/optimizer.md says what each level does."""

    def __init__(self, config=None):
        self.config = AMDConfig() if config is None else config
        self.result = OptimizationResult()
        self._level, self._called = self.config.optimization_level, None

    def optimize(self, model, level=None, *, training=None, example_inputs=None, keep_original=True):
        """An optimized model, for inference or, with |training|, for training; None means what model.training says.

        For inference a new model is returned, and the one that was given stays as it is. For training the model itself
        is changed and returned: its parameters stay the same objects, so that optimizers made before it work.
        |example_inputs|, a tensor, a tuple of arguments or a dict of named ones, are what the model is called with
        to compare results and to measure each change; a model whose results differ by more than rounding is left
        as it was. undo(model) gives back the unoptimized one, unless |keep_original| is False. |self.result| says what
        was done. Raises AMDOptimizationError for a level that there is not, or what is no module."""
        level = self.config.optimization_level if level is None else level
        if level not in OPTIMIZATION_LEVELS:
            raise AMDOptimizationError(level, f"there is none of that name, only {', '.join(OPTIMIZATION_LEVELS)}; "
                                       "the model is as it was")
        if not isinstance(model, nn.Module):
            raise AMDOptimizationError(level, f"expected a torch.nn.Module, got {type(model).__name__}")
        training = model.training if training is None else bool(training)
        record = model.__dict__.get(_RECORD)
        if record is not None:
            if (record.level, record.training) == (level, training):
                self._done(level, record.result or OptimizationResult(), record.called)
                return model
            model = self.undo(model)
        reason = _cannot(model)
        if reason is not None:
            return self._left(model, level, reason)
        example = None if example_inputs is None else measuring.Example(example_inputs)
        with torch.inference_mode(False), torch.no_grad():
            if training:
                return self._for_training(model, level)
            return self._for_inference(model, level, example, keep_original)

    def undo(self, model):
        """The model that optimize() was given: for inference that object, of training this one, unchanged but for what
        training did. A model that optimize() left as it was is returned as it is."""
        record = model.__dict__.get(_RECORD) if isinstance(model, nn.Module) else None
        if record is None:
            return model
        if record.original is not None:
            return record.original
        if record.restore is None:
            raise AMDOptimizationError(
                record.level, "this model does not have its original: it is a copy, came from a file, or was optimized with "
                "keep_original=False")
        record.restore()
        del model.__dict__[_RECORD]
        return model

    def get_optimization_summary(self):
        """What the last optimize() did, and the flags of the configuration. What torch.compile fuses is counted when the
        model is first called."""
        fused, applied = Counter(), list(self.result.optimizations_applied)
        for change in self.result.changes:
            if change.name in ("batch norm folded", "activation fused"):
                fused[change.name] += change.count
        if self._called is not None:
            fused.update(self._called.counts)
            applied += [f"{name}: {count}" for name, count in self._called.counts.items() if count]
        return {
            "optimization_level": self._level,
            "architecture": self.config.architecture.value,
            "fused_operations": sum(fused.values()),
            "matrix_cores_enabled": self.config.enable_matrix_cores,
            "mixed_precision": self.config.enable_mixed_precision,
            "operator_fusion": self.config.enable_operator_fusion,
            "optimizations_applied": applied,
        }

    def _done(self, level, result, called):
        self._level, self.result, self._called = level, result, called

    def _left(self, model, level, reason, notes=()):
        self._done(level, OptimizationResult(warnings=[reason, *notes]), None)
        warnings.warn(f"AMDOptimizer left the model as it was: {reason}", stacklevel=3)
        return model

    # -- inference

    def _for_inference(self, model, level, example, keep):
        result = OptimizationResult()
        reference = None
        if example is not None:
            was_training = [m for m in model.modules() if m.training]
            model.eval()
            try:
                reference = example(model)
                result.launches_before, result.milliseconds_before = example.launches(model), example.milliseconds(model)
            finally:
                for module in was_training:
                    module.training = True
        before, without = measuring.memory_of(model), []
        while True:
            try:
                made = _Inference(model, level, self.config, example, without)
            except Exception as error:  # attributes that cannot be copied
                return self._left(model, level, f"it cannot be copied: {running._first_line(error)}")
            reason = self._try(made, example, reference, result)
            slow = made.slower(result.milliseconds_before) if reason is None else None
            if slow is not None:
                without.append(slow[0])
                result.warnings.append(f"{slow[0]} was left out: {slow[1]}")
                continue
            if reason is None:
                break
            last = self._risky(made, without)
            if last is None:
                return self._left(model, level, reason, made.notes)
            without.append(last)
            result.warnings.append(f"{last} was left out: {reason}")
        result.warnings += made.notes
        if not made.changes:
            self._done(level, result, None)
            return model
        self._describe(result, made, before)
        made.model.__dict__[_RECORD] = _Record(level, False, model if keep else None, None, result, made.called)
        if any(c.name in ("batch norm folded", "dropout removed") for c in made.changes):
            made.model.__dict__["train"] = types.MethodType(train, made.model)
        self._done(level, result, made.called)
        return made.model

    @staticmethod
    def _risky(made, without):
        """The change to do without when results are wrong: the one made last of those that can be left out."""
        names = [c.name for c in made.changes]
        if any(n.startswith("weights in") for n in names) and "precision" not in without:
            return "precision"
        return "channels last" if "channels last" in names and "channels last" not in without else None

    @staticmethod
    def _try(made, example, reference, result):
        """Why the changed model is not taken, or None."""
        try:
            made.run()
            if example is not None:
                result.difference, right = measuring.difference(example(made.model), reference, made.types())
                if not right:
                    return f"results would differ by {result.difference:.2g} of their largest value"
        except Exception as error:
            if example is None:
                raise
            return f"the changed model raises {running._first_line(error)}"
        return None

    @staticmethod
    def _describe(result, made, before):
        result.changes = made.changes
        result.optimizations_applied = [c.name for c in made.changes]
        result.memory_savings_mb = (before - measuring.memory_of(made.model)) / _MB
        last = made.changes[-1]
        result.launches_after, result.milliseconds_after = last.launches, last.milliseconds
        if last.milliseconds:
            result.performance_improvement = result.milliseconds_before / last.milliseconds

    # -- training

    def _for_training(self, model, level):
        """Autocast alone: on a card channels last and compiled steps took longer (docs/amd/optimizer.md)."""
        result, undo, called = OptimizationResult(), [], None
        _, dtype = wanted_precision(self.config, result.warnings) if level == "aggressive" else (None, None)
        if dtype is _float8.CODES:
            result.warnings.append("fp8 is for inference, as weights of 8 bits have no gradients: take bf16 to train")
            dtype = None
        if level != "aggressive":
            result.warnings.append(f"{level} changes what evaluation does: nothing of it makes training steps faster")
        elif dtype is not None and not _is_on_rdna(model):
            result.warnings.append("the model is not on rdna, where autocast would be: move it there before")
        elif dtype is not None:
            result.changes.append(Change(f"autocast to {self.config.default_precision}", 1))
            if dtype is torch.float16:
                result.warnings.append('gradients in fp16 want torch.amp.GradScaler("rdna")')
            called = running.Running(model, compiles=False, autocast=dtype)
            model._compiled_call_impl = called
            undo.append(lambda: setattr(model, "_compiled_call_impl", None))
        result.optimizations_applied = [c.name for c in result.changes]
        if result.changes:
            restore = lambda: [step() for step in undo]  # noqa: E731
            model.__dict__[_RECORD] = _Record(level, True, None, restore, result, called)
        self._done(level, result, called)
        return model

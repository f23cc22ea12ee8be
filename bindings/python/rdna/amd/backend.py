"""AMDBackend: which device computes, and models prepared for it."""

import warnings
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from . import _float8
from ._cards import architecture_name, has_float8, has_matrix_cores
from ._plugin import devices
from ._precision import set_precision, type_beside
from ._room import MB, as_amd_errors, host_memory, room
from .amd_exceptions import (
    AMDBackendError,
    AMDConfigurationError,
    AMDDeviceError,
    MatrixCoreError,
    ROCmMemoryError,
    ROCmNotAvailableError,
    raise_or_warn,
)
from .config import OPTIMIZATION_LEVELS, AMDArchitecture, AMDConfig, KernelPyTorchConfig

_GB = 1024**3
_told = set()  # reasons for computing on the CPU that this process has warned of


class DeviceInfo(dict):
    """A dict whose keys are attributes too."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the device's information has no {name!r}; it has {', '.join(self)}") from None


@dataclass(frozen=True)
class AMDDeviceInfo:
    device_id: int
    name: str
    architecture: str  # "rdna3"; of what is not AMD's, the target's own name
    compute_capability: tuple  # (11, 0) of gfx1100
    total_memory_gb: float
    matrix_cores_available: bool
    rocm_version: str  # of the HIP runtime in use, "" where that is not what computes


def _amd_config(config):
    if config is None:
        return AMDConfig()
    if isinstance(config, KernelPyTorchConfig):
        return config.hardware.amd
    if isinstance(config, AMDConfig):
        return config
    raise AMDConfigurationError("config", config, "expected an AMDConfig, a KernelPyTorchConfig or None")


def choose_device(config):
    """(device, None) of the configuration's number, or (the CPU, the reason), which is warned of once; where
    config.enable_strict_validation is on, ROCmNotAvailableError instead."""
    rdna, reason = devices() if config.enabled else (None, "the configuration's `enabled` is off")
    if rdna is None:
        if config.enable_strict_validation:
            raise ROCmNotAvailableError(f"ROCm runtime not available: {reason}")
        if reason not in _told:
            _told.add(reason)
            warnings.warn(f"rdna.amd computes on the CPU: {reason}", stacklevel=3)
        return torch.device("cpu"), reason
    count = rdna.device_count()
    if config.device_id >= count:
        there = "is one, number 0" if count == 1 else f"are {count}, numbers 0 to {count - 1}"
        raise AMDDeviceError(config.device_id, "choosing the device", f"there {there}; set device_id accordingly")
    with as_amd_errors(torch.device("rdna", config.device_id), "opening the device", 0):
        rdna.get_device_properties(config.device_id)
    return torch.device("rdna", config.device_id), None


class AMDBackend:
    """The device of a configuration, an AMDConfig or the one inside of a KernelPyTorchConfig, and models prepared for it.

    device           torch.device("rdna:N"), or the CPU where there is no device
    fallback_reason  why it is the CPU; None on a device
    """

    def __init__(self, config=None):
        self.config = _amd_config(config)
        self.config.validate()
        self.device, self.fallback_reason = choose_device(self.config)
        self._usable = True
        if self.fallback_reason is None:
            self._compare_with_card()

    def _compare_with_card(self):
        target = torch.rdna.get_device_properties(self.device).arch
        found, strict = AMDArchitecture.of(target), self.config.enable_strict_validation
        if found not in (None, self.config.architecture):
            asked = self.config.architecture.value
            raise_or_warn(
                AMDConfigurationError, f"architecture={asked!r}: the card is {found.value} ({target}); AUTO takes the card's",
                strict, parameter="architecture", value=asked, reason=f"the card is {found.value} ({target})")
        elif found is not None and self.config.enable_matrix_cores and not has_matrix_cores(target):
            raise_or_warn(
                MatrixCoreError, f"enable_matrix_cores is on, and {target} has none: products take its vector units",
                strict, operation="enable_matrix_cores", architecture=found.value, error_message=f"{target} has none")

    def _must_be_usable(self):
        if not self._usable:
            raise AMDBackendError("this AMDBackend was cleaned up: make another one")

    def is_available(self):
        """Whether models can be prepared: on a device or on the CPU, until cleanup()."""
        return self._usable

    def get_device_info(self):
        """A dict whose keys are attributes too. docs/amd/backend.md says what each is."""
        if self.fallback_reason is not None:
            return DeviceInfo(
                backend="amd", device_type="cpu", device_id=self.config.device_id, name="CPU", architecture="cpu", target="",
                compute_capability=(0, 0), total_memory_gb=host_memory()[1] / _GB, matrix_cores_available=False,
                rocm_available=False, rocm_version="", is_available=True, driver="", emulated=False,
                reason=self.fallback_reason)
        card = torch.rdna.get_device_properties(self.device)
        info = _describe(self.device.index)
        return DeviceInfo(
            backend="amd", device_type=self.device.type, target=card.arch, rocm_available=card.driver == "hip",
            is_available=True, driver=card.driver, emulated=card.emulated, reason="", **vars(info))

    def get_all_devices(self):
        """An AMDDeviceInfo of each device; none in fallback."""
        rdna, _ = devices()
        return [] if rdna is None else [_describe(number) for number in range(rdna.device_count())]

    def prepare_model(self, model, optimization_level=None):
        """Puts |model| on the device, in place, and returns it. What of it is float32 computes in
        config.default_precision: under autocast where config.enable_mixed_precision is on, and else with its parameters
        and buffers converted; its results have its inputs' type in both cases. With "fp8" linear layers keep their weights as
        8-bit floats, for inference alone, and all else computes in bf16.

        |optimization_level|: also optimizes it at that level, as AMDOptimizer does, and returns the optimized model.

        All is checked before anything changes. AMDConfigurationError: a level or precision that there is not.
        ROCmMemoryError: the model does not fit. AMDBackendError: it is no model, or has parameters without values."""
        self._must_be_usable()
        if optimization_level is not None and optimization_level not in OPTIMIZATION_LEVELS:
            raise AMDConfigurationError(
                "optimization_level", optimization_level, f"expected one of {', '.join(OPTIMIZATION_LEVELS)}")
        self._prepare(model)
        return model if optimization_level is None else self._optimized(model, optimization_level)

    def _prepare(self, model):
        if not isinstance(model, nn.Module):
            raise AMDBackendError(f"prepare_model: expected a torch.nn.Module, got {type(model).__name__}")
        self.config.validate()
        narrow = self.config.default_precision == "fp8"
        self._must_have_float8(narrow)
        dtype, mixed = type_beside(self.config), self.config.enable_mixed_precision
        count, undo = _float8.narrow(model) if narrow else (0, _float8.widen(model))
        try:
            _move(model, self.device, torch.float32 if mixed else dtype, self.config)
        except Exception:
            undo()
            raise
        set_precision(model, dtype, mixed)
        if narrow and not count and not any(isinstance(m, _float8.Float8Linear) for m in model.modules()):
            name = str(dtype).removeprefix("torch.")
            warnings.warn(f"fp8: this {type(model).__name__} has no linear layer to keep in 8 bits; all of it computes in {name}",
                          stacklevel=3)

    def _must_have_float8(self, wanted):
        if not wanted or self.fallback_reason is not None:
            return
        card = torch.rdna.get_device_properties(self.device)
        if not has_float8(card):
            raise AMDConfigurationError(
                "default_precision", "fp8", f"the matrix units of {card.arch} take no 8-bit floats, those of CDNA3, CDNA4 and "
                "RDNA4 do; take fp32, fp16 or bf16")

    def _optimized(self, model, level, training=None):
        from .optimizer import AMDOptimizer

        return AMDOptimizer(self.config).optimize(model, level=level, training=training)

    def optimize_for_inference(self, model):
        """The model on the device, in evaluation mode, optimized at the configuration's level."""
        self._must_be_usable()
        self._prepare(model)
        return self._optimized(model.eval(), self.config.optimization_level, training=False)

    def optimize_for_training(self, model, optimizer=None):
        """The model on the device, in training mode, optimized at the configuration's level; with |optimizer|, a pair of
        both. The optimizer goes on with the same parameters, and its state follows them to the device."""
        self._must_be_usable()
        if self.config.default_precision == "fp8":
            raise AMDConfigurationError(
                "default_precision", "fp8", "it is for inference, as weights of 8 bits have no gradients; take bf16 to train")
        self._prepare(model)
        if optimizer is not None:
            optimizer.load_state_dict(optimizer.state_dict())  # which puts the state where its parameters are
        model = self._optimized(model.train(), self.config.optimization_level, training=True)
        return model if optimizer is None else (model, optimizer)

    def synchronize(self):
        """Waits for all work on the device."""
        self._must_be_usable()
        if self.fallback_reason is None:
            with as_amd_errors(self.device, "synchronize", 0):
                torch.rdna.synchronize(self.device)

    def cleanup(self):
        """Waits for the device and gives its cached memory back. Models stay where they are; this object is of no more use."""
        if self._usable and self.fallback_reason is None:
            self.synchronize()
            torch.rdna.empty_cache()
        self._usable = False

    def __repr__(self):
        state = "" if self._usable else ", cleaned up"
        return (f"AMDBackend(device={str(self.device)!r}, architecture={self.config.architecture.value!r}, "
                f"optimization_level={self.config.optimization_level!r}{state})")


def _describe(number):
    card = torch.rdna.get_device_properties(number)
    return AMDDeviceInfo(
        device_id=number, name=card.name, architecture=architecture_name(card.arch),
        compute_capability=(card.major, card.minor), total_memory_gb=card.total_memory / _GB,
        matrix_cores_available=has_matrix_cores(card.arch),
        rocm_version=torch.rdna._C.driver()[2] if card.driver == "hip" else "")


def _move(model, device, dtype, config):
    """All of the model's tensors on |device|, what is float32 as |dtype|: every copy is made before the first is put in
    its place, so that what fails leaves the model as it was."""

    def target(t):
        return dtype if t.dtype == torch.float32 else t.dtype

    def stays(t):
        return t.device == device and t.dtype == target(t)

    tensors = [t for t in (*model.parameters(), *model.buffers())]
    tensors += [p.grad for p in model.parameters() if p.grad is not None]
    for t in tensors:
        if is_lazy(t) or t.device.type == "meta":
            raise AMDBackendError("prepare_model: the model has parameters without values: call it once, or load them, first")
    needed = sum(t.numel() * target(t).itemsize for t in tensors if not stays(t))
    operation = f"prepare_model of {type(model).__name__}"
    if config.enable_oom_protection and needed:
        available = room(device, config.max_memory_fraction)
        if needed > available:
            raise ROCmMemoryError(operation, needed / MB, available / MB)
    with as_amd_errors(device, operation, needed), torch.no_grad():
        copies = {id(t): t if stays(t) else t.to(device, target(t)) for t in tensors}
        model._apply(lambda t: copies[id(t)] if id(t) in copies else t.to(device, target(t)))

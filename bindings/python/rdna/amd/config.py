"""Configuration: AMDArchitecture, AMDConfig and, for programs that cover several makers' cards, KernelPyTorchConfig."""

import math
from dataclasses import dataclass, field
from enum import Enum

import torch

from ._plugin import devices
from .amd_exceptions import AMDConfigurationError

OPTIMIZATION_LEVELS = ("conservative", "balanced", "aggressive")
PRECISIONS = ("fp32", "fp16", "bf16", "fp8")
MIOPEN_FIND_MODES = ("NORMAL", "FAST", "HYBRID")


class AMDArchitecture(Enum):
    """The generations of AMD's GPUs, each with the gfx names of its targets."""

    AUTO = "auto"  # that of the device
    CDNA = "cdna"  # gfx900 to gfx908: MI25, MI50, MI60, MI100
    CDNA2 = "cdna2"  # gfx90a: MI210, MI250
    CDNA3 = "cdna3"  # gfx940 to gfx942: MI300
    CDNA4 = "cdna4"  # gfx950: MI350
    RDNA = "rdna"  # gfx101x: RX 5000
    RDNA2 = "rdna2"  # gfx103x: RX 6000
    RDNA3 = "rdna3"  # gfx110x: RX 7000; gfx115x: Ryzen AI 300
    RDNA4 = "rdna4"  # gfx12xx: RX 9000

    @classmethod
    def of(cls, gfx):
        """The generation of a target, "gfx1100" or "gfx90a:sramecc+:xnack-"; None if it is none of AMD's."""
        name = str(gfx).split(":")[0]
        for prefix, generation in _GENERATIONS:
            if name.startswith(prefix):
                return generation
        return None

    @classmethod
    def detect(cls, device_id=0):
        """The generation of the device of that number; None if there is no such device, or if it is not AMD's."""
        rdna, _ = devices()
        if rdna is None or not 0 <= device_id < rdna.device_count():
            return None
        try:
            return cls.of(rdna.get_device_properties(device_id).arch)
        except RuntimeError:  # it cannot be opened, of which AMDBackend says why
            return None


# Source of the names: LLVM, "User Guide for AMDGPU Backend", the table of processors.
_GENERATIONS = (
    ("gfx90a", AMDArchitecture.CDNA2),
    ("gfx94", AMDArchitecture.CDNA3),
    ("gfx95", AMDArchitecture.CDNA4),
    ("gfx90", AMDArchitecture.CDNA),
    ("gfx101", AMDArchitecture.RDNA),
    ("gfx103", AMDArchitecture.RDNA2),
    ("gfx11", AMDArchitecture.RDNA3),
    ("gfx12", AMDArchitecture.RDNA4),
)

# What AUTO becomes where no device of AMD's is there to ask.
_UNKNOWN = AMDArchitecture.CDNA2

# enable_matrix_cores, what matrix_core_precision "auto" becomes, and allow_bf16; None leaves them as they were given.
# docs/amd/config.md says what the flags mean on cards whose matrix units are WMMA.
_RULES = {
    AMDArchitecture.CDNA: (False, None, False),
    AMDArchitecture.CDNA2: (True, "fp16", None),
    AMDArchitecture.CDNA3: (True, "bf16", None),
    AMDArchitecture.CDNA4: (True, "bf16", None),
    AMDArchitecture.RDNA: (False, None, False),
    AMDArchitecture.RDNA2: (False, None, False),
    AMDArchitecture.RDNA3: (False, None, False),
    AMDArchitecture.RDNA4: (None, "bf16", None),
}


@dataclass
class AMDConfig:
    """All that can be set of rdna.amd. docs/amd/config.md says what each does."""

    enabled: bool = True
    architecture: AMDArchitecture = AMDArchitecture.AUTO
    device_id: int = 0
    rocm_version: str = "auto"
    hip_version: str = "auto"

    enable_matrix_cores: bool = True
    matrix_core_precision: str = "auto"
    optimization_level: str = "balanced"

    enable_memory_pooling: bool = True
    memory_pool_size_gb: float = 8.0
    memory_pool_init_mb: int = 1024
    memory_growth_enabled: bool = True
    max_memory_fraction: float = 0.9

    hip_kernel_cache_enabled: bool = True
    hip_kernel_cache_size: int = 100
    hip_compiler_cache_size: int = 100
    hip_compiler_cache_dir: str = "/tmp/hip_cache"

    rocblas_enabled: bool = True
    rocblas_workspace_mb: int = 256
    enable_rocblas_tuning: bool = True
    miopen_enabled: bool = True
    miopen_find_mode: str = "NORMAL"

    default_precision: str = "fp32"
    enable_mixed_precision: bool = True
    allow_fp16: bool = True
    allow_bf16: bool = True

    enable_profiling: bool = False
    enable_operator_fusion: bool = True
    enable_strict_validation: bool = False
    enable_oom_protection: bool = True

    def __post_init__(self):
        try:
            self.architecture = AMDArchitecture(self.architecture)
        except ValueError:
            known = ", ".join(each.value for each in AMDArchitecture)
            raise AMDConfigurationError("architecture", self.architecture, f"expected one of {known}") from None
        if self.architecture is AMDArchitecture.AUTO:
            number = self.device_id if _is_whole(self.device_id) else 0
            self.architecture = AMDArchitecture.detect(number) or _UNKNOWN
        cores, precision, bf16 = _RULES[self.architecture]
        if cores is not None:
            self.enable_matrix_cores = cores
        if bf16 is not None:
            self.allow_bf16 = bf16
        if self.matrix_core_precision == "auto" and precision is not None:
            self.matrix_core_precision = precision

    def validate(self):
        """Raises AMDConfigurationError for the first value that cannot be."""

        def must(name, good, expected):
            value = getattr(self, name)
            if not good(value):
                raise AMDConfigurationError(name, value, expected)

        def one_of(name, values):
            must(name, lambda value: isinstance(value, str) and value in values, f"expected one of {', '.join(values)}")

        must("device_id", lambda value: _is_whole(value) and value >= 0, "expected the number of a device, 0 or more")
        one_of("optimization_level", OPTIMIZATION_LEVELS)
        one_of("default_precision", PRECISIONS)
        one_of("matrix_core_precision", ("auto", *PRECISIONS))
        one_of("miopen_find_mode", MIOPEN_FIND_MODES)
        must("memory_pool_size_gb", lambda value: _is_number(value) and value > 0, "expected more than 0 GB")
        must("memory_pool_init_mb", lambda value: _is_number(value) and value >= 0, "expected 0 MB or more")
        must("rocblas_workspace_mb", lambda value: _is_number(value) and value >= 0, "expected 0 MB or more")
        must("max_memory_fraction", lambda value: _is_number(value) and 0 < value <= 1, "expected a share above 0, up to 1")
        for name in ("hip_kernel_cache_size", "hip_compiler_cache_size"):
            must(name, lambda value: _is_whole(value) and value > 0, "expected a number of kernels above 0")
        for precision, allowed in (("fp16", self.allow_fp16), ("bf16", self.allow_bf16)):
            if self.default_precision == precision and not allowed:
                raise AMDConfigurationError(
                    "default_precision",
                    precision,
                    f"allow_{precision} is off for {self.architecture.value}; take another precision, or set "
                    f"config.allow_{precision} = True if the card is to compute in it",
                )


def _is_whole(value):
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


@dataclass
class HardwareConfig:
    """What is particular to a maker's cards."""

    amd: AMDConfig = field(default_factory=AMDConfig)


def _best_device():
    rdna, _ = devices()
    if rdna is not None:
        return torch.device("rdna")
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


@dataclass
class KernelPyTorchConfig:
    """The configuration of a program that covers several makers' cards: |device| is rdna where it has a device, else
    CUDA's, else the CPU."""

    device: torch.device = field(default_factory=_best_device)
    hardware: HardwareConfig = field(default_factory=HardwareConfig)

    def __post_init__(self):
        self.device = torch.device(self.device)

    @classmethod
    def for_inference(cls):
        """With the level at which a model's weights may be folded and packed, which training could not go on with."""
        return cls(hardware=HardwareConfig(amd=AMDConfig(optimization_level="aggressive")))

    @classmethod
    def for_training(cls):
        """With the level that leaves parameters what they are."""
        return cls(hardware=HardwareConfig(amd=AMDConfig(optimization_level="balanced", enable_mixed_precision=True)))

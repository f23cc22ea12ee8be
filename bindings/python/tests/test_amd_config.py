"""rdna.amd's configuration and errors, against the words of the interface's specification."""

import pickle
import subprocess
import sys
import warnings
from dataclasses import fields

import pytest
import torch

from rdna.amd import amd_exceptions, config
from rdna.amd.amd_exceptions import AMDBackendError, AMDConfigurationError, raise_or_warn
from rdna.amd.config import AMDArchitecture, AMDConfig, KernelPyTorchConfig

DEFAULTS = dict(
    enabled=True, device_id=0, rocm_version="auto", hip_version="auto", optimization_level="balanced",
    enable_memory_pooling=True, memory_pool_size_gb=8.0, memory_pool_init_mb=1024, memory_growth_enabled=True,
    max_memory_fraction=0.9, hip_kernel_cache_enabled=True, hip_kernel_cache_size=100, hip_compiler_cache_size=100,
    hip_compiler_cache_dir="/tmp/hip_cache", rocblas_enabled=True, rocblas_workspace_mb=256, enable_rocblas_tuning=True,
    miopen_enabled=True, miopen_find_mode="NORMAL", default_precision="fp32", enable_mixed_precision=True,
    allow_fp16=True, enable_profiling=False, enable_operator_fusion=True, enable_strict_validation=False,
    enable_oom_protection=True,
)


def test_defaults():
    made = AMDConfig()
    assert {name: getattr(made, name) for name in DEFAULTS} == DEFAULTS
    by_architecture = {"architecture", "enable_matrix_cores", "matrix_core_precision", "allow_bf16"}
    assert {each.name for each in fields(AMDConfig)} == DEFAULTS.keys() | by_architecture
    made.validate()


@pytest.mark.parametrize("name, generation", [
    ("gfx900", "CDNA"), ("gfx906:sramecc+:xnack-", "CDNA"), ("gfx908", "CDNA"), ("gfx90a:sramecc+:xnack-", "CDNA2"),
    ("gfx940", "CDNA3"), ("gfx942", "CDNA3"), ("gfx950", "CDNA4"), ("gfx1010", "RDNA"), ("gfx1012", "RDNA"),
    ("gfx1030", "RDNA2"), ("gfx1036", "RDNA2"), ("gfx1100", "RDNA3"), ("gfx1103", "RDNA3"), ("gfx1151", "RDNA3"),
    ("gfx1200", "RDNA4"), ("gfx1201", "RDNA4"), ("sm_90", None), ("avx512", None), ("", None), ("gfx", None), (None, None),
])
def test_generation_of_a_target(name, generation):
    assert AMDArchitecture.of(name) is (generation and AMDArchitecture[generation])


def test_architectures():
    names = ["AUTO", "CDNA", "CDNA2", "CDNA3", "CDNA4", "RDNA", "RDNA2", "RDNA3", "RDNA4"]
    assert [each.name for each in AMDArchitecture] == names
    assert all(each.value == each.name.lower() for each in AMDArchitecture)


class Cards:
    """torch.rdna of a machine with cards of such names."""

    def __init__(self, *names):
        self.names = names

    def device_count(self):
        return len(self.names)

    def get_device_properties(self, number):
        if self.names[number] is None:
            raise RuntimeError("it cannot be opened")
        return type("Properties", (), {"arch": self.names[number]})


def test_automatic_is_what_the_device_is(monkeypatch):
    monkeypatch.setattr(config, "devices", lambda: (Cards("gfx1100", "gfx950", "gfx1201", None, "sm_90"), None))
    found = [AMDConfig(device_id=n).architecture.name for n in range(6)]
    # what cannot be opened, is not AMD's or is not there gets the documented stand-in
    assert found == ["RDNA3", "CDNA4", "RDNA4", "CDNA2", "CDNA2", "CDNA2"]
    assert AMDArchitecture.detect(-1) is None
    assert AMDConfig(device_id=-1).architecture is AMDArchitecture.CDNA2
    assert AMDConfig(architecture=AMDArchitecture.RDNA2).architecture is AMDArchitecture.RDNA2


def test_automatic_without_devices(monkeypatch):
    monkeypatch.setattr(config, "devices", lambda: (None, "none"))
    assert AMDConfig().architecture is AMDArchitecture.CDNA2
    assert KernelPyTorchConfig().device.type in ("cuda", "cpu")


@pytest.mark.parametrize("architecture, cores, precision, bf16", [
    ("CDNA", False, "auto", False), ("CDNA2", True, "fp16", True), ("CDNA3", True, "bf16", True),
    ("CDNA4", True, "bf16", True), ("RDNA", False, "auto", False), ("RDNA2", False, "auto", False),
    ("RDNA3", False, "auto", False), ("RDNA4", True, "bf16", True),
])
def test_what_an_architecture_sets(architecture, cores, precision, bf16):
    made = AMDConfig(architecture=AMDArchitecture[architecture], enable_matrix_cores=True, allow_bf16=True)
    assert (made.enable_matrix_cores, made.matrix_core_precision, made.allow_bf16) == (cores, precision, bf16)
    assert made.default_precision == "fp32"  # that stays what was asked
    made = AMDConfig(architecture=architecture.lower(), enable_matrix_cores=False, matrix_core_precision="fp32")
    assert made.architecture is AMDArchitecture[architecture] and made.matrix_core_precision == "fp32"
    assert made.enable_matrix_cores == (architecture in ("CDNA2", "CDNA3", "CDNA4"))


@pytest.mark.parametrize("name, values", [
    ("device_id", [-1, 1.0, "0", None, True]),
    ("optimization_level", ["fast", "", None, "BALANCED"]),
    ("default_precision", ["fp64", "int8", "FP16", None, 16]),
    ("matrix_core_precision", ["tf32", None]),
    ("miopen_find_mode", ["normal", "SLOW", 1]),
    ("memory_pool_size_gb", [0, -1.5, float("nan"), float("inf"), "8", None, True]),
    ("memory_pool_init_mb", [-1]),
    ("rocblas_workspace_mb", [-1]),
    ("max_memory_fraction", [0, -0.1, 1.01, float("nan"), None]),
    ("hip_kernel_cache_size", [0, -1, 2.5]),
    ("hip_compiler_cache_size", [0, -1, "many"]),
])
def test_values_that_cannot_be(name, values):
    for value in values:
        made = AMDConfig(**{name: value})
        with pytest.raises(AMDConfigurationError) as raised:
            made.validate()
        assert raised.value.parameter == name and raised.value.value is value
        assert name in str(raised.value) and repr(value) in str(raised.value) and "expected" in raised.value.reason


def test_an_architecture_that_is_none():
    with pytest.raises(AMDConfigurationError) as raised:
        AMDConfig(architecture="gcn5")
    assert raised.value.parameter == "architecture" and "cdna3" in str(raised.value)


def test_precisions_that_are_off():
    for precision in ("fp32", "fp16", "bf16", "fp8"):
        AMDConfig(architecture=AMDArchitecture.CDNA3, default_precision=precision).validate()
    for made in (AMDConfig(allow_fp16=False, default_precision="fp16"),
                 AMDConfig(architecture="rdna3", default_precision="bf16")):
        with pytest.raises(AMDConfigurationError, match="allow_(fp16|bf16) is off"):
            made.validate()
    made.allow_bf16 = True  # as the message says
    made.validate()


def test_several_makers():
    made = KernelPyTorchConfig()
    assert isinstance(made.device, torch.device) and isinstance(made.hardware.amd, AMDConfig)
    assert KernelPyTorchConfig(device="cpu").device == torch.device("cpu")
    assert KernelPyTorchConfig.for_inference().hardware.amd.optimization_level == "aggressive"
    assert KernelPyTorchConfig.for_training().hardware.amd.optimization_level == "balanced"
    assert KernelPyTorchConfig().hardware.amd is not made.hardware.amd


ERRORS = {
    "AMDBackendError": (("it failed", {"code": 3}), dict(message="it failed", details={"code": 3})),
    "ROCmNotAvailableError": ((), dict(message="ROCm runtime not available", details=None)),
    "HIPCompilationError": (("add", "line 3: no"), dict(kernel_name="add", error_message="line 3: no")),
    "ROCmMemoryError": (("allocation", 512.25, 64.5), dict(operation="allocation", required_mb=512.25, available_mb=64.5)),
    "MIOpenError": (("conv2d", "no"), dict(operation="conv2d", error_message="no")),
    "ROCBLASError": (("gemm", "no"), dict(operation="gemm", error_message="no")),
    "AMDDeviceError": ((7, "open", "no"), dict(device_id=7, operation="open", error_message="no")),
    "AMDConfigurationError": (("device_id", -1, "no"), dict(parameter="device_id", value=-1, reason="no")),
    "MatrixCoreError": (("gemm", "rdna2", "no"), dict(operation="gemm", architecture="rdna2", error_message="no")),
    "AMDOptimizationError": (("fast", "no"), dict(level="fast", error_message="no")),
    "HIPKernelError": (("add", 719, "no"), dict(kernel_name="add", error_code=719, error_message="no")),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    arguments, attributes = ERRORS[name]
    kind = getattr(amd_exceptions, name)
    assert issubclass(kind, AMDBackendError) and issubclass(kind, Exception)
    with pytest.raises(AMDBackendError) as raised:
        raise kind(*arguments)
    error = raised.value
    again = pickle.loads(pickle.dumps(error))
    for each in (error, again):
        assert type(each) is kind and {key: getattr(each, key) for key in attributes} == attributes
        for value in attributes.values():
            assert value is None or str(value if not isinstance(value, dict) else "code=3") in str(each)
    assert str(again) == str(error)
    if name != "AMDBackendError":
        kind(**{key: value for key, value in attributes.items() if key != "details"})


def test_raise_or_warn():
    with pytest.warns(UserWarning, match="a card is slow"):
        assert raise_or_warn(AMDBackendError, "a card is slow") is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(AMDBackendError, match="a card is slow"):
            raise_or_warn(AMDBackendError, "a card is slow", strict_mode=True)
    with pytest.raises(amd_exceptions.ROCmMemoryError) as raised:
        raise_or_warn(amd_exceptions.ROCmMemoryError, "too much", strict_mode=True, operation="pool", batch=4)
    error = raised.value
    assert (error.operation, error.required_mb, error.details) == ("pool", None, {"batch": 4})
    assert str(error) == "too much (batch=4)"
    with pytest.raises(AMDBackendError) as raised:
        raise_or_warn(AMDBackendError, "no", strict_mode=True, details="why", count=1)
    assert raised.value.details == {"details": "why", "count": 1}
    for other in (ValueError, "AMDBackendError"):
        with pytest.raises(TypeError, match="rdna.amd"):
            raise_or_warn(other, "no")


def test_rdna_alone_imports_neither():
    code = "import sys, rdna, rdna.compat; assert not {'torch', 'torch_rdna', 'numpy'} & sys.modules.keys(), sys.modules.keys()"
    subprocess.run([sys.executable, "-c", code], check=True)

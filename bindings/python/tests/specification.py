"""The Python blocks of the interface's specification, in the order of the document, typed anew and short where they repeat
themselves. run() executes them one after the other, in one namespace, as a reader of the document would."""

import warnings

# What the document leaves to its reader: data, and a body of the kernel for its three dots.
READERS_OWN = """
import torch
dataloader = [(torch.randn(4, 1024), torch.randn(4, 1024)) for _ in range(2)]
from rdna.amd import KernelPyTorchConfig
input_data = torch.randn(8, 512, device=KernelPyTorchConfig().device)  # where the model is that reads it
batch_size = 32
"""

BLOCKS = [
    ("quick start", """
from kernel_pytorch.backends.amd import AMDBackend
from kernel_pytorch.core.config import AMDConfig
import torch.nn as nn

backend = AMDBackend()
model = nn.Sequential(nn.Linear(512, 256), nn.GELU(), nn.Linear(256, 10))
prepared_model = backend.prepare_model(model)
print(f"Using device: {backend.device}")
print(f"Device info: {backend.get_device_info()}")
"""),
    ("quick start, with the optimizer", """
from kernel_pytorch.backends.amd import AMDBackend, AMDOptimizer
from kernel_pytorch.core.config import AMDConfig, AMDArchitecture

config = AMDConfig(architecture=AMDArchitecture.CDNA3, optimization_level="aggressive", enable_matrix_cores=True,
                   enable_mixed_precision=True)
optimizer = AMDOptimizer(config)
model = nn.Linear(1024, 1024)
optimized_model = optimizer.optimize(model)
summary = optimizer.get_optimization_summary()
print(f"Architecture: {summary['architecture']}")
print(f"Matrix Cores: {summary['matrix_cores_enabled']}")
"""),
    ("verify the installation", """
import torch
print(f"PyTorch version: {torch.__version__}")
print(f"CUDA/ROCm available: {torch.cuda.is_available()}")
print(f"Device count: {torch.cuda.device_count()}")
print(f"Device name: {torch.cuda.get_device_name(0)}")
"""),
    ("options", """
from kernel_pytorch.core.config import AMDConfig, AMDArchitecture

config = AMDConfig(
    architecture=AMDArchitecture.AUTO, device_id=0,
    optimization_level="balanced", enable_matrix_cores=True, enable_mixed_precision=True, enable_operator_fusion=True,
    enable_memory_pooling=True, memory_pool_size_gb=8.0, max_memory_fraction=0.9,
    hip_kernel_cache_enabled=True, hip_compiler_cache_size=100, hip_compiler_cache_dir="/tmp/hip_cache",
    rocblas_enabled=True, enable_rocblas_tuning=True, miopen_enabled=True, miopen_find_mode="NORMAL",
    default_precision="fp32", allow_fp16=True, allow_bf16=True,
    enable_profiling=False, enable_strict_validation=False, enable_oom_protection=True)
"""),
    ("defaults of architectures", """
config = AMDConfig(architecture=AMDArchitecture.CDNA3, optimization_level="aggressive", enable_matrix_cores=True,
                   default_precision="bf16")
config = AMDConfig(architecture=AMDArchitecture.CDNA2, optimization_level="balanced", enable_matrix_cores=True,
                   default_precision="fp16")
config = AMDConfig(architecture=AMDArchitecture.RDNA3, optimization_level="conservative", enable_matrix_cores=False)
"""),
    ("AMDBackend", """
from kernel_pytorch.backends.amd import AMDBackend
from kernel_pytorch.core.config import AMDConfig

config = AMDConfig()
backend = AMDBackend(config)
if backend.is_available():
    print(f"Device: {backend.device}")
    print(f"Info: {backend.get_device_info()}")
model = nn.Linear(512, 256)
prepared = backend.prepare_model(model)
backend.synchronize()
backend.cleanup()
"""),
    ("AMDOptimizer", """
from kernel_pytorch.backends.amd import AMDOptimizer
from kernel_pytorch.core.config import AMDConfig

config = AMDConfig(optimization_level="balanced")
optimizer = AMDOptimizer(config)
optimized = optimizer.optimize(model, level="aggressive")
summary = optimizer.get_optimization_summary()
print(f"Applied optimizations: {summary['optimizations_applied']}")
"""),
    ("ROCmCompiler", """
from kernel_pytorch.backends.amd import ROCmCompiler
from kernel_pytorch.core.config import AMDConfig

config = AMDConfig()
compiler = ROCmCompiler(config)
kernel_source = "__global__ void add(float* a, float* b, float* c) { int i = threadIdx.x; c[i] = a[i] + b[i]; }"
kernel = compiler.compile_kernel(kernel_source, "add_kernel")
print(f"Kernel: {kernel.name}")
print(f"Architecture: {kernel.architecture}")
stats = compiler.get_compilation_stats()
print(f"Cache hit rate: {stats['cache_hit_rate_percent']}%")
compiler.clear_cache()
"""),
    ("AMDMemoryManager", """
from kernel_pytorch.backends.amd import AMDMemoryManager
from kernel_pytorch.core.config import AMDConfig

config = AMDConfig(memory_pool_size_gb=8.0)
manager = AMDMemoryManager(config)
stats = manager.get_memory_stats()
print(f"Total: {stats.total_mb}MB")
print(f"Allocated: {stats.allocated_mb}MB")
print(f"Free: {stats.free_mb}MB")
summary = manager.get_allocation_summary()
"""),
    ("HIPUtilities", """
from kernel_pytorch.backends.amd import HIPUtilities
from kernel_pytorch.core.config import AMDConfig

config = AMDConfig(enable_profiling=True)
utils = HIPUtilities(config)
stream = utils.create_stream("compute", priority=0)
with utils.profile_region("forward_pass"):
    output = model(input_data)
summary = utils.get_profiling_summary()
for name, data in summary.get("regions", {}).items():
    print(f"{name}: {data['avg_ms']:.3f}ms")
utils.cleanup()
"""),
    ("a training loop", """
from kernel_pytorch.backends.amd import AMDBackend, AMDOptimizer
from kernel_pytorch.core.config import AMDConfig, AMDArchitecture
import torch
import torch.nn as nn

config = AMDConfig(architecture=AMDArchitecture.CDNA3, optimization_level="balanced", enable_matrix_cores=True,
                   default_precision="bf16")
backend = AMDBackend(config)
amd_optimizer = AMDOptimizer(config)
model = nn.Sequential(nn.Linear(1024, 2048), nn.GELU(), nn.Linear(2048, 1024))
model = backend.prepare_model(model)
model = amd_optimizer.optimize(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for epoch in range(10):
    for batch in dataloader:
        inputs, targets = batch
        inputs = inputs.to(backend.device)
        targets = targets.to(backend.device)
        optimizer.zero_grad()
        outputs = model(inputs)
        loss = nn.functional.mse_loss(outputs, targets)
        loss.backward()
        optimizer.step()
    backend.synchronize()
    print(f"Epoch {epoch}: loss={loss.item():.4f}")
"""),
    ("from one maker's card to another's", """
from kernel_pytorch.backends.amd import AMDBackend
from kernel_pytorch.backends.nvidia import NVIDIABackend
from kernel_pytorch.core.config import AMDConfig, KernelPyTorchConfig

nvidia_config = KernelPyTorchConfig()
nvidia_backend = NVIDIABackend(nvidia_config)
nvidia_model = nvidia_backend.prepare_model(model)
checkpoint = {'model_state_dict': {k: v.cpu() for k, v in nvidia_model.state_dict().items()}, 'epoch': 10}
amd_config = AMDConfig()
amd_backend = AMDBackend(amd_config)
amd_model = amd_backend.prepare_model(model)
amd_model.load_state_dict(checkpoint['model_state_dict'])
"""),
    ("matrix cores", """
config = AMDConfig(architecture=AMDArchitecture.CDNA3, enable_matrix_cores=True, default_precision="bf16")
"""),
    ("aggressive optimization", """
config = AMDConfig(optimization_level="aggressive", enable_operator_fusion=True, enable_rocblas_tuning=True)
"""),
    ("memory", """
config = AMDConfig(enable_memory_pooling=True, memory_pool_size_gb=16.0, max_memory_fraction=0.9)
"""),
    ("profiling", """
config = AMDConfig(enable_profiling=True)
utils = HIPUtilities(config)
with utils.profile_region("critical_path"):
    pass
summary = utils.get_profiling_summary()
"""),
    ("errors", """
from kernel_pytorch.backends.amd.amd_exceptions import (
    AMDBackendError, ROCmNotAvailableError, AMDDeviceError, HIPCompilationError, ROCmMemoryError, MatrixCoreError,
    AMDOptimizationError, AMDConfigurationError)

try:
    backend = AMDBackend(config)
    model = backend.prepare_model(model)
except ROCmNotAvailableError:
    print("ROCm not available - using CPU fallback")
except AMDDeviceError as e:
    print(f"Device error: {e}")
except ROCmMemoryError as e:
    print(f"Memory error: {e}")
"""),
    ("falling back", """
backend = AMDBackend()
if backend.device.type == "cpu":
    print("Running in CPU fallback mode")
else:
    print(f"Running on AMD GPU: {backend.get_device_info()['name']}")
"""),
    ("trouble with memory", """
config = AMDConfig(enable_oom_protection=True, max_memory_fraction=0.8)
backend.synchronize()
torch.cuda.empty_cache()
"""),
    ("trouble with kernels", """
compiler = ROCmCompiler(config)
stats = compiler.get_compilation_stats()
compiler.clear_cache()
"""),
    ("trouble with speed", """
config = AMDConfig(enable_profiling=True)
utils = HIPUtilities(config)
with utils.profile_region("suspect_code"):
    pass
summary = utils.get_profiling_summary()
for name, data in summary.get("regions", {}).items():
    print(f"{name}: {data['avg_ms']:.3f}ms (min={data['min_ms']:.3f}, max={data['max_ms']:.3f})")
"""),
    ("practices: the architecture", "config = AMDConfig(architecture=AMDArchitecture.CDNA3)\n"),
    ("practices: profile first", "config = AMDConfig(enable_profiling=True)\n"),
    ("practices: levels", """
config = AMDConfig(optimization_level="conservative")
config = AMDConfig(optimization_level="balanced")
config = AMDConfig(optimization_level="aggressive")
"""),
    ("practices: watch memory", """
manager = AMDMemoryManager(config)
stats = manager.get_memory_stats()
print(f"Memory usage: {stats.allocated_mb / stats.total_mb * 100:.1f}%")
"""),
    ("practices: fall back", """
backend = AMDBackend()
if backend.device.type == "cpu":
    batch_size = batch_size // 4
"""),
]


def run(refused=()):
    """Runs all blocks; |refused| are (title, words): blocks that have to raise an error with these words. What they left
    in their namespace."""
    from rdna.compat import kernel_pytorch

    kernel_pytorch.install()
    refused = dict(refused)
    there = {}
    exec(READERS_OWN, there)
    warnings.simplefilter("ignore")
    for title, block in BLOCKS:
        words = refused.pop(title, None)
        try:
            exec(compile(block, title, "exec"), there)
        except Exception as error:
            if words is None or words not in str(error):
                raise
        else:
            assert words is None, f"{title!r} was to be refused"
    assert not refused
    return there

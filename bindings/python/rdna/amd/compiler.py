"""ROCmCompiler: HIP kernels compiled at run time, kept on disk, launched on tensors. See docs/amd/compiler.md."""

import hashlib
import pathlib
import threading
import warnings
from collections import OrderedDict
from dataclasses import dataclass, field

import torch

from .._library import last_error, library
from ._compiled import Code, CodeError, Kernel
from ._plugin import devices, plugin
from .amd_exceptions import AMDConfigurationError, HIPCompilationError, ROCmNotAvailableError
from .config import AMDArchitecture

# By optimization level. Aggressive may change results: sums in another order, no care for NaN and infinity.
_FLAGS = {"conservative": ["-O1"], "balanced": ["-O2"], "aggressive": ["-O3", "-ffast-math"]}

# The most common target of a generation, for machines without a card of it.
_TARGETS = {
    AMDArchitecture.CDNA: "gfx908",
    AMDArchitecture.CDNA2: "gfx90a",
    AMDArchitecture.CDNA3: "gfx942",
    AMDArchitecture.CDNA4: "gfx950",
    AMDArchitecture.RDNA: "gfx1010",
    AMDArchitecture.RDNA2: "gfx1030",
    AMDArchitecture.RDNA3: "gfx1100",
    AMDArchitecture.RDNA4: "gfx1200",
}


def _librdna(what):
    """Makes sure that the library is there, which the plugin brings if it can."""
    plugin()
    try:
        library()
    except OSError as error:
        raise ROCmNotAvailableError(f"{what}: librdna does not load: {error}") from None


class LRUCache:
    """A dictionary of at most |max_size| entries; the one that was used least recently makes room. Any thread may use it."""

    def __init__(self, max_size=100):
        if max_size < 1:
            raise ValueError(f"max_size={max_size}: a cache holds 1 entry or more")
        self.max_size = max_size
        self._entries, self._lock = OrderedDict(), threading.Lock()

    def get(self, key, default=None):
        """The value of |key|, which then counts as used, or |default|."""
        with self._lock:
            if key not in self._entries:
                return default
            self._entries.move_to_end(key)
            return self._entries[key]

    def set(self, key, value):
        with self._lock:
            self._entries[key] = value
            self._entries.move_to_end(key)
            while len(self._entries) > self.max_size:
                self._entries.popitem(last=False)

    def clear(self):
        with self._lock:
            self._entries.clear()

    def __len__(self):
        return len(self._entries)

    def __contains__(self, key):
        return key in self._entries


def _sides(what, name, sides):
    """Three numbers of one to three, or of one alone."""
    sides = tuple(sides) if isinstance(sides, (tuple, list, torch.Size)) else (sides,)
    if not 1 <= len(sides) <= 3 or not all(hasattr(type(side), "__index__") for side in sides):
        raise TypeError(f"kernel {name!r}: the {what} is {sides!r}; it is a number or up to three of them")
    sides = tuple(side.__index__() for side in sides)
    if not all(0 <= side < 1 << 32 for side in sides):
        raise TypeError(f"kernel {name!r}: the {what} is {sides!r}, with a side outside 0 to 2^32 - 1")
    return sides + (1,) * (3 - len(sides))


@dataclass
class CompiledKernel:
    """A kernel that can be launched: kernel[grid, block](x, y, n), or kernel[grid, block, shared_bytes](…), on tensors of
    rdna, Python's numbers, and bytes for structs. It is queued on the current stream of the tensors' device. A tensor is
    passed as the address of its first element; a kernel for others than contiguous ones takes their strides as numbers."""

    name: str
    source_hash: str  # the first 16 digits of the source's SHA-256
    binary: bytes  # an ELF code object; PTX for NVIDIA's GPUs
    architecture: AMDArchitecture
    optimization_flags: list
    compile_time_ms: float  # of the compilation, or of reading it from the disk
    target: str = ""  # "gfx1100"
    from_disk: bool = False
    kernel: Kernel = field(default=None, repr=False)

    def __getitem__(self, shape):
        shape = shape if isinstance(shape, tuple) else (shape,)
        if len(shape) not in (2, 3):
            raise TypeError(f"kernel {self.name!r} is launched as kernel[grid, block](…) or kernel[grid, block, bytes](…)")
        grid, block = _sides("grid", self.name, shape[0]), _sides("block", self.name, shape[1])
        shared = shape[2] if len(shape) == 3 else 0
        if not hasattr(type(shared), "__index__") or not 0 <= shared < 1 << 31:
            raise TypeError(f"kernel {self.name!r}: {shared!r} is no number of bytes of shared memory")
        return lambda *arguments: self.kernel.launch(self.name, grid, block, shared, arguments)

    def __call__(self, *arguments):
        raise TypeError(f"kernel {self.name!r} needs its grid and block: kernel[grid, block](…)")

    def signature(self):
        """What its arguments are: "const float* a, float* b, int n"."""
        return ", ".join(self.kernel.texts)


class ROCmCompiler:
    """Compiles HIP kernels for the card that |config| means, each once: in this object and, across programs, in the folder
    config.hip_compiler_cache_dir. Any thread may use it."""

    def __init__(self, config):
        self.config = config
        self._cache = LRUCache(config.hip_compiler_cache_size)
        self._lock = threading.Lock()
        self._counts = dict.fromkeys(
            ("total_compilations", "cache_hits", "cache_misses", "compilation_errors", "disk_hits", "compiler_runs"), 0)
        self._noticed = set()

    def compile_kernel(self, source, kernel_name, optimization_level=None):
        """The kernel |kernel_name| of |source| as a CompiledKernel. |optimization_level|: the configuration's unless it is
        given. A source with a single kernel of another name gives that one, with a warning.

        Raises HIPCompilationError with the compiler's text, or with the kernels that the source has."""
        level = self.config.optimization_level if optimization_level is None else optimization_level
        if level not in _FLAGS:
            raise AMDConfigurationError("optimization_level", level, f"expected one of {', '.join(_FLAGS)}")
        if not isinstance(source, str) or not isinstance(kernel_name, str) or not kernel_name:
            raise TypeError("compile_kernel takes the source and the kernel's name as texts")
        flags, target = list(_FLAGS[level]), self._get_gpu_target()
        key = (source, kernel_name, target, level)
        kept = self._cache.get(key) if self.config.hip_kernel_cache_enabled else None
        if kept is not None:
            self._count("cache_hits")
            return kept
        self._count("cache_misses")
        code = self._compile(source, kernel_name, target, flags)
        kernel = self._choose(code, kernel_name)
        self._count("total_compilations", "disk_hits" if code.cached else "compiler_runs")
        made = CompiledKernel(
            name=kernel_name,
            source_hash=hashlib.sha256(source.encode()).hexdigest()[:16],
            binary=code.binary,
            architecture=AMDArchitecture.of(target) or self.config.architecture,
            optimization_flags=flags,
            compile_time_ms=code.milliseconds,
            target=target,
            from_disk=code.cached,
            kernel=kernel,
        )
        if self.config.hip_kernel_cache_enabled:
            self._cache.set(key, made)
        return made

    def clear_cache(self):
        """Forgets every kernel, here and on the disk. Kernels that a program holds go on working."""
        self._cache.clear()
        _librdna("the folder of compiled kernels cannot be emptied")
        if library().rdna_compile_clear_cache(str(self.config.hip_compiler_cache_dir).encode()):
            warnings.warn(last_error(), stacklevel=2)

    def get_compilation_stats(self):
        """Requests that this object had (cache_hits) or not (cache_misses), those of the latter that gave a kernel
        (total_compilations): from the disk (disk_hits) or by the compiler (compiler_runs); errors; kernels held; the hits'
        share of all requests in percent."""
        with self._lock:
            counts = dict(self._counts)
        asked = counts["cache_hits"] + counts["cache_misses"]
        rate = 100.0 * counts["cache_hits"] / asked if asked else 0.0
        return {**counts, "cache_size": len(self._cache), "cache_hit_rate_percent": rate}

    def precompile_standard_kernels(self):
        """Compiles the kernels of standard_kernels.hip, so that their first use waits for nothing: a dict by name."""
        source = (pathlib.Path(__file__).parent / "standard_kernels.hip").read_text()
        return {name: self.compile_kernel(source, name) for name in STANDARD_KERNELS}

    def _get_gpu_target(self):
        """The target to compile for: the device's own when it is of the configuration's generation, else the most common of
        that generation; an NVIDIA GPU's own, which has none of AMD's."""
        rdna, _ = devices()
        number = self.config.device_id
        if rdna is not None and isinstance(number, int) and 0 <= number < rdna.device_count():
            arch = rdna.get_device_properties(number).arch.split(":")[0]
            if arch.startswith("sm_") or AMDArchitecture.of(arch) is self.config.architecture:
                return arch
        return _TARGETS.get(self.config.architecture, "gfx90a")

    def _compile(self, source, kernel_name, target, flags):
        _librdna(f"kernel {kernel_name!r} cannot be compiled")
        folder = str(self.config.hip_compiler_cache_dir) if self.config.hip_kernel_cache_enabled else "off"
        try:
            code = Code(source, target, kernel_name + ".hip", flags, folder, self.config.hip_compiler_cache_size)
        except CodeError as error:
            self._count("compilation_errors")
            raise HIPCompilationError(kernel_name, error.sentence) from None
        if code.notice and code.notice not in self._noticed:
            self._noticed.add(code.notice)
            warnings.warn(code.notice, stacklevel=4)
        return code

    def _choose(self, code, name):
        try:
            return code.find(name)
        except CodeError as error:
            if len(code.kernels) == 1:
                warnings.warn(f"the source has no kernel {name!r}; its only one, {code.kernels[0].name!r}, is taken for it",
                              stacklevel=3)
                return code.kernels[0]
            self._count("compilation_errors")
            raise HIPCompilationError(name, error.sentence) from None

    def _count(self, *names):
        with self._lock:
            for name in names:
                self._counts[name] += 1


STANDARD_KERNELS = ("vector_add", "vector_multiply", "vector_scale", "relu", "gelu", "silu", "row_softmax")


def operator(name, schema, kernel, launch, backward=None, fake=None):
    """Makes an operator of PyTorch's from a kernel, which autograd and torch.compile can see. Returns it.

    |name| is "library::operator", |schema| "(Tensor x, Tensor y, float a) -> Tensor". launch(kernel, x, y, a) makes the
    result, launches the kernel and returns the result. |backward| is (kernel, launch): launch(kernel, grad, x, y, a) returns
    the gradients of the schema's tensors, in order. |fake|, of the operator's arguments, returns an empty result for
    torch.compile; without it the result is like the first tensor."""
    rdna, reason = plugin()
    if rdna is None:
        raise ROCmNotAvailableError(f"operator {name!r} cannot be made: {reason}")
    place = torch.device("rdna").type
    parsed = torch._C.parse_schema(name + schema)
    tensors = [i for i, each in enumerate(parsed.arguments) if str(each.type) == "Tensor"]
    if not tensors or [str(each.type) for each in parsed.returns] != ["Tensor"]:
        raise ValueError(f"operator {name}{schema}: it takes a Tensor or more, and returns one")
    made = torch.library.custom_op(name, lambda *given: launch(kernel, *given), mutates_args=(), device_types=place,
                                   schema=schema)
    made.register_fake(fake or (lambda *given: torch.empty_like(given[tensors[0]])))
    if backward is None:
        return made
    backward_kernel, backward_launch = backward
    results = "Tensor" if len(tensors) == 1 else "(" + ", ".join(["Tensor"] * len(tensors)) + ")"
    gradient = torch.library.custom_op(
        name + "_backward", lambda *given: backward_launch(backward_kernel, *given), mutates_args=(), device_types=place,
        schema="(Tensor grad, " + schema.rpartition("->")[0].strip().removeprefix("(") + " -> " + results)

    def empty(_, *given):
        like = [torch.empty_like(given[i]) for i in tensors]
        return like[0] if len(like) == 1 else tuple(like)

    gradient.register_fake(empty)

    def save(ctx, inputs, output):
        ctx.save_for_backward(*(inputs[i] for i in tensors))
        ctx.others = [None if i in tensors else each for i, each in enumerate(inputs)]

    def differentiate(ctx, grad):
        given = list(ctx.others)
        for i, each in zip(tensors, ctx.saved_tensors):
            given[i] = each
        parts = gradient(grad, *given)
        found = [None] * len(given)
        for i, each in zip(tensors, [parts] if len(tensors) == 1 else parts):
            found[i] = each
        return tuple(found)

    made.register_autograd(differentiate, setup_context=save)
    return made


ROCmCompiler.operator = staticmethod(operator)

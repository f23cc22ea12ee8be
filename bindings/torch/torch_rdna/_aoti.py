"""torch._inductor.aoti_compile_and_package for rdna: programs without Python and without a compiler where they run.

What PyTorch packs is a library in C++ that calls kernels. For rdna its kernels are the plugin's operators, fused as
torch.compile's backend does it, which the library asks for by numbers: so one way serves every card and the host, and
needs no Triton. csrc/aoti.cpp says why the weights, and what the numbers mean, are in a file beside the library."""

import contextlib
import contextvars
import functools
import logging
import os
import tempfile

import sympy
import torch

from . import _compile
from ._device import is_ours, types

WITHOUT_KERNELS = {
    "fallback_by_default": True,  # to operators, instead of code for them
    "selective_decompose": True,
    "use_pre_grad_passes": False,
    "use_joint_graph_passes": False,
    "use_post_grad_passes": False,
    "allow_buffer_reuse": False,
    "always_keep_tensor_constants": True,  # small ones would become code
    "aot_inductor.package_constants_in_so": False,
    "aot_inductor.precompile_headers": False,  # there is none for rdna
    "aot_inductor.compile_wrapper_opt_level": "O0",  # it only calls
}
# PyTorch's own function that gives a program its weights makes a reference to each that it never gives back. This one is
# in the library beside it, where the program's class is known: references that it holds are given back with the program,
# or when it gets other weights. What is wrong is thrown: PyTorch's would print it, and raise an error without a word.
HOLD_WEIGHTS = """
extern "C" AOTIRuntimeError rdna_hold_weights(AOTInductorModelContainerHandle program, AOTInductorConstantMapHandle map, bool inactive, bool whole) {
    static const bool ours[] = {OURS};
    auto& container = *reinterpret_cast<torch::aot_inductor::AOTInductorModelContainer*>(program);
    const auto& given = *reinterpret_cast<const std::unordered_map<std::string, AtenTensorHandle>*>(map);
    if (whole) container.assert_all_constants(given);
    std::unordered_map<std::string, AtenTensorHandle> held;
    const auto others = container.extract_constants_map(!inactive);
    for (size_t i = 0; i < container.num_constants(); i++) {
        const std::string name = container.constant_name(i), said = container.constant_original_fqn(i);
        const auto found = given.find(name);
        if (found != given.end()) {
            int32_t device = 0;
            AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_type(found->second, &device));
            AOTI_RUNTIME_CHECK(device == (ours[i] ? aoti_torch_device_type_privateuse1() : aoti_torch_device_type_cpu()),
                               "the package has " + said + (ours[i] ? " on rdna" : " on the CPU") + ", one on another device was given");
            held[name] = found->second;
        } else if (inactive && container._is_tensor_constant_or_buffer_type_or_empty_parameter(i)) {
            const auto other = others.find(said);
            if (other != others.end()) held[name] = other->second;
        }
    }
    for (auto& [name, handle] : held) AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_new_tensor_handle(handle, &handle));
    container.update_constant_buffer(std::move(held), inactive, false);
    return AOTI_RUNTIME_SUCCESS;
}
"""
_packs_weights = contextvars.ContextVar("packs_weights", default=True)
_FORMATS = (torch.contiguous_format, torch.preserve_format, torch.channels_last, torch.channels_last_3d)  # c10's numbers


@functools.cache
def register_interface():
    """What a package is told of the card, both where it is made and where it is loaded."""
    from torch._dynamo.device_interface import register_interface_for_device

    from ._inductor import Interface

    register_interface_for_device("rdna", Interface)


def _said(arg, kind, tensors, sizes):
    """An argument as csrc/aoti.cpp reads it; its tensors and sizes, as C++, are added to what each call gives."""
    if isinstance(kind, torch.OptionalType):
        return None if arg is None else _said(arg, kind.getElementType(), tensors, sizes)
    if arg is None:
        return None
    if isinstance(kind, torch.TensorType) and not hasattr(arg, "codegen_reference"):
        return ("number", _said(arg, torch.NumberType.get(), tensors, sizes))  # as Python's numbers are
    if isinstance(arg, (list, tuple)):
        return ("list", [_said(part, kind.getElementType(), tensors, sizes) for part in arg])
    if isinstance(arg, torch.device):
        return ("device",) if arg.type in types else ("host",)
    if isinstance(arg, torch.dtype):
        return ("type", torch.empty(0, dtype=arg))
    if isinstance(arg, torch.memory_format):
        return _FORMATS.index(arg)
    if arg is torch.strided:
        return 0
    if isinstance(arg, (torch.SymInt, torch.SymFloat)):
        arg = arg.node.expr
    if isinstance(arg, (sympy.Integer, sympy.Float)):
        arg = arg.__int__() if isinstance(arg, sympy.Integer) else float(arg)
    if isinstance(arg, sympy.Expr):
        from torch._inductor.codegen.cpp_utils import cexpr

        if arg.is_integer is not True:  # sizes are passed as int64
            raise NotImplementedError(f"a package for rdna cannot hold a number that follows from sizes and is not whole: {arg}; "
                                      "compute it with a tensor, or export with sizes that do not change")
        sizes.append(cexpr(arg))
        return ("size",)
    if isinstance(arg, (bool, int, float, complex, str)):
        return arg
    if hasattr(arg, "codegen_reference"):
        tensors.append(arg.codegen_reference())
        return ("tensor",)
    raise NotImplementedError(f"a package for rdna cannot hold an argument of {type(arg).__name__}: {arg}")


@functools.cache
def _wrapper():
    from torch._inductor import ir
    from torch._inductor.codegen.cpp_wrapper_cpu import CppWrapperCpu
    from torch._inductor.runtime.cache_dir_utils import cache_dir
    from torch._inductor.virtualized import V

    class CppWrapper(CppWrapperCpu):
        """The library's source."""

        def __init__(self):
            self.device = "rdna"
            self.steps = []
            super().__init__()

        @staticmethod
        def create(is_subgraph, subgraph_name, parent_wrapper, partition_signatures=None):
            if is_subgraph:  # its steps would have the numbers of the whole's
                raise NotImplementedError("a package for rdna cannot have regions that are compiled once for several calls; "
                                          "leave out torch.compiler.nested_compile_region")
            return CppWrapper()

        @staticmethod
        def get_device_include_path_aot(device):
            return "#include <torch/csrc/inductor/aoti_include/cpu.h>"  # the host's functions

        def generate_fallback_kernel(self, node):
            self.call(node.op_overload, node.export_extern_kernel_node(), node.outputs or node.mutation_outputs)

        def generate_fallback_kernel_with_runtime_lookup(self, buf_name, python_kernel_name, get_args, op_overload, raw_args, outputs):
            self.call(op_overload, raw_args, outputs)

        def call(self, op, args, outputs):
            V.extern_kernel_nodes.clear()  # of PyTorch's own executor
            tensors, sizes, taken = [], [], []
            said = [_said(arg, given.real_type, tensors, sizes) for arg, given in zip(args, op._schema.arguments, strict=True)]

            def results(parts):
                for part in parts:
                    if isinstance(part, (list, tuple)):
                        results(part)
                        continue
                    takes = part is not None and not isinstance(part, (ir.MutationOutput, int))
                    taken.append(takes)
                    if takes:
                        name = part.get_name()
                        self.writeline(f"AtenTensorHandle {name}_handle;")
                        self.writeline(f"AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_new_uninitialized_tensor(&{name}_handle));")
                        self.writeline(f"RAIIAtenTensorHandle {name}({name}_handle);")
                        tensors.append(name)

            results(outputs)
            self.steps.append((op._schema.name, op._schema.overload_name, said, taken))
            numbers = self._generate_temporary_array_pointer("int64_t", sizes, force_mutable=True)
            handles = self._generate_temporary_array_pointer("AtenTensorHandle", tensors, force_mutable=True)
            self.writeline(f"AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_proxy_executor_call_function(proxy_executor, {len(self.steps) - 1}, "
                           f"{len(sizes)}, {numbers}, {len(tensors)}, {handles}));")

        def codegen_model_constructor(self):
            super().codegen_model_constructor()
            graph = V.graph
            names = graph.constants if _packs_weights.get() else ()
            constants = {name: graph.get_original_value_of_constant(name) for name in names}
            weights = {name: (value.detach().cpu(), is_ours(value.device)) for name, value in constants.items()}
            folder = os.path.join(cache_dir(), "rdna")
            os.makedirs(folder, exist_ok=True)
            with tempfile.NamedTemporaryFile(suffix=".rdna", dir=folder, delete=False) as file:
                torch.save((self.steps, weights), file)
            self.additional_files.append(file.name)
            ours = ", ".join("true" if is_ours(graph.get_original_value_of_constant(name).device) else "false" for name in graph.constants)
            self.prefix.splice(HOLD_WEIGHTS.replace("OURS", ours or "true"))  # an array has at least one element

    return CppWrapper


@functools.cache
def _scheduling():
    from torch._inductor.scheduler import BaseScheduling

    class Scheduling(BaseScheduling):
        """Of operators alone, which Inductor puts in order itself."""

        def can_fuse_vertical(self, node1, node2):
            return False

        can_fuse_horizontal = can_fuse_vertical

        def group_fn(self, sizes):
            return tuple(map(tuple, sizes))

        def codegen_node(self, node):
            raise NotImplementedError(f"Inductor has code of its own in mind for {node.get_name()} of {node.get_origins()}; "
                                      "packages for rdna call operators alone")

        def codegen_sync(self):
            pass

        flush = codegen_sync

    return Scheduling


def _has_no_shim(record):
    """False for the warning that operators are called by PyTorch's slower way, which is not used here."""
    return "missing a c-shim" not in str(record.msg)


@contextlib.contextmanager
def _registered():
    """Inductor asks this file about rdna. Where torch.compile has Triton's answers registered, they are back afterwards."""
    from torch._inductor.codegen import common, cpp_utils, wrapper

    from ._inductor import overrides

    common.init_backend_registration()
    register_interface()
    cpp_utils.DEVICE_TO_ATEN["rdna"] = "at::kPrivateUse1"
    common.register_device_op_overrides("rdna", overrides())
    quiet = logging.getLogger("torch._inductor.ir")
    quiet.addFilter(_has_no_shim)
    tables = common.device_codegens, common.custom_backend_passes, common.custom_backend_codegen_configs
    before = [table.get("rdna") for table in tables]
    common.register_backend_for_device("rdna", _scheduling(), wrapper.PythonWrapperCodegen, _wrapper())
    try:
        yield
    finally:
        quiet.removeFilter(_has_no_shim)
        for table, value in zip(tables, before):
            table["rdna"] = value
            if value is None:
                del table["rdna"]


def _prepared(gm):
    """The graph with rdna's fused operators, and without what Inductor has no operator for."""
    _compile.fuse(gm)
    for node in gm.graph.nodes:
        if node.target is _compile.as_traced:  # sizes and strides are the traced ones here
            node.replace_all_uses_with(node.args[0])
            gm.graph.erase_node(node)
        elif node.target is torch.ops.aten.lift_fresh_copy.default:
            node.target = torch.ops.aten.clone.default
    gm.graph.lint()
    gm.recompile()


def torch__inductor_compile_fx(module):
    """compile_fx_aot of a program with tensors of rdna."""
    plain = module.compile_fx_aot

    @functools.wraps(plain)
    def compile_fx_aot(model_, example_inputs_, inner_compile=module.compile_fx_inner, config_patches=None):
        tensors = (*model_.parameters(), *model_.buffers(), *(t for t in example_inputs_ if isinstance(t, torch.Tensor)))
        if not any(is_ours(t.device) for t in tensors):
            return plain(model_, example_inputs_, inner_compile, config_patches)
        given = dict(config_patches or {})
        if not given.get("aot_inductor.package"):
            raise RuntimeError("programs for rdna are loaded from packages: call torch._inductor.aoti_compile_and_package, "
                               "or give aot_compile the option 'aot_inductor.package': True and pack its files with package_aoti")

        def inner(gm, inputs, **options):
            _prepared(gm)
            return inner_compile(gm, inputs, **options)

        packs = _packs_weights.set(given.get("aot_inductor.package_constants_in_so", True))
        try:
            with _registered():
                return plain(model_, example_inputs_, inner, {**given, **WITHOUT_KERNELS})
        finally:
            _packs_weights.reset(packs)

    module.compile_fx_aot = compile_fx_aot


def _load_constants(plain):
    """Other weights are the model's as they are, on the device: PyTorch would copy them into memory of the host."""

    @functools.wraps(plain)
    def load_constants(self, constants_map, *, check_full_update, user_managed=False, allow_h2d_copy=False):
        if self.get_metadata().get("AOTI_DEVICE_KEY") == "rdna" and not user_managed:
            constants_map = {name: t.detach().clone() if is_ours(t.device) or not allow_h2d_copy else t.to("rdna") for name, t in constants_map.items()}
            user_managed, allow_h2d_copy = True, False
        plain(self, constants_map, check_full_update=check_full_update, user_managed=user_managed, allow_h2d_copy=allow_h2d_copy)

    return load_constants


def torch_export_pt2_archive__package(module):
    """PyTorch's loader compares the card with that of the package."""
    module.AOTICompiledModel.load_constants = _load_constants(module.AOTICompiledModel.load_constants)
    plain = module._load_aoti

    @functools.wraps(plain)
    def _load_aoti(*args, **kwargs):
        register_interface()
        return plain(*args, **kwargs)

    module._load_aoti = _load_aoti

"""bitsandbytes on rdna: its own kernels in Triton, which it has for Intel's cards, on GPUs where Triton is installed. Its
other operators are formulas in PyTorch for every device, and so are all of them on the host."""

from . import _triton

_IN_TRITON = ("quantize_blockwise", "dequantize_blockwise", "dequantize_blockwise.out", "quantize_4bit", "dequantize_4bit",
              "dequantize_4bit.out", "gemv_4bit", "optimizer_update_8bit_blockwise", "optimizer_update_32bit")  # fmt: skip


def bitsandbytes(module):
    module.supported_torch_devices.add("rdna")  # what transformers asks before it quantizes
    if not _triton.usable():
        return
    from bitsandbytes._ops import register_kernel
    from bitsandbytes.backends.triton import ops

    for name in _IN_TRITON:
        register_kernel(f"bitsandbytes::{name}", "rdna")(getattr(ops, name.replace(".out", "_inplace")))

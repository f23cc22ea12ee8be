"""torch.rdna.FloatTensor and its like: the names that x.type() gives, to make tensors and to ask what they are."""

import torch

_TYPES = {
    "BFloat16": torch.bfloat16,
    "Bool": torch.bool,
    "Byte": torch.uint8,
    "Char": torch.int8,
    "Double": torch.float64,
    "Float": torch.float32,
    "Half": torch.float16,
    "Int": torch.int32,
    "Long": torch.int64,
    "Short": torch.int16,
}


class _Type(type):
    def __instancecheck__(cls, value):
        return (
            isinstance(value, torch.Tensor)
            and value.is_rdna
            and value.dtype == cls.dtype
            and value.layout == cls.layout
        )

    def __call__(cls, *arguments):
        if cls.layout == torch.sparse_coo:
            return torch.sparse_coo_tensor(*arguments, dtype=cls.dtype, device="rdna")
        if len(arguments) == 1 and not isinstance(arguments[0], (int, torch.Size)):
            return torch.as_tensor(arguments[0], dtype=cls.dtype, device="rdna").clone()
        return torch.empty(*arguments or (0,), dtype=cls.dtype, device="rdna")


def _make(name, dtype, layout, module):
    made = _Type(name, (), {"__doc__": f"Tensors of {dtype} on rdna.", "dtype": dtype, "layout": layout})
    made.__module__ = module
    return made


def add_types(names, module, layout=torch.strided):
    """Puts a type for each kind of number into |names|."""
    for kind, dtype in _TYPES.items():
        names[f"{kind}Tensor"] = _make(f"{kind}Tensor", dtype, layout, module)

"""Which operators PyTorch has a kernel for CUDA of and rdna none, by PyTorch's own tables: python cuda_gaps.py

The tables are those that PyTorch is generated from, which every build of it brings along: none for CUDA is needed, nor a GPU.
It fails on one that cuda_gaps.txt does not name, and on one named there that is not missing. Operators that PyTorch makes of
others count as there, and so do the forms of an operator whose out= is ours."""

import pathlib
import sys

import torch

LIST = pathlib.Path(__file__).with_name("cuda_gaps.txt")
RELEASE = "2.13"  # that the list is of
MADE = ("CompositeImplicitAutograd", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional")


def listed():
    return [line for line in LIST.read_text().splitlines() if line and not line.startswith("#")]


def has(name, key):
    return torch._C._dispatch_has_kernel_for_dispatch_key("aten::" + name, key)


def of_cuda():
    """The operators that PyTorch's tables name a kernel for CUDA of."""
    import torchgen.gen
    from torchgen.model import DispatchKey

    tables = pathlib.Path(torchgen.gen.__file__).parent / "packaged" / "ATen" / "native"
    parsed = torchgen.gen.parse_native_yaml(str(tables / "native_functions.yaml"), str(tables / "tags.yaml"))
    return {str(name) for name in parsed.backend_indices[DispatchKey.CUDA].index}


def missing():
    there = set(torch._C._dispatch_get_all_op_names())
    names = [n for n in of_cuda() if f"aten::{n}" in there]
    return sorted(n for n in names if not has(n, "PrivateUse1") and not any(has(n, key) for key in MADE))


def main():
    if not hasattr(torch, "rdna"):
        import torch_rdna  # noqa: F401
    here, named = set(missing()), set(listed())
    for word, names in (("not named in cuda_gaps.txt", here - named), ("named in cuda_gaps.txt and there", named - here)):
        for name in sorted(names):
            print(f"{name}: {word}")
    print(f"{len(here)} operators have a kernel for CUDA and none for rdna, {len(named)} are named")
    sys.exit(here != named)


if __name__ == "__main__":
    main()

"""Which operators PyTorch has a kernel for CUDA of and rdna none, by PyTorch's own tables: python cuda_gaps.py

Wants a PyTorch that was built with CUDA; no GPU is used. It fails on one that cuda_gaps.txt does not name, and on one
named there that is not missing. Operators that PyTorch makes of others count as there, and so do the forms of an operator
whose out= is ours."""

import pathlib
import sys

import torch

LIST = pathlib.Path(__file__).with_name("cuda_gaps.txt")


def listed():
    return [line for line in LIST.read_text().splitlines() if line and not line.startswith("#")]


def has(name, key):
    return torch._C._dispatch_has_kernel_for_dispatch_key("aten::" + name, key)


def missing():
    names = [n[len("aten::"):] for n in torch._C._dispatch_get_all_op_names() if n.startswith("aten::")]
    made = ("CompositeImplicitAutograd", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional")
    return sorted(n for n in names if has(n, "CUDA") and not has(n, "PrivateUse1") and not any(has(n, key) for key in made))


def main():
    if not hasattr(torch, "rdna"):
        import torch_rdna  # noqa: F401
    if not has("_cudnn_rnn", "CUDA"):
        sys.exit("cuda_gaps.py: this PyTorch was built without CUDA, whose operators it is to compare with")
    here, named = set(missing()), set(listed())
    for word, names in (("not named in cuda_gaps.txt", here - named), ("named in cuda_gaps.txt and there", named - here)):
        for name in sorted(names):
            print(f"{name}: {word}")
    print(f"{len(here)} operators have a kernel for CUDA and none for rdna, {len(named)} are named")
    sys.exit(here != named)


if __name__ == "__main__":
    main()

"""Runs programs that say "cuda" on rdna's devices, unchanged:

    python -m torch_rdna.as_cuda train.py --device cuda     a program
    python -m torch_rdna.as_cuda -m package.program         a module
    RDNA_AS_CUDA=1 torchrun train.py                        where another program starts it
    import torch_rdna.as_cuda                               the first line of one's own

docs/from-cuda.md says what works so, and what cannot.
"""

import os
import runpy
import sys

from . import _as_cuda

_as_cuda.register()


def main(arguments):
    module = arguments[:1] == ["-m"]
    if not arguments[module:]:
        sys.exit("python -m torch_rdna.as_cuda [-m MODULE | SCRIPT.py] [ARGUMENTS…]: nothing to run was named")
    os.environ["RDNA_AS_CUDA"] = "1"  # for the processes that it starts
    sys.argv = arguments[module:]
    if module:
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
        runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])

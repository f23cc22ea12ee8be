import os
import sys

os.environ.setdefault("RDNA_DRIVER", "host")
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import torch  # noqa: E402

if not hasattr(torch, "rdna"):  # a build folder on PYTHONPATH has no entry point
    import torch_rdna  # noqa: E402,F401

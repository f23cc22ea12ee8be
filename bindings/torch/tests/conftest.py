import os
import sys

os.environ.setdefault("RDNA_DRIVER", "host")
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import pytest  # noqa: E402
import torch  # noqa: E402

if not hasattr(torch, "rdna"):  # a build folder on PYTHONPATH has no entry point
    import torch_rdna  # noqa: E402,F401


@pytest.fixture
def nothing_falls_back():
    """A fallback raises; with the same random numbers for each test."""
    before = torch.rdna.fallback_mode()
    torch.rdna.set_fallback_mode("error")
    torch.manual_seed(0)
    yield
    torch.rdna.set_fallback_mode(before)

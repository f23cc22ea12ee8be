"""torch.rdna, where it can be had, and why it cannot."""

import sys

import torch


def plugin():
    """(torch.rdna, None), or (None, the reason)."""
    try:
        import torch_rdna  # noqa: F401  which `import torch` has done already where the package is installed
    except ImportError as error:
        return None, f"PyTorch's plugin for rdna is not there: {error}"
    return torch.rdna, None


def is_ours(device):
    """Whether |device| is one of rdna's, also in programs that call it "cuda"."""
    there = sys.modules.get("torch_rdna._device")
    return there is not None and there.is_ours(device)


def devices():
    """(torch.rdna, None) if it has a device, or (None, the reason)."""
    rdna, reason = plugin()
    if rdna is not None and not rdna.is_available():
        return None, f"no device was found: {rdna._C.unavailable()}"
    return rdna, reason

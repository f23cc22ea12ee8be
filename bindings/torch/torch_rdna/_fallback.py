"""Operators that ran on the CPU because rdna has no kernel for them."""

from . import _C


def fallback_report():
    """{"aten::fmod.Tensor_out": times} since the start or the last reset, most often first."""
    return dict(sorted(_C.fallback_counts().items(), key=lambda item: (-item[1], item[0])))


def reset_fallback_report():
    _C.reset_fallback_counts()


def fallback_mode():
    return _C.fallback_mode()


def set_fallback_mode(mode):
    """"allow" runs them silently, "warn" says each once, "error" raises NotImplementedError. RDNA_FALLBACK sets the
    mode at the start."""
    _C.set_fallback_mode(mode)

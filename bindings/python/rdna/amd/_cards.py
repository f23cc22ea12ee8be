"""What a card is able to do, by the name of its target."""

from .config import AMDArchitecture

# Source: AMD's instruction set guides: MFMA in gfx908, gfx90a, gfx94x and gfx95x, WMMA in gfx11 and gfx12.
_MFMA_OR_WMMA = ("gfx908", "gfx90a", "gfx94", "gfx95", "gfx11", "gfx12")


def has_matrix_cores(target):
    """Of "gfx1100" and its like, and of "sm_90": NVIDIA's have them from compute capability 7.0 on."""
    if target.startswith("sm_"):
        return int(target[3:].rstrip("af")) >= 70
    return target.startswith(_MFMA_OR_WMMA)


# The same guides: 8-bit floats in the matrix units of gfx94x, gfx95x and gfx12.
_FLOAT8 = ("gfx94", "gfx95", "gfx12")


def has_float8(card):
    """Whether the matrix units of |card|, its properties, take 8-bit floats: NVIDIA's do from compute capability 8.9 on. The
    host, which has no such units, is asked for results and not for speed."""
    if card.driver == "host":
        return True
    if card.arch.startswith("sm_"):
        return int(card.arch[3:].rstrip("af")) >= 89
    return card.arch.startswith(_FLOAT8)


def architecture_name(target):
    """ "rdna3" of gfx1100; the target itself where it is not AMD's."""
    generation = AMDArchitecture.of(target)
    return generation.value if generation else target

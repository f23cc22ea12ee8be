"""rdna: deep learning on AMD GPUs. This package carries librdna, its kernels and the rdna program."""

import os

__version__ = "0.1.0"

folder = os.path.dirname(os.path.abspath(__file__))


def library():
    """Path of librdna.so."""
    return os.path.join(folder, "lib", "librdna.so.0")


def include():
    """Folder to which #include "rdna/op.h" is relative."""
    return os.path.join(folder, "include")


def program():
    """Path of the rdna program."""
    return os.path.join(folder, "bin", "rdna")


def main():
    """The command `rdna`."""
    import sys

    os.execv(program(), [program(), *sys.argv[1:]])

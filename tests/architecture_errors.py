"""How far rdna's logits of a model are from those that a reference in float64 has.

For machines without PyTorch: tests/architectures_test.py --write FOLDER writes models and logits, and there
tests/architecture_errors.py FOLDER makes rdna's and prints the table, on the device that RDNA_TEST_DEVICE names.
"""
import pathlib
import sys
import time

import numpy as np

import rdna_program  # first: it makes tools/ importable
from logits_test import logits_of, relative_squared_error

# All sums are of f32: relative errors of 1e-7 each, of 1e-6 in the logits, squared. A cache of f16 rounds to 2^-11.
BOUND, F16_BOUND = 1e-11, 1e-5
HEAD = (f"{'row':40} {'one pass':>9} {'by token':>9} {'passes of 7':>11} {'f16 cache':>10} {'reference f32':>13} "
        f"{'seconds':>8}")


class Errors:
    """rdna's in one pass, token by token and in passes of 7, and with a cache of f16 in one pass and token by token."""

    def __init__(self, path, tokens, want, f32):
        start = time.monotonic()
        self.path, self.tokens, self.want, self.f32 = path, tokens, want, f32  # f32: the reference's own error in f32
        self.with_f32 = [self.error("--kv", "f32", *passes) for passes in ((), ("--batch", 1), ("--batch", 7))]
        self.with_f16 = [self.error("--kv", "f16", *passes) for passes in ((), ("--batch", 1))]
        self.seconds = time.monotonic() - start

    def error(self, *options):
        return relative_squared_error(logits_of(self.path, self.tokens, *options), self.want)

    def wrong(self):
        bound = max(BOUND, 4 * self.f32)
        return [f"{error:.1e} is above {bound:.1e}" for error in self.with_f32 if not error <= bound] + [
            f"{error:.1e} with f16 is above {F16_BOUND}" for error in self.with_f16 if not error <= F16_BOUND]

    def line(self, name):
        one, token, seven = self.with_f32
        return (f"{name:40} {one:9.1e} {token:9.1e} {seven:11.1e} {max(self.with_f16):10.1e} {self.f32:13.1e} "
                f"{self.seconds:8.2f}")


def refusal(name, error):
    """A line for a model that rdna did not run: what it said."""
    return f"{name:40} {str(error).rpartition('rdna: ')[2].strip()[:80]}"


def main(folder):
    failed = 0
    print(HEAD)
    for path in sorted(pathlib.Path(folder).glob("*.npz")):
        made = np.load(path)
        try:
            errors = Errors(path.with_suffix(".gguf"), made["tokens"].tolist(), made["want"], float(made["f32"]))
        except AssertionError as error:
            print(refusal(path.stem, error))
            failed = 1
            continue
        print(errors.line(path.stem), "; ".join(errors.wrong()), flush=True)
        failed |= bool(errors.wrong())
    return failed


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: tests/architecture_errors.py FOLDER")
    raise SystemExit(main(sys.argv[1]))

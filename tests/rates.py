"""Whether rates that `rdna bench --json` reports can be: a unit or a clock that is wrong by a thousand shows.

    rdna bench --json | python3 rates.py     prints them, and fails with a sentence for each that cannot be
"""
import json
import math
import sys

# What no machine does: the memory of processors moves below 1 TB/s, that of the fastest cards below 10, their caches
# about twice that; and matrix units do no more than 4 PFLOP/s.
MOST_GB_PER_SECOND = {"host": 2000, "cuda": 20000, "hip": 20000}
MOST_GFLOP_PER_SECOND = 4e6


def operator(row, most):
    name = f"{row['op']} {row['dtype']}"
    rate, milliseconds = row["gb_per_second"], row["milliseconds"]
    if not (math.isfinite(milliseconds) and milliseconds > 0):
        yield f"{name}: it took {milliseconds} ms"
    elif not math.isclose(rate, row["bytes"] / milliseconds * 1e-6, rel_tol=1e-3):
        yield f"{name}: {row['bytes']:.0f} bytes in {milliseconds} ms are not {rate} GB/s"
    elif milliseconds > 1e5 or not 0 < rate < most:
        yield f"{name}: {rate} GB/s in {milliseconds} ms cannot be"
    elif row["gflop_per_second"] > MOST_GFLOP_PER_SECOND:
        yield f"{name}: {row['gflop_per_second']} GFLOP/s cannot be"


def model(row, most):
    prompt, decode, rate = (row[key] for key in ("prompt_tokens_per_second", "decode_tokens_per_second",
                                                 "decode_gb_per_second"))
    if not 0 < 2e-9 * row["parameters"] * prompt < MOST_GFLOP_PER_SECOND:
        yield f"{row['parameters']} parameters at {prompt} tokens/s of a prompt cannot be"
    if not 0 < rate < most:
        yield f"decoding at {rate} GB/s cannot be"
    # its weights and no more than as much again of its cache
    if not 1 <= rate * 1e9 / (row["weight_bytes_per_token"] * decode) < 2:
        yield f"{decode} tokens/s of {row['weight_bytes_per_token']} bytes each are not {rate} GB/s"


def impossible(report, wall_seconds=None):
    """A sentence for each rate that cannot be. |wall_seconds| is how long the whole measurement took."""
    most = MOST_GB_PER_SECOND[report["driver"]]
    if not report["results"]:
        yield "nothing was measured"
    for row in report["results"]:
        yield from (operator if "op" in row else model)(row, most)
        if wall_seconds is not None and row.get("milliseconds", 0) > wall_seconds * 1000:
            yield f"{row['op']}: {row['milliseconds']} ms, of {wall_seconds} s that everything took"


if __name__ == "__main__":
    report = json.load(sys.stdin)
    for row in report["results"]:
        if "op" in row:
            print(f"{row['op']:24} {row['dtype']:6} {row['milliseconds']:10.4f} ms {row['gb_per_second']:9.1f} GB/s "
                  f"{row['share_of_copy']:6.1%} of a copy {row['gflop_per_second']:11.1f} GFLOP/s")
        else:
            print(f"prompt {row['prompt_tokens_per_second']:.1f} tokens/s, decode "
                  f"{row['decode_tokens_per_second']:.1f} tokens/s, {row['decode_gb_per_second']:.1f} GB/s")
    sentences = list(impossible(report))
    sys.exit("\n".join(sentences) if sentences else 0)

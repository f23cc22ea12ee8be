"""torch.utils.collect_env: what bug reports say of the machine, with rdna's cards."""

import atexit
import sys

import torch

from ._libraries import replace


def text():
    """Lines in the manner of collect_env's own."""
    lines = [f"Is rdna available: {torch.rdna.is_available()}"]
    try:
        for i in range(torch.rdna.device_count()):
            p = torch.rdna.get_device_properties(i)
            lines.append(f"rdna {i}: {p.name}, {p.arch}, driver {p.driver}, {p.total_memory / 2**30:.1f} GiB")
    except RuntimeError as error:  # a report of what is wrong must not stop at it
        lines.append(f"rdna: {str(error).splitlines()[0]}")
    return "\n".join(lines)


def torch_utils_collect_env(module):
    replace(module, "get_pretty_env_info", lambda original: lambda: f"{original()}\n\n{text()}")


def register():
    """As a program (python -m torch.utils.collect_env) the module is run as __main__, after torch: no import sees it."""
    if ["-m", "torch.utils.collect_env"] in [sys.orig_argv[i : i + 2] for i in range(len(sys.orig_argv))]:
        atexit.register(lambda: print("\n" + text()))

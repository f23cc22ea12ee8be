"""RDNA_PROFILE: a file for Chrome of all that the program ran, which `rdna profile` asks for."""

import atexit
import os
import sys

import torch

from . import _C


def _place(path):
    """|path|, or beside it if another process has written that."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    except FileExistsError:
        return f"{path}.{os.getpid()}"
    return path


def _end(recorder, path, process):
    if os.getpid() != process:  # a fork, whose recorder is its parent's
        return
    for number in range(_C.device_count()):
        if _C.is_open(number):
            _C.synchronize(number)
    recorder.stop()
    try:
        recorder.export_chrome_trace(_place(path))
    except (OSError, RuntimeError) as error:
        print(f"rdna: RDNA_PROFILE={path} could not be written: {error}", file=sys.stderr)


def register():
    path = os.environ.get("RDNA_PROFILE")
    if not path or _C.device_count() == 0:
        return
    activities = torch.profiler.ProfilerActivity
    recorder = torch.profiler.profile(activities=[activities.CPU, activities.PrivateUse1])
    recorder.start()
    atexit.register(_end, recorder, path, os.getpid())

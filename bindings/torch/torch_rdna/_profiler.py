"""torch.profiler on releases of PyTorch that do not ask devices of this kind whether they can be profiled."""

import torch


def register():
    from torch.autograd import profiler

    activity = torch._C._profiler.ProfilerActivity.PrivateUse1
    supported = profiler._supported_activities
    if activity in supported():
        return
    profiler._supported_activities = torch.autograd._supported_activities = lambda: {*supported(), activity}

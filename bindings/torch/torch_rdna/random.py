"""Random numbers: a Philox sequence for each device, given by a seed and an offset."""

import torch

from . import _C
from ._device import _index


class _Generators:
    """default_generators[i] is the generator that device i uses when none is given."""

    def __getitem__(self, index):
        if not 0 <= index < len(self):
            raise IndexError(f"rdna:{index} does not exist; there are {len(self)} devices")
        return _C.default_generator(index)

    def __len__(self):
        return _C.device_count()


default_generators = _Generators()


def get_rng_state(device="rdna"):
    return default_generators[_index(device)].get_state()


def get_rng_state_all():
    return [get_rng_state(i) for i in range(len(default_generators))]


def set_rng_state(new_state, device="rdna"):
    default_generators[_index(device)].set_state(new_state)


def set_rng_state_all(new_states):
    for i, state in enumerate(new_states):
        set_rng_state(state, i)


def manual_seed(seed):
    """Seeds the current device. Without a device it does nothing, so that torch.manual_seed always works."""
    if len(default_generators):
        default_generators[_C.current_device()].manual_seed(int(seed))


def manual_seed_all(seed):
    for i in range(len(default_generators)):
        default_generators[i].manual_seed(int(seed))


def seed():
    """A seed that nobody chose, for the current device."""
    return default_generators[_C.current_device()].seed()


def seed_all():
    value = torch.Generator().seed()
    manual_seed_all(value)
    return value


def initial_seed():
    return default_generators[_C.current_device()].initial_seed()

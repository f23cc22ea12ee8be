"""gpu_operators.txt says of each operator that TensorFlow has for GPUs whether it is here, and why not; it must be so."""

import collections
import pathlib

import pytest
import tensorflow as tf
import tf_rdna
from tensorflow.python.framework import kernels

pytestmark = pytest.mark.skipif(not tf.__version__.startswith("2.21."), reason="the list is of TensorFlow 2.21's wheel")

LINES = [line.split() for line in (pathlib.Path(__file__).parent / "gpu_operators.txt").read_text().splitlines()]
REASONS = {words[1] for words in LINES if words[:1] == ["#reason"]}
STATES = [words for words in LINES if words and not words[0].startswith("#")]
NATIVE = {name for name, state, *_ in STATES if state in ("native", "more")}


def kernels_by_device():
    found = collections.defaultdict(set)
    for kernel in kernels.get_all_registered_kernels().kernel:
        found[kernel.op].add(kernel.device_type)
    return found


def test_every_state_is_true():
    devices, wrong = kernels_by_device(), []
    for name, state, *reason in STATES:
        here, everywhere = "RDNA" in devices[name], "DEFAULT" in devices[name]
        expected = "native" if here else "tensorflow" if everywhere else "gap"
        if state != expected and (state, expected) != ("more", "native"):
            wrong.append(f"{name} is {expected}, not {state}")
        if (state == "gap") != (len(reason) == 1) or not set(reason) <= REASONS:
            wrong.append(f"{name}: a gap has one of the reasons above, another state none")
    assert not wrong, "\n".join(wrong)


def test_nothing_is_missing_or_named_twice():
    names = [name for name, *_ in STATES]
    assert len(names) == len(set(names))
    assert REASONS == {reason[0] for _, _, *reason in STATES if reason}
    here = {name for name, devices in kernels_by_device().items() if "RDNA" in devices}
    assert here == NATIVE and set(tf_rdna.operators()) <= NATIVE
    assert sum(state != "more" for _, state, *_ in STATES) == 710  # in the wheel of TensorFlow 2.21.0
    assert sum(state == "native" for _, state, *_ in STATES) >= 250

"""The finder by which libraries learn of rdna, with libraries that do not know it: tests/libraries.py has real ones."""

import os
import subprocess
import sys
import textwrap

import pytest
import safetensors.torch
import torch

LOAD = """
import sys
import torch
if not hasattr(torch, "rdna"):
    import torch_rdna
assert not {"transformers", "lightning"} & set(sys.modules)  # never by us
"""


def python(program, folder, **environment):
    path = os.pathsep.join([str(folder), *filter(None, sys.path)])
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={**os.environ, "PYTHONPATH": path, **environment}, capture_output=True, text=True,
    )  # fmt: skip


@pytest.fixture
def library(tmp_path):
    """A library named accelerate, of which one module takes the other's function by name."""
    folder = tmp_path / "accelerate"
    (folder / "utils").mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "utils" / "modeling.py").write_text(
        "def get_max_memory(max_memory=None):\n    return {'cpu': 1}\n"
        "def get_grad_scaler(distributed_type=None, **named):\n    return None\n"
    )
    (folder / "utils" / "__init__.py").write_text("from .modeling import get_max_memory as memory\n")
    (folder / "state.py").write_text("class Renamed:\n    pass\n")
    return tmp_path


@pytest.mark.parametrize("before", ["", "import accelerate.utils"])
def test_names_that_were_taken_are_replaced_too(library, before):
    after = "from accelerate.utils import memory; assert sorted(map(str, memory())) == ['0', 'cpu'], memory()"
    done = python(before + LOAD + after, library)
    assert done.returncode == 0, done.stderr


def test_another_release_runs_as_it_did(library):
    done = python(LOAD + "import accelerate.state; accelerate.state.Renamed", library)
    assert done.returncode == 0 and "accelerate.state did not learn of device 'rdna'" in done.stderr, done.stderr


@pytest.mark.parametrize("switch", ["0", "1"])
def test_switch(switch, library):
    bf16 = "from transformers.utils import is_torch_bf16_gpu_available as there; print(there())"
    memory = "from accelerate.utils import memory; print(0 in memory())"
    for program, folder in ((bf16, library.parent), (memory, library)):
        done = python(LOAD + program, folder, RDNA_LIBRARIES=switch)
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() == str(switch == "1")


@pytest.mark.parametrize("device", ["rdna", "rdna:0", torch.device("rdna"), 0])
def test_safetensors(device, tmp_path):
    saved = {"a": torch.randn(3, 4), "b": torch.arange(5), "c": torch.randn(2).bfloat16()}
    safetensors.torch.save_file({k: v.to("rdna") for k, v in saved.items()}, tmp_path / "x.safetensors")
    back = safetensors.torch.load_file(tmp_path / "x.safetensors", device=device)
    for name, value in saved.items():
        assert back[name].device.type == "rdna" and torch.equal(back[name].cpu(), value)
    module = torch.nn.Linear(4, 3).to("rdna")
    safetensors.torch.save_model(module, tmp_path / "m.safetensors")
    other = torch.nn.Linear(4, 3).to("rdna")
    safetensors.torch.load_model(other, tmp_path / "m.safetensors", device=device)
    assert torch.equal(other.weight, module.weight)

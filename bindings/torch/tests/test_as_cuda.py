"""python -m torch_rdna.as_cuda: programs that say "cuda" run on rdna unchanged, with the CPU's losses."""

import json
import os
import subprocess
import sys

import as_cuda
import pytest
import torch

# Relative, of a loss: f32 through a few dozen steps; the programs that compute in f16 and bf16 round each product to these.
TOLERANCE = {"mixed_precision": 4 * 2**-10, "gpt": 4 * 2**-8}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("as_cuda")
    torch.save({"x": torch.arange(3.0, device="rdna")}, path / "rdna.pt")
    return path


@pytest.fixture(scope="module")
def results(folder):
    command = [sys.executable, "-m", "torch_rdna.as_cuda", as_cuda.__file__, str(folder)]
    path = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "results.json").read_text())


@pytest.mark.parametrize("name", as_cuda.PROGRAMS)
def test_program(name, results, monkeypatch):
    assert "error" not in results[name], results[name]["error"]
    assert results[name]["result"]["where"] in (["cuda"], ["cuda:0"], ["cuda", "cuda:0"])
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    theirs = as_cuda.run(name)
    assert theirs["where"] == ["cpu"]
    a, b = (torch.tensor(found["losses"], dtype=torch.float64) for found in (results[name]["result"], theirs))
    tolerance = TOLERANCE.get(name, 1e-4)
    torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)
    assert b.max() - b.min() > 10 * tolerance  # a program that learned nothing would show nothing


def test_programs_stay_on_the_device(results):
    assert results["fallbacks"] == {}


@pytest.mark.parametrize("name", as_cuda.CHECKS)
def test_names(name, results):
    assert "error" not in results[name], results[name]["error"]


def test_what_was_saved_on_cuda_is_read(results, folder):
    # The file has CUDA's mark at each tensor: without a word of where to, PyTorch wants CUDA.
    for weights_only in (True, False):
        back = torch.load(folder / "cuda.pt", map_location="rdna", weights_only=weights_only)
        assert back["x"].device.type == back["half"].device.type == "rdna"
        assert back["x"].tolist() == back["half"].tolist() == [0, 1, 2] and back["half"].dtype == torch.float16
        assert back["d"].type == "cuda"  # a device is no tensor: it stays what it was
    if not torch.cuda.is_available():
        with pytest.raises(RuntimeError, match="on a CUDA device but torch.cuda.is_available"):
            torch.load(folder / "cuda.pt")

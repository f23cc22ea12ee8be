"""The benches' own parts: models of the zoo on rdna against float64, sides that die, tables and pictures of what is missing.
All models: tests/nightly.sh models."""
import math
import pathlib
import sys
import xml.etree.ElementTree

import pytest
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bench"))

import calls  # noqa: E402
import check  # noqa: E402
import models  # noqa: E402
import picture  # noqa: E402
import sides  # noqa: E402
import small  # noqa: E402
import where  # noqa: E402
import zoo  # noqa: E402


@pytest.mark.parametrize("mode", ["training", "inference"])
@pytest.mark.parametrize("name", ["neural style, products of channels", "graph attention, scatter", "KAN, splines", "PINN, second derivatives"])
def test_a_model_computes_what_the_cpu_does(name, mode):
    off, allowed = check.off_and_allowed(zoo.MODELS[name], mode, "f32")
    assert off <= allowed


def longer_gradient(module):
    next(module.parameters()).register_hook(lambda slope: slope * 1.02)


def other_weight(module):
    with torch.no_grad():
        next(module.parameters()).mul_(1.0005)


@pytest.mark.parametrize("mode, change", [("training", longer_gradient), ("inference", other_weight)])
def test_a_spoiled_model_is_seen(mode, change):
    off, allowed = check.off_and_allowed(zoo.MODELS["KAN, splines"], mode, "f32", change)
    assert off > allowed


@pytest.mark.parametrize("length", [300, 2 ** 24 + 3, 125018113])
def test_indices_of_a_sample_are_even_and_in_range(length):
    picked = check.spread(length, 256).tolist()
    assert picked[0] == 0 and picked[-1] == length - 1
    assert all(abs(index - i * (length - 1) // 255) <= 1 for i, index in enumerate(picked))


def test_sides_that_die_say_their_last_word():
    assert list(sides.lines("-c", "print('{\"ms\": 2}'); print('no object')")) == [{"ms": 2}]
    assert list(sides.lines("-c", "print('{\"ms\": 2}', flush=True); raise ValueError('broken')")) == [
        {"ms": 2}, {"error": "exit status 1: ValueError: broken"}]
    assert list(sides.lines("-c", "import os; os.kill(os.getpid(), 14)")) == [{"error": "SIGALRM: no word"}]


def test_a_side_goes_on_behind_the_model_that_killed_it(monkeypatch):
    def lines(*command):
        first = int(command[command.index("--first") + 1])
        yield from [{"ms": i} for i in range(first, 4 if first else 1)]
        if not first:
            yield {"error": "SIGSEGV: no word"}
    monkeypatch.setattr(sides, "lines", lines)
    options = type("Options", (), {"tiny": True, "compile": False, "only": "", "losses": 0})
    assert list(models.side(options, "rdna", 4)) == [{"ms": 0}, {"error": "SIGSEGV: no word"}, {"ms": 2}, {"ms": 3}]
    monkeypatch.setattr(sides, "lines", lambda *command: iter([{"error": "exit status 1: no GPU"}]))
    with pytest.raises(SystemExit, match="no GPU"):
        list(models.side(options, "cuda", 4))


@pytest.mark.parametrize("name", ["EfficientNet-B0", "MobileNetV3, channels last", "DeepLab, dilated", "detector of one stage"])
def test_results_of_deep_networks_depend_on_their_input(name):
    work = check.prepared(zoo.MODELS[name], "f32", "inference", "cpu", True)
    module, first = work.module.eval(), work.inputs[0]
    assert check.distance(check.sample(module, (first.flip(0),)), check.sample(module, (first,))) > 0.05


def test_small_operators():
    sides.fallbacks("rdna")  # those of other tests
    assert len(list(small.one("rdna", True))) == len(small.calls("cpu"))
    assert not sides.fallbacks("rdna")


def test_where_a_models_time_goes(capsys):
    step = lambda: torch.ones(1000, device="rdna").mul(3)  # noqa: E731
    kernels = where.kernels_of(step, "rdna")
    assert {count for count, _ in kernels.values()} == {1} and len(kernels) == 2  # the fill and the product
    where.table({"ms": 1.5, "queued": 0.25, "kernels": {"short": [2, 0.25], "long": [1, 0.75], "cut": [1, 0]}}, 2)
    assert capsys.readouterr().out.split() == """a step 1.500 ms, queued in 0.250; 4 kernels of 1.000 ms
        0.750 ms 75.0% 1.0 x 750.0 us long 0.250 ms 25.0% 2.0 x 125.0 us short""".split()
    where.table({"error": "no room"}, 2)
    assert capsys.readouterr().out.strip() == "failed: no room"


def test_means_and_tables_of_one_side_and_of_none_on_the_device(capsys):
    assert sides.geometric_mean([4.0, None, 1.0]) == 2.0
    assert sides.geometric_mean([None]) is None
    sides.table(["one", "two"], {"rdna": [{"ms": 2.0}, {"ms": 4.0}]})
    assert capsys.readouterr().out.endswith("geometric mean of those on the device -\n")
    sides.table(["one", "two"], {"rdna": [{"ms": 2.0, "fallbacks": {"aten::x": 3}}, {"ms": 4.0}], "cuda": [{"ms": 1.0}, {"ms": 2.0}]})
    out = capsys.readouterr().out.splitlines()
    assert "0.50  on the CPU: aten::x" in out[1] and out[-1].endswith(" 0.50")


def test_a_picture_has_a_bar_for_each_ratio():
    text = picture.bars([("a & b", 2.0), ("slow", 0.01), ("failed", None)])
    root = xml.etree.ElementTree.fromstring(text)
    shapes = [node for node in root if node.tag.endswith("rect")][1:]
    assert [shape.get("fill") for shape in shapes] == ["#3b7dbd", "#c0392b"]
    # as far from 1 as the logarithms are
    assert math.isclose(float(shapes[1].get("width")) / float(shapes[0].get("width")), math.log(100) / math.log(2), rel_tol=1e-2)
    assert all(word in text for word in ("a &amp; b", "2.00", "0.01", "none"))


def test_calls_of_many_operators():
    sides.fallbacks("rdna")
    lines = list(calls.measured(rounds=1, repeats=2))
    assert [name for name, *_ in lines] == list(calls.calls("cpu")) and all(ours > 0 and theirs > 0 for _, ours, theirs in lines)
    assert not sides.fallbacks("rdna")

"""torch.export's programs with tensors of rdna, and packages that AOTInductor makes of them, beside float64."""

import io
import os

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from test_device import IMPORT, emulated, run

aoti = pytest.mark.skipif(tuple(map(int, torch.__version__.split(".")[:2])) < (2, 13), reason="packages for rdna need PyTorch 2.13")


class Model(nn.Module):
    """Products, convolutions and norms that fuse, views, several results and lists of them, made tensors, a buffer that counts."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv1d(3, 8, 3, padding=1), nn.BatchNorm1d(8)
        self.rise, self.fall, self.layer = nn.Linear(8, 24), nn.Linear(24, 7), nn.LayerNorm(7)
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))
        self.register_buffer("table", torch.arange(14.0).view(2, 7))
        self.tied = self.rise.weight

    def forward(self, x, scale):
        self.calls.add_(1)
        y = F.relu(self.norm(self.conv(x)))
        left, right = self.fall(F.gelu(self.rise(y.transpose(1, 2)))).split(3, -1)[:2]
        place = torch.arange(x.shape[-1], device=x.device)
        mask = torch.full((x.shape[-1], x.shape[-1]), -torch.inf, device=x.device, dtype=x.dtype).triu(1)
        weights = torch.softmax(left @ right.mT * scale["by"] + mask, -1)
        values, order = (weights @ left).sort(1, descending=True)
        return self.layer(torch.cat([values, right, torch.ones_like(left[..., :1])], -1)) + self.table[1], order, place.to(torch.float32).sum() + x.numel()


def made(seed=0):
    torch.manual_seed(seed)
    model = Model().eval()
    model.norm.running_mean.normal_(), model.norm.running_var.uniform_(0.5, 2)
    return model


def inputs(batch, length=11):
    torch.manual_seed(batch)
    return torch.randn(batch, 3, length), {"by": torch.tensor(0.3)}


def exported(model, x, scale):
    on = (x.to("rdna"), {"by": scale["by"].to("rdna")})
    return torch.export.export(model.to("rdna"), on, dynamic_shapes=({0: torch.export.Dim("batch", min=1, max=64)}, {"by": None}))


def same(found, expected):
    for a, b in zip(found, expected, strict=True):
        if b.is_floating_point():
            assert a.device.type == "rdna"
            torch.testing.assert_close(a.detach().cpu().double(), b.detach().double(), rtol=1e-4, atol=1e-5)
        else:
            assert a.device.type == "rdna" and torch.equal(a.cpu(), b)


@pytest.mark.usefixtures("nothing_falls_back")
def test_an_exported_program_is_saved_and_run(tmp_path):
    model, exact = made(), made().double()
    program = exported(model, *inputs(2))
    file, buffer = tmp_path / "program.pt2", io.BytesIO()
    torch.export.save(program, file)
    torch.export.save(program, buffer)
    buffer.seek(0)
    for loaded in (program, torch.export.load(file), torch.export.load(buffer)):
        assert {t.device.type for t in loaded.state_dict.values()} == {"rdna"}
        for batch in (2, 5, 1):
            x, scale = inputs(batch)
            expected = exact(x.double(), {"by": scale["by"].double()})
            same(loaded.module()(x.to("rdna"), {"by": scale["by"].to("rdna")}), expected)
    with pytest.raises((AssertionError, RuntimeError), match="Guard failed|batch"):
        x, scale = inputs(65)
        program.module()(x.to("rdna"), {"by": scale["by"].to("rdna")})


@pytest.mark.usefixtures("nothing_falls_back")
def test_an_exported_program_with_gradients_and_lower_operators():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 7), nn.LayerNorm(7), nn.SiLU(), nn.Linear(7, 3))
    exact = nn.Sequential(nn.Linear(5, 7), nn.LayerNorm(7), nn.SiLU(), nn.Linear(7, 3)).double()
    exact.load_state_dict(model.state_dict())
    x = torch.randn(4, 5)
    program = torch.export.export(model.to("rdna"), (x.to("rdna"),))
    for one in (program, program.run_decompositions()):
        module = one.module()
        for m, t in ((module, x.to("rdna")), (exact, x.double())):
            m.zero_grad()
            m(t).square().sum().backward()
        for p, q in zip(module.parameters(), exact.parameters(), strict=True):
            torch.testing.assert_close(p.grad.cpu().double(), q.grad, rtol=1e-4, atol=1e-5)


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    path = tmp_path_factory.mktemp("package") / "model.pt2"
    torch.rdna.reset_compile_report()
    return torch._inductor.aoti_compile_and_package(exported(made(), *inputs(2)), package_path=str(path))


@aoti
@pytest.mark.usefixtures("nothing_falls_back")
def test_a_package_runs(package):
    loaded, exact = torch._inductor.aoti_load_package(package), made().double()
    assert loaded.get_metadata()["AOTI_DEVICE_KEY"] == "rdna"
    for turn, batch in enumerate((2, 5, 1, 64)):
        x, scale = inputs(batch)
        same(loaded(x.to("rdna"), {"by": scale["by"].to("rdna")}), exact(x.double(), {"by": scale["by"].double()}))
    # weights are changed without compiling again
    other = made(7)
    loaded.load_constants({k: v.to("rdna") for k, v in {**other.state_dict(), **dict(other.named_parameters(remove_duplicate=False))}.items()
                           if k in loaded.get_constant_fqns()}, check_full_update=False, user_managed=False)
    x, scale = inputs(3)
    same(loaded(x.to("rdna"), {"by": scale["by"].to("rdna")}), other.double()(x.double(), {"by": scale["by"].double()}))
    for wrong in (x, x.to("rdna")[:, :2]):  # of the host; of another shape
        with pytest.raises(RuntimeError):
            loaded(wrong, {"by": scale["by"].to("rdna")})


@aoti
def test_a_package_runs_where_nothing_was_compiled(package):
    """In a process of its own, on a stream, by two threads."""
    done = run(IMPORT + f"""
import sys, threading
loaded = torch._inductor.aoti_load_package({package!r})
x, by = torch.linspace(-1, 1, 2 * 3 * 11).view(2, 3, 11).to("rdna"), torch.tensor(0.3, device="rdna")
first = [t.cpu() if isinstance(t, torch.Tensor) else t for t in loaded(x, {{"by": by}})]
results = []
def work():
    with torch.rdna.stream(torch.rdna.Stream()):
        results.extend(loaded(x, {{"by": by}})[0].cpu() for _ in range(5))
threads = [threading.Thread(target=work) for _ in range(2)]
[t.start() for t in threads], [t.join() for t in threads]
assert len(results) == 10 and all(torch.equal(r, first[0]) for r in results)
assert not torch.rdna.fallback_report() and "torch._inductor.scheduler" not in sys.modules
print("fine")
""", RDNA_DRIVER="host", PYTHONPATH=os.environ.get("PYTHONPATH", ""))
    assert done.returncode == 0 and done.stdout.endswith("fine\n"), done.stderr[-3000:]


@aoti
@pytest.mark.usefixtures("nothing_falls_back")
def test_a_package_without_its_weights(tmp_path):
    torch.manual_seed(0)
    model, x = nn.Linear(5, 3), torch.randn(4, 5)
    program = torch.export.export(model.to("rdna"), (x.to("rdna"),))
    path = torch._inductor.aoti_compile_and_package(program, package_path=str(tmp_path / "empty.pt2"),
                                                    inductor_configs={"aot_inductor.package_constants_in_so": False})
    loaded = torch._inductor.aoti_load_package(path)
    weights = dict(model.state_dict())
    loaded.load_constants(weights, check_full_update=True, user_managed=True)
    expected = x.double() @ model.weight.detach().cpu().double().T + model.bias.detach().cpu().double()
    torch.testing.assert_close(loaded(x.to("rdna")).cpu().double(), expected, rtol=1e-5, atol=1e-6)


@aoti
@pytest.mark.usefixtures("nothing_falls_back")
@pytest.mark.parametrize("packed", [True, False])
def test_memory_of_weights_is_given_back(tmp_path, packed):
    model, x = nn.Linear(512, 512).to("rdna"), torch.randn(4, 512, device="rdna")
    program = torch.export.export(model, (x,))
    path = torch._inductor.aoti_compile_and_package(program, package_path=str(tmp_path / "linear.pt2"),
                                                    inductor_configs={"aot_inductor.package_constants_in_so": packed})
    weights = {k: v.detach().clone() for k, v in model.state_dict().items()}
    size = sum(t.nbytes for t in weights.values())

    def right(factor):
        expected = factor * (x.cpu().double() @ weights["weight"].cpu().double().T + weights["bias"].cpu().double())
        torch.testing.assert_close(loaded(x).cpu().double(), expected, rtol=1e-4, atol=1e-4)

    before = torch.rdna.memory_allocated()
    for _ in range(2):
        loaded = torch._inductor.aoti_load_package(path)
        for factor in (1.0, 2.0, 3.0):
            loaded.load_constants({k: v * factor for k, v in weights.items()}, check_full_update=True, user_managed=factor == 2)
            right(factor)
            assert torch.rdna.memory_allocated() - before < 1.1 * size
        loaded.load_constants({"bias": weights["bias"]}, check_full_update=False)  # the other stays
        with pytest.raises(RuntimeError, match="the package has bias on rdna, one on another device was given"):
            loaded.load_constants({"bias": torch.zeros(512)}, check_full_update=False, user_managed=True)
        with pytest.raises(RuntimeError, match="Cannot find constants .*weight"):
            loaded.load_constants({"bias": weights["bias"]}, check_full_update=True)
        loaded.load_constants({"weight": weights["weight"]}, check_full_update=False)
        right(1)
        del loaded
        assert torch.rdna.memory_allocated() - before < 0.1 * size


@aoti
def test_numbers_that_are_not_whole_are_refused(tmp_path):
    class Half(nn.Module):
        def forward(self, x):
            return x * (x.shape[0] / 2)

    x = torch.ones(3, 2, device="rdna")
    program = torch.export.export(Half(), (x,), dynamic_shapes=({0: torch.export.Dim("batch", min=1, max=64)},))
    with pytest.raises(Exception, match="follows from sizes and is not whole"):
        torch._inductor.aoti_compile_and_package(program, package_path=str(tmp_path / "half.pt2"))


@aoti
@pytest.mark.usefixtures("nothing_falls_back")
def test_a_package_with_branches(tmp_path):
    class Branch(nn.Module):
        def forward(self, x):
            return torch.cond(x.sum() > 0, lambda t: (t + 1).cumsum(0), lambda t: t.square() - 1, (x,))

    x = torch.tensor([1.0, -3.0, 4.0])
    program = torch.export.export(Branch(), (x.to("rdna"),))
    loaded = torch._inductor.aoti_load_package(torch._inductor.aoti_compile_and_package(program, package_path=str(tmp_path / "branch.pt2")))
    assert torch.equal(loaded(x.to("rdna")).cpu(), torch.tensor([2.0, 0.0, 5.0]))
    assert torch.equal(loaded(-x.to("rdna")).cpu(), torch.tensor([0.0, 8.0, 15.0]))


@aoti
def test_a_library_alone_is_refused():
    x = torch.ones(3, device="rdna")
    program = torch.export.export(nn.ReLU(), (x,))
    with pytest.raises(RuntimeError, match="are loaded from packages: call torch._inductor.aoti_compile_and_package"):
        torch._inductor.aot_compile(program.module(), (x,))


@aoti
def test_a_package_on_an_emulated_card(tmp_path):
    done = run(IMPORT + f"""
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(9, 17), torch.nn.GELU(), torch.nn.LayerNorm(17), torch.nn.Linear(17, 5))
x = torch.randn(3, 9)
with torch.no_grad():
    expected = model.double()(x.double())
model = model.float().to("rdna")
program = torch.export.export(model, (x.to("rdna"),))
path = torch._inductor.aoti_compile_and_package(program, package_path={str(tmp_path / "card.pt2")!r})
loaded = torch._inductor.aoti_load_package(path)
torch.testing.assert_close(loaded(x.to("rdna")).cpu().double(), expected, rtol=1e-5, atol=1e-5)
assert loaded.get_metadata()["AOTI_COMPUTE_CAPABILITY"] == "gfx1100"
assert not torch.rdna.fallback_report(), torch.rdna.fallback_report()
print("fine")
""", **emulated(RDNA_EMULATE_CHECK="1", PYTHONPATH=os.environ.get("PYTHONPATH", "")))
    assert done.returncode == 0 and done.stdout.endswith("fine\n"), done.stderr[-3000:]
    assert "librdna_emulator:" not in done.stderr, done.stderr

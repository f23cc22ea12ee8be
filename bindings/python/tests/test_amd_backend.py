"""AMDBackend: on the device of RDNA_DRIVER or RDNA_EMULATE, and on the CPU in a process without one."""

import copy
import io
import os
import subprocess
import sys
import warnings

import pytest
import torch
from torch import nn

import torch_rdna  # noqa: F401
from rdna.amd import AMDBackend, AMDConfig, AMDDeviceInfo, KernelPyTorchConfig, amd_exceptions, backend as backend_module
from rdna.amd.amd_exceptions import AMDBackendError, AMDConfigurationError, AMDDeviceError, ROCmMemoryError

CARD = torch.rdna.get_device_properties(0)


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(33, 17), nn.BatchNorm1d(17), nn.GELU(), nn.Linear(17, 5))


def without_device(code, **environment):
    """Runs |code| in a process whose plugin finds no device."""
    environment = {**os.environ, "RDNA_DRIVER": "hip", "RDNA_EMULATE": "", "RDNA_HIP_LIBRARY": "/nonexistent", **environment}
    done = subprocess.run([sys.executable, "-W", "always", "-c", code], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done


def test_a_model_goes_to_the_device():
    backend = AMDBackend()
    assert isinstance(backend.config, AMDConfig) and backend.device == torch.device("rdna:0")
    assert backend.fallback_reason is None and backend.is_available() is True
    model = network()
    parameters, buffers = list(model.parameters()), [name for name, _ in model.named_buffers()]
    x = torch.randn(9, 33)
    expected = model.eval()(x)
    prepared = backend.prepare_model(model)
    assert prepared is model and all(a is b for a, b in zip(parameters, model.parameters()))  # as optimizers hold them
    assert all(t.device == backend.device for t in (*model.parameters(), *model.buffers()))
    assert [name for name, _ in model.named_buffers()] == buffers and next(model.parameters()).dtype == torch.float32
    got = prepared(x.to(backend.device))
    backend.synchronize()
    assert got.dtype == torch.float32
    torch.testing.assert_close(got.cpu(), expected, rtol=1e-5, atol=1e-5)


def test_gradients_ties_and_other_types_move_too():
    model = nn.ModuleDict({"a": nn.Linear(3, 3), "b": nn.Linear(3, 3), "d": nn.Linear(2, 2).double()})
    model.b.weight = model.a.weight
    model.register_buffer("steps", torch.tensor(3))
    model.register_buffer("table", torch.ones(2, dtype=torch.float16))
    model.a.weight.grad = torch.full((3, 3), 2.0)
    config = AMDConfig(architecture="cdna3", default_precision="bf16", enable_mixed_precision=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a card that is no CDNA3
        prepared = AMDBackend(config).prepare_model(model)
    assert prepared.b.weight is prepared.a.weight and prepared.a.weight.dtype == torch.bfloat16
    assert prepared.a.weight.grad.dtype == torch.bfloat16 and prepared.a.weight.grad.device.type == "rdna"
    assert prepared.a.weight.grad.float().cpu().unique().tolist() == [2.0]
    # only what is float32 becomes another type
    assert prepared.d.weight.dtype == torch.float64 and prepared.table.dtype == torch.float16 and prepared.steps.item() == 3


PRECISIONS = {"fp16": (torch.float16, 2**-10), "bf16": (torch.bfloat16, 2**-7)}


def in_precision(precision, mixed):
    config = AMDConfig(default_precision=precision, enable_mixed_precision=mixed)
    config.allow_bf16 = True  # which cards of RDNA have switched off
    return AMDBackend(config)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("mixed", [True, False])
def test_precision(precision, mixed):
    dtype, step = PRECISIONS[precision]
    model = network().eval()
    x = torch.randn(64, 33)
    expected = copy.deepcopy(model).double()(x.double())
    backend = in_precision(precision, mixed)
    model = backend.prepare_model(model)
    assert {p.dtype for p in model.parameters()} == {torch.float32 if mixed else dtype}
    inner = []
    model[3].register_forward_hook(lambda module, args, result: inner.append(result.dtype))
    got = model(x.to(backend.device))
    assert inner == [dtype] and got.dtype == torch.float32
    error = (got.double().cpu() - expected).abs().max() / expected.abs().max()
    assert 1e-7 < error < 8 * step, error  # that type's rounding: neither f32's nor more
    assert not torch.is_autocast_enabled("rdna") and not torch.is_autocast_enabled("cpu")
    model[3]._forward_hooks.clear()
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    for other in (copy.deepcopy(model), torch.load(file, weights_only=False)):
        assert torch.equal(other(x.to(backend.device)), got)


@pytest.mark.parametrize("mixed", [True, False])
def test_precision_of_a_compiled_model(mixed):
    from torch_rdna._compile import backend as compiler

    backend = in_precision("bf16", mixed)
    model = backend.prepare_model(network())
    x = torch.randn(16, 33, device=backend.device)
    for callee in (torch.compile(model, backend=compiler), torch.compile(lambda x: model(x) + 0, backend=compiler)):
        model.zero_grad()
        y = callee(x)
        y.square().mean().backward()
        assert y.dtype == torch.float32 and not torch.is_autocast_enabled("rdna")
        assert all(p.grad.abs().sum() > 0 for p in (model[0].weight, model[3].bias))
        expected = model(x)
        assert (y - expected).abs().max() <= 2**-6 * expected.abs().max()


def test_precision_again_replaces_the_first():
    model = in_precision("fp16", True).prepare_model(network())
    in_precision("bf16", True).prepare_model(model)
    seen = []
    model[3].register_forward_hook(lambda module, args, result: seen.append(result.dtype))
    x = torch.randn(4, 33, device="rdna")
    model(x)
    assert seen == [torch.bfloat16] and len(model._forward_hooks) == len(model._forward_pre_hooks) == 1
    AMDBackend().prepare_model(model)
    model(x)
    assert seen[1:] == [torch.float32] and not model._forward_hooks and not model._forward_hooks_always_called


def test_a_forward_that_fails_leaves_no_precision_behind():
    class Fails(nn.Linear):
        def forward(self, x):
            raise KeyError("no")

    model = in_precision("bf16", True).prepare_model(Fails(3, 3))
    for _ in range(2):
        with pytest.raises(KeyError):
            model(torch.randn(2, 3, device="rdna"))
        assert not torch.is_autocast_enabled("rdna")
    # and where the forward before ours was never reached
    inner = in_precision("fp16", True).prepare_model(nn.Linear(3, 3))

    def refuses(module, args):
        raise KeyError("no")

    handle = inner.register_forward_pre_hook(refuses, prepend=True)
    with pytest.raises(KeyError):
        inner(torch.randn(2, 3, device="rdna"))
    handle.remove()
    assert inner(torch.randn(2, 3, device="rdna")).dtype == torch.float32 and not torch.is_autocast_enabled("rdna")


def test_training_in_mixed_precision():
    backend = in_precision("bf16", True)
    model = backend.prepare_model(network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    x, y = torch.randn(32, 33, device=backend.device), torch.randn(32, 5, device=backend.device)
    losses = []
    for _ in range(8):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.9 * losses[0]
    assert all(p.grad.dtype == torch.float32 for p in model.parameters())


def test_what_is_given_in_other_ways_is_cast_too():
    class Takes(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 3)

        def forward(self, batch, *, scale):
            return {"y": self.layer(batch["x"]) * scale, "n": batch["n"]}

    model = in_precision("fp16", False).prepare_model(Takes())
    got = model({"x": torch.ones(2, 3, device="rdna"), "n": torch.arange(2, device="rdna")}, scale=torch.ones((), device="rdna"))
    assert got["y"].dtype == torch.float32 and got["n"].dtype == torch.int64


def test_information():
    backend = AMDBackend()
    info = backend.get_device_info()
    assert isinstance(info, dict)
    wanted = {"backend": "amd", "device_type": "rdna", "device_id": 0, "name": CARD.name, "target": CARD.arch,
              "is_available": True, "driver": CARD.driver, "emulated": CARD.emulated, "rocm_available": CARD.driver == "hip",
              "total_memory_gb": CARD.total_memory / 2**30, "reason": "", "compute_capability": (CARD.major, CARD.minor)}
    assert {key: info[key] for key in wanted} == wanted
    assert all(getattr(info, key) == value for key, value in info.items())
    with pytest.raises(AttributeError, match="warp_size.*total_memory_gb"):
        info.warp_size
    if CARD.arch.startswith("gfx11"):
        assert info.architecture == "rdna3" and info.matrix_cores_available is True and info.rocm_version
        assert backend.config.architecture.name == "RDNA3" and backend.config.enable_matrix_cores is False
    if CARD.driver == "host":
        assert info.matrix_cores_available is False and info.rocm_version == ""
    every = backend.get_all_devices()
    assert len(every) == torch.rdna.device_count() and all(type(each) is AMDDeviceInfo for each in every)
    assert [each.device_id for each in every] == list(range(len(every)))
    assert {name: getattr(every[0], name) for name in vars(every[0])} == {name: info[name] for name in vars(every[0])}
    assert "rdna:0" in repr(backend) and backend.config.architecture.value in repr(backend)


@pytest.mark.parametrize("target, cores, name", [
    ("gfx906", False, "cdna"), ("gfx908", True, "cdna"), ("gfx90a:sramecc+", True, "cdna2"), ("gfx942", True, "cdna3"),
    ("gfx950", True, "cdna4"), ("gfx1012", False, "rdna"), ("gfx1030", False, "rdna2"), ("gfx1102", True, "rdna3"),
    ("gfx1201", True, "rdna4"), ("sm_61", False, "sm_61"), ("sm_90a", True, "sm_90a"), ("avx2", False, "avx2"),
])
def test_what_a_card_has(target, cores, name):
    from rdna.amd import _cards

    assert (_cards.has_matrix_cores(target), _cards.architecture_name(target)) == (cores, name)


def test_configurations():
    config = KernelPyTorchConfig()
    assert AMDBackend(config).config is config.hardware.amd
    for wrong in ("fast", {"device_id": 0}, 3):
        with pytest.raises(AMDConfigurationError, match="AMDConfig"):
            AMDBackend(wrong)
    for name, value in dict(device_id=-1, memory_pool_size_gb=0, default_precision="int4", optimization_level="x").items():
        with pytest.raises(AMDConfigurationError) as raised:
            AMDBackend(AMDConfig(**{name: value}))
        assert (raised.value.parameter, raised.value.value) == (name, value)
    with pytest.raises(AMDDeviceError, match="device_id") as raised:
        AMDBackend(AMDConfig(device_id=torch.rdna.device_count()))
    assert raised.value.device_id == torch.rdna.device_count()


class Card:
    def __init__(self, arch):
        self.arch = arch


def test_a_card_that_is_another(monkeypatch):
    monkeypatch.setattr(torch.rdna, "get_device_properties", lambda device=None: Card("gfx1030"))
    with pytest.warns(UserWarning, match="architecture='cdna3': the card is rdna2 .gfx1030.; AUTO"):
        AMDBackend(AMDConfig(architecture="cdna3"))
    with pytest.raises(AMDConfigurationError, match="gfx1030") as raised:
        AMDBackend(AMDConfig(architecture="cdna3", enable_strict_validation=True))
    assert (raised.value.parameter, raised.value.value) == ("architecture", "cdna3")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = AMDBackend().config
    made.enable_matrix_cores = True
    with pytest.warns(UserWarning, match="gfx1030 has none"):
        AMDBackend(made)
    made.enable_strict_validation = True
    with pytest.raises(amd_exceptions.MatrixCoreError) as raised:
        AMDBackend(made)
    assert raised.value.architecture == "rdna2"


def state_of(model):
    return [(t.device, t.dtype, t.detach().clone()) for t in (*model.parameters(), *model.buffers())]


def check_unchanged(model, before):
    after = state_of(model)
    assert [each[:2] for each in after] == [each[:2] for each in before]
    assert all(torch.equal(a[2], b[2]) for a, b in zip(after, before)) and not model._forward_hooks


def test_bad_models_and_arguments_change_nothing():
    backend = AMDBackend()
    for wrong in (None, "model", torch.ones(3), nn.Linear):
        with pytest.raises(AMDBackendError, match="torch.nn.Module"):
            backend.prepare_model(wrong)
    model = network()
    before = state_of(model)
    for level in ("fastest", "", 3):
        with pytest.raises(AMDConfigurationError, match="conservative"):
            backend.prepare_model(model, optimization_level=level)
    backend.config.default_precision = "fp7"  # after the backend has checked it
    with pytest.raises(AMDConfigurationError):
        backend.prepare_model(model)
    backend.config.default_precision = "fp32"
    check_unchanged(model, before)
    with torch.device("meta"):
        empty = nn.Linear(2, 2)
    for valueless in (nn.Sequential(network(), empty), nn.Sequential(network(), nn.LazyLinear(3))):
        with pytest.raises(AMDBackendError, match="without values"):
            backend.prepare_model(valueless)
        assert valueless[0][0].weight.device.type == "cpu"


def test_a_model_that_does_not_fit(monkeypatch):
    model = network()
    before = state_of(model)
    monkeypatch.setattr(backend_module, "room", lambda device, fraction: 100)
    with pytest.raises(ROCmMemoryError, match="prepare_model of Sequential") as raised:
        AMDBackend().prepare_model(model)
    size = sum(t.numel() * t.element_size() for t in (*model.parameters(), *model.buffers()))
    assert raised.value.required_mb == pytest.approx(size / 2**20) and raised.value.available_mb == 100 / 2**20
    check_unchanged(model, before)
    # the same where nobody asked before, and the device fails at the third tensor
    config = AMDConfig(enable_oom_protection=False)
    moved = []
    plain = torch.Tensor.to

    def fails(self, *arguments, **named):
        moved.append(self)
        if len(moved) == 3:
            raise torch.OutOfMemoryError("rdna out of memory")
        return plain(self, *arguments, **named)

    monkeypatch.setattr(torch.Tensor, "to", fails)
    with pytest.raises(ROCmMemoryError):
        AMDBackend(config).prepare_model(model)
    monkeypatch.undo()
    assert len(moved) == 3
    check_unchanged(model, before)


def test_cleanup():
    backend = AMDBackend()
    model = backend.prepare_model(network())
    backend.cleanup()
    backend.cleanup()
    assert backend.is_available() is False and "cleaned up" in repr(backend)
    for call in (backend.synchronize, lambda: backend.prepare_model(network()),
                 lambda: backend.optimize_for_inference(network()), lambda: backend.optimize_for_training(network())):
        with pytest.raises(AMDBackendError, match="cleaned up"):
            call()
    model(torch.randn(3, 33, device="rdna"))  # which stays where it is
    AMDBackend().prepare_model(model)


def test_optimized_for_inference():
    model = network()
    x = torch.randn(8, 33)
    expected = copy.deepcopy(model).eval()(x)
    backend = AMDBackend()
    ready = backend.optimize_for_inference(model)
    assert not ready.training and all(t.device == backend.device for t in ready.parameters())
    torch.testing.assert_close(ready(x.to(backend.device)).detach().cpu(), expected, rtol=1e-4, atol=1e-5)
    ready = backend.prepare_model(network().eval(), optimization_level="conservative")
    torch.testing.assert_close(ready(x.to(backend.device)).detach().cpu(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", [lambda p: torch.optim.SGD(p, 0.1, momentum=0.9), lambda p: torch.optim.AdamW(p, 0.01)])
def test_optimized_for_training(kind):
    torch.manual_seed(1)
    x, y = torch.randn(16, 33), torch.randn(16, 5)

    def steps(model, optimizer, count, place="cpu"):
        for _ in range(count):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x.to(place)), y.to(place)).backward()
            optimizer.step()

    reference = network()
    optimizer = kind(reference.parameters())
    steps(reference, optimizer, 4)
    model = network()
    optimizer = kind(model.parameters())
    steps(model, optimizer, 2)  # so that it has a state, which has to follow
    backend = AMDBackend()
    ready, same = backend.optimize_for_training(model, optimizer)
    assert same is optimizer and ready.training
    steps(ready, optimizer, 2, backend.device)
    for (name, a), b in zip(ready.named_parameters(), reference.parameters()):
        assert a.device == backend.device
        if name == "0.bias":
            continue  # a batch norm takes it away again: its gradient is rounding alone, which Adam makes whole steps of
        torch.testing.assert_close(a.detach().cpu(), b.detach(), rtol=1e-3, atol=1e-4)
    assert isinstance(backend.optimize_for_training(network()), nn.Module)


NO_DEVICE = """
import warnings, torch
from torch import nn
from rdna.amd import AMDBackend, AMDConfig, amd_exceptions
from rdna.amd.config import KernelPyTorchConfig
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    backend, again = AMDBackend(), AMDBackend()
seen = [str(w.message) for w in seen if "rdna.amd" in str(w.message)]
assert len(seen) == 1 and backend.fallback_reason in seen[0], seen
assert backend.device == torch.device("cpu") and backend.is_available() is True
assert backend.config.architecture.name == "CDNA2" and backend.get_all_devices() == []
info = backend.get_device_info()
assert (info.device_type, info["rocm_available"], info.matrix_cores_available) == ("cpu", False, False)
assert info.total_memory_gb > 0 and info.reason == backend.fallback_reason and info.is_available
model = nn.Linear(4, 4)
assert backend.prepare_model(model) is model
half = AMDBackend(AMDConfig(default_precision="bf16"))
y = half.prepare_model(model)(torch.ones(2, 4))
assert y.dtype == torch.float32 and torch.equal(y, y.bfloat16().float())
backend.synchronize(); backend.cleanup()
try:
    backend.prepare_model(model)
except amd_exceptions.AMDBackendError:
    pass
else:
    raise SystemExit("it was cleaned up")
try:
    AMDBackend(AMDConfig(enable_strict_validation=True))
except amd_exceptions.ROCmNotAvailableError as error:
    assert again.fallback_reason in str(error)
else:
    raise SystemExit("strict")
assert KernelPyTorchConfig().device.type in ("cpu", "cuda")
print(backend.fallback_reason)
"""


def test_without_a_device():
    assert "/nonexistent" in without_device(NO_DEVICE).stdout  # what was looked for


def test_without_the_plugin(tmp_path):
    (tmp_path / "torch_rdna").mkdir()
    (tmp_path / "torch_rdna" / "__init__.py").write_text("raise ImportError('not built')\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = without_device(NO_DEVICE, PYTHONPATH=path, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert "plugin" in done.stdout and "not built" in done.stdout


def test_switched_off():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        backend = AMDBackend(AMDConfig(enabled=False))
    assert backend.device.type == "cpu" and "enabled" in backend.fallback_reason

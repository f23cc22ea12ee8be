"""Libraries that look for a device themselves take rdna, and train on it as on the CPU. They are too large for every
run: $(packaging/torch-libraries-venv.sh) -m pytest bindings/torch/tests/libraries.py, each night.
"""

import accelerate
import lightning
import pytest
import torch
import transformers
from lightning.pytorch.plugins.precision import MixedPrecision
from torch.nn import functional

# Rounding of one product to the type, a few layers deep; a training that did nothing differs by 0.1 and more.
TOLERANCE = {None: 1e-4, "bf16": 2e-2, "fp16": 5e-3}


def dtype_of(name):
    return {None: torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[name]


def close(ours, theirs, name):
    assert len(ours) == len(theirs) > 0
    for a, b in zip(ours, theirs):
        torch.testing.assert_close(a.detach().cpu().float(), b.detach().cpu().float(), rtol=0, atol=TOLERANCE[name])


@pytest.fixture
def fresh():
    """accelerate keeps its device for the whole process."""
    accelerate.state.AcceleratorState._reset_state(reset_partial_state=True)
    yield
    accelerate.state.AcceleratorState._reset_state(reset_partial_state=True)


def net():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(12, 33), torch.nn.GELU(), torch.nn.LayerNorm(33), torch.nn.Linear(33, 5))


def batches():
    generator = torch.Generator().manual_seed(1)
    data = torch.randn(24, 12, generator=generator), torch.randint(5, (24,), generator=generator)
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*data), batch_size=8)


def on_cpu(steps, name):
    """What `steps` epochs of AdamW make of net() in f32: the reference, which knows none of the libraries."""
    model = net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(steps):
        for x, y in batches():
            with torch.autocast("cpu", dtype_of(name), enabled=name is not None):
                loss = functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return [p.detach() for p in model.parameters()]


@pytest.mark.parametrize("name", [None, "bf16", "fp16"])
def test_accelerate(fresh, name):
    accelerator = accelerate.Accelerator(mixed_precision=name or "no")
    assert accelerator.device.type == "rdna"
    model = net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model, optimizer, loader = accelerator.prepare(model, optimizer, batches())
    seen = set()
    accelerator.unwrap_model(model)[0].register_forward_hook(lambda *a: seen.add((a[2].device.type, a[2].dtype)))
    for _ in range(2):
        for x, y in loader:
            loss = functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            accelerator.backward(loss)
            optimizer.step()
    assert seen == {("rdna", dtype_of(name))}
    assert name != "fp16" or accelerator.scaler.is_enabled() and accelerator.scaler._scale.device.type == "rdna"
    close(list(accelerator.unwrap_model(model).parameters()), on_cpu(2, name), name)


def test_accelerate_on_the_cpu(fresh):
    assert accelerate.Accelerator(cpu=True).device.type == "cpu"


def test_accelerate_refuses_several_processes(fresh, monkeypatch):
    monkeypatch.setenv("LOCAL_RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(NotImplementedError, match="several processes"):
        accelerate.Accelerator()


def llama():
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=99, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, pad_token_id=0,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config)


def tokens():
    generator = torch.Generator().manual_seed(2)
    rows = torch.randint(1, 99, (12, 17), generator=generator)
    return [{"input_ids": row, "labels": row} for row in rows]


def trained(folder, **named):
    arguments = transformers.TrainingArguments(
        str(folder), max_steps=5, per_device_train_batch_size=3, learning_rate=1e-3, report_to=[], save_strategy="no",
        disable_tqdm=True, **named,
    )  # fmt: skip
    trainer = transformers.Trainer(llama(), arguments, train_dataset=tokens())
    seen = set()
    trainer.model.model.layers[0].mlp.up_proj.register_forward_hook(lambda *a: seen.add((a[2].device.type, a[2].dtype)))
    trainer.train()
    return list(trainer.model.parameters()), seen


@pytest.mark.parametrize("name", [None, "bf16", "fp16"])
def test_trainer(fresh, tmp_path, name):
    ours, seen = trained(tmp_path, **({name: True} if name else {}))
    assert seen == {("rdna", dtype_of(name))}
    accelerate.state.AcceleratorState._reset_state(reset_partial_state=True)
    theirs, seen = trained(tmp_path, use_cpu=True)
    assert seen == {("cpu", torch.float32)}
    close(ours, theirs, name)


def test_device_map_auto(tmp_path):
    llama().save_pretrained(tmp_path)
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, device_map="auto", dtype=torch.float32)
    assert {p.device.type for p in model.parameters()} == {"rdna"}
    ids = torch.stack([row["input_ids"] for row in tokens()])
    with torch.no_grad():
        torch.testing.assert_close(model(ids.to("rdna")).logits.cpu(), llama().eval()(ids).logits, rtol=1e-4, atol=1e-5)


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = net()
        self.seen = set()

    def training_step(self, batch, index):
        x, y = batch
        out = self.net[0](x)
        self.seen.add((out.device.type, out.dtype))
        return functional.cross_entropy(self.net[1:](out), y)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


PRECISIONS = [(None, "32-true"), ("bf16", "bf16-mixed"), ("fp16", "16-mixed")]


@pytest.mark.parametrize("accelerator", ["auto", "rdna", "gpu"])
@pytest.mark.parametrize("name, precision", PRECISIONS)
def test_lightning(tmp_path, accelerator, name, precision):
    module = Module()
    trainer = lightning.Trainer(
        accelerator=accelerator, devices=1, precision=precision, max_epochs=2, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, default_root_dir=tmp_path,
    )  # fmt: skip
    assert trainer.accelerator.name() == "rdna"
    trainer.fit(module, batches())
    assert module.seen == {("rdna", dtype_of(name))}
    assert isinstance(trainer.precision_plugin, MixedPrecision) == (name is not None)
    assert name != "fp16" or trainer.precision_plugin.scaler.is_enabled()
    close(list(module.net.parameters()), on_cpu(2, name), name)


def test_lightning_on_the_cpu():
    assert lightning.Trainer(accelerator="cpu", logger=False).strategy.root_device.type == "cpu"


@pytest.mark.parametrize("name, precision", PRECISIONS)
def test_fabric(name, precision):
    fabric = lightning.Fabric(accelerator="auto", devices=1, precision=precision)
    assert fabric.device.type == "rdna"
    model = net()
    seen = set()
    model[0].register_forward_hook(lambda *a: seen.add((a[2].device.type, a[2].dtype)))
    model, optimizer = fabric.setup(model, torch.optim.AdamW(model.parameters(), lr=1e-3))
    for _ in range(2):
        for x, y in fabric.setup_dataloaders(batches()):
            loss = functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            fabric.backward(loss)
            optimizer.step()
    assert seen == {("rdna", dtype_of(name))}
    close(list(model.parameters()), on_cpu(2, name), name)

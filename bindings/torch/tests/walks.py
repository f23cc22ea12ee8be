"""Libraries that name the device themselves, with tiny configurations beside the CPU: what they compute is the same, and
what falls back is what FALLBACKS says. Each night: $(packaging/torch-libraries-venv.sh) -m pytest bindings/torch/tests/walks.py
"""

import copy
import math

import accelerate
import diffusers
import gpytorch
import peft
import pytest
import sentence_transformers
import torch
import torch_geometric.nn as geometric
import transformers
from sentence_transformers import losses
from torch.nn import functional

WHERE = ["cpu", "rdna"]

# Operators of a workload that have no kernel; a new one, and one that is no longer needed, fail.
FALLBACKS = {}


@pytest.fixture(autouse=True)
def fallbacks(request):
    torch.rdna.reset_fallback_report()
    yield
    name = request.node.name.removeprefix("test_")
    assert set(torch.rdna.fallback_report()) == FALLBACKS.get(name, set())


def same(ours, theirs, tolerance=2e-5):
    """|tolerance|: relative to the largest value; f32's rounding through the depth of a small network."""
    assert len(ours) == len(theirs) > 0
    for a, b in zip(ours, theirs):
        assert a.device.type == "rdna" and b.device.type == "cpu" and b.isfinite().all()
        torch.testing.assert_close(a.detach().cpu(), b.detach(), rtol=0, atol=tolerance * max(1.0, b.abs().max().item()))


def both(run, tolerance=2e-5):
    """|run| of a device, from the same random numbers: the same tensors."""
    found = []
    for device in WHERE:
        torch.manual_seed(0)
        found.append([t.detach() for t in run(device)])
    same(found[1], found[0], tolerance)


def steps(model, loss, count=3, rate=1e-2):
    """Losses of |count| steps, and the parameters after them."""
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=rate)
    losses = []
    for _ in range(count):
        optimizer.zero_grad()
        value = loss(model)
        value.backward()
        optimizer.step()
        losses.append(value.detach())
    assert losses[0] != losses[-1]
    return losses + list(model.parameters())


def llama():
    config = transformers.LlamaConfig(
        vocab_size=99, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, pad_token_id=0,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config)


@pytest.mark.parametrize("kind", ["lora", "dora", "rslora", "ia3", "vera", "prompt", "prefix"])
def test_peft(kind):
    def run(device):
        if kind in ("lora", "dora", "rslora"):
            config = peft.LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "up_proj"], task_type="CAUSAL_LM",
                                     use_dora=kind == "dora", use_rslora=kind == "rslora", init_lora_weights=False)  # fmt: skip
        elif kind == "vera":
            config = peft.VeraConfig(r=4, target_modules=["up_proj"], task_type="CAUSAL_LM")
        elif kind == "ia3":
            config = peft.IA3Config(target_modules=["q_proj", "up_proj"], feedforward_modules=["up_proj"], task_type="CAUSAL_LM")
        elif kind == "prompt":
            config = peft.PromptTuningConfig(num_virtual_tokens=3, task_type="CAUSAL_LM")
        else:
            config = peft.PrefixTuningConfig(num_virtual_tokens=3, task_type="CAUSAL_LM")
        model = peft.get_peft_model(llama(), config).to(device)
        ids = torch.randint(1, 99, (2, 9)).to(device)
        out = steps(model, lambda m: m(input_ids=ids, labels=ids).loss, rate=0.5)
        if kind in ("lora", "dora", "rslora", "ia3"):
            model.eval()
            before = model(input_ids=ids).logits
            merged = model.merge_and_unload()
            after = merged(input_ids=ids).logits
            torch.testing.assert_close(before, after, rtol=1e-3, atol=1e-4)
            out += [after]
        return out

    both(run, 1e-4)


SCHEDULERS = ["DDPMScheduler", "DDIMScheduler", "EulerDiscreteScheduler", "DPMSolverMultistepScheduler", "PNDMScheduler",
              "UniPCMultistepScheduler", "HeunDiscreteScheduler", "LMSDiscreteScheduler"]  # fmt: skip


def unet(**named):
    return diffusers.UNet2DModel(
        sample_size=8, in_channels=3, out_channels=3, layers_per_block=1, block_out_channels=(16, 32), norm_num_groups=8,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"), **named,
    )  # fmt: skip


@pytest.mark.parametrize("name", SCHEDULERS)
def test_diffusers_scheduler(name):
    def run(device):
        model, scheduler = unet().eval().to(device), getattr(diffusers, name)(num_train_timesteps=50)
        scheduler.set_timesteps(4, device=device)
        x = torch.randn(1, 3, 8, 8).to(device) * scheduler.init_noise_sigma
        extra = {"generator": torch.Generator().manual_seed(1)} if name == "DDPMScheduler" else {}
        for t in scheduler.timesteps:
            x = scheduler.step(model(scheduler.scale_model_input(x, t), t).sample, t, x, **extra).prev_sample
        return [x]

    with torch.no_grad():
        both(run, 1e-4)


def test_diffusers_training():
    def run(device):
        model, scheduler = unet().to(device), diffusers.DDPMScheduler(num_train_timesteps=50)
        x, noise, t = torch.randn(2, 3, 8, 8).to(device), torch.randn(2, 3, 8, 8).to(device), torch.tensor([3, 30]).to(device)
        noisy = scheduler.add_noise(x, noise, t)
        return steps(model, lambda m: functional.mse_loss(m(noisy, t).sample, noise))

    both(run, 1e-4)


def test_diffusers_pipeline():
    def run(device):
        pipeline = diffusers.DDIMPipeline(unet(), diffusers.DDIMScheduler(num_train_timesteps=50)).to(device)
        pipeline.set_progress_bar_config(disable=True)
        out = pipeline(num_inference_steps=3, output_type="np", generator=torch.Generator().manual_seed(2)).images
        return [torch.as_tensor(out).to(device)]

    both(run, 1e-4)


def test_diffusers_autoencoder():
    def run(device):
        model = diffusers.AutoencoderKL(
            block_out_channels=(16, 32), norm_num_groups=8, latent_channels=4, sample_size=16,
            down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2,
        ).to(device)  # fmt: skip
        x = torch.randn(1, 3, 16, 16).to(device)
        return steps(model, lambda m: functional.mse_loss(m(x).sample, x))

    both(run, 1e-4)


@pytest.fixture(scope="module")
def sentences(tmp_path_factory):
    """A BERT and its tokenizer in a folder, of which sentence-transformers makes a model."""
    folder = tmp_path_factory.mktemp("bert")
    words = "[PAD] [UNK] [CLS] [SEP] [MASK] a cat dog sat on the mat ran far away".split()
    (folder / "vocab.txt").write_text("\n".join(words))
    transformers.BertTokenizer(vocab=str(folder / "vocab.txt")).save_pretrained(folder)
    torch.manual_seed(0)
    transformers.BertModel(transformers.BertConfig(
        vocab_size=len(words), hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )).save_pretrained(folder)  # fmt: skip
    return folder


TEXTS = ["a cat sat on the mat", "the dog ran far away", "a mat", "the cat ran on the dog far far away"]


def test_sentence_transformers_encode(sentences):
    def run(device):
        model = sentence_transformers.SentenceTransformer(str(sentences), device=device)
        out = model.encode(TEXTS, convert_to_tensor=True, show_progress_bar=False, batch_size=3)
        return [out, model.similarity(out, out), sentence_transformers.util.semantic_search(out, out)[0][0]["score"] * out]

    both(run)


def test_sentence_transformers_loss(sentences):
    def run(device):
        model = sentence_transformers.SentenceTransformer(str(sentences), device=device)
        loss = losses.MultipleNegativesRankingLoss(model)
        features = [{k: v.to(device) for k, v in model.preprocess(TEXTS[i::2]).items() if isinstance(v, torch.Tensor)} for i in (0, 1)]
        return steps(model, lambda m: loss(features, torch.zeros(2, device=device)))

    both(run, 1e-4)


EDGES = torch.tensor([[0, 1, 2, 3, 4, 0, 2, 5], [1, 2, 3, 4, 5, 3, 0, 1]])
CONVOLUTIONS = {
    "gcn": lambda: geometric.GCNConv(7, 5), "gat": lambda: geometric.GATConv(7, 5, heads=2, concat=False),
    "gatv2": lambda: geometric.GATv2Conv(7, 5), "sage": lambda: geometric.SAGEConv(7, 5),
    "sage_max": lambda: geometric.SAGEConv(7, 5, aggr="max"), "gin": lambda: geometric.GINConv(torch.nn.Linear(7, 5)),
    "cheb": lambda: geometric.ChebConv(7, 5, K=3), "transformer": lambda: geometric.TransformerConv(7, 5),
    "edge": lambda: geometric.EdgeConv(torch.nn.Linear(14, 5)), "pna": lambda: geometric.SAGEConv(7, 5, aggr=["mean", "std", "min"]),
    "gated": lambda: geometric.GatedGraphConv(7, num_layers=2),
}  # fmt: skip


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_geometric(name):
    def run(device):
        model = CONVOLUTIONS[name]().to(device)
        x, edges, batch = torch.randn(6, 7).to(device), EDGES.to(device), torch.tensor([0, 0, 0, 1, 1, 1]).to(device)

        def loss(m):
            h = m(x, edges).relu()
            pooled = torch.cat([geometric.global_mean_pool(h, batch), geometric.global_max_pool(h, batch)], 1)
            return pooled.square().mean()

        return steps(model, loss)

    both(run, 1e-4)


@pytest.mark.parametrize("kernel", ["rbf", "matern", "periodic"])
def test_gpytorch(kernel):
    class Model(gpytorch.models.ExactGP):
        def __init__(self, x, y, likelihood):
            super().__init__(x, y, likelihood)
            self.mean_module = gpytorch.means.ConstantMean()
            kind = {"rbf": gpytorch.kernels.RBFKernel, "matern": gpytorch.kernels.MaternKernel, "periodic": gpytorch.kernels.PeriodicKernel}
            self.covar_module = gpytorch.kernels.ScaleKernel(kind[kernel]())

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    def run(device):
        x = torch.linspace(0, 1, 30).to(device)
        y = torch.sin(x * 2 * math.pi) + 0.1 * torch.randn(30).to(device)
        likelihood = gpytorch.likelihoods.GaussianLikelihood().to(device)
        model = Model(x, y, likelihood).to(device)
        objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
        out = steps(model, lambda m: -objective(m(x), y))
        model.eval()
        with torch.no_grad():
            predicted = likelihood(model(torch.linspace(0, 1, 11).to(device)))
            return out + [predicted.mean, predicted.variance]

    both(run, 1e-3)


@pytest.mark.parametrize("name", ["int8", "int4"])
def test_torchao_weight_only(name):
    from torchao.quantization import Int8WeightOnlyConfig, IntxWeightOnlyConfig, quantize_
    from torchao.quantization.granularity import PerGroup

    config = Int8WeightOnlyConfig() if name == "int8" else IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup(32))

    def run(device):
        model = torch.nn.Sequential(torch.nn.Linear(64, 48), torch.nn.GELU(), torch.nn.Linear(48, 8)).to(device)
        quantize_(model[:1], config)
        return [model(torch.randn(5, 64).to(device))]

    with torch.no_grad():
        both(run)


TORCHAO = ["int8 dynamic", "float8 weights", "float8 dynamic", "float8 rows", "int8 dynamic with 4 bits", "MXFP8", "MXFP4"]


@pytest.mark.parametrize("name", TORCHAO)
def test_torchao_kinds(name):
    """Beside the CPU; small blocks beside torchao's emulation of them there."""
    from torchao import quantization as q
    from torchao.prototype import mx_formats as mx
    from torchao.quantization.quantize_.common import KernelPreference

    def small_blocks(device, dtype):
        preference = KernelPreference.EMULATED if device == "cpu" else KernelPreference.AUTO if dtype == torch.float8_e4m3fn else KernelPreference.EMULATED
        return mx.MXDynamicActivationMXWeightConfig(activation_dtype=dtype, weight_dtype=dtype, kernel_preference=preference)

    kinds = {
        "int8 dynamic": lambda device: q.Int8DynamicActivationInt8WeightConfig(), "float8 weights": lambda device: q.Float8WeightOnlyConfig(),
        "float8 dynamic": lambda device: q.Float8DynamicActivationFloat8WeightConfig(),
        "float8 rows": lambda device: q.Float8DynamicActivationFloat8WeightConfig(granularity=q.PerRow()),
        "int8 dynamic with 4 bits": lambda device: q.Int8DynamicActivationIntxWeightConfig(weight_dtype=torch.int4, weight_granularity=q.PerGroup(32)),
        "MXFP8": lambda device: small_blocks(device, torch.float8_e4m3fn), "MXFP4": lambda device: small_blocks(device, torch.float4_e2m1fn_x2),
    }
    torch.manual_seed(0)
    plain, x = torch.nn.Sequential(torch.nn.Linear(128, 256), torch.nn.ReLU(), torch.nn.Linear(256, 128)).bfloat16(), torch.randn(16, 128).bfloat16()
    with torch.no_grad():
        found = []
        for device in ("cpu", "rdna"):
            model = copy.deepcopy(plain).to(device)
            q.quantize_(model, kinds[name](device))
            found.append(model(x.to(device)).cpu().double())
    assert (found[1] - found[0]).abs().max() <= 0.01 * found[0].abs().max()


@pytest.mark.parametrize("name", ["4 bits in tiles", "NVFP4"])
def test_torchao_of_cards_alone(name):
    """What it multiplies on cards alone beside a product in f64 of the values that its rounding leaves, which it has on the CPU."""
    from torchao import quantization as q
    from torchao.prototype import mx_formats as mx
    from torchao.prototype.mx_formats.nvfp4_tensor import NVFP4Tensor, per_tensor_amax_to_scale
    from torchao.quantization import quant_primitives as rounding

    def in_fours(w):
        scale, zero = rounding._choose_qparams_affine_tinygemm(w, rounding.MappingType.ASYMMETRIC, (1, 32), torch.int32, 0, 15, scale_dtype=w.dtype, zero_point_dtype=w.dtype)
        codes = rounding._quantize_affine_tinygemm(w, (1, 32), scale, zero, torch.int32, 0, 15).reshape(*scale.shape, 32)
        return ((codes - 8) * scale.double()[..., None] + zero.double()[..., None]).reshape(w.shape)  # as aten's `_weight_int4pack_mm` has it

    def in_blocks(t):
        return NVFP4Tensor.to_nvfp4(t, per_tensor_scale=per_tensor_amax_to_scale(t.abs().max())).dequantize(torch.float32).double()

    if name == "NVFP4":
        config, weights, rows = mx.NVFP4DynamicActivationNVFP4WeightConfig(use_triton_kernel=False), in_blocks, in_blocks
    else:
        config, weights, rows = q.Int4WeightOnlyConfig(group_size=32, int4_packing_format="tile_packed_to_4d"), in_fours, torch.Tensor.double
    torch.manual_seed(0)
    layer, x = torch.nn.Linear(128, 256).bfloat16(), torch.randn(16, 128).bfloat16()
    wanted = rows(x) @ weights(layer.weight.detach()).T + layer.bias.detach().double()
    model = torch.nn.Sequential(copy.deepcopy(layer)).to("rdna")
    q.quantize_(model, config)
    with torch.no_grad():
        got = model(x.to("rdna")).cpu().double()
    assert (got - wanted).abs().max() <= 2 * 2**-8 * wanted.abs().max()  # bf16 rounds the product and the sum with the bias


def test_trl(tmp_path):
    import datasets
    import trl

    rows = torch.randint(1, 99, (12, 17), generator=torch.Generator().manual_seed(2)).tolist()
    found = {}
    for device in WHERE:
        torch.manual_seed(0)
        accelerate.state.AcceleratorState._reset_state(reset_partial_state=True)
        config = trl.SFTConfig(
            str(tmp_path), max_steps=3, per_device_train_batch_size=3, learning_rate=1e-3, report_to=[], save_strategy="no",
            disable_tqdm=True, max_length=16, use_cpu=device == "cpu", bf16=False, gradient_checkpointing=False,
        )  # fmt: skip
        trainer = trl.SFTTrainer(
            llama(), config, train_dataset=datasets.Dataset.from_dict({"input_ids": rows}),
            processing_class=transformers.PreTrainedTokenizerFast(tokenizer_object=words(), pad_token="0", eos_token="1"),
        )  # fmt: skip
        trainer.train()
        found[device] = [p.detach() for p in trainer.model.parameters()]
    accelerate.state.AcceleratorState._reset_state(reset_partial_state=True)
    same(found["rdna"], found["cpu"], 1e-4)


def words():
    import tokenizers

    model = tokenizers.models.WordLevel({str(i): i for i in range(99)}, unk_token="0")
    return tokenizers.Tokenizer(model)

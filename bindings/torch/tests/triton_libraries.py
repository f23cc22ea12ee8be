"""Libraries whose kernels are Triton's, unchanged, on an emulated card: liger-kernel, and bitsandbytes with peft.

    RDNA_DRIVER=hip RDNA_EMULATE=gfx1100 python bindings/torch/tests/triton_libraries.py

Without the checker: of a small tile several waves compute the same, and read what one of them has stored in place; what they
compute of that nobody takes."""

import tempfile

import torch
import torch.nn.functional as F
import torch_rdna  # noqa: F401
import transformers

torch.manual_seed(0)


def apart(mine, theirs):
    return ((mine.detach().cpu().double() - theirs.detach()).norm() / theirs.detach().norm().clamp_min(1e-30)).item()


def held(name, far, bound):
    print(f"{name:50} {far:9.1e} from float64, {bound:.0e} allowed", flush=True)
    assert far <= bound, name


def layers():
    from liger_kernel.transformers import LigerCrossEntropyLoss, LigerLayerNorm, LigerRMSNorm, LigerSwiGLUMLP

    x = torch.randn(6, 64)
    for name, layer, exact in (("RMS norm", LigerRMSNorm(64), lambda v: F.rms_norm(v, (64,), eps=1e-6)),
                               ("layer norm", LigerLayerNorm(64), lambda v: F.layer_norm(v, (64,), eps=1e-6))):
        mine, wide = x.to("rdna").requires_grad_(), x.double().requires_grad_()
        out, want = layer.to("rdna")(mine), exact(wide)
        out.square().sum().backward()
        want.square().sum().backward()
        held(f"liger's {name}", apart(out, want), 1e-6)
        # |x| of a norm hardly moves: its gradient is what rounding leaves
        held(f"liger's {name}, gradient", (mine.grad.cpu().double() - wide.grad).abs().max().item(), 1e-4)
    logits, targets = torch.randn(10, 101), torch.randint(0, 101, (10,))
    mine, wide = logits.to("rdna").requires_grad_(), logits.double().requires_grad_()
    loss, want = LigerCrossEntropyLoss()(mine, targets.to("rdna")), F.cross_entropy(wide, targets)
    loss.backward()
    want.backward()
    held("liger's cross-entropy", apart(loss, want), 1e-6)
    held("liger's cross-entropy, gradient", apart(mine.grad, wide.grad), 1e-6)
    config = transformers.LlamaConfig(hidden_size=64, intermediate_size=96, hidden_act="silu")
    gated = LigerSwiGLUMLP(config)
    x = torch.randn(3, 5, 64)
    gate, up, down = (p.weight.double() for p in (gated.gate_proj, gated.up_proj, gated.down_proj))
    want = (F.silu(x.double() @ gate.t()) * (x.double() @ up.t())) @ down.t()
    held("liger's SwiGLU", apart(gated.to("rdna")(x.to("rdna")), want), 1e-6)


def llama():
    """A training step of transformers' Llama, in which liger replaces norms, rotary embeddings, SwiGLU and the loss."""
    from liger_kernel.transformers import apply_liger_kernel_to_llama

    config = transformers.LlamaConfig(hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
                                      num_key_value_heads=2, vocab_size=211, max_position_embeddings=64)
    exact, words = transformers.LlamaForCausalLM(config).double(), torch.randint(0, 211, (2, 17))
    want = exact(words, labels=words).loss
    want.backward()
    apply_liger_kernel_to_llama()
    mine = transformers.LlamaForCausalLM(config)
    mine.load_state_dict(exact.state_dict())
    mine = mine.to("rdna")
    torch.rdna.reset_fallback_report()
    loss = mine(words.to("rdna"), labels=words.to("rdna")).loss
    loss.backward()
    held("Llama by liger's kernels, loss", apart(loss, want), 1e-6)
    for (name, p), q in zip(mine.named_parameters(), exact.parameters()):
        held(f"gradient of {name}", apart(p.grad, q.grad), 1e-4)
    assert not torch.rdna.fallback_report(), torch.rdna.fallback_report()


def quantized():
    """Weights of 4 bits beside those that bitsandbytes has on the CPU, and a Llama that is trained so by adapters (QLoRA),
    whose optimizer keeps 8 bits."""
    import bitsandbytes
    from bitsandbytes import functional
    from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training

    weights = torch.randn(64, 128)
    for kind in ("nf4", "fp4"):
        bits, state = functional.quantize_4bit(weights.to("rdna"), quant_type=kind)
        theirs = functional.dequantize_4bit(*functional.quantize_4bit(weights, quant_type=kind))
        held(f"bitsandbytes' {kind}", apart(functional.dequantize_4bit(bits, state), theirs.double()), 1e-6)
    config = transformers.LlamaConfig(hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
                                      num_key_value_heads=2, vocab_size=211, max_position_embeddings=64)
    words, losses = torch.randint(0, 211, (2, 12)), {}
    with tempfile.TemporaryDirectory() as folder:
        transformers.LlamaForCausalLM(config).save_pretrained(folder)
        four = transformers.BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True)
        for device in ("cpu", "rdna"):
            model = transformers.AutoModelForCausalLM.from_pretrained(folder, quantization_config=four, device_map={"": device},
                                                                      dtype=torch.float32)
            torch.manual_seed(1)
            model = get_peft_model(prepare_model_for_kbit_training(model), LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "up_proj"]))
            descent = bitsandbytes.optim.AdamW8bit([p for p in model.parameters() if p.requires_grad], lr=1e-2)
            torch.rdna.reset_fallback_report()
            losses[device] = []
            for _ in range(3):
                loss = model(words.to(device), labels=words.to(device)).loss
                loss.backward()
                descent.step()
                descent.zero_grad()
                losses[device].append(loss.detach().cpu())
    assert not torch.rdna.fallback_report(), torch.rdna.fallback_report()
    held("losses of QLoRA beside the CPU's", apart(torch.stack(losses["rdna"]), torch.stack(losses["cpu"]).double()), 1e-5)
    assert losses["rdna"][2] < losses["rdna"][0]


quantized()
layers()
llama()

"""Small random models of Stable Diffusion 1, 2 and XL as folders of diffusers and as the one file that most sites offer,
for tests. Heads have 64 channels and groups are 32, which such a file does not say."""
import diffusers
import safetensors.torch
import torch
import transformers

from image_command_test import randomize, schedule_of
from image_text_encoder_test import POSITIONS, random_model, write_tokenizer

UNET = {"block_out_channels": [64, 128], "layers_per_block": 1, "attention_head_dim": 8, "sample_size": 8,
        "down_block_types": ["CrossAttnDownBlock2D", "DownBlock2D"], "up_block_types": ["UpBlock2D", "CrossAttnUpBlock2D"]}
VAE = {"force_upcast": False, "block_out_channels": [32, 64], "layers_per_block": 1, "latent_channels": 4,
       "down_block_types": ["DownEncoderBlock2D"] * 2, "up_block_types": ["UpDecoderBlock2D"] * 2}


def encoder(kind, seed, count, width, **options):
    model = random_model(kind, seed, eos_token_id=count - 1, vocab_size=count, hidden_size=width, num_attention_heads=width // 64,
                         projection_dim=width, **options)
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(0.5 if p.ndim > 1 else 1)
    return model


def make_model(folder, family, scheduler, **unet):
    """A pipeline of diffusers in float64, which |folder| becomes, and its tensors as one file has them. |family|: "sd1",
    "sd2" or "xl"."""
    folder.mkdir(exist_ok=True)
    pads = {"sd1": "<|endoftext|>", "sd2": "!", "xl": "<|endoftext|>"}
    count = write_tokenizer(folder / "tokenizer", pads[family])
    tokenizer = transformers.CLIPTokenizer.from_pretrained(folder / "tokenizer", model_max_length=POSITIONS)
    text = encoder(transformers.CLIPTextModel, 1, count, 64, **({"hidden_act": "gelu", "num_hidden_layers": 2} if family == "sd2" else {}))
    settings = {**UNET, **({} if family == "sd1" else {"attention_head_dim": [1, 2], "use_linear_projection": True}), **unet}
    vae = randomize(diffusers.AutoencoderKL(**VAE, scaling_factor=0.13025 if family == "xl" else 0.18215), 2)
    parts = {"vae": vae, "text_encoder": text, "tokenizer": tokenizer, "scheduler": scheduler(**schedule_of(scheduler))}
    if family == "xl":
        write_tokenizer(folder / "tokenizer_2", "!")
        second = transformers.CLIPTokenizer.from_pretrained(folder / "tokenizer_2", model_max_length=POSITIONS)
        other = encoder(transformers.CLIPTextModelWithProjection, 3, count, 128, hidden_act="gelu")
        network = diffusers.UNet2DConditionModel(**{
            "cross_attention_dim": 192, "addition_embed_type": "text_time", "addition_time_embed_dim": 256, "transformer_layers_per_block": [1, 2],
            "projection_class_embeddings_input_dim": 128 + 6 * 256, **settings})
        pipeline = diffusers.StableDiffusionXLPipeline(**parts, unet=randomize(network, 4), text_encoder_2=other, tokenizer_2=second, add_watermarker=False)
    else:
        network = randomize(diffusers.UNet2DConditionModel(**{"cross_attention_dim": 64, **settings}), 4)
        pipeline = diffusers.StableDiffusionPipeline(**parts, unet=network, safety_checker=None, feature_extractor=None)
    pipeline.save_pretrained(folder)
    pipeline.set_progress_bar_config(disable=True)
    whole = one_file(family, pipeline)
    return pipeline.to(torch.float64), whole


def save(path, tensors, **metadata):
    safetensors.torch.save_file({k: v.detach().float().contiguous().clone() for k, v in tensors.items()}, path, metadata or None)


# ---- names of one file ----

RESNET = {"norm1": "in_layers.0", "conv1": "in_layers.2", "time_emb_proj": "emb_layers.1", "norm2": "out_layers.0", "conv2": "out_layers.3",
          "conv_shortcut": "skip_connection"}
OUTER = {"conv_in": "input_blocks.0.0", "time_embedding.linear_1": "time_embed.0", "time_embedding.linear_2": "time_embed.2",
         "add_embedding.linear_1": "label_emb.0.0", "add_embedding.linear_2": "label_emb.0.2", "conv_norm_out": "out.0", "conv_out": "out.2"}


def unet_names(unet):
    """The name there of each of diffusers', by walking through the blocks in the order in which they run."""
    pairs, number = dict(OUTER), 1

    def resnet(ours, theirs):
        pairs.update({f"{ours}.{a}": f"{theirs}.{b}" for a, b in RESNET.items()})
    for i, block in enumerate(unet.down_blocks):
        for j in range(len(block.resnets)):
            resnet(f"down_blocks.{i}.resnets.{j}", f"input_blocks.{number}.0")
            pairs[f"down_blocks.{i}.attentions.{j}"] = f"input_blocks.{number}.1"
            number += 1
        if block.downsamplers:
            pairs[f"down_blocks.{i}.downsamplers.0.conv"] = f"input_blocks.{number}.0.op"
            number += 1
    for j in range(2):
        resnet(f"mid_block.resnets.{j}", f"middle_block.{2 * j}")
    pairs["mid_block.attentions.0"] = "middle_block.1"
    number = 0
    for i, block in enumerate(unet.up_blocks):
        attends = hasattr(block, "attentions")
        for j in range(len(block.resnets)):
            resnet(f"up_blocks.{i}.resnets.{j}", f"output_blocks.{number}.0")
            pairs[f"up_blocks.{i}.attentions.{j}"] = f"output_blocks.{number}.1"
            if j + 1 == len(block.resnets) and block.upsamplers:
                pairs[f"up_blocks.{i}.upsamplers.0.conv"] = f"output_blocks.{number}.{1 + attends}.conv"
            number += 1
    return pairs


def rename(name, pairs):
    for ours, theirs in sorted(pairs.items(), key=lambda pair: -len(pair[0])):
        if name == ours or name.startswith(ours + "."):
            return theirs + name[len(ours):]
    raise KeyError(name)


def vae_names(vae):
    pairs = {"quant_conv": "quant_conv", "post_quant_conv": "post_quant_conv"}
    levels = len(vae.config.block_out_channels)
    for half, blocks in (("encoder", vae.encoder.down_blocks), ("decoder", vae.decoder.up_blocks)):
        pairs |= {f"{half}.conv_in": f"{half}.conv_in", f"{half}.conv_norm_out": f"{half}.norm_out", f"{half}.conv_out": f"{half}.conv_out"}
        for j in range(2):
            pairs[f"{half}.mid_block.resnets.{j}"] = f"{half}.mid.block_{j + 1}"
        pairs |= {f"{half}.mid_block.attentions.0.{a}": f"{half}.mid.attn_1.{b}" for a, b in
                  {"group_norm": "norm", "to_q": "q", "to_k": "k", "to_v": "v", "to_out.0": "proj_out"}.items()}
        for i, block in enumerate(blocks):
            down = half == "encoder"
            ours, theirs = f"{half}.{'down' if down else 'up'}_blocks.{i}", f"{half}.{'down' if down else 'up'}.{i if down else levels - 1 - i}"
            for j in range(len(block.resnets)):
                pairs[f"{ours}.resnets.{j}"] = f"{theirs}.block.{j}"
                pairs[f"{ours}.resnets.{j}.conv_shortcut"] = f"{theirs}.block.{j}.nin_shortcut"
            pairs[f"{ours}.{'down' if down else 'up'}samplers.0.conv"] = f"{theirs}.{'down' if down else 'up'}sample.conv"
    return pairs


def open_clip(state, more_layers):
    """OpenCLIP's tensors of transformers', with as many layers more, which are not read."""
    state, out = {k.removeprefix("text_model."): v for k, v in state.items()}, {}
    names = {"embeddings.token_embedding.weight": "token_embedding.weight", "embeddings.position_embedding.weight": "positional_embedding",
             "final_layer_norm.weight": "ln_final.weight", "final_layer_norm.bias": "ln_final.bias"}
    layers = 1 + max(int(k.split(".")[2]) for k in state if k.startswith("encoder.layers."))
    for k, v in names.items():
        out[v] = state[k]
    for i in range(layers):
        at, to = f"encoder.layers.{i}.", f"transformer.resblocks.{i}."
        for kind in ("weight", "bias"):
            out[f"{to}attn.in_proj_{kind}"] = torch.cat([state[f"{at}self_attn.{x}_proj.{kind}"] for x in "qkv"])
            for ours, theirs in {"layer_norm1": "ln_1", "layer_norm2": "ln_2", "self_attn.out_proj": "attn.out_proj", "mlp.fc1": "mlp.c_fc",
                                 "mlp.fc2": "mlp.c_proj"}.items():
                out[f"{to}{theirs}.{kind}"] = state[f"{at}{ours}.{kind}"]
    for i in range(layers, layers + more_layers):
        for k in [k for k in out if k.startswith("transformer.resblocks.0.")]:
            out[k.replace(".0.", f".{i}.", 1)] = torch.randn(out[k].shape)
    out["logit_scale"] = torch.tensor(4.6)
    if "text_projection.weight" in state:
        out["text_projection"] = state["text_projection.weight"].T
    return out


def one_file(family, pipeline):
    tensors = {}
    unet, vae = unet_names(pipeline.unet), vae_names(pipeline.vae)
    for k, v in pipeline.unet.state_dict().items():
        tensors["model.diffusion_model." + rename(k, unet)] = v
    for k, v in pipeline.vae.state_dict().items():
        attention = ".mid_block.attentions.0.to_" in k and k.endswith("weight")
        tensors["first_stage_model." + rename(k, vae)] = v[:, :, None, None] if attention else v
    text = {"text_model." + k.removeprefix("text_model."): v for k, v in pipeline.text_encoder.state_dict().items()}
    if family == "sd2":
        tensors |= {"cond_stage_model.model." + k: v for k, v in open_clip(text, 1).items()}
    else:
        at = "cond_stage_model.transformer." if family == "sd1" else "conditioner.embedders.0.transformer."
        tensors |= {at + k: v for k, v in text.items()}
        tensors[at + "text_model.embeddings.position_ids"] = torch.arange(POSITIONS)[None].float()
    if family == "xl":
        tensors |= {"conditioner.embedders.1.model." + k: v for k, v in open_clip(pipeline.text_encoder_2.state_dict(), 0).items()}
    tensors["model_ema.decay"] = torch.tensor(0.99)
    tensors["betas"] = torch.linspace(0, 1, 10)
    return tensors

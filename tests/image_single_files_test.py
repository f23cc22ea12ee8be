"""The transformers of Stable Diffusion 3.5, FLUX.2 klein, Qwen-Image and Z-Image in files of their own, by the names of
their makers or ComfyUI: GGUF in blocks, safetensors in 32 bits and in 8 with scales. Against diffusers' networks and
pipelines in float64, whose weights are those that NumPy reads from the same blocks."""
import base64
import json
import pathlib
import re
import shutil
import tempfile
import unittest

import diffusers_python  # first: this goes on in a Python that has diffusers
import diffusers
import numpy as np
import PIL.Image
import safetensors.torch
import torch
from diffusers.loaders import single_file_utils

import image_flow_parts_test as parts
import image_flow_test as flow
import image_flux2_test
import image_flux_test
import image_qwen_test
import image_sd3_test
import image_zimage_test
import rdna_program  # makes tools/ importable
import serving
import gguf_file as gf
from image_flow_test import BAD_DATA, BF16, UNSUPPORTED, error
from image_quantized_test import Q4_K, Q8_0, write_gguf

PREFIX = "model.diffusion_model."
AXES = {"attention_head_dim": 128, "num_attention_heads": 2}
FLUX_SIDES = {"img": ("attn.to_{}", "attn.to_out.0", "ff", "attn.norm_{}"), "txt": ("attn.add_{}_proj", "attn.to_add_out", "ff_context", "attn.norm_added_{}")}


def join(state, table):
    """Tensors called as |table| says: {theirs: [ours, …]}, each with what they have of weight and bias."""
    out = {}
    for theirs, ours in table.items():
        for kind in ("weight", "bias"):
            found = [state[f"{name}.{kind}"] for name in ours if f"{name}.{kind}" in state]
            if found:
                out[f"{theirs}.{kind}"] = torch.cat(found)
    return out


def swap(tensors, *names):
    """Of what scales and shifts the makers have the latter first."""
    for name in names:
        for kind in ("weight", "bias"):
            if f"{name}.{kind}" in tensors:
                tensors[f"{name}.{kind}"] = torch.cat(tensors[f"{name}.{kind}"].chunk(2)[::-1])
    return tensors


def flux2_names(state):
    table = {"img_in": ["x_embedder"], "txt_in": ["context_embedder"], "final_layer.linear": ["proj_out"], "final_layer.adaLN_modulation.1": ["norm_out.linear"]}
    table |= {f"{name}.{end}_layer": [f"time_guidance_embed.{ours}.linear_{i}"] for name, ours in (("time_in", "timestep_embedder"), ("guidance_in", "guidance_embedder"))
              for i, end in ((1, "in"), (2, "out"))}
    table |= {f"{name}.lin": [f"{name}.linear"] for name in ("double_stream_modulation_img", "double_stream_modulation_txt", "single_stream_modulation")}
    scales = {}
    for i in range(2):
        at, to = f"transformer_blocks.{i}.", f"double_blocks.{i}."
        for side, (heads, made, feed, norm) in FLUX_SIDES.items():
            table |= {f"{to}{side}_attn.qkv": [at + heads.format(x) for x in "qkv"], f"{to}{side}_attn.proj": [at + made],
                      f"{to}{side}_mlp.0": [f"{at}{feed}.linear_in"], f"{to}{side}_mlp.2": [f"{at}{feed}.linear_out"]}
            scales |= {f"{to}{side}_attn.norm.{kind}_norm": at + norm.format(x) for x, kind in (("q", "query"), ("k", "key"))}
        at, to = f"single_transformer_blocks.{i}.attn.", f"single_blocks.{i}."
        table |= {to + "linear1": [at + "to_qkv_mlp_proj"], to + "linear2": [at + "to_out"]}
        scales |= {f"{to}norm.{kind}_norm": f"{at}norm_{x}" for x, kind in (("q", "query"), ("k", "key"))}
    return swap(join(state, table), "final_layer.adaLN_modulation.1") | {f"{k}.scale": state[f"{v}.weight"] for k, v in scales.items() if f"{v}.weight" in state}


def sd3_names(state):
    blocks = 1 + max(int(name.split(".")[1]) for name in state if name.startswith("transformer_blocks."))
    table = {"x_embedder.proj": ["pos_embed.proj"], "context_embedder": ["context_embedder"], "final_layer.linear": ["proj_out"], "final_layer.adaLN_modulation.1": ["norm_out.linear"]}
    table |= {f"{name}.mlp.{2 * i}": [f"time_text_embed.{ours}.linear_{i + 1}"] for name, ours in (("t_embedder", "timestep_embedder"), ("y_embedder", "text_embedder")) for i in (0, 1)}
    for i in range(blocks):
        at, to = f"transformer_blocks.{i}.", f"joint_blocks.{i}."
        for side, norm, heads, made, feed, norms in (("x_block", "norm1", "to_{}", "to_out.0", "ff", "norm_{}"), ("context_block", "norm1_context", "add_{}_proj", "to_add_out", "ff_context", "norm_added_{}")):
            table |= {f"{to}{side}.adaLN_modulation.1": [f"{at}{norm}.linear"], f"{to}{side}.mlp.fc1": [f"{at}{feed}.net.0.proj"], f"{to}{side}.mlp.fc2": [f"{at}{feed}.net.2"]}
            for attention in ("attn", "attn2"):
                table |= {f"{to}{side}.{attention}.qkv": [f"{at}{attention}.{heads.format(x)}" for x in "qkv"], f"{to}{side}.{attention}.proj": [f"{at}{attention}.{made}"]}
                table |= {f"{to}{side}.{attention}.ln_{x}": [f"{at}{attention}.{norms.format(x)}"] for x in "qk"}
    return swap(join(state, table), "final_layer.adaLN_modulation.1", f"joint_blocks.{blocks - 1}.context_block.adaLN_modulation.1") | {"pos_embed": state["pos_embed.pos_embed"]}


def zimage_names(state):
    out = {}
    for name, value in state.items():
        for ours, theirs in (("all_x_embedder.2-1", "x_embedder"), ("all_final_layer.2-1", "final_layer"), ("attention.to_out.0", "attention.out"), ("attention.norm_q", "attention.q_norm"), ("attention.norm_k", "attention.k_norm")):
            name = name.replace(ours, theirs)
        if "attention.to_q" in name:
            value = torch.cat([value, *(state[name.replace("to_q", f"to_{x}")] for x in "kv")])
        if not re.search("attention.to_[kv]", name):
            out[name.replace("to_q", "qkv")] = value
    return out | {"norm_final.weight": torch.ones(3)}  # which files have, and nobody reads


def sd3_answer(network, sample, states, pooled, timestep):
    return network(sample[None], states[None], pooled[None], torch.tensor([timestep]).double()).sample[0]


class Model:
    """A transformer of diffusers, how its file is called, what reads it back, and what it answers."""

    def __init__(self, make, names, back, architecture, answer, patch=2):
        self.make, self.names, self.back, self.architecture, self.answer, self.patch = make, names, back, architecture, answer, patch

    def network(self, values):
        network = self.make().double()
        network.load_state_dict(self.back(dict(values)), strict=True)
        return network.eval()

    def tensors(self):
        return {name: value.detach().clone() for name, value in self.names(self.make().state_dict()).items()}


def whole_sd3(values):
    """With what GGUF leaves out, by diffusers."""
    table = values["pos_embed"]
    return single_file_utils.convert_sd3_transformer_checkpoint_to_diffusers({**values, "pos_embed": table if table.ndim == 3 else table[None]})


def whole_zimage(values):
    values = {name: value[None] if name.endswith("pad_token") and value.ndim == 1 else value for name, value in values.items()}
    return single_file_utils.convert_z_image_transformer_checkpoint_to_diffusers(values)


def zimage_transformer():
    settings = {"in_channels": 4, "dim": 384, "n_layers": 1, "n_refiner_layers": 1, "n_heads": 3, "n_kv_heads": 3, "cap_feat_dim": 32, "axes_dims": [32, 48, 48], "axes_lens": [1024, 512, 512]}
    return flow.randomize(diffusers.ZImageTransformer2DModel(**settings), 4)


MODELS = {
    "sd3": Model(lambda: image_sd3_test.sd3_transformer(attention_head_dim=64, num_attention_heads=4, caption_projection_dim=256, num_layers=2, qk_norm="rms_norm", dual_attention_layers=[0]),
                 sd3_names, whole_sd3, "sd3", sd3_answer),
    "plain sd3": Model(lambda: image_sd3_test.sd3_transformer(attention_head_dim=64, num_attention_heads=4, caption_projection_dim=256, num_layers=1), sd3_names, whole_sd3, "sd3", sd3_answer),
    "flux2": Model(lambda: parts.flux2_transformer(**AXES, axes_dims_rope=(32,) * 4, num_layers=1, num_single_layers=1), flux2_names,
                   lambda values: single_file_utils.convert_flux2_transformer_checkpoint_to_diffusers(values), "flux",
                   lambda network, sample, states, pooled, timestep: parts.flux2_answer(network, sample, states, timestep, 1, None), 1),
    "qwen": Model(lambda: parts.qwen_transformer(**AXES, axes_dims_rope=(16, 56, 56)), dict, dict, "qwen_image",
                  lambda network, sample, states, pooled, timestep: parts.qwen_answer(network, sample, states, timestep, 1, None)),
    "zimage": Model(zimage_transformer, zimage_names, whole_zimage, "lumina2", None)}


def is_matrix(name, value):
    """Of a block, as published files have them in few bits."""
    return value.ndim == 2 and re.search(r"blocks\.\d|layers\.\d|refiner\.\d", name) is not None


def blocks(kind):
    return lambda name, value: kind if is_matrix(name, value) and value.shape[1] % gf.BLOCKS[kind][0] == 0 else gf.TENSOR_F16 if value.ndim > 1 else gf.TENSOR_F32


def without_ones(tensors):
    """As llama.cpp's tools write them."""
    return {name: value[0] if value.ndim > 1 and value.shape[0] == 1 else value for name, value in tensors.items()}


def write_small(path, tensors, prefix, scale_name, dtype=torch.float8_e4m3fn):
    """8-bit floats with a number for each matrix; the values."""
    saved, values = {}, {}
    for i, (name, value) in enumerate(tensors.items()):
        small = is_matrix(name, value)
        scale = np.float32(value.abs().max() / (400 + i)).item() if small else 1
        saved[prefix + name] = (value / scale).to(dtype) if small else value.bfloat16()
        values[name] = saved[prefix + name].double() * scale
        if small:
            saved[prefix + name.removesuffix("weight") + scale_name] = torch.tensor(scale)
    safetensors.torch.save_file({k: v.contiguous() for k, v in saved.items()}, path)
    return values


class Transformers(flow.Folder):
    """Through librdna."""

    def compare(self, model, path, values, limit=1e-4, dtype=0):
        network, ours = model.network(values), flow.Flux(path, dtype)
        self.assertEqual(ours.status, 0, ours.sentence)
        width, pooled = ours.info.text_width, ours.info.pooled_width
        for height, across, tokens, timestep in ((4, 6, 9, 501.5), (2, 2, 3, 1000)):
            rng = np.random.default_rng(height)
            sample, states, vector = (rng.standard_normal(shape).astype(np.float32) for shape in ((ours.info.in_channels, height, across), (tokens, width), (max(pooled, 1),)))
            with torch.no_grad():
                wanted = model.answer(network, *(torch.from_numpy(x).double() for x in (sample, states, vector)), timestep)
            got, status = ours.run(sample, states, vector, timestep, 1, {} if pooled else {"pooled": None})
            self.assertEqual(status, 0, flow.LIBRARY.rdna_last_error())
            self.assertLess(error(got, wanted), limit)
        return ours

    def test_names(self):
        """What these tests write is what diffusers reads so."""
        for name, model in MODELS.items():
            state, theirs = model.make().state_dict(), model.back(model.tensors())
            self.assertEqual(set(theirs), set(state), name)
            for key, value in state.items():
                self.assertTrue(torch.equal(theirs[key], value), key)

    def test_files(self):
        for name, model in MODELS.items():
            if not model.answer:
                continue
            tensors = model.tensors()
            for kind in (Q8_0,) if name == "plain sd3" else (Q8_0, Q4_K):
                with self.subTest(f"{name} {kind}"):
                    path = self.folder / "x.gguf"
                    values = write_gguf(path, without_ones(tensors), blocks(kind), model.architecture)
                    ours = self.compare(model, path, values)
                    size, count = gf.BLOCKS[kind]
                    in_blocks = sum(v.numel() for k, v in tensors.items() if is_matrix(k, v))
                    self.assertLess(ours.info.weights_bytes - in_blocks // size * count, 4 * sum(v.numel() for k, v in tensors.items() if not is_matrix(k, v)) + 4096)
            self.compare(model, path, values, 4e-2, BF16)
            with self.subTest(f"{name} in 32 and 8 bits"):
                path = self.folder / "x.safetensors"
                safetensors.torch.save_file({PREFIX + k: v.contiguous() for k, v in tensors.items()} | {"first_stage_model.x": torch.ones(2)}, path)
                self.compare(model, path, {k: v.double() for k, v in tensors.items()})
                self.compare(model, path, write_small(path, tensors, "", "weight_scale"))
                if name != "plain sd3":
                    self.compare(model, path, write_small(path, tensors, PREFIX, "scale_weight", torch.float8_e5m2))

    def test_refusals(self):
        path, one = self.folder / "x.gguf", torch.ones(2, 2)

        def changed(**tensors):
            return lambda of: {**of, **tensors}

        def without(start):
            return lambda of: {k: v for k, v in of.items() if not k.startswith(start)}
        wide = {"transformer_blocks.0.attn.norm_q.weight": torch.ones(64)}
        for name, change, architecture, status, words in [
                ("sd3", dict, "flux", UNSUPPORTED, ["flux", "sd3"]), ("sd3", changed(strange=one), "sd3", UNSUPPORTED, ["strange"]), ("sd3", without("final_layer.linear.bias"), "sd3", BAD_DATA, ["proj_out.bias"]),
                ("sd3", changed(pos_embed=torch.ones(99, 256)), "sd3", BAD_DATA, ["99", "square"]), ("sd3", without("pos_embed"), "sd3", BAD_DATA, ["pos_embed"]), ("sd3", without("x_embedder"), "sd3", BAD_DATA, ["x_embedder"]),
                ("sd3", without("joint_blocks.1.x_block.attn.ln_q"), "sd3", BAD_DATA, ["blocks.1.attn.norm_q"]), ("flux2", dict, "sd3", UNSUPPORTED, ["sd3"]), ("flux2", without("double_blocks"), "flux", UNSUPPORTED, ["256", "128"]),
                ("flux2", without("single_blocks.0.linear2"), "flux", BAD_DATA, ["to_out"]), ("flux2", changed(strange=one), None, UNSUPPORTED, ["strange"]), ("qwen", dict, "wan", UNSUPPORTED, ["wan", "qwen_image"]),
                ("qwen", lambda of: {**of, **wide}, None, UNSUPPORTED, ["256", "64", "128"]), ("qwen", without("proj_out.bias"), None, BAD_DATA, ["proj_out.bias"]),
                ("qwen", changed(**{"time_text_embed.addition_t_embedding.weight": one}), None, UNSUPPORTED, ["addition_t_embedding"]), ("zimage", dict, "lumina2", UNSUPPORTED, ["ZImageTransformer2DModel", "FluxTransformer2DModel"])]:
            with self.subTest(f"{name} {words}"):
                write_gguf(path, change(without_ones(MODELS[name].tensors())), lambda *_: gf.TENSOR_F32, architecture)
                ours = flow.Flux(path)
                self.assertEqual(ours.status, status, ours.sentence)
                for word in ("x.gguf", *words):
                    self.assertIn(word, ours.sentence)


class Pictures(unittest.TestCase):
    """Through the command: folders that have all but the transformer."""
    refuse = image_flux_test.Pictures.refuse

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.root = pathlib.Path(cls.temporary.name)

    def setUp(self):
        self.out = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def check(self, model, pipeline, path, values, prompt, reference, *options):
        """A picture with that file is the pipeline's with those values."""
        pipeline.transformer, dump = MODELS[model].network(values), self.out / "dump"
        shutil.rmtree(dump, ignore_errors=True)
        report = json.loads(rdna_program.output("image", self.root / model, prompt, "--out", self.out / "picture.png", "--dump", dump, "--json", "--driver", rdna_program.DEVICE,
                                                "--type", "f32", "--seed", 5, "--size", "24x16", "--steps", 2, "--transformer", path, *options))
        latents, picture = reference(pipeline)
        for i, wanted in enumerate(latents):
            self.assertLess(error(np.load(dump / f"latents-{i:04d}.npy"), wanted), 1e-3, f"step {i}")
        self.assertLess(error(np.load(dump / "picture.npy").clip(-1, 1) / 2 + 0.5, picture), 1e-3)
        plan, peak = report["plan"]["peak"], report["peak_bytes"]
        self.assertLess(abs(plan - peak), 0.03 * peak if model == "sd3" else 1 << 26)  # a language model's pass is not in the plan
        self.assertIn(f"Transformer: {path.name}", PIL.Image.open(self.out / "picture.png").text["parameters"])

    def prepare(self, model, pipeline):
        shutil.rmtree(self.root / model / "transformer")
        path = self.root / f"{model}.gguf"
        return path, write_gguf(path, without_ones(MODELS[model].tensors()), blocks(Q8_0), MODELS[model].architecture)

    def test_sd3(self):
        pipeline = image_sd3_test.make_folder(self.root / "sd3", image_sd3_test.MEDIUM)
        path, values = self.prepare("sd3", pipeline)
        self.check("sd3", pipeline, path, values, image_flux_test.PROMPT,
                   lambda p: image_sd3_test.Pictures.reference(self, p, 5, guidance_scale=1, num_inference_steps=2, width=24, height=16), "--cfg", 1)
        result = rdna_program.run("image", path, "x", "--driver", rdna_program.DEVICE)
        self.assertIn("--transformer", result.stderr.decode())

    def test_flux2(self):
        pipeline = image_flux2_test.make_folder(self.root / "flux2", True)
        path, values = self.prepare("flux2", pipeline)
        self.check("flux2", pipeline, path, values, image_flux_test.PROMPT,
                   lambda p: image_flux2_test.Pictures.reference(self, p, 5, 16, 24, guidance_scale=1, num_inference_steps=2))

    def test_qwen(self):
        self.pipeline = image_qwen_test.make_folder(self.root / "qwen")
        path, values = self.prepare("qwen", self.pipeline)
        self.check("qwen", self.pipeline, path, values, image_flux_test.PROMPT,
                   lambda p: image_qwen_test.Pictures.reference(self, 5, 16, 24, true_cfg_scale=1, negative_prompt=None, num_inference_steps=2), "--cfg", 1)
        # another model's, and T5, which it has not
        write_gguf(self.root / "sd.gguf", without_ones(MODELS["plain sd3"].tensors()), lambda *_: gf.TENSOR_F32, "sd3")
        self.refuse(self.root / "qwen", [(image_flux_test.nothing, ["--transformer", self.root / "sd.gguf"], ["Qwen-Image"]),
                                         (image_flux_test.nothing, ["--transformer", path, "--t5", path], ["Qwen-Image", "T5"]),
                                         (image_flux_test.nothing, ["--transformer", self.root / "no.gguf"], ["no.gguf"])])

    def test_zimage(self):
        model = MODELS["zimage"]
        pipeline = image_zimage_test.make_folder(self.root / "zimage")
        path, values = self.prepare("zimage", pipeline)
        reference = lambda p: image_zimage_test.Pictures.reference(self, p, 5, guidance_scale=0, num_inference_steps=2, width=24, height=16)  # noqa: E731
        prompt, tensors = image_zimage_test.PROMPT, model.tensors()
        self.check("zimage", pipeline, path, values, prompt, reference)
        values = write_gguf(path, without_ones(tensors), blocks(Q4_K), None)  # of rows that are whole blocks
        self.check("zimage", pipeline, path, values, prompt, reference)
        path = self.root / "zimage.safetensors"
        self.check("zimage", pipeline, path, write_small(path, tensors, PREFIX, "scale_weight"), prompt, reference)
        state = model.make().state_dict()  # under diffusers' names
        safetensors.torch.save_file({PREFIX + k: v.contiguous() for k, v in state.items()}, path)
        self.check("zimage", pipeline, path, {k: v.double() for k, v in tensors.items()}, prompt, reference)
        server = serving.serve_for(self, self.root / "zimage", "--type", "f32", "--transformer", path, model_option="--images")
        made = server.post("/v1/images/generations", prompt=prompt, seed=5, size="24x16", steps=2)["data"]
        self.assertEqual(base64.b64decode(made[0]["b64_json"]), (self.out / "picture.png").read_bytes())  # of the last check
        for change, words in (({"strange": torch.ones(1)}, "strange"), ({"layers.0.attention.norm_q.weight": torch.ones(64)}, "64")):
            safetensors.torch.save_file({k: v.contiguous() for k, v in {**state, **change}.items()}, path)
            self.refuse(self.root / "zimage", [(image_flux_test.nothing, ["--transformer", path], ["zimage.safetensors", words])])


if __name__ == "__main__":
    unittest.main()

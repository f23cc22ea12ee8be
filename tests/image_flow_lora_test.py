"""rdna image with LoRAs for transformers that flow: FLUX.1 by the names of kohya-ss' scripts, Black Forest Labs, diffusers
and XLabs, of all kinds, for its text encoders too, merged and beside weights in blocks; Stable Diffusion 3, Qwen-Image and
Z-Image. Against diffusers' pipelines in float64 with the changes in their weights, by diffusers' own converters of names."""
import contextlib
import inspect
import pathlib
import tempfile
import unittest

import diffusers_python  # first: this goes on in a Python that has diffusers
import torch
from diffusers.loaders import lora_conversion_utils

import image_flow_test as flow
import image_flux2_test
import image_flux_test as flux
import image_quantized_test as files
import image_qwen_test
import image_sd3_test
import image_zimage_test
import rdna_program
import safetensors.torch
from image_file_test import random_lora

KOHYA = ["double_blocks.0.img_attn.qkv", "double_blocks.0.txt_attn.qkv", "double_blocks.0.txt_attn.proj", "double_blocks.0.img_mlp.0", "double_blocks.0.img_mod.lin",
         "single_blocks.0.linear1", "single_blocks.1.linear2", "single_blocks.1.modulation.lin"]
ENDS = ["final_layer.adaLN_modulation.1", "img_in", "time_in.in_layer", "guidance_in.out_layer"]
MODULES = ["transformer_blocks.0.attn.to_k", "transformer_blocks.0.attn.add_v_proj", "transformer_blocks.0.attn.to_out.0", "transformer_blocks.0.ff_context.net.2",
           "single_transformer_blocks.1.attn.to_q", "single_transformer_blocks.1.proj_mlp", "single_transformer_blocks.0.proj_out", "norm_out.linear", "x_embedder"]
XLABS = {"double_blocks.0.processor.qkv_lora1": "double_blocks.0.img_attn.qkv", "double_blocks.0.processor.proj_lora2": "double_blocks.0.txt_attn.proj",
         "single_blocks.1.processor.qkv_lora": "single_blocks.1.linear1"}
PEFT = {"lora_up.weight": "lora_B.weight", "lora_down.weight": "lora_A.weight"}


def renamed(values, base, ends=None):
    """A file's tensors of one module; without |ends| as kohya-ss has them."""
    return {f"{base}.{(ends or {}).get(k, k)}": v for k, v in values.items() if not ends or k in ends or not k.startswith("alpha")}


def kohya(name):
    return "lora_unet_" + name.replace(".", "_")


def save(path, tensors):
    safetensors.torch.save_file({k: v.float().contiguous() for k, v in tensors.items()}, path)


class Flux(unittest.TestCase):
    draw, reference, compare = flux.Pictures.draw, flux.Pictures.reference, flux.Pictures.compare

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.root = pathlib.Path(cls.temporary.name)
        cls.settings = {**files.SETTINGS, "pooled_projection_dim": flow.DEV["pooled_projection_dim"], "joint_attention_dim": flow.DEV["joint_attention_dim"],
                        "axes_dims_rope": (16, 56, 56)}
        cls.pipeline = flux.make_folder(cls.root / "dev", "dev", **cls.settings)
        state = files.original(cls.pipeline.transformer.float().state_dict())
        cls.plain = {k: v.double() for k, v in state.items()}
        cls.blocks = files.write_gguf(cls.root / "flux.gguf", state, files.matrices_of(files.Q4_K), "flux")
        cls.pipeline.transformer.double()

    def setUp(self):
        self.out = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def check(self, changes, *options, values=None, modules=None, cfg=3.5):
        """Two steps of a picture are the pipeline's with weights that |changes| were added to, by the makers' names, or |modules|, by diffusers'."""
        values = dict(values or self.plain)
        for name, change in changes.items():
            name += "" if name.endswith(".bias") else ".weight"
            values[name] = values[name] + change
        network = files.network_of(values, self.settings)
        for name, change in (modules or {}).items():
            network.get_submodule(name).weight.data += change
        self.pipeline.transformer = network
        _, dumped = self.draw("dev", "--seed", 5, "--size", "16x8", "--steps", 2, *options)
        self.compare(dumped, self.reference(self.pipeline, 5, 8, 16, guidance_scale=cfg, num_inference_steps=2, max_sequence_length=512), 2)
        return network

    def make(self, names, kinds, seed, base, ends=None):
        generator, tensors, changes = torch.Generator().manual_seed(seed), {}, {}
        for i, name in enumerate(names):
            values, changes[name] = random_lora(kinds[i % len(kinds)], self.plain[name + ".weight"].shape, generator)
            if ends:  # whose alpha is the rank
                changes[name] = 2 * changes[name]
            tensors |= renamed(values, base(name), ends)
        return tensors, changes

    def converted(self, convert, tensors, changes):
        """diffusers' own converter says the same of names and shares."""
        plain, other = files.network_of(self.plain, self.settings), dict(self.plain)
        for name, change in changes.items():
            other[name + ".weight"] = other[name + ".weight"] + change
        other = files.network_of(other, self.settings)
        place = dict(vars(lora_conversion_utils))  # which knows the published width alone
        exec(inspect.getsource(convert).replace("3072", str(files.WIDTH)).replace("12288", str(4 * files.WIDTH)), place)
        theirs = place[convert.__name__]({k: v.float() for k, v in tensors.items()})
        modules = {k.removeprefix("transformer.").removesuffix(".lora_A.weight") for k in theirs if k.endswith(".lora_A.weight")}
        self.assertTrue(modules)
        for name in modules:
            got = theirs[f"transformer.{name}.lora_B.weight"].double() @ theirs[f"transformer.{name}.lora_A.weight"].double()
            self.assertLess(flow.error(got.numpy(), other.get_submodule(name).weight - plain.get_submodule(name).weight), 1e-5, name)

    def test_kohya(self):
        """Two files at once, also of LyCORIS' kinds; what diffusers knows of names, and the ends of the network."""
        tensors, changes = self.make(KOHYA, ["lora"], 1, kohya)
        self.converted(lora_conversion_utils._convert_kohya_flux_lora_to_diffusers, tensors, changes)
        save(self.out / "a.safetensors", tensors)
        more, others = self.make(KOHYA + ENDS, ["loha", "lokr", "lokr pair", "lora"], 2, kohya)
        save(self.out / "b.safetensors", more)
        self.check({name: 0.75 * changes.get(name, 0) - 0.5 * others[name] for name in others}, "--lora", f"{self.out}/a.safetensors:0.75", "--lora", f"{self.out}/b.safetensors:-0.5")

    def test_names(self):
        """Black Forest Labs' with PEFT's ends, also in a file by those names; XLabs'."""
        tensors, changes = self.make(KOHYA + ENDS, ["lora"], 3, "diffusion_model.{}".format, PEFT)
        save(self.out / "a.safetensors", tensors)
        save(self.out / "flux.safetensors", {k: v for k, v in self.plain.items()})
        for more in ([], ["--transformer", self.out / "flux.safetensors"]):
            self.check(changes, "--lora", self.out / "a.safetensors", *more)
        generator, tensors, changes = torch.Generator().manual_seed(4), {}, {}
        for name, matrix in XLABS.items():
            whole = self.plain[matrix + ".weight"].shape
            rows = 3 * files.WIDTH if matrix.endswith("linear1") else whole[0]
            values, change = random_lora("lora", (rows, whole[1]), generator)
            tensors |= {f"{name}.{k.removeprefix('lora_')}": v for k, v in values.items() if k != "alpha"}
            changes[matrix] = torch.cat([2 * change, torch.zeros(whole[0] - rows, whole[1])])
        self.converted(lora_conversion_utils._convert_xlabs_flux_lora_to_diffusers, tensors, changes)
        save(self.out / "x.safetensors", tensors)
        self.check(changes, "--lora", self.out / "x.safetensors")

    def test_differences(self):
        """Changes as a whole, of biases too, as programs write them that compare models."""
        generator, tensors, changes = torch.Generator().manual_seed(9), {}, {}
        for name in ("img_in.weight", "double_blocks.0.img_attn.qkv.bias", "double_blocks.0.txt_mlp.0.bias", "single_blocks.1.linear1.weight", "final_layer.adaLN_modulation.1.bias"):
            module, end = name.rsplit(".", 1)
            change = torch.randn(self.plain[name].shape, generator=generator).double() / 9
            tensors[f"{kohya(module)}.{'diff' if end == 'weight' else 'diff_b'}"] = change
            changes[module if end == "weight" else name] = 0.5 * change
        save(self.out / "x.safetensors", tensors)
        self.check(changes, "--lora", f"{self.out}/x.safetensors:0.5")

    def diffusers_file(self, path, prefix):
        generator, tensors, changes, network = torch.Generator().manual_seed(6), {}, {}, self.pipeline.transformer
        for name in MODULES:
            values, change = random_lora("lora", network.get_submodule(name).weight.shape, generator)
            tensors |= renamed(values, prefix + name, PEFT)
            changes[name] = 2 * change
        save(path, tensors)
        return changes

    def test_diffusers(self):
        """Its names with and without a prefix, on a folder and on a file by the makers' names, whose last norm lies otherwise."""
        save(self.out / "flux.safetensors", self.plain)
        for prefix, more in ("transformer.", ()), ("", ("--transformer", self.out / "flux.safetensors")):
            with self.subTest(prefix):
                changes = self.diffusers_file(self.out / "d.safetensors", prefix)
                self.check({}, "--lora", self.out / "d.safetensors", *more, modules=changes)

    def test_blocks(self):
        """Blocks of a file stay as they are, and changes that are too small for their steps count all the same."""
        gguf = ("--transformer", self.root / "flux.gguf")
        network = files.network_of(self.blocks, self.settings)
        tensors, changes = self.make(KOHYA[:-1], ["lora"], 7, kohya)
        small = {k: v / 64 if "lora_up" in k else v for k, v in tensors.items()}
        save(self.out / "s.safetensors", small)
        self.check({k: v / 64 for k, v in changes.items()}, "--lora", self.out / "s.safetensors", *gguf, values=self.blocks)
        plain = self.draw("dev", "--steps", 1, "--size", "16x8", *gguf)[0]["plan"]["parts"]
        changes = self.diffusers_file(self.out / "d.safetensors", "transformer.")
        save(self.out / "a.safetensors", tensors)
        _, first = self.make(KOHYA[:-1], ["lora"], 7, kohya)
        self.check(first, "--lora", self.out / "a.safetensors", "--lora", f"{self.out}/d.safetensors:-0.5", *gguf, values=self.blocks, modules={k: -0.5 * v for k, v in changes.items()})
        with_them = self.draw("dev", "--steps", 1, "--size", "16x8", "--lora", self.out / "a.safetensors", *gguf)[0]["plan"]["parts"]
        added = sum(4 * v.numel() for k, v in tensors.items() if "attn_qkv" in k or "linear1" in k)
        more = [part["weights"] - old["weights"] for part, old in zip(with_them, plain) if part["part"] == "transformer"][0]
        self.assertLess(more, 4 * added)  # factors, of queries, keys and values each with its own
        self.assertGreater(more, 0)
        self.pipeline.transformer = network

    def test_encoders(self):
        """CLIP's and T5's, as kohya-ss has them."""
        generator, tensors = torch.Generator().manual_seed(8), {}
        clip, t5 = self.pipeline.text_encoder, self.pipeline.text_encoder_2
        with contextlib.ExitStack() as stack:
            for network, module, base in [(clip, next(n for n, _ in clip.named_modules() if n.endswith("layers.1.mlp.fc1")), "lora_te1_text_model_encoder_layers_1_mlp_fc1"),
                                          (t5, "encoder.block.1.layer.0.SelfAttention.q", "lora_te3_encoder_block_1_layer_0_SelfAttention_q"),
                                          (t5, "encoder.block.0.layer.1.DenseReluDense.wo", "text_encoders.t5xxl.transformer.encoder.block.0.layer.1.DenseReluDense.wo")]:
                weight = network.get_submodule(module).weight
                values, change = random_lora("lora", weight.shape, generator)
                tensors |= renamed(values, base)
                stack.callback(weight.data.copy_, weight.detach().clone())
                weight.data += change
            save(self.out / "e.safetensors", tensors)
            self.check({}, "--lora", self.out / "e.safetensors")

    def refused(self, folder, tensors, *words):
        save(self.out / "x.safetensors", tensors)
        result = rdna_program.run("image", folder, flux.PROMPT, "--size", "16x8", "--steps", 1, "--lora", self.out / "x.safetensors", "--out", self.out / "x.png", "--driver", rdna_program.DEVICE)
        self.assertEqual(result.returncode, 1)
        for word in ("x.safetensors", *words):
            self.assertIn(word, result.stderr.decode().splitlines()[-1])

    def test_refusals(self):
        pair = lambda name, out, inner: {f"{name}.lora_down.weight": torch.ones(2, inner), f"{name}.lora_up.weight": torch.ones(out, 2)}  # noqa: E731
        width = files.WIDTH
        for tensors, words in [
                (pair("lora_unet_down_blocks_0_attentions_0_proj_in", 8, 8), ["another version"]), (pair("lora_unet_double_blocks_7_img_attn_qkv", 3 * width, width), ["another version"]),
                (pair("lora_unet_double_blocks_0_img_attn_qkv", 3 * width, 2 * width), ["256", "512", "another version"]), (pair("lora_unet_double_blocks_0_img_attn_qkv", width, width), ["768", "another version"]),
                (pair("lora_unet_single_blocks_0_linear1", 3 * width, width), ["1792"]), ({**pair("transformer.x_embedder", width, 16), "transformer.x_embedder.lora_B.bias": torch.ones(width)}, ["lora_B.bias"]),
                ({**pair("lora_unet_img_in", width, 16), "lora_unet_img_in.dora_scale": torch.ones(width, 1)}, ["DoRA"])]:
            with self.subTest(str(words)):
                self.refused(self.root / "dev", tensors, *words)


class Others(unittest.TestCase):
    """One of each other family, by its usual names."""
    draw = flux.Pictures.draw
    refused = Flux.refused

    def setUp(self):
        self.out = self.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def changed(self, network, bases):
        """|bases|: names in the file and modules that they are, of which several stand one below the other in one."""
        generator, tensors = torch.Generator().manual_seed(3), {}
        for base, modules in bases.items():
            weights = [network.get_submodule(name).weight for name in modules]
            rows = [len(weight) for weight in weights]
            values, change = random_lora("lora", (sum(rows), weights[0].shape[1]), generator)
            tensors |= renamed(values, base)
            for weight, part in zip(weights, change.split(rows)):
                weight.data += part
        save(self.out / "x.safetensors", tensors)

    def test_sd3(self):
        pipeline = image_sd3_test.make_folder(self.root / "sd3", image_sd3_test.MEDIUM)
        last = pipeline.transformer.config.num_layers - 1
        self.changed(pipeline.transformer, {
            kohya("joint_blocks.0.x_block.attn.qkv"): [f"transformer_blocks.0.attn.to_{x}" for x in "qkv"], kohya("joint_blocks.1.context_block.mlp.fc2"): ["transformer_blocks.1.ff_context.net.2"],
            kohya(f"joint_blocks.{last}.x_block.adaLN_modulation.1"): [f"transformer_blocks.{last}.norm1.linear"], "transformer.transformer_blocks.1.attn2.to_k": ["transformer_blocks.1.attn2.to_k"]})
        _, dumped = self.draw("sd3", "--seed", 5, "--size", "16x8", "--steps", 2, "--cfg", 3, "--lora", self.out / "x.safetensors")
        flux.Pictures.compare(self, dumped, image_sd3_test.Pictures.reference(self, pipeline, 5, height=8, width=16, guidance_scale=3, num_inference_steps=2), 2)

    def test_flux2(self):
        """Names of the makers are those that diffusers' converter knows; those of the ends, whose last norm lies otherwise, and diffusers' own."""
        for base in ("diffusion_model.{}", "{}"):
            pipeline = image_flux2_test.make_folder(self.root / f"flux2{len(base)}", False)
            network = pipeline.transformer
            queries = [[f"transformer_blocks.{i}.attn.{x}" for x in names] for i, names in enumerate((["to_q", "to_k", "to_v"], ["add_q_proj", "add_k_proj", "add_v_proj"]))]
            makers = {"double_blocks.0.img_attn.qkv": queries[0], "double_blocks.1.txt_attn.qkv": queries[1], "double_blocks.1.txt_attn.proj": ["transformer_blocks.1.attn.to_add_out"],
                      "double_blocks.0.img_mlp.0": ["transformer_blocks.0.ff.linear_in"], "double_blocks.0.txt_mlp.2": ["transformer_blocks.0.ff_context.linear_out"],
                      "single_blocks.0.linear1": ["single_transformer_blocks.0.attn.to_qkv_mlp_proj"], "single_blocks.1.linear2": ["single_transformer_blocks.1.attn.to_out"],
                      "double_stream_modulation_txt.lin": ["double_stream_modulation_txt.linear"], "single_stream_modulation.lin": ["single_stream_modulation.linear"],
                      "img_in": ["x_embedder"], "time_in.in_layer": ["time_guidance_embed.timestep_embedder.linear_1"], "final_layer.linear": ["proj_out"]}
            named = makers if base != "{}" else {module: [module] for modules in makers.values() for module in modules} | {"norm_out.linear": ["norm_out.linear"]}
            generator, tensors, whole = torch.Generator().manual_seed(4), {}, {}
            for name, modules in named.items():
                weights = [network.get_submodule(module).weight for module in modules]
                values, change = random_lora("lora", (sum(map(len, weights)), weights[0].shape[1]), generator)
                tensors |= {base.format(f"{name}.{end}"): values[key] for key, end in PEFT.items()}
                whole |= {module: 2 * part for module, part in zip(modules, change.split([len(weight) for weight in weights]))}  # without alpha
            if base != "{}":
                theirs = lora_conversion_utils._convert_non_diffusers_flux2_lora_to_diffusers(dict(tensors))
                self.assertEqual({k.removeprefix("transformer.").rsplit(".", 2)[0] for k in theirs}, set(whole))
                for module, change in whole.items():
                    got = theirs[f"transformer.{module}.lora_B.weight"] @ theirs[f"transformer.{module}.lora_A.weight"]
                    self.assertLess(flow.error(got.numpy(), change), 1e-6, module)
                values, change = random_lora("lora", network.norm_out.linear.weight.shape, generator)
                tensors |= {base.format(f"final_layer.adaLN_modulation.1.{end}"): values[key] for key, end in PEFT.items()}
                whole["norm_out.linear"] = 2 * change.roll(len(change) // 2, 0)  # the makers shift first
            for module, change in whole.items():
                network.get_submodule(module).weight.data += change
            save(self.out / "x.safetensors", tensors)
            _, dumped = self.draw(f"flux2{len(base)}", "--seed", 5, "--size", "16x8", "--steps", 2, "--cfg", 1, "--lora", self.out / "x.safetensors")
            flux.Pictures.compare(self, dumped, image_flux2_test.Pictures.reference(self, pipeline, 5, 8, 16, guidance_scale=1, num_inference_steps=2), 2)

    def test_qwen(self):
        self.pipeline = image_qwen_test.make_folder(self.root / "qwen")
        self.changed(self.pipeline.transformer, {name.format(module): [module] for name, module in [
            ("{}", "transformer_blocks.0.attn.to_q"), ("diffusion_model.{}", "transformer_blocks.0.attn.add_k_proj"), ("transformer.{}", "transformer_blocks.0.img_mlp.net.2"),
            ("lora_unet_transformer_blocks_0_txt_mod_1", "transformer_blocks.0.txt_mod.1")]})
        _, dumped = self.draw("qwen", "--seed", 5, "--size", "16x8", "--steps", 2, "--cfg", 3, "--lora", self.out / "x.safetensors")
        flux.Pictures.compare(self, dumped, image_qwen_test.Pictures.reference(self, 5, 8, 16, true_cfg_scale=3, negative_prompt=" ", num_inference_steps=2), 2)
        self.refused(self.root / "qwen", {"lora_te1_text_model_encoder_layers_0_mlp_fc1.lora_down.weight": torch.ones(2, 2)}, "CLIP", "another model")

    def test_zimage(self):
        pipeline = image_zimage_test.make_folder(self.root / "zimage")
        self.changed(pipeline.transformer, {"diffusion_model.layers.0.attention.qkv": [f"layers.0.attention.to_{x}" for x in "qkv"],
                                            "diffusion_model.layers.1.feed_forward.w2": ["layers.1.feed_forward.w2"], "lora_unet_context_refiner_0_attention_to_k": ["context_refiner.0.attention.to_k"]})
        kept, flux.PROMPT = flux.PROMPT, image_zimage_test.PROMPT
        self.addCleanup(setattr, flux, "PROMPT", kept)
        _, dumped = self.draw("zimage", "--seed", 5, "--size", "16x8", "--steps", 2, "--lora", self.out / "x.safetensors")
        flux.Pictures.compare(self, dumped, image_zimage_test.Pictures.reference(self, pipeline, 5, height=8, width=16, num_inference_steps=2, guidance_scale=0), 2)


if __name__ == "__main__":
    unittest.main()

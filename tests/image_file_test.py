"""rdna image with a model in one file, and with LoRAs: against diffusers' pipelines in float64 on the same weights."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import diffusers_python  # first: this goes on in a Python that has diffusers
import diffusers
import numpy as np
import PIL.Image
import torch
from diffusers.loaders import single_file_utils

import image_command_test as command
import image_flow_test
import rdna_program
from image_checkpoint import make_model, rename, save, unet_names, vae_names

PROMPT, NEGATIVE = command.PROMPT, command.NEGATIVE
# What a file of the family is drawn with where nobody says otherwise.
SAMPLERS = {"sd1": diffusers.PNDMScheduler, "sd2": diffusers.DDIMScheduler, "xl": diffusers.EulerDiscreteScheduler}


def random_lora(kind, shape, generator, rank=4):
    """Tensors by their ends, and the change of a weight of |shape|, in float64."""
    out, rest = shape[0], int(np.prod(shape[1:]))
    draw = lambda *size: torch.randn(size, generator=generator).double() / 3
    alpha = torch.tensor(float(rank) / 2)
    if kind == "lora":
        up, down = draw(out, rank), draw(rank, rest)
        window = (*shape[1:],) if len(shape) == 4 else (rest,)
        tensors = {"lora_up.weight": up.reshape(out, rank, *[1] * (len(shape) - 2)), "lora_down.weight": down.reshape(rank, *window)}
        change = up @ down
    elif kind == "loha":
        a, b, c, d = draw(out, rank), draw(rank, rest), draw(out, rank), draw(rank, rest)
        tensors, change = {"hada_w1_a": a, "hada_w1_b": b, "hada_w2_a": c, "hada_w2_b": d}, (a @ b) * (c @ d)
    else:  # Kronecker's, of which the second factor is a pair, or neither is
        first, second = draw(4, 2), draw(out // 4, *[shape[1] // 2, *shape[2:]])
        tensors = {"lokr_w1": first, "lokr_w2": second}
        if kind == "lokr pair":
            a, b = draw(out // 4, rank), draw(rank, rest // 2)
            second = (a @ b).reshape(second.shape)
            tensors = {"lokr_w1": first, "lokr_w2_a": a, "lokr_w2_b": b}
        else:
            alpha = torch.tensor(7.0)  # which counts for nothing then
        change = torch.einsum("ab,cd...->acbd...", first, second).reshape(out, -1)
    scale = 1 if kind == "lokr" else float(alpha) / rank
    return {**tensors, "alpha": alpha}, scale * change.reshape(shape)


class Files(unittest.TestCase):
    draw, reference, compare = command.Pictures.draw, command.Pictures.reference, command.Pictures.compare

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.temporary.name)
        cls.pipelines, cls.tensors = {}, {}
        for family, scheduler in SAMPLERS.items():
            cls.pipelines[family], cls.tensors[family] = make_model(cls.root / family, family, scheduler)
            save(cls.root / f"{family}.safetensors", cls.tensors[family])

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def setUp(self):
        self.out = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def vocabulary(self, family):
        return "--tokenizer", self.root / family

    def scheduler_of(self, family):
        options = {"set_alpha_to_one": False} if family != "xl" else {}
        options |= {"skip_prk_steps": True} if family == "sd1" else {"clip_sample": False, "prediction_type": "v_prediction"} if family == "sd2" else {}
        return SAMPLERS[family](**{k: v for k, v in command.SCHEDULE.items() if k != "clip_sample"}, **options)

    # ---- one file ----

    def test_names(self):
        """The files that these tests make are those that diffusers reads so."""
        for family, tensors in self.tensors.items():
            pipeline = self.pipelines[family]
            for part, convert, prefix in [("unet", single_file_utils.convert_ldm_unet_checkpoint, ""), ("vae", single_file_utils.convert_ldm_vae_checkpoint, "")]:
                theirs, wanted = convert(dict(tensors), dict(getattr(pipeline, part).config)), getattr(pipeline, part).state_dict()
                self.assertEqual(set(theirs), set(wanted))
                for name, value in wanted.items():
                    self.assertTrue(torch.equal(theirs[name].double().reshape(value.shape), value), name)

    def test_families(self):
        """As the folder of the same weights, and with the sampler that is usual for a family."""
        for family in SAMPLERS:
            with self.subTest(family):
                pipeline = self.pipelines[family]
                pipeline.scheduler = self.scheduler_of(family)
                report, dumped = self.draw(f"{family}.safetensors", "--seed", 3, "--steps", 4, "--cfg", 4, "--negative", NEGATIVE, "--size", "16x16",
                                           *self.vocabulary(family))
                wanted = self.reference(pipeline, seed=3, prompt=PROMPT, negative_prompt=NEGATIVE, guidance=4, num_inference_steps=4, width=16, height=16)
                self.compare(dumped, wanted, 5 if family == "sd1" else 4)
                self.assertIs(command.CLASSES.get(report["sampler"], SAMPLERS[family]), SAMPLERS[family])
                self.assertEqual(report["model"], "Stable Diffusion XL" if family == "xl" else "Stable Diffusion")

    def test_other_files(self):
        """Versions of one model in another's file, and files that are something else."""
        sd1, sd2, xl = self.tensors["sd1"], self.tensors["sd2"], self.tensors["xl"]
        part = lambda tensors, *prefixes: {k: v for k, v in tensors.items() if k.startswith(prefixes)}
        unet, vae = "model.diffusion_model.", "first_stage_model."
        for tensors, *words in [
                ({**part(sd1, unet, vae), **part(xl, "conditioner")}, "XL", "192", "64"), ({**part(xl, unet), **part(sd1, vae, "cond_stage")}, "64", "192"),
                ({**sd1, **part(sd2, "cond_stage")}, "Stable Diffusion 1", "Stable Diffusion 2"), (part(sd1, unet, vae), "no text encoder"),
                (part(sd1, unet, "cond_stage"), "autoencoder"), (part(sd1, vae, "cond_stage"), "input_blocks.0.0.weight"),
                ({k: v for k, v in xl.items() if "embedders.1" not in k}, "embedders.1"), ({"lora_unet_x.lora_up.weight": torch.ones(2, 2)}, "--lora"),
                ({"double_blocks.0.img_mod.lin.weight": torch.ones(2, 2)}, "FLUX"), ({"model.diffusion_model.joint_blocks.0.x": torch.ones(2, 2)}, "Diffusion 3"),
                ({"down_blocks.0.x": torch.ones(2)}, "folder"), ({"control_model.x": torch.ones(2)}, "ControlNet", "--control"),
                ({**sd1, "control_model.x": torch.ones(2)}, "control_model."), ({**xl, "edm_vpred.sigma_max": torch.ones(1)}, "CosXL"),
                ({**xl, "edm_mean": torch.ones(4)}, "Playground"), ({**sd1, "ztsnr": torch.ones(1)}, "ztsnr", "v_prediction"), ({}, "input_blocks.0.0.weight"),
                ({k: v for k, v in sd1.items() if "input_blocks.2." not in k}, "mid_block"), ({k: v for k, v in sd1.items() if "decoder.up.0" not in k}, "levels"),
                ({**sd1, unet + "strange": torch.ones(2)}, "strange"), ({k: v for k, v in sd1.items() if k != unet + "out.2.bias"}, "conv_out.bias"),
                ({**sd1, unet + "out.2.bias": torch.ones(5)}, "5"), ({k: v for k, v in xl.items() if not k.endswith("in_proj_bias")}, "q_proj.bias"),
                ({**part(sd1, unet, vae), **part(sd2, "cond_stage"), unet + "label_emb.0.0.weight": torch.ones(256, 9)}, "another version")]:
            save(self.out / "other.safetensors", tensors)
            with self.subTest(str(words)):
                self.refused(self.out / "other.safetensors", *self.vocabulary("sd1"), words=words)
        self.refused(self.root / "sd1.safetensors", words=["no vocabulary", "--tokenizer"])
        self.refused(self.root / "sd1.safetensors", "--tokenizer", self.out, words=["no vocabulary", str(self.out)])
        self.refused(self.root / "sd1", *self.vocabulary("sd1"), words=["folder has its own"])
        (self.out / "cut.safetensors").write_bytes((self.root / "sd1.safetensors").read_bytes()[:100000])
        self.refused(self.out / "cut.safetensors", words=["cut.safetensors"])

    def refused(self, model, *options, words):
        result = rdna_program.run("image", model, PROMPT, "--steps", 1, "--size", "16x16", "--out", self.out / "x.png", "--driver", rdna_program.DEVICE, *options)
        self.assertEqual(result.returncode, 1, result.stderr.decode())
        for word in words:
            self.assertIn(word, result.stderr.decode().splitlines()[-1])
        self.assertFalse((self.out / "x.png").exists())

    def test_autoencoders(self):
        """One alone in a file, by the names of whole models, whose latents are scaled as the model's own."""
        for family, model, prefix, quant in ("sd1", "sd1", "", True), ("xl", "xl.safetensors", "first_stage_model.", False):
            with self.subTest(family):
                pipeline = self.pipelines[family]
                own = pipeline.vae
                other = image_flow_test.randomize(diffusers.AutoencoderKL(**{**own.config, "use_quant_conv": quant, "use_post_quant_conv": quant}), 11)
                names = vae_names(other)
                save(self.out / "vae.safetensors", {prefix + rename(k, names): v[:, :, None, None] if "attentions.0.to_" in k and k.endswith("weight") else v for k, v in other.state_dict().items()})
                pipeline.vae = other.double()
                self.addCleanup(setattr, pipeline, "vae", own)
                pipeline.scheduler = self.scheduler_of(family) if "." in model else SAMPLERS[family].from_pretrained(self.root / family / "scheduler")
                _, dumped = self.draw(model, "--seed", 3, "--steps", 2, "--cfg", 1, "--size", "16x16", "--vae", self.out / "vae.safetensors", *(self.vocabulary(family) if "." in model else ()))
                self.compare(dumped, self.reference(pipeline, seed=3, prompt=PROMPT, guidance=1, num_inference_steps=2, width=16, height=16), 3 if family == "sd1" else 2)
                self.assertIn(", VAE: vae.safetensors", PIL.Image.open(self.out / "x.png").text["parameters"])

    # ---- LoRAs ----

    def changed(self, family, chosen, kinds, form, seed):
        """A file's tensors for modules of each part, and the pipeline's weights with those changes."""
        pipeline, generator, tensors, state = self.pipelines[family], torch.Generator().manual_seed(seed), {}, {}
        names = unet_names(pipeline.unet)
        for part, module in chosen:
            weight = dict(getattr(pipeline, part).named_parameters())[module + ".weight"]
            kind = kinds[len(tensors) % len(kinds)]
            values, change = random_lora(kind, weight.shape, generator)
            text = "text_model." + module.removeprefix("text_model.") if part != "unet" else module
            if form == "ldm":
                base = "lora_unet_" + rename(module + ".weight", names).removesuffix(".weight").replace(".", "_")
            elif form == "peft":
                base = f"{part}.{text}"
            else:
                prefixes = {"unet": "lora_unet_", "text_encoder": "lora_te1_" if family == "xl" else "lora_te_", "text_encoder_2": "lora_te2_"}
                base = prefixes[part] + text.replace(".", "_")
            if form == "peft":  # whose alpha is the file's own, and here the rank: no scale
                change = change * float(2 if kind != "lokr" else 1)
                values = {k.replace("lora_up", "lora_B").replace("lora_down", "lora_A"): v for k, v in values.items() if k != "alpha"}
            tensors |= {f"{base}.{k}": v for k, v in values.items()}
            state[part, module] = change
        return tensors, state

    def merged(self, family, changes):
        """The reference's pipeline with [(scale, changes)]."""
        pipeline = self.pipelines[family]
        for scale, state in changes:
            for (part, module), change in state.items():
                weight = dict(getattr(pipeline, part).named_parameters())[module + ".weight"]
                before = weight.detach().clone()
                self.addCleanup(weight.data.copy_, before)
                weight.data += scale * change
        return pipeline

    BLOCK = "up_blocks.1.attentions.0.transformer_blocks.0."
    MODULES = [("unet", BLOCK + "attn1.to_q"), ("unet", BLOCK + "attn2.to_out.0"), ("unet", BLOCK + "ff.net.0.proj"), ("unet", "up_blocks.1.attentions.0.proj_in"),
               ("unet", "down_blocks.0.resnets.0.conv1"), ("unet", "mid_block.resnets.1.time_emb_proj"), ("unet", "down_blocks.0.downsamplers.0.conv"),
               ("unet", "up_blocks.0.upsamplers.0.conv"), ("unet", "mid_block.attentions.0.proj_out"), ("unet", "conv_out")]
    ENCODER = "encoder.layers.1."

    def encoder_modules(self, family):
        prefix = lambda part: "text_model." if any(n.startswith("text_model.") for n, _ in getattr(self.pipelines[family], part).named_parameters()) else ""
        parts = ["text_encoder", "text_encoder_2"] if family == "xl" else ["text_encoder"]
        return [(part, prefix(part) + self.ENCODER + m) for part in parts for m in ("self_attn.q_proj", "self_attn.out_proj", "mlp.fc1")]

    def test_loras(self):
        """Of all kinds and names, on folders and files; several at once."""
        for family, model, form, kinds, modules in [
                ("sd1", "sd1", "kohya", ["lora", "loha", "lokr", "lokr pair"], self.MODULES[:-1] + self.encoder_modules("sd1")),
                ("xl", "xl.safetensors", "kohya", ["lora"], self.MODULES + self.encoder_modules("xl")), ("xl", "xl", "ldm", ["lora", "lokr"], self.MODULES[:-1]),
                ("sd2", "sd2.safetensors", "peft", ["lora"], self.MODULES + self.encoder_modules("sd2"))]:
            with self.subTest(f"{model} {form}"):
                files, changes = [], []
                for i, scale in enumerate((0.75, -0.5) if form == "kohya" else (1,)):
                    tensors, state = self.changed(family, modules, kinds, form, i)
                    save(self.out / f"{i}.safetensors", tensors)
                    files += ["--lora", f"{self.out}/{i}.safetensors" + (f":{scale}" if scale != 1 else "")]
                    changes.append((scale, state))
                pipeline = self.merged(family, changes)
                whole = "." in model
                pipeline.scheduler = self.scheduler_of(family) if whole else SAMPLERS[family].from_pretrained(self.root / family / "scheduler")
                _, dumped = self.draw(model, "--seed", 3, "--steps", 3, "--cfg", 4, "--size", "16x16", *files, *(self.vocabulary(family) if whole else ()),
                                      "--negative", NEGATIVE)
                wanted = self.reference(pipeline, seed=3, prompt=PROMPT, negative_prompt=NEGATIVE, guidance=4, num_inference_steps=3, width=16, height=16)
                self.compare(dumped, wanted, 4 if family == "sd1" else 3)
                self.doCleanups()
                self.out = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def test_loras_metadata(self):
        """diffusers says PEFT's alpha and rank beside the tensors; an alpha of 0, or below it, counts as it stands."""
        tensors, state = self.changed("sd1", self.MODULES[:3], ["lora"], "peft", 5)
        for alpha, more, scale in (10, {"use_rslora": True, "rank_pattern": {}}, 10 / 2), (0, {}, 0), (-2, {}, -2 / 4):
            with self.subTest(alpha):
                said = {f"unet.{key}": value for key, value in {"r": 4, "lora_alpha": alpha, **more}.items()}
                save(self.out / "x.safetensors", tensors, lora_adapter_metadata=json.dumps(said))
                pipeline = self.merged("sd1", [(scale, state)])
                pipeline.scheduler = SAMPLERS["sd1"].from_pretrained(self.root / "sd1/scheduler")
                _, dumped = self.draw("sd1", "--seed", 3, "--steps", 2, "--cfg", 1, "--size", "16x16", "--lora", self.out / "x.safetensors")
                self.compare(dumped, self.reference(pipeline, seed=3, prompt=PROMPT, guidance=1, num_inference_steps=2, width=16, height=16), 3)
                self.doCleanups()
                self.out = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def test_loras_of_strange_sizes(self):
        """What factors would make is compared before any of it is: 96 KB say 576 MB here."""
        base = "lora_unet_" + self.MODULES[0][1].replace(".", "_")
        save(self.out / "x.safetensors", {f"{base}.lokr_w1_a": torch.zeros(12000, 1), f"{base}.lokr_w1_b": torch.zeros(1, 12000), f"{base}.lokr_w2": torch.zeros(2, 2)})
        command = [rdna_program.PROGRAM, "image", self.root / "sd1", PROMPT, "--steps", 1, "--size", "16x16", "--out", self.out / "x.png", "--driver", "host", "--lora", self.out / "x.safetensors"]
        said = subprocess.run([sys.executable, "-c", "import resource, subprocess, sys\nran = subprocess.run(sys.argv[1:], capture_output=True, text=True)\n"
                               "print(ran.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024, ran.stderr)", *map(str, command)], capture_output=True, text=True).stdout
        status, most, sentence = said.split(" ", 2)
        self.assertEqual((status, "12000 x 12000" in sentence), ("1", True), said)
        self.assertLess(int(most), 300)  # MiB

    def test_other_loras(self):
        """Of another version, of other kinds, and damaged."""
        path = self.out / "x.safetensors"
        good, _ = self.changed("sd1", self.MODULES[:2], ["lora"], "kohya", 1)
        name = next(iter(good)).rsplit(".", 2)[0]
        for tensors, words, metadata in [
                (self.changed("xl", self.MODULES[1:2] + [("unet", "mid_block.attentions.0.transformer_blocks.1.attn1.to_k")], ["lora"], "kohya", 1)[0], ["another version"], {}),
                ({**good, **self.changed("xl", self.encoder_modules("xl")[3:], ["lora"], "kohya", 1)[0]}, ["second text encoder", "another version"], {}),
                (self.changed("xl", [("unet", self.BLOCK + "attn2.to_k")], ["lora"], "kohya", 1)[0], ["192", "64", "another version"], {}),
                ({**good, f"{name}.dora_scale": torch.ones(64, 1)}, ["DoRA"], {}), ({"model.x.lora_A.weight": torch.ones(2, 2)}, ["called as no LoRA"], {}), ({}, ["no tensors"], {}),
                ({k: v for k, v in good.items() if "lora_up" not in k}, ["lora_up.weight"], {}), ({**good, f"{name}.alpha": torch.ones(3)}, ["alpha", "number"], {}),
                ({**good, f"{name}.lora_up.weight": torch.ones(64, 7)}, ["7", "4"], {}), ({**good, f"{name}.diff": torch.ones(3)}, ["diff", "kind"], {}),
                (good, ["no JSON"], {"lora_adapter_metadata": "{"}), (good, ["rank_pattern"], {"lora_adapter_metadata": '{"unet.r": 1, "unet.lora_alpha": 1, "unet.rank_pattern": {"x": 2}}'}),
                (good, ["unet.r"], {"lora_adapter_metadata": '{"unet.r": "x", "unet.lora_alpha": 1}'}),
                (good, ["rank 3", "rank 4"], {"lora_adapter_metadata": '{"unet.r": 3, "unet.lora_alpha": 1}'}), ({**good, f"{name}.lora_up.weight": torch.ones(0, 4)}, ["no values"], {})]:
            with self.subTest(str(words)):
                save(path, tensors, **metadata)
                self.refused(self.root / "sd1", "--lora", path, words=["x.safetensors", *words])
        self.refused(self.root / "sd1", "--lora", self.out / "none.safetensors", words=["none.safetensors"])


if __name__ == "__main__":
    unittest.main()

"""Stable Diffusion's U-Net in a file of its own, given to a folder by --transformer: GGUF as ComfyUI-GGUF's converter makes
it, whose windows become rows of blocks, and as stable-diffusion.cpp's, and safetensors. Against diffusers' pipelines in
float64 whose U-Nets have the values that NumPy reads from the same blocks."""
import pathlib
import re
import shutil
import tempfile
import unittest

import diffusers_python  # first: this goes on in a Python that has diffusers
import diffusers
import numpy as np
import PIL.Image
import torch

import image_command_test as command
import image_flux_test
import rdna_program  # makes tools/ importable
import gguf_file as gf
from image_checkpoint import make_model, one_file, rename, save, unet_names, vae_names
from image_file_test import Files as OneFile, random_lora
from image_quantized_test import Q4_K, Q5_0, Q8_0, write_gguf

PROMPT, PREFIX, SHAPE = command.PROMPT, "model.diffusion_model.", "comfy.gguf.orig_shape."
ARRAY = (gf.ARRAY, gf.I32)
SAMPLERS = {"sd1": diffusers.DDIMScheduler, "sd2": diffusers.DDIMScheduler, "xl": diffusers.EulerDiscreteScheduler}


def write_comfy(path, tensors, kind, architecture):
    """What is large and whose rows are no 256 values becomes rows of so many; what has two dimensions then is in blocks. The
    values of all."""
    keys, laid = [], {}
    for name, value in tensors.items():
        laid[name] = value
        if value.ndim > 1 and value.numel() >= 512 and value.numel() % 256 == 0 and value.shape[-1] % 256 != 0:
            laid[name] = value.reshape(-1, 256)
            keys.append((SHAPE + name, ARRAY, list(value.shape)))
    values = write_gguf(path, laid, lambda name, value: kind if value.ndim == 2 else gf.TENSOR_F16 if value.ndim > 2 else gf.TENSOR_F32, architecture, keys)
    return {name: value.reshape(tensors[name].shape) for name, value in values.items()}


def write_plain(path, tensors, kind):
    """Matrices of whole blocks in these, all other large tensors as they are."""
    return write_gguf(path, {PREFIX + name: value for name, value in tensors.items()},
                      lambda name, value: kind if value.ndim == 2 and value.shape[1] % gf.BLOCKS[kind][0] == 0 else gf.TENSOR_F16 if value.ndim > 1 else gf.TENSOR_F32)


def one_file_scheduler(family):
    return OneFile.scheduler_of(None, family)


class Files(unittest.TestCase):
    draw, reference, compare = command.Pictures.draw, command.Pictures.reference, command.Pictures.compare
    refuse = image_flux_test.Pictures.refuse

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.root = pathlib.Path(cls.temporary.name)
        cls.pipelines, cls.tensors = {}, {}
        for family, scheduler in SAMPLERS.items():
            cls.pipelines[family], whole = make_model(cls.root / family, family, scheduler)
            cls.tensors[family] = {name.removeprefix(PREFIX): value for name, value in whole.items() if name.startswith(PREFIX)}
            shutil.rmtree(cls.root / family / "unet")

    def setUp(self):
        self.out = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def check(self, family, path, values, *options, changes=None):
        """Two steps of a picture with that file are the pipeline's with those values."""
        pipeline = self.pipelines[family]
        names = unet_names(pipeline.unet)
        theirs = {name: values[rename(name, names)].clone() for name in pipeline.unet.state_dict()}
        for name, change in (changes or {}).items():
            theirs[name] += change
        pipeline.unet.load_state_dict(theirs)
        report, dumped = self.draw(family, "--seed", 3, "--steps", 2, "--cfg", 4, "--negative", "the cat", "--size", "16x16", "--transformer", path, *options)
        self.compare(dumped, self.reference(pipeline, seed=3, prompt=PROMPT, negative_prompt="the cat", guidance=4, num_inference_steps=2, width=16, height=16), 2)
        self.assertIn(f"Transformer: {path.name}", PIL.Image.open(self.out / "x.png").text["parameters"])
        self.assertLess(abs(report["plan"]["peak"] - report["peak_bytes"]), 0.05 * report["peak_bytes"])
        return report

    def test_files(self):
        for family, tensors in self.tensors.items():
            architecture = {"sd1": "sd1", "sd2": None, "xl": "sdxl"}[family]
            for kind in (Q8_0, Q5_0, Q4_K) if family == "sd1" else (Q4_K,):
                with self.subTest(f"{family} as ComfyUI-GGUF {kind}"):
                    path = self.out / "unet.gguf"
                    self.check(family, path, write_comfy(path, tensors, kind, architecture))
            with self.subTest(f"{family} as stable-diffusion.cpp"):
                values = write_plain(path, tensors, Q8_0)
                self.check(family, path, {name.removeprefix(PREFIX): value for name, value in values.items()})
            for prefix in (PREFIX, ""):
                with self.subTest(f"{family} in safetensors behind '{prefix}'"):
                    path = self.out / "unet.safetensors"
                    save(path, {prefix + name: value for name, value in tensors.items()} | ({"first_stage_model.x": torch.ones(2)} if prefix else {}))
                    self.check(family, path, tensors)

    def test_blocks_stay(self):
        """Of blocks that are whole rows the device has what the file has."""
        path = self.out / "unet.gguf"
        write_comfy(path, self.tensors["sd1"], Q8_0, "sd1")
        small = self.draw("sd1", "--steps", 1, "--size", "16x16", "--transformer", path)[0]["plan"]["parts"][1]
        save(self.out / "unet.safetensors", self.tensors["sd1"])
        large = self.draw("sd1", "--steps", 1, "--size", "16x16", "--transformer", self.out / "unet.safetensors")[0]["plan"]["parts"][1]
        matrices = sum(4 * value.numel() for name, value in self.tensors["sd1"].items() if re.search(r"transformer_blocks.*weight|proj_(in|out).weight|to_out.*weight", name) and value.ndim > 1)
        self.assertLess(small["weights"], large["weights"] - 0.7 * matrices)

    def test_transposed(self):
        """XL's second encoder has a matrix the other way round in whole files, which may be in blocks, too."""
        _, whole = make_model(self.out / "xl", "xl", SAMPLERS["xl"])
        name = "conditioner.embedders.1.model.text_projection"
        self.assertIn(name, whole)
        values, pooled = write_gguf(self.out / "x.gguf", whole, lambda of, _: Q8_0 if of == name else gf.TENSOR_F32), []
        save(self.out / "x.safetensors", values)
        for file in ("x.gguf", "x.safetensors"):
            rdna_program.output("image", self.out / file, PROMPT, "--tokenizer", self.out / "xl", "--steps", 1, "--size", "16x16", "--seed", 1, "--type", "f32", "--driver", rdna_program.DEVICE, "--dump", self.out / "dump",
                                "--out", self.out / "x.png")
            pooled.append(np.load(self.out / "dump/pooled.npy"))
        np.testing.assert_allclose(*pooled, rtol=1e-5, atol=1e-6)
        parts, _ = random_lora("lora", whole[name].shape, torch.Generator().manual_seed(5))
        save(self.out / "y.safetensors", {f"lora_te2_text_projection.{end}": value for end, value in parts.items()})
        result = rdna_program.run("image", self.out / "x.gguf", PROMPT, "--tokenizer", self.out / "xl", "--steps", 1, "--size", "16x16", "--lora", self.out / "y.safetensors", "--driver", rdna_program.DEVICE, "--out", self.out / "y.png")
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"transposed", result.stderr)

    def whole(self, family, renamed):
        """A file's tensors, and for each part of the pipeline what its own are called there; as stable-diffusion.cpp renames encoders if |renamed|."""
        pipeline, wholes = self.pipelines[family], {}
        pipeline.unet.load_state_dict({name: self.tensors[family][rename(name, unet_names(pipeline.unet))] for name in pipeline.unet.state_dict()})
        names = {"unet": {k: PREFIX + rename(k, unet_names(pipeline.unet)) for k in pipeline.unet.state_dict()}, "vae": {k: "first_stage_model." + rename(k, vae_names(pipeline.vae)) for k in pipeline.vae.state_dict()}}
        for part in ("text_encoder", "text_encoder_2") if family == "xl" else ("text_encoder",):
            before = "cond_stage_model.1.transformer." if part.endswith("2") else "cond_stage_model.transformer."
            if renamed:
                names[part] = {k: before + "text_model." + k.removeprefix("text_model.").replace("text_projection.weight", "text_projection") for k in getattr(pipeline, part).state_dict() if "position_ids" not in k}
            elif family != "sd2" and part == "text_encoder":
                before = "cond_stage_model.transformer." if family == "sd1" else "conditioner.embedders.0.transformer."
                names[part] = {k: before + "text_model." + k.removeprefix("text_model.") for k in getattr(pipeline, part).state_dict() if "position_ids" not in k}
        for name, value in one_file(family, pipeline).items():
            if not renamed or not name.startswith(("cond_stage_model.", "conditioner.")):
                wholes[name] = value
        for part in names if renamed else ():
            for k, to in names[part].items():
                if part.startswith("text"):
                    value = getattr(pipeline, part).state_dict()[k]
                    wholes[to] = value.T if to.endswith("text_projection") else value
        if renamed and family == "sd2":  # whose last layer nobody reads
            wholes |= {k.replace("layers.0.", f"layers.{pipeline.text_encoder.config.num_hidden_layers}."): v for k, v in wholes.items() if "text_model.encoder.layers.0." in k}
        return wholes, names

    def test_whole_models(self):
        """All parts in one file of GGUF: matrices of U-Net and encoders in blocks, windows of 16 bits."""
        for family, renamed in ("sd1", False), ("xl", False), ("xl", True), ("sd2", True):
            with self.subTest(f"{family} {'renamed' if renamed else 'original'}"):
                pipeline, path = self.pipelines[family], self.out / "whole.gguf"
                tensors, names = self.whole(family, renamed)
                of_text = {to for part in names if part.startswith("text") for to in names[part].values() if "mlp" in to}
                blocks = lambda name, value: Q8_0 if value.ndim == 2 and value.shape[1] % 32 == 0 and (name.startswith(PREFIX) or name in of_text) else gf.TENSOR_F16 if value.ndim == 4 else gf.TENSOR_F32  # noqa: E731
                values = write_gguf(path, {k: v.contiguous() for k, v in tensors.items()}, blocks)
                for part, of in names.items():
                    network, theirs = getattr(pipeline, part), {}
                    for k, v in network.state_dict().items():
                        value = values[of[k]] if k in of else v
                        theirs[k] = value.T if k in of and of[k].endswith("text_projection") else value.reshape(v.shape)
                    network.load_state_dict(theirs)
                pipeline.scheduler = one_file_scheduler(family)
                report, dumped = self.draw(path, "--seed", 3, "--steps", 2, "--cfg", 4, "--negative", "the cat", "--size", "16x16", "--tokenizer", self.root / family)
                self.compare(dumped, self.reference(pipeline, seed=3, prompt=PROMPT, negative_prompt="the cat", guidance=4, num_inference_steps=2, width=16, height=16), 3 if family == "sd1" else 2)
                self.assertEqual(report["model"], "Stable Diffusion XL" if family == "xl" else "Stable Diffusion")
                self.assertLess(abs(report["plan"]["peak"] - report["peak_bytes"]), 0.05 * report["peak_bytes"])

    def test_loras(self):
        """They are added to windows and matrices whose blocks are no whole rows, which the device has as floats, as to others."""
        generator, path = torch.Generator().manual_seed(5), self.out / "unet.gguf"
        values = write_comfy(path, self.tensors["sd1"], Q4_K, "sd1")
        lora, changes = {}, {}
        for name in ("down_blocks.0.resnets.0.conv1.weight", "down_blocks.0.attentions.0.transformer_blocks.0.attn1.to_q.weight"):
            parts, changes[name] = random_lora("lora", self.pipelines["sd1"].unet.state_dict()[name].shape, generator)
            lora |= {f"lora_unet_{name.removesuffix('.weight').replace('.', '_')}.{end}": value for end, value in parts.items()}
        save(self.out / "x.safetensors", lora)
        self.check("sd1", path, values, "--lora", self.out / "x.safetensors", changes=changes)

    def test_refusals(self):
        tensors, path = self.tensors["sd1"], self.out / "bad.gguf"
        one = "input_blocks.1.0.in_layers.2.weight"

        def written(of, *keys):
            write_gguf(path, of, lambda *_: gf.TENSOR_F32, "sd1", keys)
            return lambda folder: None
        without = lambda start: {name: value for name, value in tensors.items() if not name.startswith(start)}
        for of, keys, words in [({**tensors, "strange": torch.ones(2)}, [], ["bad.gguf", "strange"]), (without("out.2.bias"), [], ["bad.gguf", "conv_out.bias"]),
                                (tensors, [(SHAPE + one, ARRAY, [64, 64, 3, 4])], ["bad.gguf", "orig_shape"]), (tensors, [(SHAPE + one, ARRAY, [64, 64, 3, -3])], ["orig_shape"]),
                                (tensors, [(SHAPE + one, ARRAY, [2**30, 2**30, 2**30, 2**30])], ["orig_shape"]), (tensors, [(SHAPE + one, ARRAY, [1] * 5)], ["orig_shape"]),
                                (tensors, [(SHAPE + one, gf.TEXT, "64")], ["orig_shape"]), (tensors, [(SHAPE + one, ARRAY, [64, 9, 8, 8])], ["bad.gguf", "64 x 64 x 3 x 3"]),
                                (without("middle_block"), [], ["bad.gguf"]), ({"double_blocks.0.x": torch.ones(2)}, [], ["bad.gguf", "FLUX"]), (self.tensors["sd2"] | {"label_emb.0.0.weight": torch.ones(4, 1664)}, [], ["U-Net is none"])]:
            with self.subTest(str(words)):
                self.refuse(self.root / "sd1", [(written(of, *keys), ["--size", "16x16", "--transformer", path], words)])
        result = rdna_program.run("image", path, "x", "--driver", rdna_program.DEVICE)
        self.assertEqual(result.returncode, 1)
        written(tensors)
        result = rdna_program.run("image", path, "x", "--driver", rdna_program.DEVICE)
        self.assertIn("--transformer", result.stderr.decode())


if __name__ == "__main__":
    unittest.main()

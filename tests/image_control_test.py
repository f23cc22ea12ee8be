"""ControlNets: what they add to a U-Net, and pictures drawn with them, against diffusers' in float64 on small random networks."""
import ctypes
import inspect
import json
import pathlib
import shutil
import tempfile
import unittest

import diffusers_python  # first: this goes on in a Python that has diffusers
import diffusers
import numpy as np
import PIL.Image
import safetensors.torch
import torch

import image_command_test as command
import image_unet_test
from image_command_test import NEGATIVE, PROMPT, make_folder, randomize
from image_library import BAD_DATA, BF16, DEVICE, F16, F32, INT, INVALID, LIBRARY, POINTER, TEXT, UNSUPPORTED, declare
from image_unet_test import ONE, XL, error, random_network

declare("rdna_image_control_", [("create", INT, [POINTER, TEXT, INT, POINTER]), ("release", None, [POINTER]), ("get_info", POINTER, [POINTER]),
                                ("see", INT, [POINTER, POINTER, INT, INT]), ("size", ctypes.c_size_t, [POINTER, INT, INT, INT]),
                                ("run", INT, [POINTER, POINTER, POINTER])])


FILE = {**ONE, "block_out_channels": [32, 32, 64], "norm_num_groups": 32, "attention_head_dim": 8}  # what such files say nothing of


class Use(ctypes.Structure):
    _fields_ = [("control", POINTER), ("scale", ctypes.c_double)]


class Input(ctypes.Structure):
    _fields_ = image_unet_test.Input._fields_ + [("controls", POINTER), ("control_count", ctypes.c_size_t)]


class Info(ctypes.Structure):
    _fields_ = [("in_channels", INT), ("factor", INT), ("outputs", INT), ("weights_bytes", ctypes.c_size_t)]


def random_control(unet, seed, **changes):
    names = inspect.signature(diffusers.ControlNetModel.__init__).parameters
    settings = {k: v for k, v in unet.items() if k in names and k not in ("up_block_types", "sample_size")}
    return randomize(diffusers.ControlNetModel(**{"conditioning_embedding_out_channels": [4, 6, 8], **settings, **changes}), seed)


def given(count, height, width, tokens, random, network):
    """What diffusers is given, and us: a sample, states, a timestep, what XL adds, and a picture."""
    settings = network.config
    values = {"sample": random.standard_normal((count, settings.in_channels, height, width)), "states": random.standard_normal((count, tokens, settings.cross_attention_dim))}
    if settings.addition_embed_type:
        values |= {"numbers": random.choice([0, 64, 77.0], (count, 6)), "pooled": random.standard_normal((count, 12))}
    return {name: value.astype(np.float32) for name, value in values.items()}


def double(values, name):
    return torch.from_numpy(values[name]).double() if name in values else None


def added(values):
    return {"text_embeds": double(values, "pooled"), "time_ids": double(values, "numbers")} if "pooled" in values else None


def input_of(values, timestep, uses=(), **changes):
    count, _, height, width = values["sample"].shape
    sized = {"count": count, "height": height, "width": width, "tokens": values["states"].shape[1], "timestep": timestep,
             "pooled_width": 12 * ("pooled" in values), "number_count": 6 * ("pooled" in values)}
    array = (Use * len(uses))(*uses)
    made = Input(**{"size": ctypes.sizeof(Input), **{k: v.ctypes.data for k, v in values.items()}, **sized,
                    "controls": ctypes.addressof(array) if uses else None, "control_count": len(uses), **changes})
    made.kept = array
    return made


class Control:
    def __init__(self, path, dtype=F32):
        self.handle = POINTER()
        self.status = LIBRARY.rdna_image_control_create(DEVICE, str(path).encode(), dtype, ctypes.byref(self.handle))
        self.sentence = LIBRARY.rdna_last_error().decode() if self.status else ""
        self.info = Info.from_address(LIBRARY.rdna_image_control_get_info(self.handle)) if self.status == 0 else None

    def see(self, picture):
        return LIBRARY.rdna_image_control_see(self.handle, picture.ctypes.data, *picture.shape[1:])

    def run(self, values, timestep, shapes):
        """Residuals of |shapes|."""
        sizes = [int(np.prod(shape)) for shape in shapes]
        count, _, height, width = values["sample"].shape
        assert LIBRARY.rdna_image_control_size(self.handle, count, height, width) == sum(sizes)
        out = np.full(sum(sizes) + 1, np.nan, np.float32)
        assert LIBRARY.rdna_image_control_run(self.handle, ctypes.byref(input_of(values, timestep)), out.ctypes.data) == 0, LIBRARY.rdna_last_error()
        assert np.isnan(out[-1])
        ends = np.cumsum([0, *sizes])
        return [out[a:b].reshape(shape) for a, b, shape in zip(ends, ends[1:], shapes)]

    def __del__(self):
        LIBRARY.rdna_image_control_release(self.handle)


def original_names(network):
    """The tensors of a ControlNet as its authors' programs call them."""
    per = network.config.layers_per_block + 1
    names = {"norm1": "in_layers.0", "conv1": "in_layers.2", "time_emb_proj": "emb_layers.1", "norm2": "out_layers.0", "conv2": "out_layers.3", "conv_shortcut": "skip_connection"}
    embeddings = {"time_embedding.linear_1": "time_embed.0", "time_embedding.linear_2": "time_embed.2", "add_embedding.linear_1": "label_emb.0.0", "add_embedding.linear_2": "label_emb.0.2"}
    tensors = {}
    for name, tensor in network.state_dict().items():
        part, *rest = name.split(".")
        end = rest[-1]
        if ".".join([part, *rest[:1]]) in embeddings:
            there = embeddings[f"{part}.{rest[0]}"] + "." + end
        elif part == "conv_in":
            there = "input_blocks.0.0." + end
        elif part == "controlnet_cond_embedding":
            there = f"input_hint_block.{0 if rest[0] == 'conv_in' else 14 if rest[0] == 'conv_out' else 2 + 2 * int(rest[1])}.{end}"
        elif part == "controlnet_down_blocks":
            there = f"zero_convs.{rest[0]}.0.{end}"
        elif part == "controlnet_mid_block":
            there = f"middle_block_out.0.{end}"
        else:
            middle = part == "mid_block"
            kind, i, *inner = rest if middle else rest[1:]
            block = f"middle_block.{2 * int(i) if kind == 'resnets' else 1}" if middle else f"input_blocks.{1 + int(rest[0]) * per + (per - 1 if kind == 'downsamplers' else int(i))}"
            if kind == "resnets":
                there = ".".join([block, *([] if middle else ["0"]), names[inner[0]], end])
            else:
                there = ".".join([block, "0.op", end] if kind == "downsamplers" else [block, *([] if middle else ["1"]), *inner])
        tensors["control_model." + there] = tensor.to(torch.float32).contiguous()
    return tensors


class Networks(unittest.TestCase):
    def folder(self):
        return pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def compare(self, settings, dtype=F32, limit=1e-4, order="rgb"):
        """Every residual, and the U-Net's answer with two ControlNets."""
        random, folder = np.random.default_rng(6), self.folder()
        unet = random_network(settings, 3)
        networks = [random_control(settings, seed, controlnet_conditioning_channel_order=order) for seed in (4, 5)]
        unet.save_pretrained(folder / "unet")
        for i, network in enumerate(networks):
            network.save_pretrained(folder / str(i))
        controls = [Control(folder / str(i), dtype) for i in range(2)]
        ours = image_unet_test.UNet(folder, dtype)
        self.assertEqual([ours.status, *(c.status for c in controls)], [0] * 3, controls[0].sentence)
        self.assertEqual((controls[0].info.in_channels, controls[0].info.factor, controls[0].info.outputs), (4, 4, 10))
        bytes_of = 4 if dtype == F32 else 2
        count = sum(p.numel() for p in networks[0].parameters())
        self.assertTrue(bytes_of * count <= controls[0].info.weights_bytes <= 4 * count)  # norms stay f32
        for (n, height, width, tokens), timestep in [((2, 8, 7, 5), 981), ((1, 3, 10, 77), 0)]:
            values = given(n, height, width, tokens, random, unet)
            downs, middles = [], []
            for control, network in zip(controls, networks):
                picture = random.random((3, 4 * height, 4 * width)).astype(np.float32)
                self.assertEqual(control.see(picture), 0)
                with torch.no_grad():
                    down, middle = network.double()(double(values, "sample"), timestep, double(values, "states"), torch.from_numpy(picture).double()[None].expand(n, -1, -1, -1),
                                                    added_cond_kwargs=added(values), return_dict=False)
                downs.append(down), middles.append(middle)
                for i, (got, wanted) in enumerate(zip(control.run(values, timestep, [x.shape for x in (*down, middle)]), (*down, middle))):
                    self.assertLess(error(got, wanted), limit, i)
            scales = (1, -0.7)
            with torch.no_grad():
                wanted = unet.double()(double(values, "sample"), timestep, double(values, "states"), added_cond_kwargs=added(values),
                                       down_block_additional_residuals=[scales[0] * a + scales[1] * b for a, b in zip(*downs)],
                                       mid_block_additional_residual=scales[0] * middles[0] + scales[1] * middles[1]).sample
            got = np.full(wanted.shape, np.nan, np.float32)
            uses = [Use(c.handle, scale) for c, scale in zip(controls, scales)]
            self.assertEqual(LIBRARY.rdna_image_unet_run(ours.handle, ctypes.byref(input_of(values, timestep, uses)), got.ctypes.data), 0, LIBRARY.rdna_last_error())
            self.assertLess(error(got, wanted), limit)

    def test_networks(self):
        for name, settings, order in [("1", ONE, "rgb"), ("XL", XL, "bgr")]:
            with self.subTest(name):
                self.compare(settings, order=order)

    def test_16_bits(self):
        for settings, dtype, epsilon in [(XL, F16, 2**-11), (ONE, BF16, 2**-8)]:  # a dozen blocks, each rounded
            self.compare(settings, dtype=dtype, limit=16 * epsilon)

    def test_files(self):
        """One file, under its authors' names and without their prefix, has the folder's outputs."""
        for settings in (FILE, {**XL, "block_out_channels": [64, 64, 128], "addition_time_embed_dim": 256, "attention_head_dim": [1, 1, 2], "norm_num_groups": 32, "projection_class_embeddings_input_dim": 12 + 6 * 256}):
            folder = self.folder()
            network = random_control(settings, 4, conditioning_embedding_out_channels=[4, 6, 8, 10])
            network.save_pretrained(folder / "control")
            tensors = original_names(network)
            safetensors.torch.save_file(tensors, folder / "one.safetensors")
            safetensors.torch.save_file({k.removeprefix("control_model."): v for k, v in tensors.items()}, folder / "bare.safetensors")
            random = np.random.default_rng(2)
            values, picture = given(1, 4, 6, 3, random, network), random.random((3, 32, 48)).astype(np.float32)
            with torch.no_grad():
                down, middle = network(torch.from_numpy(values["sample"]), 5, torch.from_numpy(values["states"]), torch.from_numpy(picture)[None],
                                       added_cond_kwargs={k: v.float() for k, v in added(values).items()} if added(values) else None, return_dict=False)
            results = []
            for name in ("control", "one.safetensors", "bare.safetensors"):
                control = Control(folder / name)
                self.assertEqual(control.status, 0, control.sentence)
                self.assertEqual(control.see(picture), 0)
                results.append(np.concatenate([x.ravel() for x in control.run(values, 5, [x.shape for x in (*down, middle)])]))
            for result in results[1:]:
                np.testing.assert_array_equal(result, results[0])
            self.assertLess(error(results[0], torch.cat([x.flatten() for x in (*down, middle)])), 1e-4)

    # ---- what is refused ----

    def refused(self, path, status, *words):
        control = Control(path)
        self.assertEqual(control.status, status, control.sentence)
        for word in words:
            self.assertIn(word, control.sentence)

    def test_settings(self):
        folder = self.folder()
        network = random_control(ONE, 1)
        network.save_pretrained(folder)
        path = folder / "config.json"
        settings = json.loads(path.read_text())
        for change, status, word in [({"_class_name": "ControlNetUnionModel"}, UNSUPPORTED, "ControlNetUnionModel"), ({"magic": 1}, UNSUPPORTED, "magic"), ({"global_pool_conditions": True}, UNSUPPORTED, "global_pool"),
                                     ({"conditioning_channels": 1}, UNSUPPORTED, "1 channels"), ({"controlnet_conditioning_channel_order": "brg"}, UNSUPPORTED, "brg"),
                                     ({"conditioning_embedding_out_channels": [4, 6]}, BAD_DATA, "conv_out"), ({"conditioning_embedding_out_channels": []}, BAD_DATA, "conditioning_embedding"),
                                     ({"conditioning_embedding_out_channels": [4] * 9}, BAD_DATA, "conditioning_embedding"), ({"layers_per_block": 3}, BAD_DATA, "resnets.2")]:
            with self.subTest(str(change)):
                path.write_text(json.dumps({**settings, **change}))
                self.refused(folder, status, word)
        tensors = original_names(random_control(FILE, 1, conditioning_embedding_out_channels=[4, 6, 8, 10]))
        for change, status, word in [({"lora_controlnet": torch.zeros(1)}, UNSUPPORTED, "Control-LoRA"), ({"difference": torch.zeros(1)}, UNSUPPORTED, "difference"), ({"control_model.more": torch.zeros(1)}, UNSUPPORTED, "more"),
                                     ({"control_model.zero_convs.3.0.bias": None}, BAD_DATA, "controlnet_down_blocks.3.bias"), ({"control_model.input_blocks.1.0.out_layers.3.weight": None}, BAD_DATA, "stages")]:
            with self.subTest(str([*change])):
                safetensors.torch.save_file({k: v for k, v in {**tensors, **change}.items() if v is not None}, folder / "x.safetensors")
                self.refused(folder / "x.safetensors", status, word)
        for name, word in [("lllite_unet.x", "LLLite"), ("controlnet_cond_embedding.conv_in.weight", "folder"), ("task_embedding", "tasks"), ("adapter.x", "T2I"), ("body.0.x", "T2I"), ("controlnet_blocks.0.x", "FLUX"),
                           ("image_proj.x", "IP-Adapter"), ("lora_unet_x", "--lora"), ("model.diffusion_model.x", "whole model"), ("x", "input_hint_block")]:
            with self.subTest(name):
                safetensors.torch.save_file({name: torch.zeros(1)}, folder / "x.safetensors")
                self.refused(folder / "x.safetensors", UNSUPPORTED, word)

    def test_arguments(self):
        folder = self.folder()
        unet, network = random_network(ONE, 1), random_control(ONE, 1)
        unet.save_pretrained(folder / "unet"), network.save_pretrained(folder / "control"), random_control(XL, 1).save_pretrained(folder / "other")
        control, other, half, ours = Control(folder / "control"), Control(folder / "other"), Control(folder / "control", F16), image_unet_test.UNet(folder)
        picture, values = np.zeros((3, 16, 16), np.float32), given(1, 4, 4, 3, np.random.default_rng(1), unet)
        out = np.full((1, 4, 4, 4), np.nan, np.float32)

        def run(*uses, **changes):
            return LIBRARY.rdna_image_unet_run(ours.handle, ctypes.byref(input_of(values, 1, uses, **changes)), out.ctypes.data)

        self.assertEqual(run(Use(control.handle, 1)), INVALID)
        self.assertIn(b"no picture", LIBRARY.rdna_last_error())
        self.assertEqual(LIBRARY.rdna_image_control_run(control.handle, ctypes.byref(input_of(values, 1)), out.ctypes.data), INVALID)
        self.assertEqual(control.see(np.zeros((3, 16, 18), np.float32)), INVALID)
        self.assertEqual([c.see(picture) for c in (control, other, half)], [0] * 3)
        for use in (Use(None, 1), Use(control.handle, np.nan), Use(other.handle, 1), Use(half.handle, 1)):
            self.assertEqual(run(use), INVALID)
        self.assertEqual(run(control_count=1), INVALID)
        self.assertEqual(control.see(np.zeros((3, 16, 20), np.float32)), 0)
        self.assertEqual(run(Use(control.handle, 1)), INVALID)
        self.assertIn(b"4 x 5", LIBRARY.rdna_last_error())
        self.assertTrue(np.isnan(out).all())
        self.assertEqual(control.see(picture), 0)
        self.assertEqual(run(Use(control.handle, 1)), 0)


class Pictures(unittest.TestCase):
    draw, reference, compare, refused = (getattr(command.Pictures, name) for name in ("draw", "reference", "compare", "refused"))

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.temporary.name)
        cls.pipelines = {"sd": make_folder(cls.root / "sd"), "xl": make_folder(cls.root / "xl", True, diffusers.EulerDiscreteScheduler)}
        cls.networks = {}
        for model, pipeline in cls.pipelines.items():
            for i in range(2):
                cls.networks[model, i] = random_control(dict(pipeline.unet.config), 7 + i)
                cls.networks[model, i].save_pretrained(cls.root / f"{model}-{i}")
                cls.networks[model, i].double()

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def setUp(self):
        self.out = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def pictures(self, count):
        random = np.random.default_rng(5)
        for i in range(count):
            PIL.Image.fromarray(random.integers(0, 256, (24, 40, 3), np.uint8)).save(self.out / f"{i}.png")
        return [PIL.Image.open(self.out / f"{i}.png") for i in range(count)]

    def pipeline(self, kind, model, networks):
        parts = {k: v for k, v in self.pipelines[model].components.items() if k != "image_encoder"}
        pipeline = kind(**parts, controlnet=networks, **({"add_watermarker": False} if model == "xl" else {}))
        pipeline.set_progress_bar_config(disable=True)
        return pipeline

    def drawn(self, model, count, *options):
        shutil.rmtree(self.out / "dump", ignore_errors=True)
        return self.draw(model, "--seed", 5, "--negative", NEGATIVE, *(x for i in range(count) for x in ("--control", self.root / f"{model}-{i}", "--control-image", self.out / f"{i}.png")), *options)

    def test_steps(self):
        """One ControlNet and two, parts of the steps, and samplers that ask twice."""
        images = self.pictures(2)
        for model, kind, sampler, count, steps, options, others in [
                ("sd", diffusers.StableDiffusionControlNetPipeline, "ddim", 1, 4, [], {}),
                ("sd", diffusers.StableDiffusionControlNetPipeline, "heun", 2, 5, ["--control-scale", "0.8", "--control-scale", "-0.3"], {"controlnet_conditioning_scale": [0.8, -0.3]}),
                ("xl", diffusers.StableDiffusionXLControlNetPipeline, "euler", 1, 6, ["--control-scale", "0.5", "--control-start", "0.2", "--control-end", "0.7"],
                 {"controlnet_conditioning_scale": 0.5, "control_guidance_start": 0.2, "control_guidance_end": 0.7})]:
            with self.subTest(f"{model} {sampler}"):
                networks = [self.networks[model, i] for i in range(count)]
                pipeline = self.pipeline(kind, model, networks[0] if count == 1 else networks)
                _, dumped = self.drawn(model, count, "--steps", steps, "--sampler", sampler, "--cfg", 4, *options)
                wanted = self.steered(pipeline, sampler, images[0] if count == 1 else images, steps, others)
                self.compare(dumped, wanted, 2 * steps - 1 if sampler == "heun" else steps)
        self.assertIn(", Control: xl-0:0.5, Control steps: 0.2-0.7", PIL.Image.open(self.out / "x.png").text["parameters"])

    def steered(self, pipeline, sampler, image, steps, others):
        """reference(), whose pictures are those to begin with."""
        whole = type("Whole", (), {"scheduler": property(lambda _: pipeline.scheduler, lambda _, value: setattr(pipeline, "scheduler", value)), "__module__": type(pipeline).__module__,
                                   "__call__": lambda _, **given: pipeline(image=image, **given)})()
        return self.reference(whole, sampler, 5, prompt=PROMPT, negative_prompt=NEGATIVE, num_inference_steps=steps, guidance=4, width=40, height=24, **others)

    def test_begun(self):
        """With a picture to begin with, of whose steps the shares are."""
        control, init = self.pictures(2)
        pipeline = self.pipeline(diffusers.StableDiffusionControlNetImg2ImgPipeline, "sd", self.networks["sd", 0])
        _, dumped = self.drawn("sd", 1, "--steps", 8, "--sampler", "euler", "--cfg", 4, "--init", self.out / "1.png", "--strength", 0.5, "--control-end", 0.5)
        wanted = self.reference(pipeline, "euler", 5, prompt=PROMPT, negative_prompt=NEGATIVE, num_inference_steps=8, guidance=4, image=init, control_image=control, strength=0.5, control_guidance_end=0.5,
                                controlnet_conditioning_scale=1.0)
        self.compare(dumped, wanted, 4)

    def test_refusals(self):
        self.pictures(1), PIL.Image.new("RGB", (20, 20)).save(self.out / "small.png")
        one, image = ["--control", self.root / "sd-0"], ["--control-image", self.out / "0.png"]
        for options, words, status in [
                (one, ["--control-image"], 2), (image, ["--control"], 2), (["--control-scale", 1], ["--control"], 2), (["--control-end", 0.5], ["--control"], 2), (one + image + ["--control-scale", 1] * 2, ["--control-scale"], 2),
                (one + image + ["--control-scale", "x"], ["'x'"], 1), (one + image + ["--control-scale", "1e9"], ["1000"], 1), (one + image + ["--control-start", 0.5, "--control-end", 0.5], ["0.5"], 1),
                (["--control", self.root / "xl-0"] + image, ["xl-0", "another version"], 1), (["--control", self.out] + image, ["config.json"], 1), (["--control", self.out / "0.png"] + image, ["0.png"], 1),
                (one + ["--control-image", self.out / "small.png", "--size", "40x40"], ["20 x 20"], 1), ((one + image) * 9, ["8"], 1),
                (one + image + ["--steps", 2, "--control-start", 0.1, "--control-end", 0.2], ["0.1", "0.2", "of 2 steps"], 1)]:
            with self.subTest(str(options)[-60:]):
                self.refused(self.root / "sd", *options, words=words, status=status)


if __name__ == "__main__":
    unittest.main()

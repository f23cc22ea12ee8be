"""Pictures as prompts: CLIP's encoder of pictures, what IP-Adapters make of it, and pictures drawn with them, against
transformers' and diffusers' in float64 on small random networks."""
import ctypes
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
import transformers
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

import image_command_test as command
from image_command_test import NEGATIVE, PROMPT, error, make_folder
from image_library import BAD_DATA, DEVICE, F32, INT, INVALID, LIBRARY, NOT_FOUND, POINTER, TEXT, UNSUPPORTED, declare

declare("rdna_image_vision_encoder_", [("create", INT, [POINTER, TEXT, POINTER]), ("release", None, [POINTER]), ("get_info", POINTER, [POINTER]),
                                       ("encode", INT, [POINTER, POINTER, INT, INT, POINTER, POINTER])])
declare("rdna_image_adapter_", [("create", INT, [POINTER, TEXT, INT, POINTER]), ("release", None, [POINTER]), ("get_info", POINTER, [POINTER]), ("see", INT, [POINTER, POINTER, INT, INT, POINTER])])
SIDE, PATCH = 28, 7
VISION = {"hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 3, "num_attention_heads": 4, "image_size": SIDE, "patch_size": PATCH, "projection_dim": 40, "hidden_act": "gelu"}


class EncoderInfo(ctypes.Structure):
    _fields_ = [(name, INT) for name in ("side", "patch", "tokens", "width", "projected", "layers")] + [("weights_bytes", ctypes.c_size_t)]


class AdapterInfo(ctypes.Structure):
    _fields_ = [("reads_states", ctypes.c_bool), ("seen", INT), ("tokens", INT), ("width", INT)]


def random_encoder(seed, **changes):
    model = transformers.CLIPVisionModelWithProjection(transformers.CLIPVisionConfig(**{**VISION, **changes}))
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, p in model.named_parameters():
            one = 1.0 if "norm" in name and name.endswith("weight") else 0.0
            p.copy_(one + (1 / np.sqrt(p[0].numel()) if p.ndim > 1 else 0.2) * torch.randn(p.shape, generator=generator))
    return model.eval()


def random_adapter(unet, seed, seen, plus):
    """The tensors of an adapter as its authors save them, in the order of the U-Net's ways of attention."""
    width, generator, tensors = unet.config.cross_attention_dim, torch.Generator().manual_seed(seed), {}

    def put(name, *shape):
        one = 1.0 if "norm" in name and name.endswith("weight") or name.endswith(".1.0.weight") else 0.0
        tensors[name] = one + (1 / np.sqrt(np.prod(shape[1:])) if len(shape) > 1 else 0.2) * torch.randn(shape, generator=generator)
    if plus:
        hidden, heads, tokens = 32, 2, 5
        put("image_proj.latents", 1, tokens, hidden)
        for name, rows, columns in (("proj_in", hidden, seen), ("proj_out", width, hidden)):
            put(f"image_proj.{name}.weight", rows, columns), put(f"image_proj.{name}.bias", rows)
        put("image_proj.norm_out.weight", width), put("image_proj.norm_out.bias", width)
        for i in range(4):
            at = f"image_proj.layers.{i}."
            for name in ("0.norm1", "0.norm2", "1.0"):
                put(f"{at}{name}.weight", hidden), put(f"{at}{name}.bias", hidden)
            for name, rows, columns in (("0.to_q", 64 * heads, hidden), ("0.to_kv", 128 * heads, hidden), ("0.to_out", hidden, 64 * heads), ("1.1", 4 * hidden, hidden), ("1.3", hidden, 4 * hidden)):
                put(f"{at}{name}.weight", rows, columns)
    else:
        put("image_proj.proj.weight", 4 * width, seen), put("image_proj.proj.bias", 4 * width)
        put("image_proj.norm.weight", width), put("image_proj.norm.bias", width)
    for i, (name, _) in enumerate(unet.attn_processors.items()):
        if "attn2" in name:
            module = unet.get_submodule(name.removesuffix(".processor"))
            for kind in ("k", "v"):
                put(f"ip_adapter.{i}.to_{kind}_ip.weight", module.to_k.weight.shape[0], width)
    return tensors


class Encoder:
    def __init__(self, folder):
        self.handle = POINTER()
        self.status = LIBRARY.rdna_image_vision_encoder_create(DEVICE, str(folder).encode(), ctypes.byref(self.handle))
        self.sentence = LIBRARY.rdna_last_error().decode() if self.status else ""
        self.info = EncoderInfo.from_address(LIBRARY.rdna_image_vision_encoder_get_info(self.handle)) if self.status == 0 else None

    def encode(self, pixels):
        vector, states = np.full(self.info.projected, np.nan, np.float32), np.full((self.info.tokens, self.info.width), np.nan, np.float32)
        height, width = (0, 0) if pixels is None else pixels.shape[:2]
        assert LIBRARY.rdna_image_vision_encoder_encode(self.handle, None if pixels is None else pixels.ctypes.data, height, width, vector.ctypes.data, states.ctypes.data) == 0, LIBRARY.rdna_last_error()
        return vector, states

    def __del__(self):
        LIBRARY.rdna_image_vision_encoder_release(self.handle)


class Adapter:
    def __init__(self, path):
        self.handle = POINTER()
        self.status = LIBRARY.rdna_image_adapter_create(DEVICE, str(path).encode(), F32, ctypes.byref(self.handle))
        self.sentence = LIBRARY.rdna_last_error().decode() if self.status else ""
        self.info = AdapterInfo.from_address(LIBRARY.rdna_image_adapter_get_info(self.handle)) if self.status == 0 else None

    def see(self, seen):
        seen = np.ascontiguousarray(seen, np.float32)
        out = np.full((len(seen), self.info.tokens, self.info.width), np.nan, np.float32)
        self.status = LIBRARY.rdna_image_adapter_see(self.handle, seen.ctypes.data, len(seen), seen.shape[1], out.ctypes.data)
        self.sentence = LIBRARY.rdna_last_error().decode() if self.status else ""
        return out

    def __del__(self):
        LIBRARY.rdna_image_adapter_release(self.handle)


class Parts(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def test_encoder(self):
        """Of pictures of its size, and of others, which are made smaller or larger and cut; and of zeros."""
        random = np.random.default_rng(4)
        for changes in ({}, {"hidden_act": "quick_gelu", "patch_size": 14, "num_hidden_layers": 1}, {"image_size": 30}):
            with self.subTest(str(changes)):
                model = random_encoder(3, **changes)
                model.save_pretrained(self.folder / "encoder")
                ours = Encoder(self.folder / "encoder")
                self.assertEqual(ours.status, 0, ours.sentence)
                model.double()
                side = model.config.image_size
                processor = CLIPImageProcessorPil(size={"shortest_edge": side}, crop_size={"height": side, "width": side})
                for height, width in ((side, side), (side, 51), (61, 40), (12, 17)):
                    pixels = random.integers(0, 256, (height, width, 3), np.uint8)
                    values = torch.from_numpy(np.asarray(processor(PIL.Image.fromarray(pixels), return_tensors="np").pixel_values)).double()
                    with torch.no_grad():
                        wanted = model(values, output_hidden_states=True)
                    vector, states = ours.encode(pixels)
                    self.assertLess(error(vector, wanted.image_embeds[0]), 1e-4)
                    self.assertLess(error(states, wanted.hidden_states[-2][0]), 1e-4)
                with torch.no_grad():
                    wanted = model(torch.zeros(1, 3, side, side).double(), output_hidden_states=True)
                self.assertLess(error(ours.encode(None)[1], wanted.hidden_states[-2][0]), 1e-4)

    def test_tokens(self):
        """Of vectors, and of states by a resampler."""
        random = np.random.default_rng(5)
        unet = diffusers.UNet2DConditionModel(**command.UNET, cross_attention_dim=36)
        for plus, rows in ((False, 1), (True, 17), (True, 3)):
            with self.subTest(f"{plus} {rows}"):
                tensors = random_adapter(unet, 7, 24, plus)
                path = self.folder / "ip.safetensors"
                safetensors.torch.save_file(tensors, path)
                ours = Adapter(path)
                self.assertEqual(ours.status, 0, ours.sentence)
                self.assertEqual((ours.info.reads_states, ours.info.seen, ours.info.tokens, ours.info.width), (plus, 24, 5 if plus else 4, 36))
                own = {k.removeprefix("image_proj."): v for k, v in tensors.items() if k.startswith("image_proj.")}
                theirs = unet._convert_ip_adapter_image_proj_to_diffusers(own).double()
                seen = random.standard_normal((2, rows, 24)).astype(np.float32)
                with torch.no_grad():
                    wanted = theirs(torch.from_numpy(seen).double() if plus else torch.from_numpy(seen[:, 0]).double())
                self.assertLess(error(ours.see(seen), wanted), 1e-4)

    def test_refused(self):
        model = random_encoder(1)
        model.save_pretrained(self.folder / "encoder")
        path = self.folder / "encoder/config.json"
        plain = json.loads(path.read_text())
        for change, status, word in [({"architectures": ["CLIPTextModel"]}, UNSUPPORTED, "CLIPTextModel"), ({"hidden_act": "relu"}, UNSUPPORTED, "relu"), ({"num_attention_heads": 5}, BAD_DATA, "heads"), ({"image_size": 3}, BAD_DATA, "patches"),
                                     ({"num_hidden_layers": 2}, UNSUPPORTED, "layers.2"), ({"projection_dim": 41}, BAD_DATA, "visual_projection")]:
            with self.subTest(str(change)):
                path.write_text(json.dumps({**plain, **change}))
                encoder = Encoder(self.folder / "encoder")
                self.assertEqual(encoder.status, status, encoder.sentence)
                self.assertIn(word, encoder.sentence)
        unet = diffusers.UNet2DConditionModel(**command.UNET, cross_attention_dim=36)
        tensors, plus, path = random_adapter(unet, 7, 24, False), random_adapter(unet, 7, 24, True), self.folder / "ip.safetensors"
        without = lambda name, of: {k: v for k, v in of.items() if k != name}
        for change, status, word in [({"image_proj.proj.3.weight": torch.zeros(1)}, UNSUPPORTED, "full face"), ({"image_proj.norm.weight": torch.zeros(1)}, UNSUPPORTED, "FaceID"), ({"x": torch.zeros(1)}, UNSUPPORTED, "no IP-Adapter"),
                                     (without("ip_adapter.1.to_k_ip.weight", tensors), BAD_DATA, "places"), ({**tensors, "image_proj.norm.weight": torch.zeros(35)}, BAD_DATA, "whole"),
                                     ({**plus, "image_proj.layers.0.0.to_q.weight": torch.zeros(65, 32)}, BAD_DATA, "heads of 64")]:
            with self.subTest(word):
                safetensors.torch.save_file(change, path)
                adapter = Adapter(path)
                self.assertEqual(adapter.status, status, adapter.sentence)
                self.assertIn(word, adapter.sentence)
        for change, status, word in [({**tensors, "more": torch.zeros(1)}, UNSUPPORTED, "more"), (without("ip_adapter.3.to_v_ip.weight", tensors), BAD_DATA, "to_v_ip"), (without("image_proj.layers.2.1.3.weight", plus), BAD_DATA, "layers.2.1.3")]:
            with self.subTest(word):
                safetensors.torch.save_file(change, path)
                adapter = Adapter(path)
                self.assertEqual(adapter.status, 0, adapter.sentence)
                adapter.see(np.zeros((1, 1, 24)))
                self.assertEqual(adapter.status, status, adapter.sentence)
                self.assertIn(word, adapter.sentence)
        self.assertEqual(Adapter(self.folder / "none").status, NOT_FOUND)


class Pictures(unittest.TestCase):
    draw, reference, compare, refused = (getattr(command.Pictures, name) for name in ("draw", "reference", "compare", "refused"))

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.temporary.name)
        cls.pipelines = {"sd": make_folder(cls.root / "sd"), "xl": make_folder(cls.root / "xl", True, diffusers.EulerDiscreteScheduler)}
        cls.encoder = random_encoder(2)
        cls.encoder.save_pretrained(cls.root / "encoder")
        cls.encoder.double()
        for model, pipeline in cls.pipelines.items():
            for plus in (False, True):
                tensors = random_adapter(pipeline.unet, 3 + plus, VISION["hidden_size" if plus else "projection_dim"], plus)
                safetensors.torch.save_file(tensors, cls.root / f"ip-adapter{'-plus' if plus else ''}_{model}.safetensors")

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def setUp(self):
        self.out = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        random = np.random.default_rng(6)
        self.images = [PIL.Image.fromarray(random.integers(0, 256, (*size, 3), np.uint8)) for size in ((SIDE, SIDE), (40, 33))]
        for i, image in enumerate(self.images):
            image.save(self.out / f"{i}.png")

    def pipeline(self, kind, model, adapters, scales, **options):
        parts = {k: v for k, v in self.pipelines[model].components.items() if k not in ("image_encoder", "feature_extractor")}
        unet = diffusers.UNet2DConditionModel(**parts["unet"].config)
        unet.load_state_dict(parts["unet"].state_dict())
        processor = CLIPImageProcessorPil(size={"shortest_edge": SIDE}, crop_size={"height": SIDE, "width": SIDE})
        pipeline = kind(**{**parts, "unet": unet.double()}, image_encoder=self.encoder, feature_extractor=processor, **options, **({"add_watermarker": False} if model == "xl" else {}))
        pipeline.load_ip_adapter([str(self.root)] * len(adapters), subfolder=[""] * len(adapters), weight_name=[f"{name}_{model}.safetensors" for name in adapters])
        pipeline.unet.double()
        pipeline.set_ip_adapter_scale(scales)
        pipeline.set_progress_bar_config(disable=True)
        return pipeline

    def options(self, model, adapters, scales):
        return ["--ip-encoder", self.root / "encoder", *(x for i, (name, scale) in enumerate(zip(adapters, scales)) for x in ("--ip-adapter", f"{self.root}/{name}_{model}.safetensors:{self.out}/{i}.png{'' if scale == 1 else f':{scale}'}"))]

    def test_steps(self):
        """Base and plus, both at once, with guidance and without, and with perturbed attention."""
        base, plus = "ip-adapter", "ip-adapter-plus"
        for model, kind, adapters, scales, cfg, sampler, options, others in [
                ("sd", diffusers.StableDiffusionPipeline, [base], [0.6], 4, "ddim", [], {}), ("sd", diffusers.StableDiffusionPipeline, [plus], [1], 4, "euler", [], {}),
                ("sd", diffusers.StableDiffusionPipeline, [plus, base], [0.7, -0.4], 1, "heun", [], {}), ("xl", diffusers.StableDiffusionXLPipeline, [base], [1], 5, "euler", [], {}),
                ("xl", diffusers.StableDiffusionXLPipeline, [base, plus], [0.5, 0.8], 5, "euler", [], {}),
                ("sd", diffusers.StableDiffusionPAGPipeline, [base], [0.6], 4, "euler", ["--pag", 2], {"pag_scale": 2})]:
            with self.subTest(f"{kind.__name__} {adapters}"):
                shutil.rmtree(self.out / "dump", ignore_errors=True)
                pipeline = self.pipeline(kind, model, adapters, scales, **({"pag_applied_layers": "mid"} if others else {}))
                negative = ["--negative", NEGATIVE] if cfg > 1 else []
                _, dumped = self.draw(model, "--seed", 5, "--steps", 5, "--sampler", sampler, "--cfg", cfg, "--size", "40x24", *negative, *options, *self.options(model, adapters, scales))
                wanted = self.reference(pipeline, sampler, 5, prompt=PROMPT, negative_prompt=NEGATIVE if negative else None, num_inference_steps=5, guidance=cfg, width=40, height=24, ip_adapter_image=self.images[:len(adapters)], **others)
                self.compare(dumped, wanted, 9 if sampler == "heun" else 5)
        plain = self.draw("sd", "--seed", 5, "--steps", 1, "--cfg", 4, "--size", "40x24")[1]["latents-0000"].astype(np.float64)
        self.draw("sd", "--seed", 5, "--steps", 1, "--cfg", 4, "--size", "40x24", *self.options("sd", ["ip-adapter"], [0.6]))
        self.assertGreater(error(np.load(self.out / "dump/latents-0000.npy"), plain), 1e-2)  # of which the steps above are far
        said = PIL.Image.open(self.out / "x.png").text["parameters"]
        self.assertIn(", IP-Adapter: ip-adapter_sd.safetensors:0.6", said)

    def test_plan(self):
        report = json.loads(command.rdna_program.output("image", self.root / "sd", PROMPT, "--plan", "--json", "--driver", command.rdna_program.DEVICE, "--out", self.out / "x.png", *self.options("sd", ["ip-adapter-plus"], [1])))
        self.assertIn("image encoder", [part["part"] for part in report["parts"]])

    def test_refusals(self):
        one = self.options("sd", ["ip-adapter"], [1])
        path = f"{self.root}/ip-adapter_sd.safetensors"
        random_encoder(1, projection_dim=41).save_pretrained(self.out / "other")
        for options, words in [(one[2:], ["--ip-encoder"]), (one[:2], ["encoder of pictures"]), (["--ip-encoder", self.root / "encoder", "--ip-adapter", path], ["FILE:IMAGE"]),
                               (["--ip-encoder", self.root / "encoder", "--ip-adapter", f"{path}:{self.out}/none.png"], ["none.png"]), (["--ip-encoder", self.out / "other", *one[2:]], ["ip-adapter_sd", "another"]),
                               (self.options("xl", ["ip-adapter"], [1]), ["ip-adapter_xl", "another version"]), (["--ip-encoder", self.out, *one[2:]], ["config.json"]), (self.options("sd", ["ip-adapter"], [10000]), ["1000"]),
                               (one + one[2:] * 8, ["8"])]:
            with self.subTest(str(words)):
                self.refused(self.root / "sd", *options, words=words, status=1)


if __name__ == "__main__":
    unittest.main()

"""rdna image with small random folders of Stable Diffusion 3 and 3.5, medium and large, against diffusers' pipelines in
float64: the transformer, texts, noise, every step and the picture, also without T5; and what is refused."""
import contextlib
import json
import pathlib
import shutil
import tempfile
import unittest

import diffusers_python  # first: this goes on in a Python that has diffusers
import diffusers
import numpy as np
import PIL.Image
import torch
import transformers

import image_flow_test
import image_flux_test
import rdna_program
from image_flow_test import error, random_t5, randomize, write_t5_tokenizer
from image_flux_test import PROMPT, compare_emulated, emulated, nothing, remove, settings
from image_library import BAD_DATA, BF16, F16, F32, INVALID, LIBRARY, UNSUPPORTED
from image_text_encoder_test import random_model, write_tokenizer

VAE = {"force_upcast": True, "block_out_channels": [8, 16], "layers_per_block": 1, "norm_num_groups": 4, "latent_channels": 16,
       "scaling_factor": 1.5, "shift_factor": 0.06, "use_quant_conv": False, "use_post_quant_conv": False,
       "down_block_types": ["DownEncoderBlock2D"] * 2, "up_block_types": ["UpDecoderBlock2D"] * 2}
PLAIN = {"sample_size": 16, "patch_size": 2, "in_channels": 16, "out_channels": 16, "num_layers": 3, "attention_head_dim": 8, "num_attention_heads": 3,
         "joint_attention_dim": 88, "caption_projection_dim": 24, "pooled_projection_dim": 48, "pos_embed_max_size": 20}
SD3, LARGE, MEDIUM = "Stable Diffusion 3", "Stable Diffusion 3.5 large", "Stable Diffusion 3.5 medium"
KINDS = {SD3: {}, LARGE: {"qk_norm": "rms_norm"}, MEDIUM: {"qk_norm": "rms_norm", "dual_attention_layers": [0, 1]}}
NEGATIVE = "the cat"


def sd3_transformer(**changes):
    network = randomize(diffusers.SD3Transformer2DModel(**{**PLAIN, **changes}), 4)
    table = network.pos_embed.pos_embed  # not a sine's, so that its middle cannot be taken for another part
    table.copy_(torch.randn(table.shape, generator=torch.Generator().manual_seed(9)))
    return network


def make_folder(folder, kind):
    """A pipeline of diffusers on random weights, which |folder| becomes; in float64."""
    folder.mkdir()
    count = write_tokenizer(folder / "tokenizer")
    write_tokenizer(folder / "tokenizer_2", "!")
    write_t5_tokenizer(folder / "tokenizer_3")
    clip = {"max_position_embeddings": 77, "eos_token_id": count - 1}
    first = random_model(transformers.CLIPTextModelWithProjection, 1, **clip, hidden_act="quick_gelu")
    second = random_model(transformers.CLIPTextModelWithProjection, 2, **clip, hidden_size=40, num_attention_heads=5, projection_dim=28, hidden_act="gelu")
    pipeline = diffusers.StableDiffusion3Pipeline(
        scheduler=diffusers.FlowMatchEulerDiscreteScheduler(shift=3.0), vae=randomize(diffusers.AutoencoderKL(**VAE), 2), text_encoder=first,
        text_encoder_2=second, text_encoder_3=random_t5(6, d_model=88), transformer=sd3_transformer(**KINDS[kind]),
        tokenizer=transformers.CLIPTokenizer.from_pretrained(folder / "tokenizer", model_max_length=77),
        tokenizer_2=transformers.CLIPTokenizer.from_pretrained(folder / "tokenizer_2", model_max_length=77, pad_token="!"),
        tokenizer_3=transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer_3/tokenizer.json"), eos_token="</s>", pad_token="<pad>", unk_token="<unk>"))
    kept = (folder / "tokenizer_3/tokenizer.json").read_bytes()
    pipeline.save_pretrained(folder)
    (folder / "tokenizer_3/tokenizer.json").write_bytes(kept)
    for name, pad in (("tokenizer", None), ("tokenizer_2", "!")):
        shutil.rmtree(folder / name)
        write_tokenizer(folder / name, pad)
    pipeline.set_progress_bar_config(disable=True)
    return pipeline.to(torch.float64)


class Transformers(image_flow_test.Folder):
    """Through librdna."""

    def make(self, dtype=torch.float32, **changes):
        network = sd3_transformer(**changes)
        shutil.rmtree(self.folder / "transformer", ignore_errors=True)
        network.to(dtype).save_pretrained(self.folder / "transformer")
        return network.double()

    def compare(self, network, shapes, dtype=F32, limit=1e-4):
        ours, config = image_flow_test.Flux(self.folder, dtype), network.config
        self.assertEqual(ours.status, 0, ours.sentence)
        self.assertEqual((ours.info.in_channels, ours.info.out_channels, ours.info.text_width, ours.info.pooled_width, ours.info.guided),
                         (config.in_channels, config.out_channels, config.joint_attention_dim, config.pooled_projection_dim, False))
        for height, width, tokens, timestep in shapes:
            rng = np.random.default_rng(height + tokens)
            sample, states, pooled = (rng.standard_normal(shape).astype(np.float32) for shape in
                                      ((config.in_channels, height, width), (tokens, config.joint_attention_dim), (config.pooled_projection_dim,)))
            with torch.no_grad():
                wanted = network(*(torch.from_numpy(x)[None].double() for x in (sample, states, pooled)), torch.tensor([timestep]).double()).sample[0]
            got, status = ours.run(sample, states, pooled, timestep, 0)
            self.assertEqual(status, 0, LIBRARY.rdna_last_error())
            self.assertLess(error(got, wanted), limit, (height, width, tokens))
        return ours

    def test_settings(self):
        shapes = [(16, 16, 11, 1000), (4, 10, 1, 251.25), (2, 40, 70, 3.75), (38, 6, 5, 500)]
        odd = {"in_channels": 3, "out_channels": 5, "attention_head_dim": 10, "num_attention_heads": 6, "caption_projection_dim": 60, "joint_attention_dim": 7,
               "pooled_projection_dim": 3, "pos_embed_max_size": 21}
        for changes in (*KINDS.values(), {**odd, "num_layers": 1}, {**odd, "qk_norm": "rms_norm", "num_layers": 2, "dual_attention_layers": [1]}, {"dual_attention_layers": (2, 0)}):
            with self.subTest(f"{changes}"):
                ours = self.compare(self.make(**changes), shapes)
        sample, states, pooled = np.zeros((16, 4, 4)), np.zeros((5, 88)), np.zeros(48)
        for changed, words in (({"height": 42}, "42 x 4"), ({"width": 3}, "4 x 3"), ({"tokens": 0}, "0 tokens"), ({"pooled": None}, "vector")):
            self.assertEqual(ours.run(sample, states, pooled, 1, 1, changed)[1], INVALID)
            self.assertIn(words, LIBRARY.rdna_last_error().decode())
        self.assertEqual(ours.run(sample, states, pooled, 1, 1, context=np.zeros((16, 4, 4)))[1], INVALID)
        self.assertIn("one picture", LIBRARY.rdna_last_error().decode())

    def test_types(self):
        shapes = [(8, 6, 9, 501)]
        self.compare(self.make(torch.bfloat16, **KINDS[MEDIUM]), shapes)
        network = self.make(**KINDS[MEDIUM])
        for dtype, limit in ((F16, 5e-3), (BF16, 4e-2)):
            self.compare(network, shapes, dtype, limit)

    def test_refusals(self):
        self.make(**KINDS[MEDIUM])
        path = self.folder / "transformer/config.json"
        whole = path.read_text()
        for changes, status, words in [
                ({"magic": 2}, UNSUPPORTED, "magic"), ({"patch_size": 4}, UNSUPPORTED, "patch_size"), ({"qk_norm": "layer_norm"}, UNSUPPORTED, "qk_norm"),
                ({"qk_norm": None}, UNSUPPORTED, "norm"), ({"caption_projection_dim": 25}, BAD_DATA, "25"), ({"dual_attention_layers": [3]}, BAD_DATA, "dual_attention_layers"),
                ({"dual_attention_layers": [0]}, BAD_DATA, "blocks.1"), ({"num_layers": 0}, BAD_DATA, "num_layers"), ({"num_layers": 4}, BAD_DATA, "blocks.2"),
                ({"pos_embed_max_size": 24}, BAD_DATA, "pos_embed"), ({"in_channels": 8}, BAD_DATA, "pos_embed.proj"), ({"out_channels": 8}, BAD_DATA, "proj_out")]:
            with self.subTest(f"{changes}"):
                path.write_text(json.dumps({**json.loads(whole), **changes}))
                ours = image_flow_test.Flux(self.folder)
                self.assertEqual(ours.status, status, ours.sentence)
                self.assertIn(words, ours.sentence)


class Pictures(unittest.TestCase):
    draw, compare, refuse = (getattr(image_flux_test.Pictures, name) for name in ("draw", "compare", "refuse"))

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.root = pathlib.Path(cls.temporary.name)
        cls.pipelines = {kind: make_folder(cls.root / kind, kind) for kind in KINDS}

    def setUp(self):
        self.out = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def reference(self, pipeline, seed, **options):
        """diffusers' latents after each step and its picture, in float64 from float32 noise."""
        latents, generator = [], torch.Generator().manual_seed(seed)

        def numbers(shape, generator=generator, **_):
            return torch.randn(shape, generator=generator).double()

        def keep(_, step, timestep, values):
            latents.append(values["latents"][0].numpy().copy())
            return values

        with contextlib.ExitStack() as stack:
            for place in (__import__(type(pipeline).__module__, fromlist=["x"]), diffusers.models.autoencoders.vae):
                stack.callback(setattr, place, "randn_tensor", place.randn_tensor)
                place.randn_tensor = numbers
            picture = pipeline(prompt=PROMPT, generator=generator, output_type="pt", callback_on_step_end=keep, **options).images[0]
        return latents, picture

    def test_pictures(self):
        for kind, steps, guidance, width, height in [(SD3, 3, 7, 8, 24), (LARGE, 4, 1, 40, 24), (MEDIUM, 20, 4.5, 24, 16)]:
            with self.subTest(kind):
                report, dumped = self.draw(kind, "--seed", 5, "--size", f"{width}x{height}", "--steps", steps, *(["--negative", NEGATIVE] if kind == MEDIUM else []), "--cfg", guidance)
                pipeline, negative = self.pipelines[kind], NEGATIVE if kind == MEDIUM else None
                self.compare(dumped, self.reference(pipeline, 5, guidance_scale=guidance, negative_prompt=negative, num_inference_steps=steps, width=width, height=height), steps)
                states, other_states, pooled, other_pooled = pipeline.encode_prompt(PROMPT, None, None, negative_prompt=negative)
                pairs = [(dumped["states"][-1], states[0]), (dumped["pooled"][-1], pooled[0])]
                pairs += [(dumped["states"][0], other_states[0]), (dumped["pooled"][0], other_pooled[0])] if guidance > 1 else []
                for got, wanted in pairs:
                    self.assertLess(error(got, wanted), 1e-5)
                np.testing.assert_allclose(dumped["timesteps"], pipeline.scheduler.timesteps, atol=2e-3)
                self.assertEqual((report["model"], report["steps"], report["sampler"], report["width"], report["height"]), (kind, steps, "euler", width, height))
                plan, peak = report["plan"]["peak"], report["peak_bytes"]
                self.assertLess(abs(plan - peak), 0.03 * peak)
                self.assertEqual([part["part"] for part in report["plan"]["parts"]], ["text encoder", "T5", "transformer", "autoencoder"])

    def test_without_t5(self):
        """A folder whose model_index.json says that it is null: its states are zeros."""
        folder = self.root / "without"
        shutil.copytree(self.root / LARGE, folder)
        shutil.rmtree(folder / "text_encoder_3")
        settings("model_index.json", text_encoder_3=[None, None], tokenizer_3=[None, None])(folder)
        kept = self.pipelines[LARGE].components
        pipeline = diffusers.StableDiffusion3Pipeline(**{**kept, "text_encoder_3": None, "tokenizer_3": None})
        pipeline.set_progress_bar_config(disable=True)
        report, dumped = self.draw("without", "--seed", 3, "--steps", 3, "--size", "8x8", "--cfg", 2)
        self.compare(dumped, self.reference(pipeline, 3, guidance_scale=2, num_inference_steps=3, width=8, height=8), 3)
        self.assertEqual(dumped["states"].shape, (2, 77 + 256, 88))
        self.assertEqual([part["part"] for part in report["plan"]["parts"]], ["text encoder", "transformer", "autoencoder"])
        result = rdna_program.run("image", folder, PROMPT * 60, "--steps", 1, "--size", "8x8", "--out", self.out / "y.png", "--driver", rdna_program.DEVICE)
        self.assertRegex(result.stderr.decode(), r"the prompt has \d+ tokens, of which the model reads 75\n")
        t5 = self.root / LARGE / "text_encoder_3/model.safetensors"  # a file of it counts
        with_t5 = self.draw("without", "--seed", 3, "--steps", 1, "--size", "8x8", "--t5", t5)[1]
        np.testing.assert_array_equal(with_t5["picture"], self.draw(LARGE, "--seed", 3, "--steps", 1, "--size", "8x8")[1]["picture"])

    def test_initial_pictures(self):
        PIL.Image.fromarray(np.random.default_rng(5).integers(0, 256, (24, 16, 3), np.uint8)).save(self.out / "init.png")
        pipeline = diffusers.StableDiffusion3Img2ImgPipeline(**self.pipelines[MEDIUM].components)
        pipeline.set_progress_bar_config(disable=True)
        for steps, strength in ((5, 0.6), (3, 1)):
            _, dumped = self.draw(MEDIUM, "--init", self.out / "init.png", "--strength", strength, "--seed", 6, "--steps", steps)
            wanted = self.reference(pipeline, 6, image=PIL.Image.open(self.out / "init.png"), strength=strength, num_inference_steps=steps, guidance_scale=4.5, width=16, height=24)
            self.compare(dumped, wanted, steps - int(steps - steps * strength))

    @emulated
    def test_emulated(self):
        compare_emulated(self, self.root / MEDIUM)

    def test_files(self):
        """Given noise, several pictures, 16 bits, weights of blocks, and a prompt that is too long."""
        options = ["--size", "24x16", "--steps", 3]
        dumped = self.draw(MEDIUM, "--seed", 8, *options)[1]
        first, picture = (self.out / "x.png").read_bytes(), dumped["picture"]
        np.save(self.out / "noise.npy", dumped["noise"])
        np.testing.assert_array_equal(self.draw(MEDIUM, "--latents", self.out / "noise.npy", "--steps", 3)[1]["picture"], picture)
        self.draw(MEDIUM, "--seed", 7, "--count", 2, *options)
        self.assertEqual((self.out / "x-1.png").read_bytes(), first)
        for more, limit in ((["--type", "bf16"], 8e-2), (["--type", "f16"], 2e-2), (["--weights", "q8_0"], 5e-2)):
            self.assertLess(error(self.draw(MEDIUM, "--seed", 8, *options, *more)[1]["picture"], picture), limit)
        result = rdna_program.run("image", self.root / MEDIUM, PROMPT * 60, "--steps", 1, "--size", "8x8", "--out", self.out / "y.png", "--driver", rdna_program.DEVICE)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stderr.decode(), r"the prompt has \d+ tokens, of which the model reads 255\n")

    def test_refusals(self):
        transformer = "transformer/config.json"
        PIL.Image.new("RGB", (8, 8)).save(self.out / "init.png")
        self.refuse(self.root / LARGE, [
            (nothing, ["--size", "10x8"], ["10 x 8", "4"]), (nothing, ["--sampler", "ddim"], ["ddim", "euler"]), (nothing, ["--size", "84x8"], ["4 x 42", "40"]),
            (nothing, ["--clip-skip", "2"], [LARGE, "layers"]),
            (remove("transformer"), [], ["transformer"]),
            (remove("text_encoder"), [], ["text_encoder"]), (remove("text_encoder_2"), [], ["text_encoder_2"]), (remove("text_encoder_3"), [], ["text_encoder_3"]),
            (remove("tokenizer_3"), [], ["tokenizer_3"]), (remove("vae"), [], ["vae"]),
            (settings(transformer, in_channels=8), [], ["32", "64"]), (settings(transformer, pooled_projection_dim=40), [], ["48", "40"]), (settings(transformer, pooled_projection_dim=56), [], ["48", "56"]),
            (settings(transformer, joint_attention_dim=70), [], ["76", "70"]), (settings(transformer, joint_attention_dim=96), [], ["88", "96"]),
            (settings("text_encoder/config.json", max_position_embeddings=70), [], ["70", "77"]), (settings(transformer, _class_name="FluxTransformer2DModel"), [], ["not known"]),
            (settings("scheduler/scheduler_config.json", _class_name="DDIMScheduler"), [], ["DDIM"])])


if __name__ == "__main__":
    unittest.main()

"""rdna image with a small random folder of Z-Image, whose text encoder is Qwen3, against diffusers' pipeline in float64:
texts, noise, every step and the picture; and what is refused."""
import contextlib
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
import tokenizers
import torch
import transformers

import image_flux_test
import rdna_program
from image_flow_test import error, randomize
from image_flux_test import compare_emulated, emulated, nothing, remove, settings

diffusers.utils.logging.set_verbosity_error()
transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()
VAE = {"force_upcast": False, "block_out_channels": [8, 16], "layers_per_block": 1, "norm_num_groups": 4, "latent_channels": 4,
       "scaling_factor": 0.36, "shift_factor": 0.12, "use_quant_conv": False, "use_post_quant_conv": False,
       "down_block_types": ["DownEncoderBlock2D"] * 2, "up_block_types": ["UpDecoderBlock2D"] * 2}
TRANSFORMER = {"in_channels": 4, "dim": 60, "n_layers": 2, "n_refiner_layers": 1, "n_heads": 3, "n_kv_heads": 3, "cap_feat_dim": 32,
               "axes_dims": [8, 6, 6], "axes_lens": [600, 32, 32]}
LANGUAGE = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8,
            "max_position_embeddings": 1024, "tie_word_embeddings": True}
PROMPT, NEGATIVE = "a lighthouse at dusk, with a cat", "rain"
MARKS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
CHAT = ("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")
PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def qwen_tokenizer(folder):
    """Cut as Qwen's is, with a few merges; what transformers makes of it."""
    bpe = tokenizers.Tokenizer(tokenizers.models.BPE())
    bpe.normalizer = tokenizers.normalizers.NFC()
    bpe.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([
        tokenizers.pre_tokenizers.Split(tokenizers.Regex(PATTERN), "isolated"), tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    bpe.decoder = tokenizers.decoders.ByteLevel()
    bpe.train_from_iterator([PROMPT, NEGATIVE, "user assistant"] * 3, tokenizers.trainers.BpeTrainer(
        vocab_size=300, initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    bpe.add_special_tokens(MARKS)
    made = transformers.PreTrainedTokenizerFast(tokenizer_object=bpe, eos_token="<|im_end|>", pad_token="<|endoftext|>", chat_template=CHAT)
    made.save_pretrained(folder)
    return made


def make_folder(folder, **changes):
    """A pipeline of diffusers on random weights, which |folder| becomes; in float64."""
    folder.mkdir()
    tokenizer = qwen_tokenizer(folder / "tokenizer")
    language = transformers.Qwen3Model(transformers.Qwen3Config(vocab_size=len(tokenizer), **LANGUAGE))
    pipeline = diffusers.ZImagePipeline(
        scheduler=diffusers.FlowMatchEulerDiscreteScheduler(shift=3.0), vae=randomize(diffusers.AutoencoderKL(**VAE), 2),
        text_encoder=randomize(language, 1), tokenizer=tokenizer, transformer=randomize(diffusers.ZImageTransformer2DModel(**{**TRANSFORMER, **changes}), 4))
    pipeline.save_pretrained(folder)
    settings = json.loads((folder / "text_encoder/config.json").read_text())
    (folder / "text_encoder/config.json").write_text(json.dumps({**settings, "architectures": ["Qwen3ForCausalLM"]}))  # as it is published
    pipeline.set_progress_bar_config(disable=True)
    return pipeline.to(torch.float64)


class Pictures(unittest.TestCase):
    refuse = image_flux_test.Pictures.refuse

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.folder = pathlib.Path(cls.temporary.name) / "model"
        cls.pipeline = make_folder(cls.folder)

    def setUp(self):
        self.out = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def draw(self, *options, prompt=PROMPT):
        """What the command reports, and what it dumped."""
        dump = self.out / "dump"
        shutil.rmtree(dump, ignore_errors=True)
        report = rdna_program.output("image", self.folder, prompt, "--out", self.out / "x.png", "--dump", dump, "--json",
                                     "--driver", rdna_program.DEVICE, "--type", "f32", *options)
        return json.loads(report), {path.stem: np.load(path) for path in dump.glob("*.npy")}

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
            stack.callback(setattr, torch, "float32", torch.float32)  # which the pipeline asks latents to be
            torch.float32 = torch.float64
            picture = pipeline(prompt=PROMPT, generator=generator, output_type="pt", callback_on_step_end=keep, **options).images[0]
        return latents, picture

    def compare(self, dumped, wanted):
        latents, picture = wanted
        self.assertEqual(len([name for name in dumped if name.startswith("latents-")]), len(latents))
        for i, values in enumerate(latents):
            self.assertLess(error(dumped[f"latents-{i:04d}"], values), 1e-3, f"step {i}")
        self.assertLess(error(dumped["picture"].clip(-1, 1) / 2 + 0.5, picture), 1e-3)

    def test_pictures(self):
        for steps, guidance, width, height in [(8, 0, 24, 16), (3, 2.5, 12, 36)]:
            with self.subTest(f"{steps} {guidance}"):
                # one more: diffusers' pipeline adds its guidance to the prompted answer, others to the unprompted
                report, dumped = self.draw("--seed", 5, "--size", f"{width}x{height}", "--steps", steps, "--negative", NEGATIVE, "--cfg", guidance + 1 if guidance else 0)
                wanted = self.reference(self.pipeline, 5, guidance_scale=guidance, negative_prompt=NEGATIVE, num_inference_steps=steps, width=width, height=height)
                self.assertEqual(len(wanted[0]), steps)
                self.compare(dumped, wanted)
                texts = self.pipeline.encode_prompt(PROMPT, do_classifier_free_guidance=guidance > 0, negative_prompt=NEGATIVE)
                for got, states in zip(dumped["states"][::-1], (texts[0] + texts[1])):
                    self.assertLess(error(got[:len(states)], states), 1e-4)
                    self.assertFalse(got[len(states):].any())
                np.testing.assert_allclose(dumped["timesteps"], self.pipeline.scheduler.timesteps, atol=2e-3)
                self.assertEqual((report["model"], report["steps"], report["sampler"], report["width"], report["height"]), ("Z-Image", steps, "euler", width, height))

    @emulated
    def test_emulated(self):
        compare_emulated(self, self.folder)

    def test_initial_pictures(self):
        PIL.Image.fromarray(np.random.default_rng(5).integers(0, 256, (24, 16, 3), np.uint8)).save(self.out / "init.png")
        pipeline = diffusers.ZImageImg2ImgPipeline(**self.pipeline.components)
        pipeline.set_progress_bar_config(disable=True)
        _, dumped = self.draw("--init", self.out / "init.png", "--strength", 0.6, "--seed", 6, "--steps", 5)
        self.compare(dumped, self.reference(pipeline, 6, image=PIL.Image.open(self.out / "init.png"), strength=0.6, num_inference_steps=5, guidance_scale=0, width=16, height=24))

    def test_files(self):
        """Given noise, 16 bits, weights of blocks, the plan, and a prompt that is too long."""
        noise = self.draw("--seed", 8, "--size", "24x16", "--steps", 2)[1]["noise"]
        first = (self.out / "x.png").read_bytes()
        np.save(self.out / "noise.npy", noise)
        picture = self.draw("--latents", self.out / "noise.npy", "--steps", 2)[1]["picture"]
        self.draw("--seed", 7, "--size", "24x16", "--count", 2, "--steps", 2)
        self.assertEqual((self.out / "x-1.png").read_bytes(), first)
        config = self.folder / "text_encoder/config.json"
        published = config.read_text()
        self.addCleanup(config.write_text, published)
        config.write_text(published.replace("Qwen3ForCausalLM", "Qwen3Model"))  # as diffusers saves what it read
        np.testing.assert_array_equal(self.draw("--latents", self.out / "noise.npy", "--steps", 2)[1]["picture"], picture)
        config.write_text(published)
        for options, limit in ((["--type", "bf16"], 8e-2), (["--weights", "q8_0"], 5e-2)):
            self.assertLess(error(self.draw("--seed", 8, "--size", "24x16", "--steps", 2, *options)[1]["picture"], picture), limit)
        plan = json.loads(rdna_program.output("image", self.folder, PROMPT, "--plan", "--json", "--size", "24x16", "--driver", rdna_program.DEVICE))
        self.assertEqual([part["part"] for part in plan["parts"]], ["text encoder", "transformer", "autoencoder"])
        result = rdna_program.run("image", self.folder, PROMPT * 80, "--steps", 1, "--size", "8x8", "--out", self.out / "y.png", "--driver", rdna_program.DEVICE)
        self.assertEqual(result.returncode, 0, result.stderr)
        said = re.search(r"the prompt has (\d+) tokens, of which the model reads (\d+)\n", result.stderr.decode())
        frame = len(self.pipeline.tokenizer("<|im_start|>user\n<|im_end|>\n<|im_start|>assistant\n")["input_ids"])
        self.assertEqual([int(count) for count in said.groups()], [len(self.pipeline.tokenizer(PROMPT * 80)["input_ids"]), 512 - frame])

    def test_refusals(self):
        transformer = "transformer/config.json"
        self.refuse(self.folder, [
            (nothing, ["--size", "10x8"], ["10 x 8", "4"]), (nothing, ["--sampler", "ddim"], ["ddim", "euler"]), (nothing, ["--size", "160x8"], ["4 x 80", "64 x 64"]),
            (nothing, ["--t5", "x.gguf"], ["T5"]), (remove("transformer"), [], ["transformer"]),
            (remove("text_encoder"), [], ["text_encoder"]), (remove("tokenizer"), [], ["tokenizer"]), (remove("vae"), [], ["vae"]), (remove("scheduler"), [], ["scheduler"]),
            (settings(transformer, magic=2), [], ["magic"]), (settings(transformer, siglip_feat_dim=8), [], ["siglip_feat_dim"]), (settings(transformer, in_channels=8), [], ["8 channels"]),
            (settings(transformer, all_patch_size=[4]), [], ["all_patch_size", "4"]), (settings(transformer, qk_norm=False), [], ["qk_norm"]), (settings(transformer, n_kv_heads=1), [], ["n_kv_heads"]),
            (settings(transformer, axes_dims=[8, 6, 8]), [], ["22", "20"]), (settings(transformer, axes_dims=[8, 6]), [], ["axes_dims", "2 values"]), (settings(transformer, axes_dims=[9, 6, 5]), [], ["odd"]),
            (settings(transformer, n_heads=7), [], ["60", "7"]), (settings(transformer, n_layers=3), [], ["layers.2"]), (settings(transformer, n_layers=1), [], ["layers.1"]),
            (settings(transformer, cap_feat_dim=40), [], ["40"]), (settings(transformer, axes_lens=[30, 32, 32]), [], ["tokens", "30"]), (settings("scheduler/scheduler_config.json", _class_name="DDIMScheduler"), [], ["DDIM"]),
            (settings("text_encoder/config.json", architectures=["CLIPTextModel"]), [], ["text_encoder"]), (settings("vae/config.json", out_channels=1), [], ["1"])])


if __name__ == "__main__":
    unittest.main()

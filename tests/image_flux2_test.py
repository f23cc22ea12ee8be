"""rdna image with small random folders of FLUX.2 klein, against diffusers' pipeline in float64: texts that are filled up,
noise, every step and the picture; and what is refused."""
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

import image_flux_test
import rdna_program
from image_flow_parts_test import flux2_autoencoder, flux2_transformer
from image_flow_test import error, randomize
from image_flux_test import PROMPT, nothing, remove, settings
from image_qwen_test import MARKS, write_qwen_tokenizer

CHAT = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}{{ '<|im_start|>assistant\\n<think>\\n\\n</think>\\n\\n' }}"
LANGUAGE = dict(hidden_size=20, num_hidden_layers=28, num_attention_heads=4, num_key_value_heads=2, head_dim=8, intermediate_size=24, max_position_embeddings=1024,
                rms_norm_eps=1e-6, tie_word_embeddings=True)


def make_folder(folder, distilled):
    """A pipeline of diffusers on random weights, which |folder| becomes; in float64."""
    count = write_qwen_tokenizer(folder / "tokenizer")
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer/tokenizer.json"), pad_token=MARKS[0], padding_side="right")
    tokenizer.chat_template = CHAT
    language = randomize(transformers.Qwen3ForCausalLM(transformers.Qwen3Config(vocab_size=count, **LANGUAGE)), 9)
    pipeline = diffusers.Flux2KleinPipeline(
        scheduler=diffusers.FlowMatchEulerDiscreteScheduler(use_dynamic_shifting=True, shift=3.0), vae=flux2_autoencoder(), text_encoder=language,
        transformer=flux2_transformer(), tokenizer=tokenizer, is_distilled=distilled)
    pipeline.save_pretrained(folder)
    shutil.rmtree(folder / "tokenizer")
    write_qwen_tokenizer(folder / "tokenizer")
    pipeline.set_progress_bar_config(disable=True)
    return pipeline.to(torch.float64)


class Pictures(unittest.TestCase):
    draw, compare, refuse = (getattr(image_flux_test.Pictures, name) for name in ("draw", "compare", "refuse"))

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.root = pathlib.Path(cls.temporary.name)
        cls.pipelines = {name: make_folder(cls.root / name, name == "distilled") for name in ("distilled", "base")}

    def setUp(self):
        self.out = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def reference(self, pipeline, seed, height, width, **options):
        """diffusers' latents after each step, and its picture, in float64 from float32 noise."""
        latents, shape = [], (height // 4, width // 4)
        noise = torch.randn((1, 16, *shape), generator=torch.Generator().manual_seed(seed)).double()

        def keep(_, step, timestep, values):
            latents.append(values["latents"][0].T.reshape(16, *shape).numpy().copy())
            return values
        picture = pipeline(prompt=PROMPT, latents=noise, output_type="pt", callback_on_step_end=keep, height=height, width=width, **options).images[0]
        return latents, picture

    def test_pictures(self):
        for name, options, steps, guidance, width, height in [("distilled", [], 4, 1, 24, 32), ("base", ["--steps", 12], 12, 4, 40, 16), ("base", ["--cfg", 1, "--steps", 3], 3, 1, 8, 4)]:
            with self.subTest(f"{name} {options}"):
                report, dumped = self.draw(name, "--seed", 5, "--size", f"{width}x{height}", *options)
                pipeline = self.pipelines[name]
                self.compare(dumped, self.reference(pipeline, 5, height, width, guidance_scale=guidance, num_inference_steps=steps), steps)
                for i, text in enumerate(["", PROMPT] if guidance > 1 else [PROMPT]):
                    self.assertLess(error(dumped["states"][i], pipeline.encode_prompt(text)[0][0]), 1e-5)
                np.testing.assert_allclose(dumped["timesteps"], pipeline.scheduler.timesteps, atol=2e-3)
                self.assertEqual((report["model"], report["steps"], report["width"], report["height"]), ("FLUX.2 klein" + " base" * (name == "base"), steps, width, height))

    def test_pictures_that_are_looked_at(self):
        PIL.Image.fromarray(np.random.default_rng(5).integers(0, 256, (64, 72, 3), np.uint8)).save(self.out / "init.png")
        _, dumped = self.draw("distilled", "--init", self.out / "init.png", "--seed", 6)
        self.compare(dumped, self.reference(self.pipelines["distilled"], 6, 64, 72, image=PIL.Image.open(self.out / "init.png"), num_inference_steps=4), 4)

    def test_several_pictures(self):
        """Of sizes of their own, the first of which says how large the result is."""
        images, options = [], []
        for i, (width, height) in enumerate([(72, 64), (64, 104), (88, 72)]):
            images.append(PIL.Image.fromarray(np.random.default_rng(i).integers(0, 256, (height, width, 3), np.uint8)))
            images[-1].save(self.out / f"{i}.png")
            options += ["--image", self.out / f"{i}.png"]
        _, dumped = self.draw("base", *options, "--seed", 7, "--steps", 2, "--cfg", 3)
        wanted = self.reference(self.pipelines["base"], 7, 64, 72, image=images, guidance_scale=3, num_inference_steps=2)
        self.compare(dumped, wanted, 2)
        swapped = self.reference(self.pipelines["base"], 7, 64, 72, image=[images[0], *images[:0:-1]], guidance_scale=3, num_inference_steps=2)
        self.assertGreater(error(swapped[0][-1], wanted[0][-1]), 1e-3)  # so that their order is seen

    def test_files(self):
        """A long prompt that is cut, 16 bits, a plan, and the same bytes again."""
        report, dumped = self.draw("distilled", "--seed", 8, "--size", "40x32")
        first, picture = (self.out / "x.png").read_bytes(), dumped["picture"]
        self.assertEqual([part["part"] for part in report["plan"]["parts"]], ["text encoder", "transformer", "autoencoder"])
        np.save(self.out / "noise.npy", dumped["noise"])
        np.testing.assert_array_equal(self.draw("distilled", "--latents", self.out / "noise.npy", "--seed", 8)[1]["picture"], picture)
        self.draw("distilled", "--seed", 8, "--size", "40x32")
        self.assertEqual((self.out / "x.png").read_bytes(), first)
        for dtype, limit in (("f16", 3e-2), ("bf16", 0.2)):
            self.assertLess(error(self.draw("distilled", "--seed", 8, "--size", "40x32", "--type", dtype)[1]["picture"], picture), limit)
        result = rdna_program.run("image", self.root / "distilled", PROMPT * 60, "--negative", "x", "--steps", 1, "--size", "8x8", "--out", self.out / "y.png", "--driver", rdna_program.DEVICE)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stderr.decode(), r"the prompt has \d+ tokens, of which the model reads \d+\n")
        self.assertIn("the negative prompt has no effect", result.stderr.decode())

    def test_refusals(self):
        def unfilled(folder):
            path = folder / "tokenizer/tokenizer.json"
            path.write_text(path.read_text().replace(MARKS[0], "<|other|>"))
        self.refuse(self.root / "distilled", [
            (nothing, ["--size", "6x8"], ["6 x 8", "4"]), (nothing, ["--sampler", "ddim"], ["ddim", "euler"]), (remove("transformer"), [], ["transformer"]), (remove("text_encoder"), [], ["text_encoder"]),
            (remove("vae"), [], ["vae"]), (settings("transformer/config.json", in_channels=20), [], ["20", "16 channels"]), (settings("transformer/config.json", guidance_embeds=True), [], ["guidance"]),
            (settings("vae/config.json", _class_name="AutoencoderKL"), [], ["FLUX.2"]), (settings("model_index.json", is_distilled=3), [], ["is_distilled"]), (unfilled, [], [MARKS[0]]),
            (settings("text_encoder/config.json", num_hidden_layers=20), [], ["text_encoder"]), (settings("model_index.json", _class_name="Flux2Pipeline"), [], ["Flux2Pipeline", "Flux2KleinPipeline"])])


if __name__ == "__main__":
    unittest.main()

"""rdna image with a small random folder of Qwen-Image, against diffusers' pipelines in float64: texts, noise, every step
and the picture; and what is refused."""
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

import image_flux_test
import rdna_program
import tokenizer_models
from image_flow_parts_test import qwen_autoencoder, qwen_transformer
from image_flow_test import error, randomize
from image_flux_test import PROMPT, compare_emulated, emulated, nothing, remove, settings

transformers.utils.logging.set_verbosity_error()
SCHEDULE = {"base_image_seq_len": 256, "base_shift": 0.5, "max_image_seq_len": 8192, "max_shift": 0.9, "shift_terminal": 0.02, "use_dynamic_shifting": True}
MARKS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def write_qwen_tokenizer(folder, marks=()):
    made = tokenizer_models.qwen2()
    made.tokenizer.add_special_tokens([*MARKS, *marks])
    made.config = {"tokenizer_class": "Qwen2Tokenizer", "pad_token": MARKS[0], "eos_token": MARKS[2], "model_max_length": 131072}
    folder.mkdir(parents=True, exist_ok=True)
    made.write(folder)
    return made.tokenizer.get_vocab_size()


def qwen_language(vocabulary, tower=None, **more):
    text = dict(vocab_size=vocabulary, hidden_size=40, num_hidden_layers=2, num_attention_heads=5, num_key_value_heads=1, intermediate_size=72,
                max_position_embeddings=2048, rms_norm_eps=1e-6, rope_parameters={"rope_type": "default", "rope_theta": 1e4, "mrope_section": [2, 1, 1]})
    vision = dict(depth=1, hidden_size=16, intermediate_size=16, num_heads=2, out_hidden_size=40, fullatt_block_indexes=[0])
    config = transformers.Qwen2_5_VLConfig(text_config=text, vision_config={**vision, **(tower or {})}, tie_word_embeddings=False, **more)
    return randomize(transformers.Qwen2_5_VLForConditionalGeneration(config), 8)


def make_folder(folder):
    """A pipeline of diffusers on random weights, which |folder| becomes; in float64."""
    count = write_qwen_tokenizer(folder / "tokenizer")
    pipeline = diffusers.QwenImagePipeline(
        scheduler=diffusers.FlowMatchEulerDiscreteScheduler(**SCHEDULE), vae=qwen_autoencoder(), text_encoder=qwen_language(count), transformer=qwen_transformer(),
        tokenizer=transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer/tokenizer.json"), pad_token=MARKS[0]))
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
        cls.pipeline = make_folder(cls.root / "qwen")

    def setUp(self):
        self.out = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def reference(self, seed, height, width, **options):
        """diffusers' latents after each step, unpacked, and its picture, in float64 from float32 noise."""
        latents, pipeline = [], self.pipeline
        noise = torch.randn((1, 1, 4, height // 4, width // 4), generator=torch.Generator().manual_seed(seed)).double()
        packed = pipeline._pack_latents(noise, 1, 4, height // 4, width // 4)

        def keep(_, step, timestep, values):
            latents.append(pipeline._unpack_latents(values["latents"], height, width, 4)[0, :, 0].numpy().copy())
            return values
        picture = pipeline(prompt=PROMPT, latents=packed, output_type="pt", callback_on_step_end=keep, height=height, width=width, **options).images[0]
        return latents, picture

    def test_pictures(self):
        for options, steps, guidance, negative, width, height in [(["--steps", 20], 20, 4, None, 24, 32), (["--cfg", 1, "--steps", 4], 4, 1, None, 8, 24),
                                                                  (["--negative", "cat on mars and a longer text", "--cfg", 2.5, "--steps", 5], 5, 2.5, "cat on mars and a longer text", 40, 16)]:
            with self.subTest(f"{options}"):
                report, dumped = self.draw("qwen", "--seed", 5, "--size", f"{width}x{height}", *options)
                other = (negative or " ") if guidance > 1 else None
                self.compare(dumped, self.reference(5, height, width, true_cfg_scale=guidance, negative_prompt=other, num_inference_steps=steps), steps)
                for i, text in enumerate([other, PROMPT] if other else [PROMPT]):
                    states, _ = self.pipeline.encode_prompt(text, max_sequence_length=512)
                    self.assertLess(error(dumped["states"][i, :states.shape[1]], states[0]), 1e-5)
                    self.assertFalse(dumped["states"][i, states.shape[1]:].any())
                np.testing.assert_allclose(dumped["timesteps"], self.pipeline.scheduler.timesteps, atol=2e-3)
                self.assertEqual((report["model"], report["steps"], report["sampler"], report["width"], report["height"]), ("Qwen-Image", steps, "euler", width, height))

    def test_initial_pictures(self):
        PIL.Image.fromarray(np.random.default_rng(5).integers(0, 256, (24, 40, 3), np.uint8)).save(self.out / "init.png")
        _, dumped = self.draw("qwen", "--init", self.out / "init.png", "--strength", 0.6, "--seed", 6, "--steps", 9, "--cfg", 1)
        self.assertEqual(len([name for name in dumped if name.startswith("latents-")]), 9 - int(9 - 9 * 0.6))
        sigma = dumped["timesteps"][0] / 1000
        first = self.pipeline.transformer(hidden_states=self.pipeline._pack_latents(torch.from_numpy((1 - sigma) * dumped["init"] + sigma * dumped["noise"]).double()[None, None], 1, 4, 6, 10),
                                          encoder_hidden_states=torch.from_numpy(dumped["states"]).double(), timestep=torch.tensor([sigma]).double(), img_shapes=[[(1, 3, 5)]]).sample
        step = self.pipeline._unpack_latents(first, 24, 40, 4)[0, :, 0].detach().numpy() * (dumped["timesteps"][1] / 1000 - sigma)
        self.assertLess(error(dumped["latents-0000"], (1 - sigma) * dumped["init"] + sigma * dumped["noise"] + step), 1e-4)

    @emulated
    def test_emulated(self):
        compare_emulated(self, self.root / "qwen")

    def test_files(self):
        """Given noise, a long prompt that is cut, 16 bits, a plan, tiles, and the same bytes again."""
        picture = self.draw("qwen", "--seed", 8, "--size", "40x32", "--steps", 3)[1]["picture"]
        first = (self.out / "x.png").read_bytes()
        noise = self.draw("qwen", "--seed", 8, "--size", "40x32", "--steps", 3)[1]["noise"]
        self.assertEqual((self.out / "x.png").read_bytes(), first)
        np.save(self.out / "noise.npy", noise)
        np.testing.assert_array_equal(self.draw("qwen", "--latents", self.out / "noise.npy", "--steps", 3)[1]["picture"], picture)
        for dtype, limit in (("f16", 3e-2), ("bf16", 0.2)):
            dump = self.draw("qwen", "--seed", 8, "--size", "40x32", "--steps", 3, "--type", dtype)[1]
            self.assertLess(error(dump["picture"], picture), limit)
        result = rdna_program.run("image", self.root / "qwen", PROMPT * 60, "--steps", 1, "--cfg", 1, "--size", "8x8", "--out", self.out / "y.png", "--driver", rdna_program.DEVICE)
        self.assertEqual(result.returncode, 1)
        self.assertIn("shift_terminal", result.stderr.decode())
        result = rdna_program.run("image", self.root / "qwen", PROMPT * 60, "--steps", 2, "--cfg", 1, "--size", "8x8", "--out", self.out / "y.png", "--driver", rdna_program.DEVICE)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stderr.decode(), r"the prompt has \d+ tokens, of which the model reads \d+\n")

    def test_published_folders(self):
        """A setting that diffusers once had, and a vocabulary in two files instead of tokenizer.json."""
        picture = self.draw("qwen", "--seed", 8, "--size", "16x16", "--steps", 2)[1]["picture"]
        folder = self.root / "published"
        shutil.copytree(self.root / "qwen", folder)
        path = folder / "transformer/config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "pooled_projection_dim": 768}))
        whole = json.loads((folder / "tokenizer/tokenizer.json").read_text())
        (folder / "tokenizer/tokenizer.json").unlink()
        (folder / "tokenizer/vocab.json").write_text(json.dumps(whole["model"]["vocab"]))
        (folder / "tokenizer/merges.txt").write_text("#version: 0.2\n" + "".join(" ".join(pair) + "\n" for pair in whole["model"]["merges"]))
        path = folder / "tokenizer/tokenizer_config.json"
        added = {str(token["id"]): {k: v for k, v in token.items() if k != "id"} for token in whole["added_tokens"]}
        path.write_text(json.dumps({**json.loads(path.read_text()), "added_tokens_decoder": added}))
        reader = transformers.AutoTokenizer.from_pretrained(folder / "tokenizer")
        self.assertEqual(reader(PROMPT)["input_ids"], self.pipeline.tokenizer(PROMPT)["input_ids"])  # so it is such a folder
        np.testing.assert_array_equal(self.draw("published", "--seed", 8, "--size", "16x16", "--steps", 2)[1]["picture"], picture)
        path.write_text(json.dumps({"tokenizer_class": "OtherTokenizer"}))
        result = rdna_program.run("image", folder, PROMPT, "--size", "8x8", "--steps", 2, "--out", self.out / "x.png", "--driver", rdna_program.DEVICE)
        self.assertEqual(result.returncode, 1)
        self.assertIn("OtherTokenizer", result.stderr.decode().splitlines()[-1])

    def test_plans(self):
        """The parts that are said before."""
        report = self.draw("qwen", "--size", "32x32", "--steps", 2, "--seed", 1)[0]
        self.assertEqual([part["part"] for part in report["plan"]["parts"]], ["text encoder", "transformer", "autoencoder"])

    def test_refusals(self):
        self.refuse(self.root / "qwen", [
            (nothing, ["--size", "12x8"], ["12 x 8", "8"]), (nothing, ["--sampler", "ddim"], ["ddim", "euler"]), (remove("transformer"), [], ["transformer"]),
            (remove("text_encoder"), [], ["text_encoder"]), (remove("tokenizer"), [], ["tokenizer.json"]), (remove("scheduler"), [], ["scheduler"]), (remove("vae"), [], ["vae"]),
            (settings("transformer/config.json", out_channels=8), [], ["32", "4 channels"]), (settings("transformer/config.json", zero_cond_t=3), [], ["zero_cond_t"]),
            (settings("vae/config.json", latents_std=[1]), [], ["latents_std"]), (settings("vae/config.json", _class_name="AutoencoderKL", latents_mean=None, latents_std=None), [], ["vae"]),
            (settings("scheduler/scheduler_config.json", stochastic_sampling=True), [], ["stochastic"]),
            (settings("text_encoder/config.json", architectures=["Strange"]), [], ["Strange"]), (settings("model_index.json", _class_name="QwenImageLayeredPipeline"), [], ["QwenImageLayered", "QwenImagePipeline"]),
            (nothing, ["--clip-skip", "2"], ["Qwen-Image", "layers"])])


if __name__ == "__main__":
    unittest.main()

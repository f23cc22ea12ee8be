"""rdna image with small random folders of Qwen-Image-Edit and of its successor for several pictures, which a language model
sees, against diffusers' pipelines in float64: texts with pictures, every step and the picture; and the server's edits."""
import base64
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
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

import image_flux_test
import rdna_program
import serve_edits_test
import serving
from image_flow_parts_test import qwen_autoencoder, qwen_transformer
from image_flow_test import error
from image_flux_test import PROMPT, emulated, remove, settings
from image_qwen_test import MARKS, SCHEDULE, qwen_language, write_qwen_tokenizer

PICTURE = ["<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"]
TOWER = {"depth": 3, "hidden_size": 32, "intermediate_size": 40, "num_heads": 2, "fullatt_block_indexes": [1], "window_size": 56}
PIXELS = {"shortest_edge": 28 * 28 * 4, "longest_edge": 28 * 28 * 12}  # of what is seen
KINDS = {"edit": (diffusers.QwenImageEditPipeline, "Qwen-Image-Edit"), "plus": (diffusers.QwenImageEditPlusPipeline, "Qwen-Image-Edit-Plus")}


class Processor:
    """What transformers' does of texts with a picture; its own asks for torchvision, for films."""

    def __init__(self, tokenizer):
        self.tokenizer, self.pictures = tokenizer, Qwen2VLImageProcessorPil(size=PIXELS)

    def __call__(self, text, images, **_):
        seen = self.pictures(images=images, return_tensors="pt")
        first, *rest = text[0].split("<|image_pad|>")
        filled = first + "".join("<|image_pad|>" * (int(grid.prod()) // 4) + more for grid, more in zip(seen["image_grid_thw"], rest, strict=True))
        ids = torch.tensor([self.tokenizer(filled)["input_ids"]])
        return transformers.BatchFeature({"input_ids": ids, "attention_mask": torch.ones_like(ids), **seen})


def say_kinds(language):
    """transformers 5 gives tokens of a picture places in rows and columns, as the model was trained, only if it is told which
    they are; transformers 4 saw that, and diffusers 0.42.1 does not say it."""
    own = language.forward

    def forward(input_ids, **more):
        return own(input_ids=input_ids, mm_token_type_ids=(input_ids == language.config.image_token_id).int(), **more)
    language.forward = forward


def make_folder(folder, kind):
    """A pipeline of diffusers on random weights, which |folder| becomes; in float64."""
    count = write_qwen_tokenizer(folder / "tokenizer", PICTURE)
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer/tokenizer.json"), pad_token=MARKS[0])
    start, end, image, video = tokenizer.convert_tokens_to_ids(PICTURE)
    language = qwen_language(count, TOWER, vision_start_token_id=start, vision_end_token_id=end, image_token_id=image, video_token_id=video)
    say_kinds(language)
    pipeline = KINDS[kind][0](scheduler=diffusers.FlowMatchEulerDiscreteScheduler(**SCHEDULE), vae=qwen_autoencoder(), text_encoder=language, transformer=qwen_transformer(), tokenizer=tokenizer,
                              processor=None)
    pipeline.save_pretrained(folder)
    pipeline.processor = Processor(tokenizer)
    pipeline.processor.pictures.save_pretrained(folder / "processor")
    shutil.rmtree(folder / "tokenizer")
    write_qwen_tokenizer(folder / "tokenizer", PICTURE)
    pipeline.set_progress_bar_config(disable=True)
    return pipeline.to(torch.float64)


class Edits(unittest.TestCase):
    draw, compare, refuse = (getattr(image_flux_test.Pictures, name) for name in ("draw", "compare", "refuse"))

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.root = pathlib.Path(cls.temporary.name)
        cls.pipelines = {kind: make_folder(cls.root / kind, kind) for kind in KINDS}

    def setUp(self):
        self.out = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def picture(self, height, width):
        image = PIL.Image.fromarray(np.random.default_rng(height).integers(0, 256, (height, width, 3), np.uint8))
        image.save(self.out / "init.png")
        return image

    def reference(self, kind, seed, image, **options):
        """diffusers' latents after each step, its picture and the states of a text, in float64 from float32 noise; the
        picture is not resized to the sizes that the model was trained with."""
        latents, pipeline, (width, height) = [], self.pipelines[kind], image.size
        module = __import__(type(pipeline).__module__, fromlist=["x"])
        noise = torch.randn((1, 1, 4, height // 4, width // 4), generator=torch.Generator().manual_seed(seed)).double()
        own = module.calculate_dimensions

        def dimensions(area, ratio):
            if kind == "plus":
                return own(area, ratio) if area < 2**20 else (width, height)
            return width, height, None

        def keep(_, step, timestep, values):
            latents.append(pipeline._unpack_latents(values["latents"], height, width, 4)[0, :, 0].numpy().copy())
            return values
        try:
            module.calculate_dimensions = dimensions
            picture = pipeline(image=image, prompt=PROMPT, latents=pipeline._pack_latents(noise, 1, 4, height // 4, width // 4), output_type="pt", callback_on_step_end=keep, height=height, width=width, **options).images[0]
        finally:
            module.calculate_dimensions = own
        shown = image if kind == "edit" else [pipeline.image_processor.resize(image, *own(384 * 384, width / height)[::-1])]
        return (latents, picture), lambda text: pipeline.encode_prompt(text, shown)[0]

    def test_pictures(self):
        for kind, height, width, options, steps, guidance, negative in [("edit", 64, 96, ["--steps", 6], 6, 4, None), ("edit", 24, 40, ["--cfg", 1, "--steps", 3], 3, 1, None), ("edit", 256, 200, ["--steps", 2], 2, 4, None),
                                                                        ("plus", 40, 56, ["--negative", "the cat", "--cfg", 2.5, "--steps", 5], 5, 2.5, "the cat")]:
            with self.subTest(f"{kind} {height} x {width}"):
                image = self.picture(height, width)
                report, dumped = self.draw(kind, "--init", self.out / "init.png", "--seed", 5, *options)
                other = (negative or " ") if guidance > 1 else None
                wanted, states = self.reference(kind, 5, image, true_cfg_scale=guidance, negative_prompt=other, num_inference_steps=steps)
                for i, text in enumerate([other, PROMPT] if other else [PROMPT]):
                    theirs = states(text)
                    self.assertLess(error(dumped["states"][i, :theirs.shape[1]], theirs[0]), 1e-4)
                    self.assertFalse(dumped["states"][i, theirs.shape[1]:].any())
                self.compare(dumped, wanted, steps)
                self.assertEqual((report["model"], report["width"], report["height"]), (KINDS[kind][1], width, height))
                self.assertIn(", Context: given,", PIL.Image.open(self.out / "x.png").text["parameters"])
                self.assertEqual([part["part"] for part in report["plan"]["parts"]], ["text encoder", "autoencoder", "transformer", "autoencoder"])

    def test_several(self):
        """Up to four pictures, each of its own size; and 2511's, for which those that are looked at stand still."""
        pipeline = self.pipelines["plus"]
        module = __import__(type(pipeline).__module__, fromlist=["x"])
        kept = pipeline.transformer
        self.addCleanup(setattr, pipeline, "transformer", kept)
        for sides, still in [([(24, 40), (32, 16)], False), ([(24, 40), (16, 48), (40, 24)], True), ([(24, 40)], True)]:
            with self.subTest(f"{sides} {still}"):
                images, options = [], []
                for i, (height, width) in enumerate(sides):
                    images.append(PIL.Image.fromarray(np.random.default_rng(i).integers(0, 256, (height, width, 3), np.uint8)))
                    images[-1].save(self.out / f"{i}.png")
                    options += ["--image", self.out / f"{i}.png"]
                model = self.root / f"plus-{still}"
                shutil.copytree(self.root / "plus", model, dirs_exist_ok=True)
                settings("transformer/config.json", zero_cond_t=still)(model)
                network = diffusers.QwenImageTransformer2DModel(**{**dict(kept.config), "zero_cond_t": still}).double()
                network.load_state_dict(kept.state_dict())
                pipeline.transformer = network.eval()
                height, width = sides[0]
                noise, latents, own = torch.randn((1, 1, 4, height // 4, width // 4), generator=torch.Generator().manual_seed(5)).double(), [], module.calculate_dimensions

                def keep(_, step, timestep, values):
                    latents.append(pipeline._unpack_latents(values["latents"], height, width, 4)[0, :, 0].numpy().copy())
                    return values
                try:
                    module.calculate_dimensions = lambda area, ratio: own(area, ratio) if area < 2**20 else next((s for s in [image.size for image in images] if s[0] / s[1] == ratio))
                    picture = pipeline(image=images, prompt=PROMPT, negative_prompt=" ", true_cfg_scale=3, num_inference_steps=3, latents=pipeline._pack_latents(noise, 1, 4, height // 4, width // 4), output_type="pt",
                                       callback_on_step_end=keep, height=height, width=width).images[0]
                finally:
                    module.calculate_dimensions = own
                _, dumped = self.draw(model.name, "--seed", 5, "--steps", 3, "--cfg", 3, *options)
                self.compare(dumped, (latents, picture), 3)
        said = PIL.Image.open(self.out / "x.png").text["parameters"]
        self.assertIn(", Context: given,", said)

    def test_what_is_seen(self):
        """Another picture is another text, whatever is drawn."""
        states = []
        for side in (32, 40):
            self.picture(side, 32)
            states.append(self.draw("edit", "--init", self.out / "init.png", "--steps", 2, "--cfg", 1, "--seed", 1)[1]["states"])
        self.assertGreater(error(states[0][0, -1], states[1][0, -1]), 1e-3)  # the last token

    @emulated
    def test_emulated(self):
        self.picture(16, 16)
        made = []
        for driver, environment in (("host", {}), ("hip", {"RDNA_EMULATE": "gfx1100", "RDNA_EMULATE_CHECK": "1"})):
            rdna_program.output("image", self.root / "edit", PROMPT, "--init", self.out / "init.png", "--out", self.out / "x.png", "--dump", self.out / driver, "--driver", driver, "--type", "f32", "--seed", 5, "--steps", 2,
                                "--cfg", 1, environment=environment)
            made.append({name: np.load(self.out / driver / f"{name}.npy") for name in ("states", "picture")})
        for name in made[0]:
            self.assertLess(error(made[1][name], made[0][name]), 1e-3, name)

    def test_processors(self):
        """The processor's settings as transformers 5 saves them, in one file with others, and as they were before."""
        self.picture(64, 96)
        options = ("--init", self.out / "init.png", "--steps", 2, "--cfg", 1, "--seed", 1)
        picture = self.draw("edit", *options)[1]["picture"]
        folder = self.root / "other"
        shutil.copytree(self.root / "edit", folder)
        path = folder / "processor/preprocessor_config.json"
        own = json.loads(path.read_text())
        path.unlink()
        (folder / "processor/processor_config.json").write_text(json.dumps({"image_processor": own, "processor_class": "Qwen2VLProcessor"}))
        np.testing.assert_array_equal(self.draw("other", *options)[1]["picture"], picture)
        (folder / "processor/processor_config.json").unlink()
        own.pop("size")
        path.write_text(json.dumps({**own, "min_pixels": PIXELS["shortest_edge"], "max_pixels": PIXELS["longest_edge"]}))
        np.testing.assert_array_equal(self.draw("other", *options)[1]["picture"], picture)

    def test_served(self):
        image = self.picture(24, 40)
        rdna_program.output("image", self.root / "edit", PROMPT, "--init", self.out / "init.png", "--seed", 4, "--steps", 2, "--out", self.out / "x.png", "--device", rdna_program.DEVICE)
        server = serving.serve_for(self, self.root / "edit", model_option="--images")
        data = (self.out / "init.png").read_bytes()
        body, headers = serve_edits_test.form([("image", data), ("prompt", PROMPT), ("steps", 2), ("seed", 4)])
        status, _, said = server.ask("POST", "/v1/images/edits", body, headers)
        self.assertEqual(status, 200, said)
        self.assertEqual(base64.b64decode(json.loads(said)["data"][0]["b64_json"]), (self.out / "x.png").read_bytes())
        body, headers = serve_edits_test.form([("image[]", data), ("image[]", data), ("prompt", "x")])
        status, _, said = server.ask("POST", "/v1/images/edits", body, headers)
        self.assertEqual((status, "2 pictures" in said), (400, True), said)
        status, _, said = server.ask("POST", "/v1/images/generations", {"prompt": "x"})
        self.assertEqual(status, 400)
        self.assertIn("changes pictures", said)

    def test_several_served(self):
        """The forms' parts image[] are --image of the command."""
        self.picture(24, 40)
        PIL.Image.new("RGB", (16, 32), "red").save(self.out / "second.png")
        pictures = [self.out / "init.png", self.out / "second.png"]
        rdna_program.output("image", self.root / "plus", PROMPT, *[x for path in pictures for x in ("--image", path)], "--seed", 4, "--steps", 2, "--out", self.out / "x.png", "--device", rdna_program.DEVICE)
        server = serving.serve_for(self, self.root / "plus", model_option="--images")
        body, headers = serve_edits_test.form([*(("image[]", path.read_bytes()) for path in pictures), ("prompt", PROMPT), ("steps", 2), ("seed", 4)])
        status, _, said = server.ask("POST", "/v1/images/edits", body, headers)
        self.assertEqual(status, 200, said)
        self.assertEqual(base64.b64decode(json.loads(said)["data"][0]["b64_json"]), (self.out / "x.png").read_bytes())

    def test_refusals(self):
        self.picture(8, 8)
        init = ["--init", self.out / "init.png"]
        self.refuse(self.root / "edit", [
            (lambda folder: None, [], ["changes pictures"]), (lambda folder: None, [*init, "--strength", "0.5"], ["all steps"]), (lambda folder: None, [*init, "--mask", self.out / "init.png"], ["mask"]),
            (remove("processor"), init, ["preprocessor_config.json"]), (settings("text_encoder/config.json", vision_config={}), init, ["tower"]),
            (settings("transformer/config.json", zero_cond_t=3), init, ["zero_cond_t"]), (lambda folder: None, [*init, "--image", self.out / "init.png"], ["2 pictures", "1 at most"])])
        PIL.Image.new("RGB", (10, 8)).save(self.out / "odd.png")
        self.refuse(self.root / "plus", [(lambda folder: None, [*init, "--image", self.out / "odd.png"], ["picture 2", "10 x 8"]), (lambda folder: None, [*init, *["--image", self.out / "init.png"] * 4], ["5 pictures", "4 at most"]),
                                         (lambda folder: None, [*init, "--image", self.out / "none.png"], ["none.png"])])


if __name__ == "__main__":
    unittest.main()

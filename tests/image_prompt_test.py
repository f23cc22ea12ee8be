"""rdna image's reading of texts, brackets and chunks, against transformers' encoders in float64 with the weights written
out; and its masks, against diffusers' pipelines for filling in."""
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

import image_command_test as command
import rdna_program
from image_text_encoder_test import POSITIONS

ROOM = POSITIONS - 2
BREAK = object()
WORDS = "photograph of an astronaut riding horse on mars the cat sat with hat".split()
LONG = " ".join(WORDS * 9)
COMMAS = ", ".join(" ".join(WORDS[i:i + 3]) for i in range(9)) + ", " + " ".join(WORDS * 5)
TEXTS = [("a (photograph:1.5) of [an] ((astronaut)) riding \\(horse\\) \\\\", [("a ", 1), ("photograph", 1.5), (" of ", 1), ("an", 1 / 1.1), (" ", 1), ("astronaut", 1.21),
                                                                          (" riding (horse) \\", 1)]),
         ("the (cat [sat: 0.5 ) on", [("the ", 1), ("cat ", 0.5 / 1), ("sat", 0.5 / 1.1), (" on", 1 / 1.1)]),
         ("(cat:1.3 on (mars", [("cat:1.3 on ", 1.1), ("mars", 1.21)]), ("cat) :2) ] (hat:-0.5)(sat:x)", [("cat) :2) ] ", 1), ("hat", -0.5), ("sat:x", 1.1)]),
         ("cat BREAK hat BREAKS", [("cat", 1), BREAK, ("hat BREAKS", 1)]), ("(cat BREAK hat:2) BREAK BREAK sat BREAK", [("cat", 2), BREAK, ("hat", 2), BREAK, BREAK, ("sat", 1)]),
         ("", [("", 1)]), ("()", [("", 1)]), (LONG, [(LONG, 1)]), (COMMAS, [(COMMAS, 1)]), (f"{COMMAS} ({LONG}:0.8), cat", [(COMMAS + " ", 1), (LONG, 0.8), (", cat", 1)]),
         ("(:1.2) \\x (a", [(" \\x ", 1), ("a", 1.1)])]


def chunks_of(tokenizer, pieces):
    """Tokens and weights of each chunk, by the rule as it is told."""
    comma, chunks, fresh = tokenizer.convert_tokens_to_ids(",</w>"), [[]], False
    for piece in pieces:
        if piece is BREAK:
            if fresh:
                chunks.append([])
            fresh = True
            continue
        for token in tokenizer(piece[0], add_special_tokens=False).input_ids:
            if fresh:
                chunks.append([])
            elif len(chunks[-1]) == ROOM:
                commas = [i for i, (t, _) in enumerate(chunks[-1]) if t == comma]
                cut = commas[-1] + 1 if token != comma and commas and ROOM - commas[-1] <= 20 else ROOM
                chunks[-1], rest = chunks[-1][:cut], chunks[-1][cut:]
                chunks.append(rest)
            fresh = False
            chunks[-1].append((token, piece[1]))
    return chunks


def encode(pipeline, which, pieces, count, projected):
    """States (tokens, width) in float64, and the first chunk's vector."""
    tokenizer, encoder = [(pipeline.tokenizer, pipeline.text_encoder), (getattr(pipeline, "tokenizer_2", None), getattr(pipeline, "text_encoder_2", None))][which]
    chunks, states = chunks_of(tokenizer, pieces), []
    for chunk in chunks + [[]] * (count - len(chunks)):
        fill = POSITIONS - 2 - len(chunk)
        ids = [tokenizer.bos_token_id, *(t for t, _ in chunk), tokenizer.eos_token_id, *[tokenizer.pad_token_id] * fill]
        with torch.no_grad():
            out = encoder(torch.tensor([ids]), output_hidden_states=True)
        z = (out.hidden_states[-2] if projected else out.last_hidden_state)[0].double().numpy()
        weighed = z * np.array([1, *(w for _, w in chunk), *[1] * (fill + 1)])[:, None]
        states.append((weighed * (z.mean() / weighed.mean()), out[0][0] if which else None))
    return np.concatenate([s for s, _ in states]), states[0][1]


class Texts(unittest.TestCase):
    draw, reference, compare = command.Pictures.draw, command.Pictures.reference, command.Pictures.compare

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.temporary.name)
        cls.pipelines = {"sd": command.make_folder(cls.root / "sd"), "xl": command.make_folder(cls.root / "xl", True, diffusers.EulerDiscreteScheduler)}

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def setUp(self):
        self.out = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def test_weights_and_chunks(self):
        small = ["--steps", 1, "--size", "8x8", "--seed", 1]
        for i, (text, pieces) in enumerate(TEXTS):
            with self.subTest(text[:60]):
                negative, others = TEXTS[(i + 3) % len(TEXTS)]
                _, dumped = self.draw("sd", *small, "--negative", negative, prompt=text)
                count = max(len(chunks_of(self.pipelines["sd"].tokenizer, p)) for p in (pieces, others))
                for row, told in enumerate((others, pieces)):
                    wanted, _ = encode(self.pipelines["sd"], 0, told, count, False)
                    self.assertEqual(dumped["states"][row].shape, wanted.shape)
                    self.assertLess(command.error(dumped["states"][row], wanted), 1e-5)
        for text, pieces in [TEXTS[0], TEXTS[10]]:
            pipeline = self.pipelines["xl"]
            _, dumped = self.draw("xl", *small, "--cfg", 1, prompt=text)
            count = len(chunks_of(pipeline.tokenizer, pieces))
            (first, _), (second, vector) = encode(pipeline, 0, pieces, count, True), encode(pipeline, 1, pieces, count, True)
            self.assertLess(command.error(dumped["states"][0], np.concatenate([first, second], 1)), 1e-5)
            self.assertLess(command.error(dumped["pooled"][0], vector), 1e-5)

    def test_whole_picture(self):
        """Steps with more tokens than an encoder reads, as diffusers' pipeline draws them from given states."""
        pipeline = self.pipelines["sd"]
        _, dumped = self.draw("sd", "--seed", 4, "--steps", 3, "--cfg", 5, prompt=f"({LONG}:1.2)")
        count = len(chunks_of(pipeline.tokenizer, [(LONG, 1.2)]))
        self.assertGreater(count, 1)
        states = [torch.from_numpy(encode(pipeline, 0, pieces, count, False)[0])[None] for pieces in ([(LONG, 1.2)], [("", 1)])]
        self.compare(dumped, self.reference(pipeline, seed=4, prompt=None, prompt_embeds=states[0], negative_prompt_embeds=states[1], guidance=5, num_inference_steps=3), 3)

    def test_plain(self):
        pipeline, text = self.pipelines["sd"], "a (cat:1.5) [sat] BREAK \\("
        _, dumped = self.draw("sd", "--steps", 1, "--size", "8x8", "--cfg", 1, "--plain", prompt=text)
        self.assertLess(command.error(dumped["states"], pipeline.encode_prompt(text, "cpu", 1, False)[0]), 1e-5)
        self.assertIn("Plain: true", PIL.Image.open(self.out / "x.png").text["parameters"])
        result = rdna_program.run("image", self.root / "sd", (LONG + ", ") * 60, "--steps", 1, "--size", "8x8", "--out", self.out / "y.png", "--driver", rdna_program.DEVICE)
        self.assertEqual(result.returncode, 1)
        self.assertIn("64 times", result.stderr.decode())

    # ---- masks ----

    def pictures(self):
        random = np.random.default_rng(8)
        PIL.Image.fromarray(random.integers(0, 256, (40, 40, 3), np.uint8)).save(self.out / "init.png")
        mask = np.zeros((40, 40, 3), np.uint8)
        mask[6:31, 9:40] = random.integers(0, 256, (25, 31, 3))
        mask[10:20, 10:30] = 255
        PIL.Image.fromarray(mask).save(self.out / "mask.png")
        return {"image": PIL.Image.open(self.out / "init.png"), "mask_image": PIL.Image.open(self.out / "mask.png")}

    def test_masks(self):
        """Of models that were made for it and of others, from noise and from the picture."""
        images, files = self.pictures(), ["--init", self.out / "init.png", "--mask", self.out / "mask.png"]
        made = diffusers.UNet2DConditionModel(**{**command.UNET, "in_channels": 9}, cross_attention_dim=36)
        shutil.copytree(self.root / "sd", self.root / "made")
        command.randomize(made, 7).save_pretrained(self.root / "made/unet")
        index = json.loads((self.root / "made/model_index.json").read_text())
        (self.root / "made/model_index.json").write_text(json.dumps({**index, "_class_name": "StableDiffusionInpaintPipeline"}))
        for model, sampler, steps, strength in [("sd", "ddim", 5, 1), ("sd", "euler_ancestral", 6, 0.7), ("sd", "dpmpp_2m", 6, 0.5), ("made", "ddim", 4, 1),
                                                ("made", "euler_ancestral", 6, 0.6), ("made", "euler", 4, 1), ("xl", "euler", 6, 0.7)]:
            with self.subTest(f"{model} {sampler} {strength}"):
                parts = {k: v for k, v in self.pipelines["xl" if model == "xl" else "sd"].components.items() if k != "image_encoder"}
                if model == "made":
                    parts["unet"] = made.double()
                kind = diffusers.StableDiffusionXLInpaintPipeline if model == "xl" else diffusers.StableDiffusionInpaintPipeline
                pipeline = kind(**parts)
                pipeline.set_progress_bar_config(disable=True)
                shutil.rmtree(self.out / "dump", ignore_errors=True)
                _, dumped = self.draw(model, *files, "--strength", strength, "--seed", 5, "--steps", steps, "--sampler", sampler, "--cfg", 4)
                wanted = self.reference(pipeline, sampler, 5, prompt=command.PROMPT, **images, strength=strength, num_inference_steps=steps, guidance=4)
                self.compare(dumped, wanted, int(steps * strength))
        self.assertIn("Mask: given", PIL.Image.open(self.out / "x.png").text["parameters"])

    def test_other_masks(self):
        self.pictures()
        PIL.Image.new("L", (8, 8)).save(self.out / "small.png")
        shutil.copytree(self.root / "sd", self.out / "made")
        made = diffusers.UNet2DConditionModel(**{**command.UNET, "in_channels": 9}, cross_attention_dim=36)
        made.save_pretrained(self.out / "made/unet")
        run = lambda model, *options: rdna_program.run("image", model, "x", "--steps", 1, "--out", self.out / "x.png", "--driver", rdna_program.DEVICE, *options)
        init = ["--init", self.out / "init.png"]
        for result, status, word in [(run(self.root / "sd", "--mask", self.out / "mask.png"), 2, "--init"), (run(self.root / "sd", *init, "--mask", self.out / "small.png"), 1, "8 x 8"),
                                     (run(self.root / "sd", *init, "--mask", self.out / "none.png"), 1, "none.png"), (run(self.out / "made"), 1, "mask"), (run(self.out / "made", *init), 1, "mask")]:
            self.assertEqual(result.returncode, status)
            self.assertIn(word, result.stderr.decode().splitlines()[-1])


if __name__ == "__main__":
    unittest.main()

"""The parts of pictures by flow matching through librdna: T5's encoder with its tokenizer, FLUX's transformer and the
schedule, against transformers' and diffusers' in float64 on small random models in their folders."""
import ctypes
import json
import pathlib
import random
import shutil
import tempfile
import unittest

import diffusers_python  # first: this goes on in a Python that has diffusers
import diffusers
import numpy as np
import safetensors.torch
import tokenizers
import torch
import transformers

from image_library import (BAD_DATA, BF16, DEVICE, F16, F32, I32,
                           INT, INVALID, LIBRARY, NOT_FOUND, POINTER, TEXT, UNSUPPORTED, declare)

diffusers.utils.logging.set_verbosity_error()
transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()
torch.set_num_threads(1)  # more wait for each other, for so little

SIZE, DOUBLE = ctypes.c_size_t, ctypes.c_double
declare("rdna_image_t5_", [("create", INT, [POINTER, TEXT, TEXT, TEXT, INT, POINTER]), ("release", None, [POINTER]),
                           ("get_info", POINTER, [POINTER]), ("tokens", INT, [POINTER, TEXT, SIZE, INT, POINTER, POINTER]),
                           ("encode", INT, [POINTER, POINTER, INT, POINTER])])
declare("rdna_image_flux_", [("create", INT, [POINTER, TEXT, TEXT, INT, POINTER]), ("release", None, [POINTER]),
                             ("get_info", POINTER, [POINTER]), ("run", INT, [POINTER, POINTER, POINTER])])
declare("rdna_image_flow_", [("create", INT, [TEXT, INT, INT, POINTER]), ("release", None, [POINTER]), ("steps", INT, [POINTER]),
                             ("sigma", DOUBLE, [POINTER, INT]), ("begin", INT, [POINTER, INT, POINTER, POINTER, POINTER, SIZE]),
                             ("step", INT, [POINTER, INT, POINTER, POINTER, SIZE])])


def error(got, wanted):
    wanted = wanted.detach().double().numpy() if isinstance(wanted, torch.Tensor) else wanted
    return np.linalg.norm(got - wanted) / np.linalg.norm(wanted)


def randomize(network, seed):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, p in network.named_parameters():
            one = 1.0 if "norm" in name and name.endswith("weight") and p.ndim == 1 else 0.0
            size = 1 / np.sqrt(p[0].numel()) if p.ndim > 1 else 0.2
            p.copy_(one + size * torch.randn(p.shape, generator=generator))
    return network.eval()


# ---- T5 ----

WORDS = ("a photograph of an astronaut riding horse on mars the cat sat with hat it's they're highly detailed digital painting "
         "trending naïve été Größe привет мир кошка ελληνικά 絵 猫の絵 日本 한국어 🙂 lighthouse at dusk").split()


def write_t5_tokenizer(folder, names=("<pad>", "</s>", "<unk>"), extra=4):
    """As T5's is: pieces with scores, </s> behind a text, <extra_id_…>; how many tokens it has."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.Unigram())
    tokenizer.normalizer = tokenizers.normalizers.Sequence([tokenizers.normalizers.Strip(), tokenizers.normalizers.Replace(tokenizers.Regex(" {2,}"), " ")])
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    order = random.Random(3)
    trainer = tokenizers.trainers.UnigramTrainer(vocab_size=180, special_tokens=list(names), unk_token=names[-1], show_progress=False)
    tokenizer.train_from_iterator((" ".join(order.choices(WORDS, k=12)) for _ in range(300)), trainer)
    tokenizer.add_special_tokens([f"<extra_id_{i}>" for i in range(extra)])
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    folder.mkdir(parents=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(
        {"tokenizer_class": "T5Tokenizer", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>", "model_max_length": int(1e30)}))
    return tokenizer


def random_t5(seed, **options):
    config = transformers.T5Config(**{
        "vocab_size": 200, "d_model": 40, "d_kv": 8, "d_ff": 72, "num_layers": 3, "num_heads": 5, "feed_forward_proj": "gated-gelu",
        "relative_attention_num_buckets": 32, "relative_attention_max_distance": 128, **options})
    return randomize(transformers.T5EncoderModel(config), seed)


class Info(ctypes.Structure):
    _fields_ = [("layers", INT), ("width", INT), ("vocabulary", INT), ("weights_bytes", SIZE)]


class T5:
    def __init__(self, folder, dtype=F32):
        self.handle = POINTER()
        self.status = LIBRARY.rdna_image_t5_create(DEVICE, str(folder).encode(), b"text_encoder_2", b"tokenizer_2", dtype, ctypes.byref(self.handle))
        self.sentence = LIBRARY.rdna_last_error().decode() if self.status else ""
        if self.status == 0:
            self.info = Info.from_address(LIBRARY.rdna_image_t5_get_info(self.handle))

    def tokens(self, text, room):
        text = text if isinstance(text, bytes) else text.encode()
        ids, count = np.full(max(room, 1), -7, np.int32), SIZE()
        status = LIBRARY.rdna_image_t5_tokens(self.handle, text, len(text), room, ids.ctypes.data, ctypes.byref(count))
        return ids.tolist(), count.value, status

    def encode(self, ids, count=None):
        ids = np.ascontiguousarray(ids, np.int32)
        states = np.full((len(ids), self.info.width), np.nan, np.float32)
        return states, LIBRARY.rdna_image_t5_encode(self.handle, ids.ctypes.data, len(ids) if count is None else count, states.ctypes.data)

    def __del__(self):
        LIBRARY.rdna_image_t5_release(self.handle)


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))


class Encoders(Folder):
    def make(self, dtype=torch.float32, options={}, **config):
        model = random_t5(5, **config)
        if not (self.folder / "tokenizer_2").exists():
            self.tokenizer = write_t5_tokenizer(self.folder / "tokenizer_2")
        shutil.rmtree(self.folder / "text_encoder_2", ignore_errors=True)
        model.to(dtype).save_pretrained(self.folder / "text_encoder_2", **options)
        return model.to(torch.float64)

    def compare(self, model, dtype=F32, limit=1e-5, lengths=(1, 2, 7, 33, 300)):
        ours = T5(self.folder, dtype)
        self.assertEqual(ours.status, 0, ours.sentence)
        for length in lengths:
            ids = np.random.default_rng(length).integers(0, model.config.vocab_size, length)
            with torch.no_grad():
                wanted = model(torch.from_numpy(ids)[None]).last_hidden_state[0]
            states, status = ours.encode(ids)
            self.assertEqual(status, 0, LIBRARY.rdna_last_error())
            self.assertLess(error(states, wanted), limit, length)
        return ours

    def test_models(self):
        for config in [{}, {"d_model": 33, "d_kv": 6, "num_heads": 3, "d_ff": 50, "layer_norm_epsilon": 1e-3},
                       {"relative_attention_num_buckets": 8, "relative_attention_max_distance": 20, "num_layers": 1}]:
            with self.subTest(str(config)):
                model = self.make(**config)
                ours = self.compare(model)
                self.assertEqual([ours.info.layers, ours.info.width, ours.info.vocabulary],
                                 [model.config.num_layers, model.config.d_model, 200])
        self.assertEqual(ours.info.weights_bytes, 4 * sum(p.numel() for p in model.parameters()))

    def test_types(self):
        for dtype in (torch.float16, torch.bfloat16):
            self.compare(self.make(dtype), lengths=(20,))
        model = self.make(options={"max_shard_size": "20KB"})
        self.compare(model, lengths=(20,))
        for dtype, limit in [(F16, 5e-3), (BF16, 4e-2)]:
            self.compare(model, dtype, limit, (20, 70))

    def test_tokens(self):
        self.make()
        ours, order = T5(self.folder), random.Random(7)
        for text in ["", " ", "a", "the cat", "  two   spaces ", "xyz </s> abc<extra_id_1> d", "日本 unseen ☃ \n line", "a" * 300,
                     *(" ".join(order.choices(WORDS, k=order.randrange(1, 30))) for _ in range(60)),
                     *("".join(order.choices("abc 日éü🙂!-", k=order.randrange(1, 40))) for _ in range(60))]:
            wanted = self.tokenizer.encode(text, add_special_tokens=False).ids
            for room in (1, 5, 64):
                ids, count, status = ours.tokens(text, room)
                self.assertEqual(status, 0)
                self.assertEqual((ids, count), (wanted[:room - 1] + [1] + [0] * (room - 1 - len(wanted)), len(wanted)), (text, room))

    def refused(self, status, *words, dtype=F32):
        ours = T5(self.folder, dtype)
        self.assertEqual(ours.status, status, ours.sentence)
        for word in words:
            self.assertIn(word, ours.sentence)

    def test_refusals(self):
        self.make()
        path = self.folder / "text_encoder_2/config.json"
        settings = json.loads(path.read_text())
        for change, status, word in [
                ({"architectures": ["BertModel"]}, UNSUPPORTED, "BertModel"), ({"architectures": []}, UNSUPPORTED, "architecture"),
                ({"feed_forward_proj": "relu"}, UNSUPPORTED, "relu"), ({"d_model": 41}, BAD_DATA, "shared.weight"), ({"d_kv": 0}, BAD_DATA, "d_kv"),
                ({"num_layers": 4}, BAD_DATA, "block.3"), ({"num_layers": 2}, UNSUPPORTED, "block.2"), ({"num_heads": "x"}, BAD_DATA, "num_heads"),
                ({"relative_attention_num_buckets": 30}, BAD_DATA, "buckets"), ({"relative_attention_max_distance": 8}, BAD_DATA, "8"),
                ({"layer_norm_epsilon": -1}, BAD_DATA, "layer_norm_epsilon"), ({"vocab_size": 100}, BAD_DATA, "shared"), ({"d_ff": 1 << 20}, BAD_DATA, "d_ff")]:
            with self.subTest(str(change)):
                path.write_text(json.dumps({**settings, **change}))
                self.refused(status, word, "text_encoder_2")
        path.write_text(json.dumps({k: v for k, v in settings.items() if k != "feed_forward_proj"}))
        self.refused(UNSUPPORTED, "feed_forward_proj")
        path.write_text(json.dumps(settings))
        ours = T5(self.folder)
        for ids, count in [([200], 1), ([-1], 1), ([1], 0), ([1], 5000)]:
            states, status = ours.encode(ids, count)
            self.assertEqual(status, INVALID)
            self.assertTrue(np.isnan(states).all())
        self.assertEqual([ours.tokens("a", room)[2] for room in (0, -1, 5000)], [INVALID] * 3)
        self.assertEqual(LIBRARY.rdna_image_t5_encode(None, None, 1, None), INVALID)
        self.refused(INVALID, "f16", dtype=I32)

    def test_broken_tokenizers(self):
        self.make(vocab_size=60)
        self.refused(BAD_DATA, "tokenizer_2")
        self.make()
        path = self.folder / "tokenizer_2/tokenizer.json"
        whole = json.loads(path.read_text())
        for text, status in [("{", BAD_DATA), ("[]", BAD_DATA), (json.dumps({**whole, "model": {"type": "BPE"}}), UNSUPPORTED),
                             (json.dumps({**whole, "normalizer": {"type": "Lowercase"}}), UNSUPPORTED)]:
            path.write_text(text)
            self.refused(status, "tokenizer_2")
        path.unlink()
        self.refused(NOT_FOUND, "spiece.model")
        (self.folder / "tokenizer_2/spiece.model").write_bytes(b"\x0a\x03abc")
        self.refused(BAD_DATA, "tokenizer_2")
        shutil.rmtree(self.folder / "tokenizer_2")
        write_t5_tokenizer(self.folder / "tokenizer_2", ("<nothing>", "</s>", "<unk>"))
        self.refused(UNSUPPORTED, "<pad>")


# ---- the transformer ----

class FluxInfo(ctypes.Structure):
    _fields_ = [(name, INT) for name in ("in_channels", "out_channels", "text_width", "pooled_width")] + [("guided", ctypes.c_bool), ("weights_bytes", SIZE)]


class FluxInput(ctypes.Structure):
    _fields_ = [("size", SIZE), ("height", INT), ("width", INT), ("tokens", INT), ("sample", POINTER), ("states", POINTER),
                ("pooled", POINTER), ("timestep", DOUBLE), ("guidance", DOUBLE), ("context", POINTER), ("context_height", INT), ("context_width", INT)]


class Flux:
    def __init__(self, folder, dtype=F32):
        self.handle = POINTER()
        self.status = LIBRARY.rdna_image_flux_create(DEVICE, str(folder).encode(), b"transformer", dtype, ctypes.byref(self.handle))
        self.sentence = LIBRARY.rdna_last_error().decode() if self.status else ""
        if self.status == 0:
            self.info = FluxInfo.from_address(LIBRARY.rdna_image_flux_get_info(self.handle))

    def run(self, sample, states, pooled, timestep, guidance, changes={}, context=None):
        kept = [np.ascontiguousarray(x, np.float32) for x in (sample, states, pooled, sample if context is None else context)]
        other = {} if context is None else {"context": kept[3].ctypes.data, "context_height": context.shape[1], "context_width": context.shape[2]}
        given = {"size": ctypes.sizeof(FluxInput), "height": sample.shape[1], "width": sample.shape[2], "tokens": len(states),
                 "sample": kept[0].ctypes.data, "states": kept[1].ctypes.data, "pooled": kept[2].ctypes.data, "timestep": timestep,
                 "guidance": guidance, **other, **changes}
        out = np.full((self.info.out_channels, *sample.shape[1:]), np.nan, np.float32)
        return out, LIBRARY.rdna_image_flux_run(self.handle, ctypes.byref(FluxInput(**given)), out.ctypes.data)

    def __del__(self):
        LIBRARY.rdna_image_flux_release(self.handle)


SCHNELL = {"in_channels": 16, "num_layers": 2, "num_single_layers": 2, "attention_head_dim": 16, "num_attention_heads": 3,
           "joint_attention_dim": 40, "pooled_projection_dim": 36, "axes_dims_rope": (4, 6, 6), "guidance_embeds": False}
DEV = {**SCHNELL, "guidance_embeds": True, "num_layers": 1, "num_single_layers": 3}
ODD = {**DEV, "in_channels": 24, "out_channels": 12, "attention_head_dim": 10, "num_attention_heads": 5, "axes_dims_rope": (2, 0, 8),
       "joint_attention_dim": 7, "pooled_projection_dim": 3}


def packed(sample):
    return diffusers.FluxPipeline._pack_latents(sample[None], 1, *sample.shape)


class Transformers(Folder):
    def make(self, settings, dtype=torch.float32, **options):
        network = randomize(diffusers.FluxTransformer2DModel(**settings), 3)
        shutil.rmtree(self.folder / "transformer", ignore_errors=True)
        network.to(dtype).save_pretrained(self.folder / "transformer", **options)
        return network.to(torch.float64)

    def compare(self, network, shapes, dtype=F32, limit=1e-4):
        ours, settings = Flux(self.folder, dtype), network.config
        self.assertEqual(ours.status, 0, ours.sentence)
        for height, width, tokens, timestep, guidance in shapes:
            rng = np.random.default_rng(height + tokens)
            sample = rng.standard_normal((settings.in_channels // 4, height, width)).astype(np.float32)
            states = rng.standard_normal((tokens, settings.joint_attention_dim)).astype(np.float32)
            pooled = rng.standard_normal(settings.pooled_projection_dim).astype(np.float32)
            ids = diffusers.FluxPipeline._prepare_latent_image_ids(1, height // 2, width // 2, "cpu", torch.float64)
            with torch.no_grad():
                wanted = network(hidden_states=packed(torch.from_numpy(sample)).double(), encoder_hidden_states=torch.from_numpy(states)[None].double(),
                                 pooled_projections=torch.from_numpy(pooled)[None].double(), timestep=torch.tensor([timestep / 1000]).double(),
                                 img_ids=ids, txt_ids=torch.zeros(tokens, 3).double(),
                                 guidance=torch.tensor([guidance]).double() if settings.guidance_embeds else None).sample
            wanted = diffusers.FluxPipeline._unpack_latents(wanted, height * 8, width * 8, 8)[0]
            got, status = ours.run(sample, states, pooled, timestep, guidance)
            self.assertEqual(status, 0, LIBRARY.rdna_last_error())
            self.assertLess(error(got, wanted), limit, (height, width, tokens))
        return ours

    def test_networks(self):
        shapes = [(8, 8, 11, 1000, 3.5), (4, 10, 1, 251.25, 1), (2, 2, 3, 3.75, 0), (6, 2, 77, 500, 30)]
        for name, settings in [("schnell", SCHNELL), ("dev", DEV), ("odd", ODD), ("doubles", {**DEV, "num_single_layers": 0}),
                               ("singles", {**DEV, "num_layers": 0})]:
            with self.subTest(name):
                ours = self.compare(self.make(settings), shapes)
                self.assertEqual([ours.info.in_channels, ours.info.out_channels, ours.info.text_width, ours.info.pooled_width, ours.info.guided],
                                 [settings["in_channels"] // 4, settings.get("out_channels", settings["in_channels"]) // 4,
                                  settings["joint_attention_dim"], settings["pooled_projection_dim"], settings["guidance_embeds"]])

    def test_types(self):
        for dtype in (torch.float16, torch.bfloat16):
            self.compare(self.make(DEV, dtype), [(4, 6, 9, 501, 3.5)])
        network = self.make(DEV, max_shard_size="100KB")
        self.compare(network, [(4, 6, 9, 501, 3.5)])
        for dtype, limit in [(F16, 5e-3), (BF16, 4e-2)]:
            self.compare(network, [(8, 6, 9, 501, 3.5)], dtype, limit)

    def refused(self, status, *words, dtype=F32):
        ours = Flux(self.folder, dtype)
        self.assertEqual(ours.status, status, ours.sentence)
        for word in words:
            self.assertIn(word, ours.sentence)

    def test_refusals(self):
        self.make(SCHNELL)
        path = self.folder / "transformer/config.json"
        settings = json.loads(path.read_text())
        for change, status, word in [
                ({"_class_name": "PixArtTransformer2DModel"}, UNSUPPORTED, "PixArt"), ({"magic": 1}, UNSUPPORTED, "magic"), ({"patch_size": 2}, UNSUPPORTED, "patch_size"),
                ({"in_channels": 18}, BAD_DATA, "18"), ({"in_channels": 20}, BAD_DATA, "x_embedder"), ({"num_layers": 3}, BAD_DATA, "blocks.2"),
                ({"num_layers": 1}, UNSUPPORTED, "blocks.1"), ({"num_single_layers": -1}, BAD_DATA, "num_single"), ({"axes_dims_rope": [4, 6, 4]}, BAD_DATA, "axes"),
                ({"axes_dims_rope": [5, 5, 6]}, BAD_DATA, "odd"), ({"axes_dims_rope": [10, 6]}, BAD_DATA, "axes"), ({"axes_dims_rope": "x"}, BAD_DATA, "axes"),
                ({"attention_head_dim": 513}, BAD_DATA, "attention_head_dim"), ({"num_attention_heads": 4}, BAD_DATA, "x_embedder"),
                ({"attention_head_dim": 512, "num_attention_heads": 1024, "axes_dims_rope": [0, 256, 256]}, BAD_DATA, "1024"),
                ({"guidance_embeds": True}, BAD_DATA, "guidance_embedder"), ({"guidance_embeds": 3}, BAD_DATA, "guidance"), ({"joint_attention_dim": 0}, BAD_DATA, "joint")]:
            with self.subTest(str(change)):
                path.write_text(json.dumps({**settings, **change}))
                self.refused(status, word, "transformer")
        path.write_text(json.dumps(settings))
        self.refused(INVALID, "f16", dtype=I32)
        tensors = safetensors.torch.load_file(self.folder / "transformer/diffusion_pytorch_model.safetensors")
        for name in ["proj_out.bias", "transformer_blocks.1.norm1_context.linear.weight", "single_transformer_blocks.0.attn.norm_k.weight"]:
            safetensors.torch.save_file({k: v for k, v in tensors.items() if k != name}, self.folder / "transformer/diffusion_pytorch_model.safetensors")
            self.refused(BAD_DATA, name)
        safetensors.torch.save_file(tensors, self.folder / "transformer/diffusion_pytorch_model.safetensors")
        ours = Flux(self.folder)
        arguments = [np.zeros((4, 4, 4)), np.zeros((3, 40)), np.zeros(36), 3, 1]
        for change in [{"height": 3}, {"width": 0}, {"height": 1 << 20}, {"tokens": 0}, {"tokens": 1 << 20}, {"sample": None}, {"states": None},
                       {"pooled": None}, {"timestep": np.nan}, {"size": 0}]:
            out, status = ours.run(*arguments, changes=change)
            self.assertEqual(status, INVALID, change)
            self.assertTrue(np.isnan(out).all())
        self.assertEqual(ours.run(*arguments)[1], 0)


# ---- schedules ----

class Schedules(unittest.TestCase):
    def create(self, settings, steps, tokens):
        handle = POINTER()
        status = LIBRARY.rdna_image_flow_create((settings if isinstance(settings, str) else json.dumps(settings)).encode(), steps, tokens, ctypes.byref(handle))
        if status == 0:
            self.addCleanup(LIBRARY.rdna_image_flow_release, handle)
        return handle, status

    def test_levels_and_steps(self):
        dev = {"use_dynamic_shifting": True, "shift": 3.0}
        kinds = [{}, {"shift": 1.0}, {"shift": 3.0}, dev, {**dev, "base_shift": 0.3, "max_shift": 0.9, "base_image_seq_len": 64, "max_image_seq_len": 8192},
                 {**dev, "time_shift_type": "linear"}, {**dev, "shift_terminal": 0.02}, {**dev, "use_karras_sigmas": True}, {"use_exponential_sigmas": True}]
        for settings in kinds:
            scheduler = diffusers.FlowMatchEulerDiscreteScheduler(**settings)
            for steps, tokens in [(1, 4096), (4, 1024), (20, 4096), (28, 37), (50, 9000)]:
                if steps == 1 and "shift_terminal" in settings:
                    continue
                with self.subTest(f"{settings} {steps} {tokens}"):
                    ours, status = self.create(dict(scheduler.config), steps, tokens)
                    self.assertEqual(status, 0, LIBRARY.rdna_last_error())
                    c = scheduler.config
                    mu = diffusers.pipelines.flux.pipeline_flux.calculate_shift(tokens, c.base_image_seq_len, c.max_image_seq_len, c.base_shift, c.max_shift)
                    scheduler.set_timesteps(sigmas=np.linspace(1.0, 1 / steps, steps), mu=mu)
                    self.assertEqual(LIBRARY.rdna_image_flow_steps(ours), steps)
                    sigmas = [LIBRARY.rdna_image_flow_sigma(ours, i) for i in range(steps + 1)]
                    np.testing.assert_allclose(sigmas, scheduler.sigmas.numpy(), atol=2e-6)
                    np.testing.assert_allclose(1000 * np.array(sigmas[:-1]), scheduler.timesteps.numpy(), atol=2e-3)
                    self.assertTrue(all(np.isnan(LIBRARY.rdna_image_flow_sigma(ours, i)) for i in (-1, steps + 1)))
                    self.follow(ours, scheduler, steps)

    def follow(self, ours, scheduler, steps):
        rng = np.random.default_rng(steps)
        sample = rng.standard_normal(37).astype(np.float32)
        theirs = torch.from_numpy(sample).double()
        for i, timestep in enumerate(scheduler.timesteps):
            output = rng.standard_normal(37).astype(np.float32)
            self.assertEqual(LIBRARY.rdna_image_flow_step(ours, i, output.ctypes.data, sample.ctypes.data, 37), 0)
            theirs = scheduler.step(torch.from_numpy(output).double(), timestep, theirs, return_dict=False)[0].double()
            self.assertLess(error(sample, theirs), 1e-4)
        picture, noise = rng.standard_normal((2, 37)).astype(np.float32)
        scheduler._step_index = scheduler._begin_index = None
        for i in {0, steps // 2, steps - 1}:
            wanted = scheduler.scale_noise(torch.from_numpy(picture).double(), scheduler.timesteps[i:i + 1], torch.from_numpy(noise).double())
            for place in (np.full(37, np.nan, np.float32), picture.copy()):
                given = picture if place[0] != picture[0] else place
                self.assertEqual(LIBRARY.rdna_image_flow_begin(ours, i, given.ctypes.data, noise.ctypes.data, place.ctypes.data, 37), 0)
                self.assertLess(error(place, wanted), 1e-5)

    def test_refusals(self):
        for settings, status in [({"_class_name": "EulerDiscreteScheduler"}, UNSUPPORTED), ({"invert_sigmas": True}, UNSUPPORTED), ({"use_beta_sigmas": True}, UNSUPPORTED),
                                 ({"stochastic_sampling": True}, UNSUPPORTED), ({"num_train_timesteps": 500}, UNSUPPORTED), ({"shift": 0}, BAD_DATA), ({"shift": "x"}, BAD_DATA),
                                 ({"use_dynamic_shifting": 1}, BAD_DATA), ({"time_shift_type": "square"}, UNSUPPORTED), ({"shift_terminal": 2}, BAD_DATA),
                                 ({"use_dynamic_shifting": True, "base_image_seq_len": 9, "max_image_seq_len": 9}, BAD_DATA),
                                 ({"use_dynamic_shifting": True, "time_shift_type": "linear", "base_shift": -3, "max_shift": -1}, BAD_DATA),
                                 ({"use_karras_sigmas": True, "use_exponential_sigmas": True}, BAD_DATA), ("", BAD_DATA), ("[]", BAD_DATA), ("{", BAD_DATA)]:
            self.assertEqual(self.create(settings, 4, 16)[1], status, settings)
            self.assertTrue(LIBRARY.rdna_last_error())
        self.assertEqual(self.create({"shift_terminal": 0.1}, 1, 16)[1], UNSUPPORTED)
        for steps, tokens in [(0, 1), (10001, 1), (1, 0), (-1, 1)]:
            self.assertEqual(self.create({}, steps, tokens)[1], INVALID)
        ours, _ = self.create({}, 3, 1)
        values = np.ones(3, np.float32).ctypes.data
        for step in (-1, 3):
            self.assertEqual(LIBRARY.rdna_image_flow_step(ours, step, values, values, 3), INVALID)
            self.assertEqual(LIBRARY.rdna_image_flow_begin(ours, step, values, values, values, 3), INVALID)
        self.assertEqual(LIBRARY.rdna_image_flow_step(ours, 0, None, values, 3), INVALID)


if __name__ == "__main__":
    unittest.main()

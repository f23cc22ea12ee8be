"""FLUX's transformer and T5 in single files, of GGUF in blocks or of safetensors in 16 and 8 bits: against diffusers' and
transformers' networks in float64 whose weights are those that NumPy reads from the same blocks."""
import ctypes
import inspect
import json
import pathlib
import shutil
import unittest

import diffusers_python  # first: this goes on in a Python that has diffusers
import diffusers
import numpy as np
import safetensors.torch
import torch
import transformers
from diffusers.loaders import single_file_utils

import image_checkpoint
import image_file_test as one_file
import image_flow_test as flow
import image_flux_test as flux
import rdna_program  # makes tools/ importable
import gguf_file as gf
import sys
sys.path.insert(0, str(rdna_program.ROOT / "bindings/python/rdna"))
import _types as types
from image_flow_test import BAD_DATA, BF16, F16, F32, NOT_FOUND, UNSUPPORTED, error

WIDTH = 256  # two heads of the only size that such files may have, and a whole block of K
SETTINGS = {"in_channels": 16, "num_layers": 1, "num_single_layers": 2, "attention_head_dim": 128, "num_attention_heads": 2,
            "joint_attention_dim": 256, "pooled_projection_dim": 64, "guidance_embeds": True}
T5 = {"d_model": 256, "d_kv": 32, "num_heads": 8, "d_ff": 512, "num_layers": 2}
RDNA_Q8_0 = 10  # rdna_dtype
Q8_0, Q4_0, Q5_0, Q4_K, Q5_K, Q6_K, Q2_K, IQ4_XS = (getattr(gf, "TENSOR_" + name) for name in "Q8_0 Q4_0 Q5_0 Q4_K Q5_K Q6_K Q2_K IQ4_XS".split())

SIDES = {"img": ("norm1.linear", "attn.to_{}", "attn.to_out.0", "ff", "attn.norm_{}"),
         "txt": ("norm1_context.linear", "attn.add_{}_proj", "attn.to_add_out", "ff_context", "attn.norm_added_{}")}
ENDS = {"time_in": "time_text_embed.timestep_embedder", "vector_in": "time_text_embed.text_embedder", "guidance_in": "time_text_embed.guidance_embedder"}


def original(state):
    """A transformer's tensors under the names of Black Forest Labs, from diffusers'."""
    out = {}

    def put(name, ours, *more):
        for kind in ("weight", "bias"):
            out[f"{name}.{kind}"] = torch.cat([state[f"{x}.{kind}"] for x in (ours, *more)])
    for name, ours in {"img_in": "x_embedder", "txt_in": "context_embedder", "final_layer.linear": "proj_out"}.items():
        put(name, ours)
    for name, ours in ENDS.items():
        if f"{ours}.linear_1.weight" in state:
            put(f"{name}.in_layer", f"{ours}.linear_1")
            put(f"{name}.out_layer", f"{ours}.linear_2")
    for kind in ("weight", "bias"):
        scale, shift = state[f"norm_out.linear.{kind}"].chunk(2)
        out[f"final_layer.adaLN_modulation.1.{kind}"] = torch.cat([shift, scale])
    for i in range(1000):
        at = f"transformer_blocks.{i}."
        if at + "norm1.linear.weight" not in state:
            break
        for side, (modulation, heads, made, feed, norm) in SIDES.items():
            to = f"double_blocks.{i}.{side}_"
            put(to + "mod.lin", at + modulation)
            put(to + "attn.qkv", *(at + heads.format(x) for x in "qkv"))
            put(to + "attn.proj", at + made)
            put(to + "mlp.0", f"{at}{feed}.net.0.proj")
            put(to + "mlp.2", f"{at}{feed}.net.2")
            for x, kind in (("q", "query"), ("k", "key")):
                out[f"{to}attn.norm.{kind}_norm.scale"] = state[at + norm.format(x) + ".weight"]
    for i in range(1000):
        at, to = f"single_transformer_blocks.{i}.", f"single_blocks.{i}."
        if at + "norm.linear.weight" not in state:
            break
        put(to + "modulation.lin", at + "norm.linear")
        put(to + "linear1", at + "attn.to_q", at + "attn.to_k", at + "attn.to_v", at + "proj_mlp")
        put(to + "linear2", at + "proj_out")
        for x, kind in (("q", "query"), ("k", "key")):
            out[f"{to}norm.{kind}_norm.scale"] = state[f"{at}attn.norm_{x}.weight"]
    return out


def to_diffusers(tensors):
    """The way back, by diffusers itself, which knows the published width alone."""
    source = inspect.getsource(single_file_utils.convert_flux_transformer_checkpoint_to_diffusers).replace("3072", str(WIDTH))
    place = dict(vars(single_file_utils))
    exec(source, place)
    return place["convert_flux_transformer_checkpoint_to_diffusers"](dict(tensors))


GGUF_T5 = {"layer.0.layer_norm": "attn_norm", "layer.0.SelfAttention.q": "attn_q", "layer.0.SelfAttention.k": "attn_k", "layer.0.SelfAttention.v": "attn_v",
           "layer.0.SelfAttention.o": "attn_o", "layer.0.SelfAttention.relative_attention_bias": "attn_rel_b", "layer.1.layer_norm": "ffn_norm",
           "layer.1.DenseReluDense.wi_0": "ffn_gate", "layer.1.DenseReluDense.wi_1": "ffn_up", "layer.1.DenseReluDense.wo": "ffn_down"}


def gguf_t5_name(name):
    name = name.removesuffix(".weight")
    if name == "shared":
        return "token_embd.weight"
    if name == "encoder.final_layer_norm":
        return "enc.output_norm.weight"
    _, _, i, rest = name.split(".", 3)
    return f"enc.blk.{i}.{GGUF_T5[rest]}.weight"


def write_gguf(path, tensors, kind_of, architecture=None, keys=()):
    """Tensors as |kind_of| says, blocks of random codes in place of what is to be blocks; the values that they have, in
    float64."""
    rng, listed, values = np.random.default_rng(7), [], {}
    for name, value in tensors.items():
        array, kind = value.detach().double().numpy(), kind_of(name, value)
        if kind in gf.BLOCKS:
            size, count = gf.BLOCKS[kind]
            data = gf.random_blocks(kind, rng, array.shape, float(array.std()))
            listed.append((name, kind, gf.Blocks(array.shape, data)))
            read = gf.decode_blocks(kind, np.frombuffer(data, np.uint8).reshape(-1, count)).reshape(array.shape)
        else:
            listed.append((name, kind, array))
            raw = gf.ENCODERS[kind](array)
            read = {gf.TENSOR_F32: lambda: np.frombuffer(raw, "<f4"), gf.TENSOR_F16: lambda: np.frombuffer(raw, "<f2"),
                    gf.TENSOR_BF16: lambda: (np.frombuffer(raw, "<u2").astype("<u4") << 16).view("<f4")}[kind]().reshape(array.shape)
        values[name] = torch.from_numpy(read.astype(np.float64))
    keys = [("general.architecture", gf.TEXT, architecture), *keys] if architecture else list(keys)
    gf.write(path, keys, listed)
    return values


def matrices_of(kind, rest=gf.TENSOR_F32, ends=gf.TENSOR_F16):
    """Blocks for the matrices of blocks of the network, as published files have them."""
    def choose(name, value):
        if value.ndim != 2 or "attn_rel_b" in name:
            return rest
        return kind if name.startswith(("double", "single", "enc.blk", "token_embd")) else ends
    return choose


def network_of(values, settings):
    network = diffusers.FluxTransformer2DModel(**settings)
    state = to_diffusers(values) if settings["num_layers"] and settings["num_single_layers"] else values
    network.double().load_state_dict(state, strict=True)
    return network.eval()


def rounded(kind, matrix):
    """A matrix in float64 as blocks hold it, by rdna/op/quant.h."""
    kind = "q5_0" if kind == "q4_K" and matrix.shape[1] % 256 else kind
    x = matrix.numpy().reshape(-1, 8, 32) if kind == "q4_K" else matrix.numpy().reshape(-1, 1, 32)
    x, half = x.astype(np.float32).astype(np.float64), lambda v: v.astype(np.float16).astype(np.float64)
    over = lambda a, b: np.divide(a, b, out=np.zeros(np.broadcast(a, b).shape), where=b != 0)
    away = lambda v: np.trunc(v + np.copysign(0.5, v))
    if kind == "q8_0":
        largest = np.abs(x).max(2, keepdims=True) / 127
        made = half(largest) * away(over(x, largest))
    elif kind in ("q4_0", "q5_0"):
        lowest = {"q4_0": -8, "q5_0": -16}[kind]
        scale = half(np.take_along_axis(x, np.abs(x).argmax(2)[:, :, None], 2) / lowest)
        made = scale * np.clip(np.rint(over(x, scale)), lowest, -lowest - 1)
    else:
        low, high = np.minimum(x.min(2, keepdims=True), 0), np.maximum(x.max(2, keepdims=True), 0)
        parts = []
        for value in ((high - low) / 15, -low):
            unit = half(value.max(1, keepdims=True) / 63)
            parts.append(unit * np.minimum(np.rint(over(value, unit)), 63))
        made = parts[0] * np.clip(np.rint(over(x + parts[1], parts[0])), 0, 15) - parts[1]
    return torch.from_numpy(made.reshape(tuple(matrix.shape)))


def round_network(network, kind, linears):
    """The weights that |linears| chooses, in place."""
    with torch.no_grad():
        for name, module in network.named_modules():
            if isinstance(module, (torch.nn.Linear, torch.nn.Conv2d)) and linears(name, module):
                module.weight.copy_(rounded(kind, module.weight.detach().double()).to(module.weight.dtype))


class Transformers(flow.Folder):
    compare = flow.Transformers.compare

    def setUp(self):
        super().setUp()
        self.path = self.folder / "flux.gguf"
        self.state = flow.randomize(diffusers.FluxTransformer2DModel(**SETTINGS), 3).state_dict()

    def check(self, values, settings, shapes=((4, 6, 9, 501, 3.5),), **options):
        folder, self.folder = self.folder, self.path
        ours = self.compare(network_of(values, settings), shapes, **options)
        self.folder = folder
        return ours

    def test_names(self):
        """What these tests write is what diffusers reads so."""
        theirs = to_diffusers(original(self.state))
        self.assertEqual(set(theirs), set(self.state))
        for name, value in self.state.items():
            self.assertTrue(torch.equal(theirs[name], value), name)

    def test_blocks(self):
        """Each type of blocks; one product of few rows and one of many; 16 bits."""
        tensors = original(self.state)
        for kind in (Q8_0, Q4_0, Q5_0, Q2_K, Q4_K, Q5_K, Q6_K, IQ4_XS):
            with self.subTest(kind):
                values = write_gguf(self.path, tensors, matrices_of(kind), "flux")
                ours = self.check(values, SETTINGS, [(4, 6, 9, 501, 3.5), (2, 2, 3, 1000, 1)])
                size, count = gf.BLOCKS[kind]
                matrices = sum(v.numel() for k, v in tensors.items() if v.ndim == 2 and k.startswith(("double", "single")))
                self.assertLess(ours.info.weights_bytes - matrices // size * count, 4 * sum(v.numel() for v in tensors.values()) - 4 * matrices + 4096)
        for dtype, limit in ((F16, 5e-3), (BF16, 4e-2)):
            self.check(values, SETTINGS, [(8, 6, 9, 501, 3.5)], dtype=dtype, limit=limit)

    def test_vectors(self):
        """Biases and norms of blocks, which are floats on the device."""
        blocks = lambda name, value: Q8_0 if value.ndim == 1 and len(value) % 32 == 0 else gf.TENSOR_F32  # noqa: E731
        tensors = original(self.state)
        self.assertTrue(any(blocks(k, v) == Q8_0 for k, v in tensors.items()))
        self.check(write_gguf(self.path, tensors, blocks, "flux"), SETTINGS)

    def test_forms(self):
        """Without an architecture, behind a prefix, without guidance, of floats alone."""
        settings = {**SETTINGS, "guidance_embeds": False, "num_layers": 1}
        tensors = original(flow.randomize(diffusers.FluxTransformer2DModel(**settings), 4).state_dict())
        self.assertFalse(self.check(write_gguf(self.path, tensors, matrices_of(gf.TENSOR_BF16, ends=gf.TENSOR_BF16)), settings).info.guided)
        prefix = "model.diffusion_model."
        values = write_gguf(self.path, {**{prefix + k: v for k, v in tensors.items()}, "first_stage_model.x": torch.ones(2)}, matrices_of(gf.TENSOR_F16))
        values = {k.removeprefix(prefix): v for k, v in values.items() if k.startswith(prefix)}
        self.check(values, settings)
        self.path = self.folder / "flux.safetensors"
        safetensors.torch.save_file({k: v.bfloat16() for k, v in tensors.items()}, self.path)
        self.check({k: v.bfloat16().double() for k, v in tensors.items()}, settings)

    def test_small_floats(self):
        """8-bit floats as they are, and with a number for each matrix, as ComfyUI writes them in two ways."""
        self.path = self.folder / "flux.safetensors"
        tensors = original(self.state)
        for form, end, dtype in (("plain", None, torch.float8_e4m3fn), ("scaled", "scale_weight", torch.float8_e4m3fn), ("new", "weight_scale", torch.float8_e5m2)):
            with self.subTest(form):
                saved, values = {}, {}
                for i, (name, value) in enumerate(tensors.items()):
                    small = value.ndim == 2 and name.startswith(("double", "single")) or form == "plain"
                    scale = np.float32(1 if form == "plain" else value.abs().max() / (400 + i)).item()
                    saved[name] = (value / scale).to(dtype) if small else value.bfloat16()
                    values[name] = saved[name].double() * (scale if small else 1)
                    if small and end:
                        module = name.removesuffix("weight")
                        saved[module + end] = torch.tensor(scale) if form == "new" else torch.tensor([scale])
                        saved[module + ("scale_input" if form == "scaled" else "input_scale")] = torch.tensor(1.0)
                        if form == "new":
                            saved[module + "comfy_quant"] = torch.frombuffer(bytearray(b'{"format": "float8_e5m2"}'), dtype=torch.uint8)
                if form == "scaled":
                    saved["scaled_fp8"] = torch.zeros(2).to(dtype)
                safetensors.torch.save_file(saved, self.path)
                self.check(values, SETTINGS)
        for scale, status in ((torch.ones(3), UNSUPPORTED), (torch.tensor(0.0), BAD_DATA), (torch.tensor(float("nan")), BAD_DATA), (torch.tensor(1), UNSUPPORTED)):
            safetensors.torch.save_file({**saved, "single_blocks.1.linear1.weight_scale": scale}, self.path)
            self.refused(status, "single_blocks.1.linear1")

    def refused(self, status, *words):
        ours = flow.Flux(self.path)
        self.assertEqual(ours.status, status, ours.sentence)
        for word in (self.path.name, *words):
            self.assertIn(word, ours.sentence)

    def test_refusals(self):
        tensors = original(self.state)
        without = lambda *names: {k: v for k, v in tensors.items() if not k.startswith(names)}
        one = torch.ones(2, 2)
        for changed, architecture, status, words in [
                (tensors, "llama", UNSUPPORTED, ["llama", "flux"]), (tensors, "sd3", UNSUPPORTED, ["sd3"]), (without("img_in"), "flux", UNSUPPORTED, ["img_in"]),
                (without("double", "single"), "flux", UNSUPPORTED, ["double_blocks"]), (without("final_layer.linear.bias"), "flux", BAD_DATA, ["proj_out.bias"]),
                (without("double_blocks.0.txt_attn.qkv.bias"), "flux", BAD_DATA, ["add_q_proj.bias"]), ({**tensors, "strange": one}, "flux", UNSUPPORTED, ["strange"]),
                ({**tensors, "distilled_guidance_layer.in_proj.weight": one}, "flux", UNSUPPORTED, ["Chroma"]),
                ({**tensors, "single_blocks.0.linear1.weight": torch.ones(2 * WIDTH, WIDTH)}, "flux", BAD_DATA, ["to_q"]),
                ({**tensors, "single_blocks.1.linear1.weight": torch.ones(14 * WIDTH, WIDTH)}, "flux", BAD_DATA, ["to_q", "512"]),
                ({**tensors, "single_blocks.0.norm.query_norm.scale": torch.ones(64)}, "flux", UNSUPPORTED, ["64"]),
                ({**tensors, "img_in.weight": torch.ones(200, 16)}, "flux", UNSUPPORTED, ["200"]), ({"token_embd.weight": one}, None, UNSUPPORTED, ["img_in"])]:
            with self.subTest(str(words)):
                write_gguf(self.path, changed, lambda name, value: gf.TENSOR_F32, architecture)
                self.refused(status, *words)
        write_gguf(self.path, tensors, matrices_of(Q4_K), "flux")
        whole = self.path.read_bytes()
        for size in (0, 3, 30, len(whole) // 2, len(whole) - 100):
            self.path.write_bytes(whole[:size])
            self.refused(BAD_DATA)
        gf.write(self.path, [("general.architecture", gf.U32, 3)], [("img_in.weight", gf.TENSOR_F32, np.ones((4, 4)))])
        self.refused(BAD_DATA, "architecture")


class Encoders(flow.Folder):
    def setUp(self):
        super().setUp()
        flow.write_t5_tokenizer(self.folder / "tokenizer_2")
        self.state = flow.random_t5(5, **T5).state_dict()
        self.state.pop("encoder.embed_tokens.weight", None)
        self.path = self.folder / "t5.gguf"

    def open(self, path, dtype=F32):
        """As flow.T5, of a file and a tokenizer beside it."""
        ours = flow.T5.__new__(flow.T5)
        ours.handle = flow.POINTER()
        ours.status = flow.LIBRARY.rdna_image_t5_create(flow.DEVICE, str(path).encode(), b"text_encoder_2", str(self.folder / "tokenizer_2").encode(), dtype,
                                                        flow.ctypes.byref(ours.handle))
        ours.sentence = flow.LIBRARY.rdna_last_error().decode() if ours.status else ""
        if ours.status == 0:
            ours.info = flow.Info.from_address(flow.LIBRARY.rdna_image_t5_get_info(ours.handle))
        return ours

    def check(self, values, dtype=F32, limit=1e-5, **config):
        model = flow.random_t5(5, **{**T5, **config}).double()
        model.load_state_dict({**values, "encoder.embed_tokens.weight": values["shared.weight"]}, strict=False)
        ours = self.open(self.path, dtype)
        self.assertEqual(ours.status, 0, ours.sentence)
        for length in (3, 77):
            ids = np.random.default_rng(length).integers(0, 200, length)
            with torch.no_grad():
                wanted = model(torch.from_numpy(ids)[None]).last_hidden_state[0]
            states, status = ours.encode(ids)
            self.assertEqual(status, 0, flow.LIBRARY.rdna_last_error())
            self.assertLess(error(states, wanted), limit, length)
        self.assertEqual(ours.tokens("a cat", 8)[1:], flow.T5.tokens(ours, "a cat", 8)[1:])

    def write(self, kind, architecture="t5encoder", keys=(), state=None):
        names = {gguf_t5_name(name): name for name in self.state}
        tensors = {theirs: self.state[name] for theirs, name in names.items()}
        return {names[k]: v for k, v in write_gguf(self.path, state or tensors, matrices_of(kind, ends=kind), architecture, keys).items() if k in names}

    def test_blocks(self):
        for kind in (Q8_0, Q4_K, Q5_K, Q6_K, gf.TENSOR_F16):
            with self.subTest(kind):
                values = self.write(kind)
                self.check(values)
        for dtype, limit in ((F16, 5e-3), (BF16, 4e-2)):
            self.check(values, dtype, limit)
        self.check(self.write(Q8_0, keys=[("t5encoder.attention.layer_norm_epsilon", gf.F32, 1e-3)]), layer_norm_epsilon=1e-3)

    def test_safetensors(self):
        self.path = self.folder / "t5.safetensors"
        values = {k: v.to(torch.float8_e4m3fn) if v.ndim == 2 and "bias" not in k else v.half() for k, v in self.state.items()}
        safetensors.torch.save_file({**values, "spiece_model": torch.zeros(9, dtype=torch.uint8)}, self.path)
        self.check({k: v.double() for k, v in values.items()})
        safetensors.torch.save_file({"encoder.embed_tokens.weight" if k == "shared.weight" else k: v for k, v in values.items()}, self.path)
        self.check({k: v.double() for k, v in values.items()})

    def test_refusals(self):
        tensors = {gguf_t5_name(name): value for name, value in self.state.items()}
        without = lambda name: {k: v for k, v in tensors.items() if k != name}
        for changed, architecture, status, word in [
                (tensors, "bert", UNSUPPORTED, "bert"), (without("enc.blk.0.attn_rel_b.weight"), "t5encoder", BAD_DATA, "distances"), (without("enc.blk.0.ffn_gate.weight"), "t5encoder", BAD_DATA, "gates"),
                (without("enc.blk.1.ffn_up.weight"), "t5encoder", BAD_DATA, "wi_1"), (without("token_embd.weight"), "t5encoder", BAD_DATA, "vocab_size"),
                ({**tensors, "dec.blk.0.attn_q.weight": torch.ones(2, 2)}, "t5", UNSUPPORTED, "dec.blk"), ({"x": torch.ones(2, 2)}, "t5encoder", UNSUPPORTED, "input_blocks")]:
            with self.subTest(word):
                self.write(gf.TENSOR_F32, architecture, state=changed)
                ours = self.open(self.path)
                self.assertEqual(ours.status, status, ours.sentence)
                self.assertIn(word, ours.sentence)


def open_model(test, path, **options):
    """Through the library, to be closed behind the test."""
    model, kept = flow.POINTER(), {k: v if isinstance(v, int) else str(v).encode() for k, v in options.items()}
    options = types.rdna_image_model_options(size=ctypes.sizeof(types.rdna_image_model_options), dtype=F32, **kept)
    test.assertEqual(flow.LIBRARY.rdna_image_model_open(flow.DEVICE, str(path).encode(), ctypes.byref(options), ctypes.byref(model)), 0, flow.LIBRARY.rdna_last_error())
    test.addCleanup(flow.LIBRARY.rdna_image_model_release, model)
    return model


def make_plan(test, model, budget, width=512, height=512, status=0, **request):
    place = types.rdna_image_plan()
    r = types.rdna_image_request(size=ctypes.sizeof(types.rdna_image_request), prompt=flux.PROMPT.encode(), guidance=-1, steps=4, width=width, height=height, strength=1, **request)
    test.assertEqual(flow.LIBRARY.rdna_image_model_make_plan(model, ctypes.byref(r), ctypes.c_uint64(budget), ctypes.byref(place)), status, flow.LIBRARY.rdna_last_error())
    return place


class Pictures(flux.Pictures):
    """Through the command: a folder whose transformer and T5 are files."""
    test_pictures = test_initial_pictures = test_files = None

    @classmethod
    def setUpClass(cls):
        cls.temporary = flux.tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.root = pathlib.Path(cls.temporary.name)
        pipeline = flux.make_folder(cls.root / "dev", "dev")
        state = original(flow.randomize(diffusers.FluxTransformer2DModel(**SETTINGS | {"pooled_projection_dim": pipeline.transformer.config.pooled_projection_dim}), 3).state_dict())
        values = write_gguf(cls.root / "flux.gguf", state, matrices_of(Q8_0), "flux")
        pipeline.transformer = network_of(values, SETTINGS | {"pooled_projection_dim": pipeline.transformer.config.pooled_projection_dim})
        t5 = flow.random_t5(5, **T5)
        names = {gguf_t5_name(name): name for name in t5.state_dict() if "embed_tokens" not in name}
        values = write_gguf(cls.root / "t5.gguf", {k: t5.state_dict()[v] for k, v in names.items()}, matrices_of(Q5_K), "t5encoder")
        t5 = t5.double()
        t5.load_state_dict({**{names[k]: v for k, v in values.items()}, "encoder.embed_tokens.weight": values["token_embd.weight"]}, strict=False)
        pipeline.text_encoder_2 = t5
        cls.pipeline = pipeline
        cls.settings = SETTINGS | {"pooled_projection_dim": pipeline.transformer.config.pooled_projection_dim}
        safetensors.torch.save_file(state, cls.root / "flux.safetensors")
        cls.state = {k: v.double() for k, v in state.items()}
        for name in ("transformer", "text_encoder_2"):
            shutil.rmtree(cls.root / "dev" / name)

    def files(self):
        return "--transformer", self.root / "flux.gguf", "--t5", self.root / "t5.gguf"

    def test_picture(self):
        report, dumped = self.draw("dev", "--seed", 5, "--size", "24x16", "--steps", 3, *self.files())
        self.compare(dumped, self.reference(self.pipeline, 5, 16, 24, guidance_scale=3.5, num_inference_steps=3, max_sequence_length=512), 3)
        self.assertEqual(report["model"], "FLUX.1 dev")

    def test_rounded(self):
        """--weights: the blocks of the transformer are rounded, what is of blocks in its file stays so."""
        kept = self.pipeline.transformer
        self.addCleanup(setattr, self.pipeline, "transformer", kept)
        for kind in ("q8_0", "q4_K"):
            network = network_of(self.state, self.settings)
            round_network(network, kind, lambda name, module: "transformer_blocks" in name)
            self.pipeline.transformer = network
            _, dumped = self.draw("dev", "--seed", 5, "--size", "16x8", "--steps", 2, "--transformer", self.root / "flux.safetensors", *self.files()[2:], "--weights", kind)
            self.compare(dumped, self.reference(self.pipeline, 5, 8, 16, guidance_scale=3.5, num_inference_steps=2, max_sequence_length=512), 2)
        said = flux.PIL.Image.open(self.out / "x.png").text["parameters"]
        for words in ("Transformer: flux.safetensors", "T5: t5.gguf", "Weights: q4_K"):
            self.assertIn(words, said)

    def test_plan(self):
        """What is planned is what is taken; tiles where a whole picture does not fit; nothing is read for --plan."""
        options = ["--driver", rdna_program.DEVICE, "--size", "48x32", *self.files()]
        for more in ([], ["--type", "bf16", "--weights", "q8_0"], ["--init", self.out / "init.png", "--tile", 8]):
            flux.PIL.Image.new("RGB", (48, 32)).save(self.out / "init.png")
            report = json.loads(rdna_program.output("image", self.root / "dev", flux.PROMPT, "--steps", 2, "--json", "--out", self.out / "x.png", *options, *more))
            plan, peak = report["plan"], report["peak_bytes"]
            self.assertLess(abs(plan["peak"] - peak), 0.03 * peak, more)
            parts = ["text encoder", "T5", *(["autoencoder"] if "--init" in more else []), "transformer", "autoencoder"]
            self.assertEqual([part["part"] for part in plan["parts"]], parts)
            self.assertEqual(plan["peak"], max(part["peak"] for part in plan["parts"]))
            for part in plan["parts"]:
                self.assertEqual(part["weights"] + part["activations"], part["peak"])
            again = json.loads(rdna_program.output("image", self.root / "dev", flux.PROMPT, "--plan", "--json", "--out", self.out / "y.png", *options, *more))
            self.assertEqual({k: v for k, v in again.items() if k not in ("free", "budget")}, {k: v for k, v in plan.items() if k not in ("free", "budget")})
            self.assertFalse((self.out / "y.png").exists())
        table = rdna_program.output("image", self.root / "dev", flux.PROMPT, "--plan", *options).decode()
        for word in ("transformer", "autoencoder", "peak", "it fits"):
            self.assertIn(word, table)

    def test_room(self):
        """A larger picture than is drawn here, with less room than it takes."""
        model = open_model(self, self.root / "dev", transformer=self.root / "flux.gguf", t5=self.root / "t5.gguf")
        whole = make_plan(self, model, 1 << 40)
        self.assertTrue(whole.fits)
        self.assertEqual((whole.tile, whole.sentence, whole.count), (0, b"", 4))
        for count in (65, -1):  # what cannot be drawn has no plan
            make_plan(self, model, 1 << 40, status=flow.INVALID, count=count)
            self.assertIn(str(count).encode(), flow.LIBRARY.rdna_last_error())
        peaks = [part.peak for part in whole.parts[:4]]
        self.assertTrue(make_plan(self, model, whole.reserved).fits)
        small = make_plan(self, model, whole.reserved - 1)  # of which the transformer takes the most, so that no tile helps
        self.assertEqual((small.fits, small.tile), (False, 0))
        for word in ("transformer", "activations", "--size"):
            self.assertIn(word, small.sentence.decode())
        small = make_plan(self, model, 1 << 20, width=8, height=8)
        for word in ("T5", "--size"):
            self.assertIn(word, small.sentence.decode())
        tiled = make_plan(self, model, 1 << 40, tile=32)
        self.assertEqual([part.peak for part in tiled.parts[:3]], peaks[:3])
        self.assertLess(tiled.parts[3].peak, peaks[3])

    def test_refusals(self):
        both = self.files()
        for model, options, words in [
                ("dev", both[2:], ["transformer/config.json"]), ("dev", both[:2], ["text_encoder_2"]), ("dev", ["--transformer", self.root / "no.gguf", *both[2:]], ["no.gguf"]),
                ("dev", [*both[:2], "--t5", self.root / "no.gguf"], ["no.gguf"]), ("dev", ["--transformer", both[3], *both[2:]], ["t5.gguf", "t5encoder", "flux"]),
                ("dev", [*both[:2], "--t5", both[1]], ["flux.gguf"]), ("dev", [*both, "--weights", "f16"], ["f16", "q8_0"]), ("dev", [*both, "--weights", "q9"], ["q9", "q8_0"]), ("flux.gguf", [], ["--transformer", "flux.gguf"]), ("t5.gguf", [], ["--t5", "t5.gguf"])]:
            with self.subTest(f"{options} {words}"):
                result = rdna_program.run("image", self.root / model, flux.PROMPT, "--size", "8x8", "--steps", 1, *options, "--out", self.out / "x.png", "--driver", rdna_program.DEVICE)
                self.assertEqual(result.returncode, 1, result.stderr)
                for word in words:
                    self.assertIn(word, result.stderr.decode().splitlines()[-1])
                self.assertFalse((self.out / "x.png").exists())


class UNets(one_file.Files):
    """Stable Diffusion's: matrices of transformers alone, of rows of whole blocks."""
    tests = [name for name in dir(one_file.Files) if name.startswith("test_")]
    locals().update({name: None for name in tests})

    @classmethod
    def setUpClass(cls):
        cls.temporary = flux.tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.temporary.name)
        cls.pipeline, tensors = one_file.make_model(cls.root / "xl", "xl", diffusers.EulerDiscreteScheduler)
        one_file.save(cls.root / "xl.safetensors", tensors)

    def test_tiles(self):
        """The largest tile that fits, where a whole picture does not; less memory where weights are rounded."""
        folder = self.out / "wide"  # whose autoencoder takes the most
        shutil.copytree(self.root / "xl", folder)
        diffusers.AutoencoderKL(**{**image_checkpoint.VAE, "block_out_channels": [256, 64]}).save_pretrained(folder / "vae")
        model = open_model(self, folder)
        whole = make_plan(self, model, 1 << 40)
        self.assertEqual([part.name for part in whole.parts[:whole.count]], [b"text encoder", b"U-Net", b"autoencoder"])
        self.assertEqual(whole.parts[2].peak, whole.peak)
        tiled = make_plan(self, model, whole.reserved - 1)
        self.assertTrue(tiled.fits)
        self.assertEqual(tiled.tile, 128)
        self.assertIn("tiles of 128 x 128 latents", tiled.sentence.decode())
        self.assertFalse(make_plan(self, model, tiled.reserved - 1).fits)  # as the U-Net takes the most then
        self.assertLess(make_plan(self, model, 1 << 40, tile=64).parts[2].peak, tiled.parts[2].peak)
        rounded = make_plan(self, open_model(self, self.root / "xl", weights=RDNA_Q8_0), 1 << 40)
        self.assertLess(rounded.parts[1].weights, whole.parts[1].weights)
        heavy = make_plan(self, model, 1 << 20, width=16, height=16)
        for word in ("weights", "--weights"):
            self.assertIn(word, heavy.sentence.decode())

    def test_offered_types(self):
        """The sentence that refuses a type of blocks offers those that are taken, all of them."""
        command = ["image", self.root / "xl", one_file.PROMPT, "--seed", 3, "--steps", 1, "--cfg", 1, "--size", "16x16", "--out", self.out / "x.png", "--driver", "host", "--weights"]
        refused = rdna_program.run(*command, "nvfp4")
        self.assertEqual(refused.returncode, 1)
        offered = refused.stderr.decode().split("types of blocks are ")[1].split()
        self.assertGreater(len(offered), 20)
        for kind in offered:
            with self.subTest(kind):
                rdna_program.output(*command, kind)

    def test_rounded(self):
        kept = {k: v.clone() for k, v in self.pipeline.unet.state_dict().items()}
        for kind, model in (("q8_0", "xl"), ("q4_K", "xl.safetensors")):  # of which most rows are too short
            self.pipeline.unet.load_state_dict(kept)
            round_network(self.pipeline.unet, kind, lambda name, module: ".attentions." in name)
            more = ["--tokenizer", self.root / "xl"] if "." in model else []
            _, dumped = self.draw(model, "--seed", 3, "--steps", 2, "--cfg", 4, "--size", "16x16", "--sampler", "euler", "--weights", kind, *more)
            self.pipeline.scheduler = self.scheduler_of("xl")
            wanted = self.reference(self.pipeline, seed=3, prompt=one_file.PROMPT, guidance=4, num_inference_steps=2, width=16, height=16)
            self.compare(dumped, wanted, 2)


if __name__ == "__main__":
    unittest.main()

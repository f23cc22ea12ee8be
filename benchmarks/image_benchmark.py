#!/usr/bin/env python3
"""How fast the networks of pictures are, beside diffusers on PyTorch's own device: random weights of the published shapes
in 16 bits, a step of the U-Net (prompt and negative prompt in one pass) or of FLUX's transformer, the decoder of a picture, and
a step of Z-Image within its pipeline.

    python benchmarks/image_benchmark.py --driver cuda --torch cuda        four minutes on an H200
    python benchmarks/image_benchmark.py --driver host --torch cpu --tiny  small ones, which say nothing but that it runs

A ratio above 1 says that rdna is faster, or takes less memory. Ours reads samples from host memory and gives them back there, which is in its
time; PyTorch's stay on its device. Each line is printed as soon as it is measured, with the error of ours beside diffusers' eager result."""
import argparse
import ctypes
import gc
import json
import pathlib
import statistics
import sys
import tempfile
import time

import diffusers
import numpy as np
import tokenizers
import torch
import transformers

ROOT = pathlib.Path(__file__).resolve().parent.parent
BEGAN = time.perf_counter()
POINTER, TEXT, INT, SIZE, DOUBLE = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_size_t, ctypes.c_double
TYPES = {"f32": (0, torch.float32), "f16": (1, torch.float16), "bf16": (2, torch.bfloat16)}

VAE = {"block_out_channels": (128, 256, 512, 512), "layers_per_block": 2, "norm_num_groups": 32, "latent_channels": 4, "force_upcast": False,
       "down_block_types": ("DownEncoderBlock2D",) * 4, "up_block_types": ("UpDecoderBlock2D",) * 4}
SD15 = {"block_out_channels": (320, 640, 1280, 1280), "layers_per_block": 2, "cross_attention_dim": 768, "attention_head_dim": 8, "sample_size": 64}
XL = {"block_out_channels": (320, 640, 1280), "layers_per_block": 2, "cross_attention_dim": 2048, "attention_head_dim": (5, 10, 20), "sample_size": 128,
      "transformer_layers_per_block": (1, 2, 10), "use_linear_projection": True, "addition_embed_type": "text_time", "addition_time_embed_dim": 256,
      "projection_class_embeddings_input_dim": 2816, "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
      "up_block_types": ("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D")}
ZIMAGE = {"in_channels": 16, "dim": 3840, "n_layers": 10, "n_refiner_layers": 2, "n_heads": 30, "n_kv_heads": 30, "cap_feat_dim": 2560,
          "axes_dims": [32, 48, 48], "axes_lens": [1536, 512, 512]}  # 10 of 30 layers
FLUX = {"in_channels": 64, "num_layers": 4, "num_single_layers": 8, "guidance_embeds": True}  # of 19 and 38 blocks, as writing 24 GB takes longer


CHAT = ("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"  # Qwen3's, as far as it is asked for
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")


def tiny(settings):
    """The same network with few channels."""
    small = dict(settings)
    if "block_out_channels" in small:
        small["block_out_channels"] = tuple(c // 16 for c in small["block_out_channels"])
        small["norm_num_groups"] = 4
    if "cross_attention_dim" in small:
        small |= {"cross_attention_dim": 32, "sample_size": 8}
        heads = small["attention_head_dim"]
        small["attention_head_dim"] = 4 if isinstance(heads, int) else tuple(max(1, h // 5) for h in heads)
    if "addition_time_embed_dim" in small:
        small |= {"addition_time_embed_dim": 16, "projection_class_embeddings_input_dim": 64 + 6 * 16, "transformer_layers_per_block": (1, 1, 2)}
    if "num_single_layers" in small:
        small |= {"num_layers": 1, "num_single_layers": 1, "attention_head_dim": 32, "num_attention_heads": 2, "joint_attention_dim": 64,
                  "pooled_projection_dim": 48, "axes_dims_rope": (8, 12, 12)}
    if "cap_feat_dim" in small:
        small |= {"dim": 64, "n_layers": 2, "n_refiner_layers": 1, "n_heads": 2, "n_kv_heads": 2, "cap_feat_dim": 32, "axes_dims": [8, 12, 12]}
    return small


# ---- librdna ----

class Stats(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in (
        "allocated", "requested", "reserved", "peak_allocated", "peak_requested", "peak_reserved", "blocks", "peak_blocks", "alloc_count", "free_count",
        "alloc_bytes", "free_bytes", "segment_count", "peak_segment_count", "driver_allocs", "driver_frees", "retries", "ooms")] + [("fragmentation", DOUBLE)]


class UNetInput(ctypes.Structure):
    _fields_ = [("size", SIZE), ("count", INT), ("height", INT), ("width", INT), ("tokens", INT), ("sample", POINTER), ("states", POINTER),
                ("timestep", DOUBLE), ("pooled", POINTER), ("numbers", POINTER), ("pooled_width", INT), ("number_count", INT), ("guidance", DOUBLE)]


class FluxInput(ctypes.Structure):
    _fields_ = [("size", SIZE), ("height", INT), ("width", INT), ("tokens", INT), ("sample", POINTER), ("states", POINTER),
                ("pooled", POINTER), ("timestep", DOUBLE), ("guidance", DOUBLE)]


class Progress(ctypes.Structure):
    _fields_ = [("stage", TEXT), ("picture", INT), ("count", INT), ("step", INT), ("steps", INT), ("latents", POINTER)]


PROGRESS = ctypes.CFUNCTYPE(ctypes.c_bool, POINTER, ctypes.POINTER(Progress))


class Request(ctypes.Structure):  # up to |progress|; what follows is left 0
    _fields_ = [("size", SIZE), ("prompt", TEXT), ("negative", TEXT), ("count", INT), ("width", INT), ("height", INT), ("steps", INT),
                ("guidance", DOUBLE), ("sampler", TEXT), ("spacing", TEXT), ("seed", ctypes.c_uint64), ("latents", POINTER), ("init", POINTER),
                ("strength", DOUBLE), ("skip", INT), ("tile", INT), ("frugal", ctypes.c_bool), ("progress", PROGRESS), ("values", POINTER),
                ("data", POINTER), ("plain", ctypes.c_bool)]


class ModelOptions(ctypes.Structure):  # up to |dtype|
    _fields_ = [("size", SIZE), ("dtype", INT)]


class Ours:
    """librdna on one of its devices."""
    def __init__(self, library, driver):
        self.library = ctypes.CDLL(library)
        self.library.rdna_last_error.restype = TEXT
        self.library.rdna_memory_get_stats.restype = self.library.rdna_memory_reset_peaks.restype = None
        self.device = POINTER()
        self.call("rdna_device_open", driver.encode(), ctypes.byref(self.device))

    def call(self, name, *arguments):
        if getattr(self.library, name)(*arguments):
            raise SystemExit(f"{name}: {self.library.rdna_last_error().decode()}")

    def create(self, kind, folder, name, dtype, *more):
        network = POINTER()
        self.call(f"rdna_image_{kind}_create", self.device, str(folder).encode(), name.encode(), dtype, *more, ctypes.byref(network))
        return network

    def release(self, kind, network):
        function = getattr(self.library, f"rdna_image_{kind}_release")
        function.restype, function.argtypes = None, [POINTER]
        function(network)
        self.call("rdna_memory_empty_cache", self.device)

    def reset_peak(self):
        self.library.rdna_memory_reset_peaks(self.device)

    def peak(self):
        stats = Stats()
        self.library.rdna_memory_get_stats(self.device, ctypes.byref(stats))
        return stats.peak_allocated


# ---- measuring ----

class Bench:
    def __init__(self, options):
        self.options = options
        self.ours = Ours(options.library, options.driver)
        self.cuda = options.torch.startswith("cuda")

    def say(self, text):
        print(f"[{time.perf_counter() - BEGAN:5.0f} s] {text}", flush=True)

    def left(self):
        return self.options.seconds - (time.perf_counter() - BEGAN)

    def wait(self):
        if self.cuda:
            torch.cuda.synchronize()

    def time(self, function):
        """The median, in milliseconds, of what comes behind two runs that count nothing: at most 20, and at most 3 s."""
        times, until = [], None
        for i in range(22):
            self.wait()
            start = time.perf_counter()
            function()
            self.wait()
            if i >= 2:
                times.append(time.perf_counter() - start)
            until = until or time.perf_counter() + 3
            if times and time.perf_counter() > until:
                break
        return 1000 * statistics.median(times)

    def network(self, kind, settings):
        """On PyTorch's device, its weights such that values keep their size."""
        with torch.device("meta"):
            network = kind(**settings)
        network = network.to_empty(device=self.options.torch).to(TYPES[self.options.type][1]).eval()
        generator = torch.Generator(self.options.torch).manual_seed(1)
        with torch.no_grad():
            for name, p in network.named_parameters():
                if p.ndim > 1:
                    p.normal_(0, p[0].numel() ** -0.5, generator=generator)
                else:
                    p.fill_("norm" in name and name.endswith("weight"))
        for name, buffer in network.named_buffers():
            raise SystemExit(f"{kind.__name__} has a buffer, {name}, whose values are not known")
        return network

    def compare(self, label, kind, settings, their_input, our_kind, folder_name, our_run, our_more=(), method="forward"):
        """|their_input|() gives what PyTorch reads; |our_run|(network) gives a function that answers the same."""
        network, dtype = self.network(kind, settings), TYPES[self.options.type][0]
        with tempfile.TemporaryDirectory(dir=self.options.folder) as folder, torch.no_grad():
            network.save_pretrained(pathlib.Path(folder) / folder_name, max_shard_size="20GB")
            arguments = their_input(network)
            count = sum(p.numel() for p in network.parameters())
            run = getattr(network, method)
            self.reset_torch()
            wanted = run(**arguments).sample.float().cpu().numpy()
            eager = self.time(lambda: run(**arguments))
            memory = torch.cuda.max_memory_allocated() if self.cuda else 0
            network = network.cpu()
            self.reset_torch()
            handle = self.ours.create(our_kind, folder, folder_name, dtype, *our_more)
            function = our_run(handle)
            self.ours.reset_peak()
            got = function()
            error = np.linalg.norm(got - wanted) / np.linalg.norm(wanted)
            mine = self.time(function)
            peak = self.ours.peak()
            self.ours.release(our_kind, handle)
        if not error < 0.2:  # of 16 bits through hundreds of random blocks; other networks would be off by 1
            raise SystemExit(f"{label}: ours is off by {error:.2g}")
        fits = f", peak {peak / 2**30:.2f} GiB beside {memory / 2**30:.2f}: {memory / peak:.2f}" if self.cuda else f", peak {peak / 2**30:.2f} GiB"
        self.say(f"{label} ({count / 1e6:.0f} M): rdna {mine:.1f} ms, diffusers eager {eager:.1f}: {eager / mine:.2f}{fits}; error {error:.1e}")
        self.compiled(label, network, method, arguments, mine)

    def reset_torch(self):
        gc.collect()
        if self.cuda:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()

    def compiled(self, label, network, method, arguments, mine):
        if self.options.no_compile or self.left() < self.options.compile_seconds:
            self.say(f"{label}: not compiled{'' if self.options.no_compile else ', as there is no time left for it'}")
            return
        network = network.to(self.options.torch)
        torch._dynamo.reset()
        start = time.perf_counter()
        with torch.no_grad():
            run = torch.compile(getattr(network, method))
            run(**arguments)
            self.wait()
            took = time.perf_counter() - start
            theirs = self.time(lambda: run(**arguments))
        self.say(f"{label}: compiled {theirs:.1f} ms: {theirs / mine:.2f} (compiling took {took:.0f} s)")

    def random(self, *shape, seed=1):
        return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)

    def there(self, x):
        return torch.from_numpy(x).to(self.options.torch, TYPES[self.options.type][1])

    # ---- the networks ----

    def unet(self, label, settings):
        settings = tiny(settings) if self.options.tiny else settings
        side, width = settings["sample_size"], settings["cross_attention_dim"]
        added = settings.get("projection_class_embeddings_input_dim", 0)
        pooled_width = added - 6 * settings.get("addition_time_embed_dim", 0)
        sample, states = self.random(2, 4, side, side), self.random(2, 77, width, seed=2)
        pooled = self.random(2, pooled_width, seed=3) if added else None
        numbers = np.array([[8.0 * side, 8 * side, 0, 0, 8 * side, 8 * side]] * 2, np.float32)
        out = np.empty_like(sample)

        def theirs(_):
            given = {"sample": self.there(sample), "timestep": torch.tensor(501.0, device=self.options.torch), "encoder_hidden_states": self.there(states)}
            return given | ({"added_cond_kwargs": {"text_embeds": self.there(pooled), "time_ids": self.there(numbers)}} if added else {})

        def ours(network):
            given = UNetInput(ctypes.sizeof(UNetInput), 2, side, side, 77, sample.ctypes.data, states.ctypes.data, 501,
                              pooled.ctypes.data if added else None, numbers.ctypes.data, pooled_width if added else 0, 6 if added else 0, 0)

            def run():
                self.ours.call("rdna_image_unet_run", network, ctypes.byref(given), POINTER(out.ctypes.data))
                return out
            return run

        self.compare(f"{label} U-Net step, 2 x {8 * side} x {8 * side}", diffusers.UNet2DConditionModel, settings, theirs, "unet", "unet", ours)

    def decoder(self, label, side):
        settings, side = (tiny(VAE), 8) if self.options.tiny else (VAE, side)
        latents, out = self.random(1, 4, side, side), np.empty((1, 3, 8 * side, 8 * side), np.float32)

        def ours(network):
            def run():
                self.ours.call("rdna_image_autoencoder_decode", network, POINTER(latents.ctypes.data), 1, side, side, 0, POINTER(out.ctypes.data))
                return out
            return run

        kind = diffusers.AutoencoderKL
        self.compare(f"{label} decoder, {8 * side} x {8 * side}", kind, settings | {"scaling_factor": 1.0}, lambda _: {"z": self.there(latents)},
                     "autoencoder", "vae", ours, (False,), "decode")

    def flux(self):
        settings, side, tokens = (tiny(FLUX), 8, 20) if self.options.tiny else (FLUX, 128, 512)
        sample, out = self.random(1, 16, side, side), np.empty((16, side, side), np.float32)
        states, pooled = self.random(1, tokens, settings.get("joint_attention_dim", 4096), seed=2), self.random(1, settings.get("pooled_projection_dim", 768), seed=3)

        def theirs(_):
            ids = diffusers.FluxPipeline._prepare_latent_image_ids(1, side // 2, side // 2, self.options.torch, torch.float32)
            return {"hidden_states": diffusers.FluxPipeline._pack_latents(self.there(sample), 1, 16, side, side), "encoder_hidden_states": self.there(states),
                    "pooled_projections": self.there(pooled), "timestep": self.there(np.array([0.5], np.float32)), "img_ids": ids,
                    "txt_ids": torch.zeros(tokens, 3, device=self.options.torch), "guidance": torch.tensor([3.5], device=self.options.torch)}

        def ours(network):
            given = FluxInput(ctypes.sizeof(FluxInput), side, side, tokens, sample.ctypes.data, states.ctypes.data, pooled.ctypes.data, 500, 3.5)

            def run():
                self.ours.call("rdna_image_flux_run", network, ctypes.byref(given), POINTER(out.ctypes.data))
                packed = torch.from_numpy(out)[None]
                return diffusers.FluxPipeline._pack_latents(packed, 1, 16, side, side).numpy()
            return run

        label = f"FLUX step ({settings['num_layers']} + {settings['num_single_layers']} blocks), {8 * side} x {8 * side}, {tokens} tokens"
        self.compare(label, diffusers.FluxTransformer2DModel, settings, theirs, "flux", "transformer", ours)

    def zimage(self):
        """Both pipelines from the same folder, texts and noise. Of steps the time between two calls of what is told of them is taken."""
        small, steps = self.options.tiny, 12
        (settings, side), (number, dtype) = (tiny(ZIMAGE), 8) if small else (ZIMAGE, 128), TYPES[self.options.type]
        label = f"Z-Image step ({settings['n_layers']} layers), {8 * side} x {8 * side}"
        prompt = "a lighthouse at dusk " * 12
        with tempfile.TemporaryDirectory(dir=self.options.folder) as folder, torch.no_grad():
            pipeline = zimage_pipeline(self, settings, tiny(VAE) if small else VAE, dtype)
            pipeline.save_pretrained(folder)
            name = pathlib.Path(folder) / "text_encoder/config.json"
            name.write_text(json.dumps(json.loads(name.read_text()) | {"architectures": ["Qwen3ForCausalLM"]}))
            noise, out = self.random(1, 16, side, side), np.empty((1, 3, 8 * side, 8 * side), np.float32)
            pipeline.to(self.options.torch).set_progress_bar_config(disable=True)
            times = []

            def mark(pipe, step, timestep, values):
                self.wait()
                times.append(time.perf_counter())
                return values

            self.reset_torch()
            wanted = pipeline(prompt, width=8 * side, height=8 * side, num_inference_steps=steps, guidance_scale=0.0, latents=torch.from_numpy(noise).to(self.options.torch),
                              output_type="pt", callback_on_step_end=mark).images.float().cpu().numpy()
            eager, memory = 1000 * statistics.median(np.diff(times[1:])), torch.cuda.max_memory_allocated() if self.cuda else 0
            pipeline.to("cpu")
            self.reset_torch()
            marks = []
            progress = PROGRESS(lambda _, p: marks.append((p[0].stage, time.perf_counter())) or True)
            model = POINTER()
            options = ModelOptions(ctypes.sizeof(ModelOptions), number)
            self.ours.reset_peak()
            self.ours.call("rdna_image_model_open", self.ours.device, folder.encode(), ctypes.byref(options), ctypes.byref(model))
            request = Request(ctypes.sizeof(Request), prompt.encode(), None, 1, 8 * side, 8 * side, steps, 0.0, None, None, 1, noise.ctypes.data,
                              None, 0, 0, 0, True, progress)
            self.ours.call("rdna_image_model_draw", model, ctypes.byref(request), POINTER(out.ctypes.data))
            self.ours.library.rdna_image_model_release.argtypes = [POINTER]
            self.ours.library.rdna_image_model_release(model)
            mine, peak = 1000 * statistics.median(np.diff([t for stage, t in marks if stage == b"noise"][2:])), self.ours.peak()
            error = np.linalg.norm(out.clip(-1, 1) / 2 + 0.5 - wanted) / np.linalg.norm(wanted)
            if not error < 0.5:  # of twelve steps; another picture would be off by 1
                raise SystemExit(f"{label}: ours is off by {error:.2g}")
            self.say(f"{label}: rdna {mine:.1f} ms, diffusers eager {eager:.1f}: {eager / mine:.2f}, "
                     f"peak {peak / 2**30:.2f} GiB beside {memory / 2**30:.2f}; error of the picture {error:.1e}")
            if self.options.no_compile or self.left() < self.options.compile_seconds:
                return
            pipeline.to(self.options.torch)
            pipeline.transformer.compile()
            times.clear()
            pipeline(prompt, width=8 * side, height=8 * side, num_inference_steps=steps, guidance_scale=0.0, callback_on_step_end=mark, output_type="latent")
            compiled = 1000 * statistics.median(np.diff(times[1:]))
            self.say(f"{label}: compiled {compiled:.1f} ms: {compiled / mine:.2f}")


def zimage_pipeline(bench, settings, vae, dtype):
    """On random weights, with a text encoder of one layer, as its states alone are read."""
    width = settings["cap_feat_dim"]
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer, tokenizer.decoder = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False), tokenizers.decoders.ByteLevel()
    tokenizer.train_from_iterator(["a lighthouse at dusk"], tokenizers.trainers.BpeTrainer(
        vocab_size=300, initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    tokenizer.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>",
                                                     chat_template=CHAT)
    language = transformers.Qwen3Model(transformers.Qwen3Config(
        vocab_size=len(tokenizer), hidden_size=width, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1, head_dim=16,
        max_position_embeddings=1024, tie_word_embeddings=True))
    transformer = bench.network(diffusers.ZImageTransformer2DModel, settings).to(dtype)
    autoencoder = bench.network(diffusers.AutoencoderKL, vae | {"latent_channels": 16, "scaling_factor": 0.36, "shift_factor": 0.12, "use_quant_conv": False,
                                                               "use_post_quant_conv": False})
    return diffusers.ZImagePipeline(scheduler=diffusers.FlowMatchEulerDiscreteScheduler(shift=3.0), vae=autoencoder.to(dtype), text_encoder=language.to(dtype),
                                    tokenizer=tokenizer, transformer=transformer)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--driver", default="auto", help="rdna's device: cuda, hip, host")
    parser.add_argument("--torch", default="cuda", help="PyTorch's device: cuda, cpu")
    parser.add_argument("--library", default=str(ROOT / "build/release/lib/librdna.so"))
    parser.add_argument("--folder", help="where weights are written for ours to read: 6 GB")
    parser.add_argument("--type", choices=TYPES, help="f16, or with --tiny on the processor f32")
    parser.add_argument("--only", choices=("sd", "xl", "flux", "zimage"), action="append")
    parser.add_argument("--tiny", action="store_true", help="small networks")
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--seconds", type=float, default=235, help="what is not begun by then is left out, which is said")
    parser.add_argument("--compile-seconds", type=float, default=45, help="nothing is compiled where less is left")
    options = parser.parse_args()
    options.type = options.type or ("f32" if options.torch == "cpu" else "f16")
    diffusers.utils.logging.set_verbosity_error()
    bench = Bench(options)
    bench.say(f"rdna on {options.driver}, PyTorch {torch.__version__} on {options.torch}, diffusers {diffusers.__version__}, {options.type}")
    for name, parts in (("sd", (lambda: bench.unet("SD 1.5", SD15), lambda: bench.decoder("SD 1.5", 64))),
                        ("xl", (lambda: bench.unet("SDXL", XL), lambda: bench.decoder("SDXL", 128))), ("flux", (bench.flux,)),
                        ("zimage", (bench.zimage,))):
        for part in parts if not options.only or name in options.only else ():
            if bench.left() < 15:
                bench.say(f"{name}: left out, as there is no time left")
                continue
            part()
            bench.reset_torch()
    return 0


if __name__ == "__main__":
    sys.exit(main())

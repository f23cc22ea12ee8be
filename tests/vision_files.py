"""Small random models that see pictures, with the demo model's vocabulary and a chat template, as files to be served."""
import io

import numpy as np
from PIL import Image

import gguf_file as gf
from rdna_program import DEMO_MODEL
from vision_models import Gemma3Sees, Qwen3Sees, Qwen25Sees, SeeingModel

GEMMA = """{{ bos_token }}{% for m in messages %}<{{ m.role }}> {% if m.content is string %}{{ m.content }}{% else %}
{%- for part in m.content %}{% if part.type == 'image' %}<start_of_image>{% else %}{{ part.text }}{% endif %}{% endfor %}{% endif %}
{% endfor %}{% if add_generation_prompt %}<assistant> {% endif %}"""
QWEN = GEMMA.replace("<start_of_image>", "<|vision_start|><|image_pad|><|vision_end|>")
CONTEXT = 512


def write_files(folder, kind="gemma3", seed=5):
    """(the model's file, its tower's)."""
    vocabulary = {key: value for key, value in gf.Reader(DEMO_MODEL).keys.items() if key.startswith("tokenizer.")}
    gemma = kind == "gemma3"
    tags = ["<start_of_image>", "<end_of_image>"] if gemma else ["<|vision_start|>", "<|image_pad|>", "<|vision_end|>"]
    user_defined = 4
    for i, tag in enumerate(tags, 1):
        vocabulary["tokenizer.ggml.tokens"][-i] = tag
        vocabulary["tokenizer.ggml.token_type"][-i] = user_defined
    changes = dict(vocab_size=len(vocabulary["tokenizer.ggml.tokens"]), max_position_embeddings=CONTEXT)
    row = Gemma3Sees(kind, changes) if gemma else (Qwen3Sees if kind == "qwen3-vl" else Qwen25Sees)(kind)
    if not gemma:
        row.config["text_config"] = {**row.config["text_config"], **changes}
        row.config |= changes
    model = SeeingModel(row, seed)
    path, tower = folder / f"{kind}.gguf", folder / f"{kind}-mmproj.gguf"
    model.write(path)
    model.write_tower(tower)
    file = gf.Reader(path)
    entries = [(key, *gf.typed(value)) for key, value in {**file.keys, **vocabulary}.items()]
    embedding = file.tensors["token_embd.weight"]
    output = np.random.default_rng(seed).normal(0, 1, embedding.shape)  # or it would write its last token again and again
    tensors = {**file.tensors, "output.weight": output}
    gf.write(path, entries + [("tokenizer.chat_template", gf.TEXT, GEMMA if gemma else QWEN)],
             [(name, gf.TENSOR_F32, array) for name, array in tensors.items()])
    return path, tower


def picture(seed, height=40, width=56):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


def encoded(pixels, kind="PNG", **options):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind, **options)
    return file.getvalue()

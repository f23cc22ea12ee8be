"""Keras asks XLA to compile every model, and convolutions in groups always, which has no compiler for this device and ends fit and
predict with an error."""

import functools

from ._placing import asks_for


def _no_compiler(trainer):
    trainer.model_supports_jit = lambda model: False


class _WithoutCompiler:
    """TensorFlow, whose functions are compiled on the processor alone, which has no other convolutions in groups."""

    def __init__(self, tensorflow):
        self._tensorflow = tensorflow

    def __getattr__(self, name):
        return getattr(self._tensorflow, name)

    def function(self, function=None, *, jit_compile=None, **options):
        if function is None:
            return functools.partial(self.function, jit_compile=jit_compile, **options)
        plain = self._tensorflow.function(function, **options)
        compiled = self._tensorflow.function(function, jit_compile=jit_compile, **options)

        @functools.wraps(function)
        def call(*inputs, **named):
            return (compiled if asks_for("CPU") else plain)(*inputs, **named)

        return call


def _no_compiled_operators(nn):
    if not isinstance(nn.tf, _WithoutCompiler):
        nn.tf = _WithoutCompiler(nn.tf)


PATCHES = {"keras.src.trainers.trainer": _no_compiler, "keras.src.backend.tensorflow.nn": _no_compiled_operators}

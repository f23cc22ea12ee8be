"""Keras asks XLA to compile every model, and convolutions in groups always, which has no compiler for this device and ends fit and
predict with an error."""


def _no_compiler(trainer):
    trainer.model_supports_jit = lambda model: False


class _WithoutCompiler:
    """TensorFlow, whose functions are not compiled."""

    def __init__(self, tensorflow):
        self._tensorflow = tensorflow

    def __getattr__(self, name):
        return getattr(self._tensorflow, name)

    def function(self, *arguments, jit_compile=None, **options):
        return self._tensorflow.function(*arguments, **options)


def _no_compiled_operators(nn):
    if not isinstance(nn.tf, _WithoutCompiler):
        nn.tf = _WithoutCompiler(nn.tf)


PATCHES = {"keras.src.trainers.trainer": _no_compiler, "keras.src.backend.tensorflow.nn": _no_compiled_operators}

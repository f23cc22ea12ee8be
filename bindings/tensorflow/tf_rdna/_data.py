"""tf.data's datasets, iterators and optionals are objects of the processor, whose operators have kernels for it alone, or for
it and CUDA's GPUs. Where a scope, or the device of what they are given, asks for this device, they stay there: with soft
placement off fit, evaluate and predict would else end with an error."""

import functools

from ._placing import asks_for

def _on_processor(function):
    @functools.wraps(function)
    def call(*arguments, **options):
        from tensorflow.python.framework import ops

        if not asks_for("RDNA"):
            return function(*arguments, **options)
        with ops.device("/device:CPU:0"):
            return function(*arguments, **options)

    return call


def _patch(module):
    """A generated module: all its public functions but those that eager execution calls in turn make one operator."""
    for name, function in list(vars(module).items()):
        makes = callable(function) and getattr(function, "__module__", None) == module.__name__
        if makes and not isinstance(function, type) and not name.startswith("_") and not name.endswith("_eager_fallback"):
            setattr(module, name, _on_processor(function))


PATCHES = {f"tensorflow.python.ops.{name}": _patch
           for name in ("gen_dataset_ops", "gen_experimental_dataset_ops", "gen_optional_ops")}  # fmt: skip

"""tf.data's datasets, iterators and optionals are objects of the processor, whose operators have kernels for it alone, or for
it and CUDA's GPUs. Where a scope, or the device of what they are given, asks for this device, they stay there: with soft
placement off fit, evaluate and predict would else end with an error. So are variables of int32, whose values TensorFlow keeps in
host memory on every device: it has a kernel that makes them for the processor alone, and Keras' Adafactor asks for some. Lists of tensors, which gradients of traced loops are given, TensorFlow
makes empty and adds up on the processor or CUDA's GPUs: there they are on the processor for that."""

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


def _int32_variables(module):
    make = module.var_handle_op
    on_processor = _on_processor(make)

    @functools.wraps(make)
    def var_handle_op(dtype, *arguments, **options):
        from tensorflow.python.framework import dtypes

        return (on_processor if dtypes.as_dtype(dtype).base_dtype == dtypes.int32 else make)(dtype, *arguments, **options)

    module.var_handle_op = var_handle_op


def _of_variants(name):
    """The patch of a module whose function |name|, where its first argument is a variant or a list of them, is for the processor."""

    def patch(module):
        make = getattr(module, name)
        on_processor = _on_processor(make)

        @functools.wraps(make)
        def call(*arguments, **options):
            first = arguments[0] if arguments else next(iter(options.values()), None)
            one = first[0] if isinstance(first, (list, tuple)) and first else first
            variant = getattr(getattr(one, "dtype", None), "name", None) == "variant"
            return (on_processor if variant else make)(*arguments, **options)

        setattr(module, name, call)

    return patch


def _patch(module):
    """A generated module: all its public functions but those that eager execution calls in turn make one operator."""
    for name, function in list(vars(module).items()):
        makes = callable(function) and getattr(function, "__module__", None) == module.__name__
        if makes and not isinstance(function, type) and not name.startswith("_") and not name.endswith("_eager_fallback"):
            setattr(module, name, _on_processor(function))


PATCHES = {"tensorflow.python.ops.gen_resource_variable_ops": _int32_variables,
           "tensorflow.python.ops.gen_array_ops": _of_variants("zeros_like"),
           "tensorflow.python.ops.gen_math_ops": _of_variants("add_n"),
           **{f"tensorflow.python.ops.{name}": _patch
              for name in ("gen_dataset_ops", "gen_experimental_dataset_ops", "gen_optional_ops")}}  # fmt: skip

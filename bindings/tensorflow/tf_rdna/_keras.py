"""Keras asks XLA to compile every model, and convolutions in groups always, which has no compiler for this device and ends fit and
predict with an error. It leaves it to XLA too to make few passes of a batch norm in training, which it writes as a dozen operators
and differentiates them: TensorFlow's own operator of it, and that one's gradient, go over the images twice each."""

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


def _fits_fused(layer, inputs, training, mask):
    """Whether a layer's call is what FusedBatchNormV3 computes: the statistics of this batch alone, of the last dimension."""
    rank = inputs.shape.rank if hasattr(inputs, "shape") and hasattr(inputs.shape, "rank") else None
    return (training and layer.trainable and mask is None and rank is not None and rank >= 2 and layer.axis in (-1, rank - 1)
            and inputs.shape[-1] is not None and 0 not in inputs.shape and inputs.dtype.name in ("float32", "float16", "bfloat16")
            and not getattr(layer, "renorm", False) and not getattr(layer, "synchronized", False) and not asks_for("CPU"))  # fmt: skip


def _fused_batch_norm(layer, x):
    """The layer's results in training; its moving statistics follow."""
    import tensorflow as tf

    channels, shape, dynamic = x.shape[-1], x.shape, x.shape[:-1].num_elements() is None
    rows = tf.cast(tf.size(x) // channels, tf.float32) if dynamic else float(x.shape[:-1].num_elements())
    images = x if shape.rank == 4 else tf.reshape(x, [-1, 1, 1, channels])
    scale = tf.cast(layer.gamma, tf.float32) if layer.scale else tf.ones([channels])
    offset = tf.cast(layer.beta, tf.float32) if layer.center else tf.zeros([channels])
    y, mean, variance, *_ = tf.raw_ops.FusedBatchNormV3(x=images, scale=scale, offset=offset, mean=[], variance=[], epsilon=layer.epsilon)
    variance = variance * ((rows - 1) / rows)  # TensorFlow gives the unbiased one, Keras keeps the other
    for moving, now in ((layer.moving_mean, mean), (layer.moving_variance, variance)):
        moving.assign(tf.cast(moving, tf.float32) * layer.momentum + now * (1 - layer.momentum))
    y = y if shape.rank == 4 else tf.reshape(y, tf.shape(x) if dynamic else shape)
    return tf.cast(y, layer.compute_dtype)


def _fused_batch_norms(module):
    plain = module.BatchNormalization.call

    @functools.wraps(plain)
    def call(self, inputs, training=None, mask=None):
        if _fits_fused(self, inputs, training, mask):
            return _fused_batch_norm(self, inputs)
        return plain(self, inputs, training=training, mask=mask)

    module.BatchNormalization.call = call


PATCHES = {"keras.src.trainers.trainer": _no_compiler, "keras.src.backend.tensorflow.nn": _no_compiled_operators,
           "keras.src.layers.normalization.batch_normalization": _fused_batch_norms}  # fmt: skip

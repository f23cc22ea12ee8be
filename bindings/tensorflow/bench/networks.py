"""BERT by TensorFlow's operators and ResNet-50 by Keras' layers, with weights by the names and in the order of PyTorch's."""

import numpy as np
import tensorflow as tf


class Bert:
    """The encoder of BERT. |weights|: arrays by transformers' names of a BertModel."""

    def __init__(self, weights, heads, epsilon=1e-12, dtype="float32"):
        weights = {name.removeprefix("bert."): np.asarray(value) for name, value in weights.items()}
        turned = lambda name, value: value.T if name.endswith("weight") and value.ndim == 2 and "embeddings" not in name else value
        self.weights = {name: tf.Variable(tf.constant(turned(name, value), dtype)) for name, value in weights.items()
                        if name.startswith(("embeddings", "encoder")) and value.dtype.kind == "f"}  # fmt: skip
        self.heads, self.epsilon, self.dtype = heads, epsilon, tf.as_dtype(dtype)
        self.layers = 1 + max(int(name.split(".")[2]) for name in self.weights if name.startswith("encoder"))

    def dense(self, x, name):
        return tf.nn.bias_add(tf.matmul(x, self.weights[name + ".weight"]), self.weights[name + ".bias"])

    def norm(self, x, name):
        mean, variance = tf.nn.moments(x, -1, keepdims=True)
        return tf.nn.batch_normalization(x, mean, variance, self.weights[name + ".bias"], self.weights[name + ".weight"], self.epsilon)

    def attention(self, x, bias, rows, length, name):
        def split(part):  # (rows · length, width) to (rows, heads, length, width of a head)
            return tf.transpose(tf.reshape(self.dense(x, f"{name}.self.{part}"), [rows, length, self.heads, -1]), [0, 2, 1, 3])

        q, k, v = split("query"), split("key"), split("value")
        scores = tf.matmul(q, k, transpose_b=True) * tf.cast(int(q.shape[-1]) ** -0.5, self.dtype) + bias
        mixed = tf.reshape(tf.transpose(tf.matmul(tf.nn.softmax(scores), v), [0, 2, 1, 3]), [rows * length, -1])
        return self.norm(x + self.dense(mixed, name + ".output.dense"), name + ".output.LayerNorm")

    def __call__(self, words, mask):
        """(rows, length) of integers each, 1 in |mask| where there is a word; the last layer's (rows, length, width)."""
        rows, length = words.shape
        table = lambda name: self.weights[f"embeddings.{name}_embeddings.weight"]
        x = tf.gather(table("word"), words) + table("position")[:length] + table("token_type")[0]
        x = self.norm(tf.reshape(x, [rows * length, -1]), "embeddings.LayerNorm")
        bias = (1 - tf.cast(mask, self.dtype))[:, None, None, :] * tf.cast(-3e4, self.dtype)
        for i in range(self.layers):
            name = f"encoder.layer.{i}"
            x = self.attention(x, bias, rows, length, name + ".attention")
            wide = tf.nn.gelu(self.dense(x, name + ".intermediate.dense"))
            x = self.norm(x + self.dense(wide, name + ".output.dense"), name + ".output.LayerNorm")
        return tf.reshape(x, [rows, length, -1])


def resnet(side, classes, width=64, counts=(3, 4, 6, 3), calm=False):
    """ResNet-50 with the stride in the 3 x 3 convolutions, and a function that sets its weights: arrays in the order of
    PyTorch's state_dict of such a network, where a block's main path comes before its shortcut. |calm|: each block begins as
    its shortcut (the last scale of its main path is 0), without which a rounding changes the losses of a few steps later."""
    import keras

    layers, made = keras.layers, []

    def conv(x, filters, size, stride=1, act=True, scale="ones"):
        if size > 1:
            x = layers.ZeroPadding2D(size // 2)(x)
        made.extend([layers.Conv2D(filters, size, stride, use_bias=False), layers.BatchNormalization(momentum=0.9, epsilon=1e-5, gamma_initializer=scale)])
        x = made[-1](made[-2](x))
        return layers.ReLU()(x) if act else x

    def block(x, filters, stride):
        y = conv(conv(conv(x, filters, 1), filters, 3, stride), 4 * filters, 1, act=False, scale="zeros" if calm else "ones")
        if stride > 1 or x.shape[-1] != 4 * filters:
            x = conv(x, 4 * filters, 1, stride, act=False)
        return layers.ReLU()(x + y)

    pictures = keras.Input((side, side, 3))
    x = layers.ZeroPadding2D(1)(conv(pictures, width, 7, 2))  # zeros are below no value behind a ReLU
    x = layers.MaxPooling2D(3, 2)(x)
    for i, count in enumerate(counts):
        for j in range(count):
            x = block(x, width << i, 2 if i and not j else 1)
    made.append(layers.Dense(classes))
    model = keras.Model(pictures, made[-1](layers.GlobalAveragePooling2D()(x)))

    def load(values):
        values = iter(values)
        for layer in made:
            own = [next(values) for _ in layer.weights]
            layer.set_weights([a.transpose(2, 3, 1, 0) if a.ndim == 4 else a.T if a.ndim == 2 else a for a in own])
        assert next(values, None) is None, "more weights than the network has"

    return model, load


def transformer(vocabulary, length, width=32, heads=4, count=2):
    """A language model that looks back, of Keras' own layers."""
    import keras

    layers = keras.layers
    words = keras.Input((length,), dtype="int64")
    x = layers.Embedding(vocabulary, width)(words)
    for _ in range(count):
        x = layers.LayerNormalization()(x + layers.MultiHeadAttention(heads, width // heads)(x, x, use_causal_mask=True))
        x = layers.LayerNormalization()(x + layers.Dense(width)(layers.Dense(2 * width, activation="gelu")(x)))
    return keras.Model(words, layers.Dense(vocabulary)(x))

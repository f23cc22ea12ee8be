"""The graph pass: groups of operators in one call of librdna, where nobody else sees what is between."""

import pathlib
import subprocess

import beside_cpu
import keras
import numpy as np
import pytest
import tensorflow as tf
import tf_rdna
from scipy import special

rng = np.random.default_rng(4)
SOURCES = pathlib.Path(__file__).resolve().parent.parent / "csrc"
ACTIVATIONS = {"relu": tf.nn.relu, "tanh": tf.tanh, "sigmoid": tf.sigmoid, "none": lambda x: x}


def normal(*shape, dtype=np.float32):
    return rng.standard_normal(shape).astype(dtype)


def ran():
    return tf_rdna.operator_report()["device"]


def traced(function, inputs, dtype="float32", scale=64):
    """On the device and on the CPU, by functions of their own; what ran on the device."""
    inputs = [tf.cast(x, dtype).numpy() for x in inputs]
    tf_rdna.reset_operator_report()
    with tf.device("/device:RDNA:0"):
        ours = tf.nest.flatten(tf.function(function)(*(tf.constant(x) for x in inputs)))
    seen = ran()
    with tf.device("/device:CPU:0"):
        theirs = tf.nest.flatten(tf.function(function)(*(tf.constant(x) for x in inputs)))
    for a, b in zip(ours, theirs):
        beside_cpu.close(a, b, scale)
    return seen


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_products(name, dtype):
    for turn_a in (False, True):
        a, b = normal(*((7, 5) if turn_a else (5, 7))), normal(3, 7)
        before = tf_rdna.fusions()
        seen = traced(lambda a, b, bias: ACTIVATIONS[name](tf.nn.bias_add(tf.matmul(a, b, transpose_a=turn_a, transpose_b=True), bias)), [a, b, normal(3)], dtype)
        assert seen.keys() & {"RdnaMatMul", "MatMul", "BiasAdd", "Relu", "Tanh", "Sigmoid"} == {"RdnaMatMul"}, seen
        assert tf_rdna.fusions() == before + 1


@pytest.mark.parametrize("name", ["relu", "none"])
@pytest.mark.parametrize("padding", ["SAME", "VALID", [[0, 0], [1, 0], [0, 2], [0, 0]]], ids=str)
def test_convolutions(name, padding):
    x, w = normal(2, 9, 8, 3), normal(3, 2, 3, 4)
    seen = traced(lambda x, w, bias: ACTIVATIONS[name](tf.nn.bias_add(tf.nn.conv2d(x, w, [1, 2, 1, 1], padding), bias)), [x, w, normal(4)])
    assert seen.keys() & {"RdnaConv2D", "Conv2D", "BiasAdd", "Relu"} == {"RdnaConv2D"}, seen


GELUS = {
    "keras": lambda x: keras.activations.gelu(x, approximate=False),
    "keras tanh": lambda x: keras.activations.gelu(x, approximate=True),
    "erf": lambda x: 0.5 * x * (1 + tf.math.erf(x / np.sqrt(2).astype(x.dtype.as_numpy_dtype))),
}


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("name", GELUS)
def test_gelu_behind_a_product(name, dtype):
    before = tf_rdna.fusions()
    seen = traced(lambda a, b, bias: GELUS[name](tf.nn.bias_add(tf.matmul(a, b), bias)), [normal(6, 5), normal(5, 4), normal(4)], dtype)
    assert seen.keys() <= {"RdnaMatMul", "Const"}, seen
    assert tf_rdna.fusions() == before + 1


def test_what_is_nearly_gelu_is_none():
    """Beside SciPy: TensorFlow's own pass for the CPU takes this for GELU."""
    a, b, bias = normal(6, 5), normal(5, 4), normal(4)
    tf_rdna.reset_operator_report()
    with tf.device("/device:RDNA:0"):
        step = tf.function(lambda x: 0.5 * x * (1 + tf.math.erf(x * 0.7)))
        ours = tf.function(lambda a, b, c: step(tf.nn.bias_add(tf.matmul(a, b), c)))(*map(tf.constant, (a, b, bias)))
    assert ran().keys() >= {"RdnaMatMul", "Erf", "Mul"}
    x = a.astype(np.float64) @ b + bias
    np.testing.assert_allclose(ours, 0.5 * x * (1 + special.erf(x * 0.7)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("activation", [None, "relu", "gelu"])
def test_dense_of_three_dimensions(activation):
    """Keras has a product, a reshape, and then the bias."""
    with tf.device("/device:RDNA:0"):
        layer = keras.layers.Dense(4, activation=activation, bias_initializer="normal")
        x = tf.constant(normal(2, 3, 5))
        layer(x)
    tf_rdna.reset_operator_report()
    with tf.device("/device:RDNA:0"):
        for signature in (None, [tf.TensorSpec([None, None, 5])]):
            ours = tf.function(layer, input_signature=signature)(x)
            want = x.numpy() @ layer.kernel.numpy() + layer.bias.numpy()
            want = keras.activations.get(activation)(tf.constant(want))
            beside_cpu.close(ours, want, 64)
    assert ran().get("RdnaMatMul") == 2 and not ran().keys() & {"MatMul", "BiasAdd"}, ran()


def test_a_reshape_that_moves_the_columns():
    """The biases are then along others than the product's columns."""
    def step(a, b, bias):
        return tf.nn.relu(tf.nn.bias_add(tf.reshape(tf.matmul(a, b), [3, -1, 2]), bias))

    assert "RdnaMatMul" in traced(step, [normal(3, 5), normal(5, 4), normal(2)])


def keras_norm(x, scale, offset, epsilon=1e-3):
    mean, variance = tf.nn.moments(x, -1, keepdims=True)
    inverse = tf.math.rsqrt(variance + epsilon) * scale
    return x * inverse + (-mean * inverse + offset)


def plain_norm(x, scale, offset, epsilon=1e-3):
    mean, variance = tf.nn.moments(x, -1, keepdims=True)
    return tf.nn.batch_normalization(x, mean, variance, offset, scale, epsilon)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("norm", [keras_norm, plain_norm])
def test_layer_norms(norm, dtype):
    x, scale, offset = normal(3, 4, 7) + 2, normal(7), normal(7)
    before = tf_rdna.fusions()
    seen = traced(norm, [x, scale, offset], dtype)
    assert seen.keys() <= {"RdnaLayerNorm", "Const"}, seen
    assert tf_rdna.fusions() == before + 1
    assert "RdnaLayerNorm" in traced(lambda x, s, o: norm(x, s, o, 1e-12), [x, scale, offset], dtype)  # in f16 that is 0
    assert "RdnaLayerNorm" in traced(norm, [x, normal(4, 1), normal(5, 1, 1, 7)], dtype)  # factors that are broadcast
    assert "RdnaLayerNorm" not in traced(lambda x, s, o: norm(x, s, o) * tf.nn.moments(x, -1, keepdims=True)[1], [x, scale, offset], dtype)


def test_constants_that_give_a_result_more_dimensions():
    """One value in brackets: a fused operator has the rank of its inputs alone."""
    inputs = [normal(6, 5), normal(5, 4), normal(4)]
    for half, one, fused in [(0.5, [1.0], True), ([0.5], 1.0, True), ([[[0.5]]], 1.0, False), (0.5, [[[1.0]]], False)]:
        def step(a, b, bias, half=half, one=one):
            x = tf.nn.bias_add(tf.matmul(a, b), bias)
            return tf.constant(half) * x * (tf.constant(one) + tf.math.erf(x / np.float32(np.sqrt(2))))

        tf_rdna.reset_operator_report()
        with tf.device("/device:RDNA:0"):
            ours = tf.function(step)(*map(tf.constant, inputs))
        assert (ran().keys() <= {"RdnaMatMul", "Const"}) == fused, (half, one)
        with tf.device("/device:CPU:0"):  # one by one: TensorFlow's own pass for the CPU drops the dimensions
            beside_cpu.close(ours, step(*map(tf.constant, inputs)), 64)
    x, scale, offset = normal(3, 7), normal(7), normal(7)
    for epsilon, fused in [([1e-3], True), ([[1e-3]], False), ([[[1e-3]]], False)]:
        for norm in (keras_norm, plain_norm):
            seen = traced(lambda x, s, o, norm=norm, epsilon=epsilon: norm(x, s, o, tf.constant(epsilon)), [x, scale, offset])
            assert ("RdnaLayerNorm" in seen) == fused, (epsilon, seen)

    def batch_norm(x, w, mean, variance, epsilon):
        return tf.nn.batch_normalization(tf.nn.conv2d(x, w, 1, "SAME"), mean, variance, mean, mean, tf.constant(epsilon, "float32"))

    inputs = [normal(2, 5, 4, 3), normal(3, 3, 3, 2), normal(2), np.abs(normal(2)) + 0.5]
    for rank, fused in [(0, True), (1, True), (5, False)]:
        seen = traced(lambda *given, rank=rank: batch_norm(*given, np.full([1] * rank, 1e-3)), inputs)
        assert ("RdnaConv2DBatchNorm" in seen) == fused, (rank, seen)


def test_moments_of_another_type():
    """In integers they are others; in float, of 16 bits, test_layer_norms has them."""
    for kind in ("int32", "float64"):
        def step(x, scale, offset, kind=kind):
            y = tf.cast(x, kind)
            mean = tf.reduce_mean(y, [-1], keepdims=True)
            variance = tf.reduce_mean(tf.math.squared_difference(y, mean), [-1], keepdims=True)
            inverse = tf.math.rsqrt(tf.cast(variance, x.dtype) + 1e-3) * scale
            return x * inverse + (offset - tf.cast(mean, x.dtype) * inverse)

        assert "RdnaLayerNorm" not in traced(step, [4 * normal(3, 7), normal(7), normal(7)]), kind


@pytest.mark.parametrize("options", [{}, {"scale": False}, {"center": False}, {"scale": False, "center": False}], ids=str)
def test_keras_layer_norms(options):
    check_layers([keras.layers.LayerNormalization(**options)], normal(2, 3, 6), {"RdnaLayerNorm"})


def check_layers(layers, x, expected):
    """Keras' layers in one function, random variables: on the device beside the CPU; which operators of ours ran."""
    with tf.device("/device:CPU:0"):
        model = keras.Sequential([keras.Input(x.shape[1:]), *layers])
        model.set_weights([np.abs(normal(*w.shape)) + 0.5 for w in model.get_weights()])
        weights, want = model.get_weights(), model(x, training=False)
    with tf.device("/device:RDNA:0"):
        copy = keras.models.clone_model(model)
        copy.set_weights(weights)
        tf_rdna.reset_operator_report()
        got = tf.function(lambda x: copy(x, training=False))(tf.constant(x))
    assert ran().keys() - {"Const", "ReadVariableOp", "Reshape", "Squeeze"} == expected, ran()
    beside_cpu.close(got, tf.constant(want.numpy()), 64)


@pytest.mark.parametrize("options", [{}, {"scale": False}, {"center": False}], ids=str)
@pytest.mark.parametrize("bias", [False, True])
def test_convolutions_with_batch_norm(bias, options):
    layers = keras.layers
    block = [layers.Conv2D(5, 3, use_bias=bias), layers.BatchNormalization(**options)]
    check_layers([*block, layers.ReLU()], normal(2, 6, 5, 3), {"RdnaConv2DBatchNorm"})
    check_layers([layers.Conv2D(4, (2, 3), 2, padding="same", use_bias=bias), layers.BatchNormalization(**options)], normal(2, 6, 5, 3), {"RdnaConv2DBatchNorm"})


@pytest.mark.parametrize("activation", ["relu", "tanh", None])
def test_batch_norm_before_a_shortcut(activation):
    """TensorFlow's arithmetic pass sorts the terms of both sums anew."""
    layers = keras.layers
    with tf.device("/device:CPU:0"):
        x = keras.Input((6, 5, 3))
        y = layers.BatchNormalization()(layers.Conv2D(4, 1, use_bias=False)(x))
        z = layers.BatchNormalization()(layers.Conv2D(4, 3, padding="same", use_bias=False)(y))
        model = keras.Model(x, layers.Activation(activation)(layers.Add()([z, y])))
        model.set_weights([np.abs(normal(*w.shape)) + 0.5 for w in model.get_weights()])
        pictures = normal(2, 6, 5, 3)
        want = model(pictures, training=False)
    with tf.device("/device:RDNA:0"):
        copy = keras.models.clone_model(model)
        copy.set_weights(model.get_weights())
        tf_rdna.reset_operator_report()
        got = tf.function(lambda x: copy(x, training=False))(tf.constant(pictures))
    assert ran()["RdnaConv2DBatchNorm"] == 2 and not ran().keys() & {"Conv2D", "Mul", "AddV2", "AddN", "Relu"}, ran()
    beside_cpu.close(got, tf.constant(want.numpy()), 64)


def test_batch_norm_of_other_shapes():
    """A mean for each place: not one for each channel, which a filter could take in."""
    def step(x, w, mean, variance, scale, offset):
        return tf.nn.relu(tf.nn.batch_normalization(tf.nn.conv2d(x, w, 1, "SAME"), mean, variance, offset, scale, 1e-3))

    x, w = normal(2, 5, 4, 3), normal(3, 3, 3, 2)
    for shape in [(2,), (1, 1, 1, 2), (1,), (5, 4, 2), (5, 1, 1)]:
        seen = traced(step, [x, w, normal(*shape), np.abs(normal(*shape)) + 0.5, normal(*shape), normal(2)])
        assert "RdnaConv2DBatchNorm" in seen, (shape, seen)


def test_a_norm_whose_parts_are_its_offset():
    """What is within the group is asked for by the group itself."""
    def step(x, scale):
        mean, variance = tf.nn.moments(x, -1, keepdims=True)
        return tf.nn.batch_normalization(x, mean, variance, mean, scale, 1e-3)

    assert "RdnaLayerNorm" not in traced(step, [normal(3, 7), normal(7)])


def test_what_others_see_stays():
    a, b, bias = normal(5, 7), normal(7, 3), normal(3)

    def product_too(a, b, bias):
        p = tf.matmul(a, b)
        return tf.nn.relu(tf.nn.bias_add(p, bias)), p

    def sum_too(a, b, bias):
        s = tf.nn.bias_add(tf.matmul(a, b), bias)
        return tf.nn.relu(s), s

    def sum_in_between(a, b, bias):
        s = tf.nn.bias_add(tf.matmul(a, b), bias)
        return tf.nn.relu(s) * s

    assert traced(product_too, [a, b, bias]).keys() & {"MatMul", "BiasAdd", "RdnaMatMul"} == {"MatMul", "BiasAdd"}
    for function in (sum_too, sum_in_between):
        assert traced(function, [a, b, bias]).keys() & {"RdnaMatMul", "Relu", "BiasAdd"} == {"RdnaMatMul", "Relu"}


def test_order_is_kept():
    """What the product waits for has happened before it, and what waits for the bias comes behind it."""
    with tf.device("/device:RDNA:0"):
        v, w = tf.Variable(tf.ones([4, 4])), tf.Variable(tf.zeros([4]))

        @tf.function
        def step(x):
            v.assign_add(tf.ones([4, 4]))
            y = tf.nn.relu(tf.nn.bias_add(tf.matmul(x, v), w))
            w.assign_add(tf.ones([4]))
            return y

        for turn in range(3):
            np.testing.assert_allclose(step(tf.ones([2, 4])).numpy(), 4 * (2 + turn) + turn)


def test_gradients_and_what_is_not_finite():
    a, b, bias = normal(6, 5), normal(5, 4), normal(4)

    def step(a, b, bias):
        with tf.GradientTape() as tape:
            tape.watch([a, b, bias])
            y = tf.nn.relu(tf.nn.bias_add(tf.matmul(a, b), bias))
            loss = tf.reduce_sum(y * y)
        return [loss, *tape.gradient(loss, [a, b, bias])]

    assert "RdnaMatMul" in traced(step, [a, b, bias])
    a[1, 2], b[3, 1] = np.nan, np.inf
    with tf.device("/device:RDNA:0"):
        ours = tf.function(lambda a, b, c: tf.nn.relu(tf.nn.bias_add(tf.matmul(a, b), c)))(*map(tf.constant, (a, b, bias))).numpy()
    want = a.astype(np.float64) @ b + bias
    assert (np.isnan(ours) == np.isnan(want)).all()
    assert traced(step, [normal(0, 5), normal(5, 4), bias]).keys() >= {"RdnaMatMul"}


def test_wrong_biases_are_refused():
    with tf.device("/device:RDNA:0"), pytest.raises(tf.errors.InvalidArgumentError, match="as many biases"):
        tf.function(lambda a, b, c: tf.nn.bias_add(tf.matmul(a, b), c), input_signature=[tf.TensorSpec(None), tf.TensorSpec(None), tf.TensorSpec(None)])(
            tf.ones([2, 3]), tf.ones([3, 4]), tf.ones([5]))  # fmt: skip


def test_without_the_pass():
    """The values are those of the operators one by one, and TensorFlow's switch for plugins' passes leaves them so."""
    x, w, bias, scale = (tf.constant(v) for v in (normal(6, 5), normal(5, 8), normal(8), normal(8)))

    def step(x, w, bias, scale):
        return plain_norm(GELUS["keras"](tf.nn.bias_add(tf.matmul(x, w), bias)), scale, bias)

    results, before = [], tf_rdna.fusions()
    for on in (True, False):
        tf.config.optimizer.set_experimental_options({"use_plugin_optimizers": on})
        with tf.device("/device:RDNA:0"):
            results.append(tf.function(lambda *inputs: step(*inputs))(x, w, bias, scale))
        assert tf_rdna.fusions() == before + 2
    tf.config.optimizer.set_experimental_options({"use_plugin_optimizers": True})
    beside_cpu.close(results[0], results[1], 64)


def product_graph(x, b):
    return tf.tanh(tf.nn.bias_add(tf.matmul(x, x), b))


def norms_graph(x, b):
    """A group of each kind, as they are when TensorFlow has tidied what it traced."""
    x = GELUS["keras tanh"](tf.nn.bias_add(tf.reshape(tf.matmul(x, x), [3, 1, 3]), b))
    mean = tf.reduce_mean(x, [-1], keepdims=True)
    inverse = tf.math.rsqrt(tf.reduce_mean(tf.math.squared_difference(x, mean), [-1], keepdims=True) + 1e-3) * b
    y = tf.nn.conv2d((x * inverse + (b - mean * inverse))[None], tf.ones([1, 1, 3, 3]), 1, "SAME")
    return tf.nn.relu(tf.nn.batch_normalization(y, b, b, b, b, 1e-3))


@pytest.mark.parametrize("function, found", [(product_graph, ["RdnaMatMul"]), (norms_graph, ["RdnaConv2DBatchNorm", "RdnaLayerNorm", "RdnaMatMul"])])
def test_bytes_that_are_no_graph(function, found, tmp_path):
    """The pass reads a graph's bytes itself: of a good one with mistakes in it nothing is read that is not there."""
    with tf.device("/device:RDNA:0"):
        concrete = tf.function(function).get_concrete_function(tf.TensorSpec([3, 3]), tf.TensorSpec([3]))
    graph = concrete.graph.as_graph_def()
    for node in graph.node:
        node.device = "/job:localhost/replica:0/task:0/device:RDNA:0"
    (tmp_path / "graph").write_bytes(graph.SerializeToString())
    program = tmp_path / "fuzz"
    sources = [SOURCES / f"{name}.c" for name in ("rewrite", "patterns", "graph_def", "wire")]
    subprocess.run(["cc", "-std=gnu17", "-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover", f"-I{SOURCES}",
                    pathlib.Path(__file__).with_name("rewrite_fuzz.c"), *sources, "-lm", "-o", program], check=True)  # fmt: skip
    done = subprocess.run([program, tmp_path / "graph", "10000", "1"], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout == f"{len(found)}\n", done.stdout + done.stderr
    changed = type(graph).FromString((tmp_path / "graph.out").read_bytes())
    assert sorted(node.op for node in changed.node if node.op.startswith("Rdna")) == found
    names = {node.name for node in changed.node}
    assert all(name.lstrip("^").partition(":")[0] in names for node in changed.node for name in node.input)
    assert changed.versions == graph.versions and changed.library == graph.library
    if function is not product_graph:
        return
    last = next(node for node in graph.node if node.op == "Tanh").name
    (fused,) = [node for node in changed.node if node.op == "RdnaMatMul"]
    assert fused.name == last and list(fused.input) == ["x", "x", "b"] and fused.attr["activation"].s == b"tanh"
    assert names == {node.name for node in graph.node if node.op not in ("MatMul", "BiasAdd")}


def test_sums_of_a_large_graph_stay():
    """TensorFlow's memory pass takes the device for a processor with 256 MiB, and would make a sum of more than 0.8 of that one into
    a variable by reference, for which a plugin can have no kernel."""

    @tf.function
    def total():
        x = tf.random.uniform([2048])
        terms = tf.add_n([tf.broadcast_to(tf.abs(x * float(i)), [1024, 2048]) for i in range(1, 30)])
        return tf.reduce_sum(terms) / tf.reduce_sum(x)

    with tf.device("/device:RDNA:0"):
        np.testing.assert_allclose(total().numpy(), 1024 * sum(range(1, 30)), rtol=1e-4)

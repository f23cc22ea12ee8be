"""The graph pass: products and convolutions with their biases and activations in one call, where nobody else sees what is between."""

import pathlib
import subprocess

import beside_cpu
import numpy as np
import pytest
import tensorflow as tf
import tf_rdna

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


def test_bytes_that_are_no_graph(tmp_path):
    """The pass reads a graph's bytes itself: of a good one with mistakes in it nothing is read that is not there."""
    with tf.device("/device:RDNA:0"):
        concrete = tf.function(lambda x, b: tf.tanh(tf.nn.bias_add(tf.matmul(x, x), b))).get_concrete_function(tf.TensorSpec([3, 3]), tf.TensorSpec([3]))
    graph = concrete.graph.as_graph_def()
    for node in graph.node:
        node.device = "/job:localhost/replica:0/task:0/device:RDNA:0"
    (tmp_path / "graph").write_bytes(graph.SerializeToString())
    program = tmp_path / "fuzz"
    subprocess.run(["cc", "-std=gnu17", "-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover", f"-I{SOURCES}",
                    pathlib.Path(__file__).with_name("rewrite_fuzz.c"), SOURCES / "rewrite.c", SOURCES / "wire.c", "-o", program], check=True)  # fmt: skip
    done = subprocess.run([program, tmp_path / "graph", "20000", "1"], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout == "1\n", done.stdout + done.stderr
    changed = type(graph).FromString((tmp_path / "graph.out").read_bytes())
    last = next(node for node in graph.node if node.op == "Tanh").name
    (fused,) = [node for node in changed.node if node.op == "RdnaMatMul"]
    assert fused.name == last and list(fused.input) == ["x", "x", "b"] and fused.attr["activation"].s == b"tanh"
    assert {node.name for node in changed.node} == {node.name for node in graph.node if node.op not in ("MatMul", "BiasAdd")}
    assert changed.versions == graph.versions and changed.library == graph.library

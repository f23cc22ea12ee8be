"""Keras' fit, evaluate and predict on the device with soft placement off, beside the CPU; tf.data stays on the processor."""

import contextlib

import keras
import numpy as np
import pytest
import releases
import tensorflow as tf
import tf_rdna

rng = np.random.default_rng(2)
X = rng.standard_normal((70, 6)).astype(np.float32)  # the last batch is a smaller one
Y = (X.sum(1) > 0).astype(np.int64) + (X[:, 0] > 1)


class Batches(keras.utils.PyDataset):
    def __len__(self):
        return 5

    def __getitem__(self, i):
        return X[16 * i : 16 * i + 16], Y[16 * i : 16 * i + 16]


DATA = {
    "arrays": lambda: {"x": X, "y": Y, "batch_size": 16},
    "dataset": lambda: {"x": tf.data.Dataset.from_tensor_slices((X, Y)).map(lambda x, y: (x * 1, y)).batch(16).prefetch(2)},
    "python": lambda: {"x": Batches()},
}


def trained(scope, data, **options):
    with scope:
        model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(9, activation="relu"), keras.layers.Dense(3)])
        own = np.random.default_rng(3)
        model.set_weights([0.3 * own.standard_normal(w.shape).astype(np.float32) for w in model.get_weights()])
        model.compile(keras.optimizers.Adam(0.02), keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                      metrics=["accuracy"], **options)  # fmt: skip
        history = model.fit(**data(), epochs=2, shuffle=False, verbose=0, validation_data=(X[:20], Y[:20])).history
        return model, history, model.evaluate(**data(), verbose=0), model.predict(X, batch_size=16, verbose=0)


@pytest.fixture(scope="module")
def on_cpu():
    return trained(tf.device("/device:CPU:0"), DATA["arrays"])


@pytest.mark.parametrize("kind,scope,options", [
    ("arrays", None, {}),
    pytest.param("dataset", "/device:RDNA:0", {"steps_per_execution": 3}, marks=releases.copies_on_devices),
    ("python", "/device:RDNA:0", {"run_eagerly": True}),
], ids=str)  # fmt: skip
def test_fit_tracks_the_cpu(on_cpu, kind, scope, options):
    """However the data comes, it is the same, in the same order."""
    tf_rdna.reset_operator_report()
    model, history, scores, answers = trained(tf.device(scope) if scope else contextlib.nullcontext(), DATA[kind], **options)
    assert all("RDNA" in w.value.device for w in model.weights)
    assert tf_rdna.operator_report()["device"]["MatMul"] > 20
    assert history.keys() == on_cpu[1].keys()
    for name in history:
        np.testing.assert_allclose(history[name], on_cpu[1][name], rtol=1e-4, atol=1e-6, err_msg=name)
    assert history["loss"][1] < history["loss"][0]
    np.testing.assert_allclose(scores, on_cpu[2], rtol=1e-4)
    np.testing.assert_allclose(answers, on_cpu[3], rtol=1e-3, atol=1e-4)


def test_layers_that_need_more():
    """Convolutions in groups, which Keras compiles by XLA, and a larger image, whose gradient is a sum over ten dimensions."""
    layers = keras.layers
    x, y = rng.standard_normal((4, 6, 5, 4)).astype(np.float32), np.array([0, 1, 2, 1])
    losses = []
    for device in ("/device:RDNA:0", "/device:CPU:0"):
        with tf.device(device):
            model = keras.Sequential([keras.Input((6, 5, 4)), layers.Conv2D(6, 3, groups=2), layers.UpSampling2D(2),
                                      layers.UpSampling2D((1, 2), interpolation="bilinear"), layers.MaxPooling2D(), layers.Flatten(), layers.Dense(3)])  # fmt: skip
            own = np.random.default_rng(3)
            model.set_weights([0.3 * own.standard_normal(w.shape).astype(np.float32) for w in model.get_weights()])
            model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
            losses.append(model.fit(x, y, epochs=4, shuffle=False, verbose=0).history["loss"])
    np.testing.assert_allclose(*losses, rtol=1e-4)
    assert losses[0][-1] < losses[0][0]


def test_data_stays_on_the_processor():
    with tf.device("/device:RDNA:0"):
        for x in tf.data.Dataset.range(3).batch(2):
            assert "CPU" in x.device
            assert "RDNA" in (x + 1).device
        there, none = tf.experimental.Optional.from_value(tf.ones([2])), tf.experimental.Optional.empty(tf.TensorSpec([2]))
        assert bool(there.has_value()) and not bool(none.has_value())
        assert there.get_value().numpy().tolist() == [1, 1]
        with pytest.raises(tf.errors.InvalidArgumentError, match="Optional"):
            none.get_value()

"""rdna.keras: networks of Keras 3 fit, evaluate and predict on rdna as on the processor, each in a process of its own, from the same weights; where things
lie, what falls back, and what is refused."""
import importlib.util
import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(importlib.util.find_spec("keras") is None, reason="Keras is not installed beside PyTorch: pip install keras")

NETWORKS = ("perceptron", "images", "sequences", "attention", "text")


def network(name):
    """A model, what it is given and what it should say."""
    import keras
    import numpy as np
    from keras import layers

    random = np.random.default_rng(sum(map(ord, name)))
    if name == "perceptron":
        x, y = random.standard_normal((60, 7), "f4"), random.integers(0, 3, 60)
        inner = [layers.Dense(16, "gelu"), layers.LayerNormalization(), layers.Dense(3)]
    elif name == "images":
        x, y = random.standard_normal((20, 8, 8, 3), "f4"), random.integers(0, 4, 20)
        inner = [layers.Conv2D(6, 3, padding="same"), layers.BatchNormalization(), layers.ReLU(), layers.MaxPooling2D(), layers.SeparableConv2D(5, 3),
                 layers.GlobalAveragePooling2D(), layers.Dense(4)]
    elif name == "sequences":
        x, y = random.standard_normal((20, 6, 5), "f4"), random.integers(0, 2, 20)
        inner = [layers.Bidirectional(layers.LSTM(4, return_sequences=True)), layers.GRU(5), layers.Dense(2)]
    elif name == "attention":
        x, y = random.standard_normal((20, 6, 8), "f4"), random.integers(0, 2, 20)
        given = keras.Input(x.shape[1:])
        seen = layers.MultiHeadAttention(2, 4)(given, given)
        out = layers.Dense(2)(layers.Flatten()(layers.Add()([given, seen])))
        return keras.Model(given, out), x, y
    else:
        x, y = random.integers(0, 30, (24, 9)), random.integers(0, 2, 24)
        inner = [layers.Embedding(30, 6), layers.Conv1D(5, 3, activation="tanh"), layers.GlobalMaxPooling1D(), layers.Dense(2)]
    return keras.Sequential([keras.Input(x.shape[1:], dtype=str(x.dtype)), *inner]), x, y


def said_of(name):
    """What a network learns and says, and where."""
    import keras
    import numpy as np
    import torch

    model, x, y = network(name)
    random = np.random.default_rng(1)
    model.set_weights([np.ones(w.shape, "f4") if "variance" in w.path or "gamma" in w.path else 0.4 * random.standard_normal(w.shape, "f4") for w in model.weights])
    model.compile(keras.optimizers.SGD(0.05, momentum=0.9), keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    history = model.fit(x, y, batch_size=8, epochs=3, shuffle=False, verbose=0, validation_split=0.2)
    said = {"history": history.history, "evaluated": model.evaluate(x, y, verbose=0), "predicted": model.predict(x, verbose=0).tolist(),
            "devices": sorted({w.value.device.type for w in model.variables})}
    if "rdna" in said["devices"]:
        said["fallbacks"] = torch.rdna.fallback_report()
    return said


def run(device):
    """Of every network, in a process of its own."""
    environment = dict(os.environ, KERAS_BACKEND="torch", TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    environment.pop("KERAS_TORCH_DEVICE", None)
    if device == "cpu":
        environment["KERAS_TORCH_DEVICE"] = "cpu"
    done = subprocess.run([sys.executable, __file__], env=environment, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def sides():
    return run("rdna"), run("cpu")


@pytest.mark.parametrize("name", NETWORKS)
def test_networks(sides, name):
    ours, theirs = (side[name] for side in sides)
    assert (ours["devices"], theirs["devices"]) == (["rdna"], ["cpu"])
    assert ours["fallbacks"] == {}
    for key, values in theirs["history"].items():
        assert ours["history"][key] == pytest.approx(values, rel=1e-3, abs=1e-4), key
    assert ours["evaluated"] == pytest.approx(theirs["evaluated"], rel=1e-3, abs=1e-4)
    for got, want in zip(ours["predicted"], theirs["predicted"]):
        assert got == pytest.approx(want, rel=1e-2, abs=2e-3)


@pytest.mark.parametrize("before, environment, mentions", [
    ("import keras", {"KERAS_BACKEND": "torch", "KERAS_TORCH_DEVICE": ""}, "import rdna.keras first"),
    ("", {"KERAS_BACKEND": "jax"}, "KERAS_BACKEND is 'jax'")])
def test_refusals(before, environment, mentions):
    given = {key: value for key, value in {**os.environ, **environment}.items() if value}
    code = f"{before}\ntry:\n import rdna.keras\nexcept ImportError as error:\n print(error)"
    done = subprocess.run([sys.executable, "-c", code], env=given, capture_output=True, text=True, timeout=600)
    assert mentions in done.stdout, done.stderr


if __name__ == "__main__":
    if os.environ.get("KERAS_TORCH_DEVICE") != "cpu":
        import rdna.keras  # noqa: F401
    print(json.dumps({name: said_of(name) for name in NETWORKS}))

"""Random numbers by their statistics: they are not those of TensorFlow's CPU."""

import numpy as np
import pytest
import tensorflow as tf
from scipy import stats

R = tf.raw_ops
COUNT = 20000


def drawn(function):
    with tf.device("/device:RDNA:0"):
        result = function()
    assert "RDNA" in result.device
    return result.numpy()


def fits(x, distribution):
    """Whether a sample is likely to be of the distribution: one in 10^5 would fail."""
    assert stats.kstest(np.asarray(x, np.float64).ravel(), distribution).pvalue > 1e-5


UNIFORM, NORMAL, TRUNCATED = stats.uniform().cdf, stats.norm().cdf, stats.truncnorm(-2, 2).cdf
SAMPLES = {
    "StatelessRandomUniform": (lambda seed: R.StatelessRandomUniform(shape=[COUNT], seed=seed), UNIFORM),
    "StatelessRandomNormal": (lambda seed: R.StatelessRandomNormal(shape=[COUNT], seed=seed), NORMAL),
    "StatelessTruncatedNormal": (lambda seed: R.StatelessTruncatedNormal(shape=[COUNT], seed=seed), TRUNCATED),
    "StatelessRandomGammaV2": (lambda seed: R.StatelessRandomGammaV2(shape=[COUNT, 1], seed=seed, alpha=[2.5]), stats.gamma(2.5).cdf),
    "StatelessRandomGammaV3": (lambda seed: tf.random.stateless_gamma([COUNT], seed, alpha=0.7), stats.gamma(0.7).cdf),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_numbers_of_a_seed(name):
    function, distribution = SAMPLES[name]
    a = drawn(lambda: function([1, 2]))
    fits(a, distribution)
    np.testing.assert_array_equal(a, drawn(lambda: function([1, 2])))
    assert (a != drawn(lambda: function([1, 3]))).mean() > 0.99


def test_doubles():
    """As Keras draws weights under the policy float64; with more bits than f32 has."""
    draws = {UNIFORM: (tf.random.stateless_uniform, R.StatelessRandomUniform, tf.random.uniform),
             NORMAL: (tf.random.stateless_normal, R.StatelessRandomNormal, tf.random.normal),
             TRUNCATED: (tf.random.stateless_truncated_normal, R.StatelessTruncatedNormal, tf.random.truncated_normal)}  # fmt: skip
    for distribution, (by_key, by_seed, anew) in draws.items():
        for function in (lambda: by_key([COUNT], [1, 2], dtype=tf.float64), lambda: by_seed(shape=[COUNT], seed=[1, 2], dtype=tf.float64),
                         lambda: anew([COUNT], seed=4, dtype=tf.float64)):  # fmt: skip
            x = drawn(function)
            fits(x, distribution)
            assert len(np.unique(x.astype(np.float32))) < len(np.unique(x)) == COUNT and np.isfinite(x).all()
        assert drawn(lambda: by_key([0, 3], [1, 2], dtype=tf.float64)).shape == (0, 3)
    with tf.device("/device:RDNA:0"):
        generator = tf.random.Generator.from_seed(7)
    fits(drawn(lambda: generator.normal([COUNT], dtype=tf.float64)), NORMAL)


@pytest.mark.parametrize("dtype", [tf.int32, tf.int64, tf.uint32, tf.uint64])
def test_all_bits(dtype):
    key, counter, algorithm = R.StatelessRandomGetKeyCounterAlg(seed=[3, 4])
    for function in (
        lambda: R.StatelessRandomUniformFullInt(shape=[COUNT], seed=[1, 2], dtype=dtype),
        lambda: R.StatelessRandomUniformFullIntV2(shape=[COUNT], key=key, counter=counter, alg=algorithm, dtype=dtype),
    ):
        x = drawn(function)
        bits = np.unpackbits(x.view(np.uint8)).reshape(COUNT, -1)
        assert np.abs(bits.mean(0) - 0.5).max() < 6 * 0.5 / np.sqrt(COUNT)
    x = drawn(lambda: R.StatelessRandomUniformInt(shape=[COUNT], seed=[1, 2], minval=tf.constant(-3, tf.int64), maxval=tf.constant(4, tf.int64)))
    assert sorted(set(x.tolist())) == [-3, -2, -1, 0, 1, 2, 3]


def test_truncated_between():
    """Far out on either side too, where the distribution function is 0 or 1 in f32, and where it is so in f64; a row of parameters each."""
    means, deviations, least, most = [0.0, 5, -1, 0, 0, 5, 2], [1.0, 2, 0.5, 3, 1, 0.125, 1], [10.0, -1, -9, -np.inf, 40, -1, -np.inf], [11.0, np.inf, -5, 1, np.inf, 0, -37]
    for dtype in (tf.float32, tf.float64, tf.float16):
        given = [tf.constant(x, dtype) for x in (means, deviations, least, most)]
        x = drawn(lambda: R.ParameterizedTruncatedNormal(shape=[7, 5000, 2], means=given[0], stdevs=given[1], minvals=given[2], maxvals=given[3], seed=3))
        for row, mean, deviation, low, high in zip(x.astype(np.float64), means, deviations, least, most):
            assert low <= row.min() and row.max() <= high
            if dtype != tf.float16:
                fits(row, stats.truncnorm((low - mean) / deviation, (high - mean) / deviation, mean, deviation).cdf)
    for wrong in ({"minvals": 2.0}, {"stdevs": 0.0}, {"means": [1.0, 2, 3]}, {"shape": np.zeros(0, np.int32)}):
        with tf.device("/device:RDNA:0"), pytest.raises(tf.errors.InvalidArgumentError):
            R.ParameterizedTruncatedNormal(**{"shape": [2, 2], "means": 0.0, "stdevs": 1.0, "minvals": -1.0, "maxvals": 1.0, **wrong})
    assert drawn(lambda: R.ParameterizedTruncatedNormal(shape=[0, 2], means=0.0, stdevs=1.0, minvals=-1.0, maxvals=1.0)).shape == (0, 2)


def test_classes():
    chances = np.array([[0.1, 0.0, 0.6, 0.3], [0.25, 0.25, 0.25, 0.25]])
    logits = np.log(np.maximum(chances, 1e-30)).astype(np.float32)
    for function in (
        lambda: R.StatelessMultinomial(logits=logits, num_samples=COUNT, seed=[1, 2]),
        lambda: R.Multinomial(logits=logits, num_samples=COUNT, seed=5),
        lambda: tf.random.categorical(tf.constant(logits, tf.float16), COUNT, seed=6),
    ):
        x = drawn(function)
        for row, p in zip(x, chances):
            counts = np.bincount(row, minlength=4)
            assert (counts[p == 0] == 0).all()
            assert stats.chisquare(counts[p > 0], p[p > 0] * COUNT).pvalue > 1e-5


def test_generator():
    with tf.device("/device:RDNA:0"):
        generator = tf.random.Generator.from_seed(7)
        first = generator.state.numpy().copy()
        a, b = generator.normal([COUNT]).numpy(), generator.normal([COUNT]).numpy()
        assert (a != b).mean() > 0.99
        fits(np.concatenate([a, b]), NORMAL)
        fits(generator.uniform([COUNT]).numpy(), UNIFORM)
        fits(generator.truncated_normal([COUNT]).numpy(), TRUNCATED)
        assert sorted(set(generator.uniform([1000], 2, 5, tf.int32).numpy().tolist())) == [2, 3, 4]
        assert len(set(generator.uniform_full_int([COUNT], tf.int64).numpy().tolist())) == COUNT
        assert (generator.state.numpy() != first).any()
        again = tf.random.Generator.from_state(first, "philox")
        np.testing.assert_array_equal(again.normal([COUNT]).numpy(), a)
        again.skip(5)
        old = R.RngReadAndSkip(resource=again.state.handle, alg=1, delta=tf.constant(3, tf.uint64)).numpy()
        assert again.state.numpy()[0] == old[0] + 3 * 256

        @tf.function
        def step():
            return again.normal([3])

        assert (step().numpy() != step().numpy()).all()
    with tf.device("/device:CPU:0"):  # the states go on alike
        theirs = tf.random.Generator.from_state(first, "philox")
        theirs.normal([COUNT])
    with tf.device("/device:RDNA:0"):
        ours = tf.random.Generator.from_state(first, "philox")
        ours.normal([COUNT])
    np.testing.assert_array_equal(ours.state.numpy(), theirs.state.numpy())


def test_operators_of_a_generators_state():
    """Which older programs have in place of tf.random.Generator's."""
    algorithm = tf.constant(1, tf.int64)
    with tf.device("/device:RDNA:0"):
        state = tf.Variable(np.array([5, 0, 9]), dtype=tf.int64)
        shared = {"resource": state.handle, "algorithm": algorithm, "shape": tf.constant([COUNT], tf.int64)}
        fits(drawn(lambda: R.StatefulUniform(**shared)), UNIFORM)
        fits(drawn(lambda: R.StatefulStandardNormalV2(**shared)), NORMAL)
        fits(drawn(lambda: R.StatefulTruncatedNormal(**shared)), TRUNCATED)
        assert sorted(set(drawn(lambda: R.StatefulUniformInt(**shared, minval=tf.constant(2, tf.int64), maxval=tf.constant(5, tf.int64))).tolist())) == [2, 3, 4]
        assert len(set(drawn(lambda: R.StatefulUniformFullInt(**shared, dtype=tf.uint64)).tolist())) == COUNT
        before = state.numpy()
        assert before[0] == 5 + 5 * COUNT * 256
        R.RngSkip(resource=state.handle, algorithm=algorithm, delta=tf.constant(7, tf.int64))
        assert state.numpy().tolist() == [before[0] + 7 * 256, 0, 9]
        with pytest.raises(tf.errors.InvalidArgumentError, match="three int64"):
            R.RngSkip(resource=tf.Variable([1.0]).handle, algorithm=algorithm, delta=tf.constant(7, tf.int64))

"""Random numbers: ends of ranges in every type, and that no draw repeats another one's. C tests know the bits."""

import warnings

import pytest
import torch
import torch.nn.functional as F

REAL = [torch.float32, torch.float16, torch.bfloat16, torch.float64]
# seed 1 and this counter give a word of 24 ones, the largest of all uniform numbers, first
ONES = torch.tensor([1, 8418514]).view(torch.uint8)


def of_ones():
    g = torch.Generator("rdna")
    g.set_state(ONES)
    return g


@pytest.mark.parametrize("dtype", REAL, ids=str)
def test_uniform_numbers_stay_in_their_range(dtype):
    torch.manual_seed(0)
    for draw in (lambda: torch.rand(1 << 18, device="rdna", dtype=dtype),
                 lambda: torch.rand_like(torch.empty(1 << 18, device="rdna", dtype=dtype)),
                 lambda: torch.rand(9, device="rdna", dtype=dtype, generator=of_ones())):
        x = draw()
        assert x.min() >= 0 and x.max() < 1
        assert len(x) < 100 or abs(x.double().mean().item() - 0.5) < 0.003
    for low, high in ((-1, 3), (1, 2), (-1, 0), (0.3, 0.7), (-0.7, -0.3), (5, 5)):
        ends = torch.tensor([low, high], dtype=dtype, device="rdna")
        for generator in (None, of_ones()):
            x = torch.empty(1 << 16, device="rdna", dtype=dtype).uniform_(low, high, generator=generator)
            assert (x >= ends[0]).all() and ((x < ends[1]).all() or low == high), (low, high)
    noise = torch.empty(1 << 16, device="rdna", dtype=dtype)
    torch.ops.aten.rrelu_with_noise(-torch.ones_like(noise), noise, 0.25, 0.5, True)
    assert noise.min() >= 0.25 and noise.max() < 0.5
    if dtype != torch.float64:
        with pytest.raises(RuntimeError, match="finite"):
            torch.empty(3, device="rdna", dtype=dtype).uniform_(0, 1e39)


@pytest.mark.parametrize("dtype", REAL, ids=str)
def test_exponential_numbers_are_above_zero(dtype):
    torch.manual_seed(0)
    for rate in (1, 1000):
        for generator in (None, of_ones()):
            x = torch.empty(1 << 18, device="rdna", dtype=dtype).exponential_(rate, generator=generator)
            assert x.min() > 0 and x.isfinite().all()
    assert F.gumbel_softmax(torch.zeros(4, 1 << 12, device="rdna", dtype=dtype)).isfinite().all()


@pytest.mark.parametrize("dtype", REAL, ids=str)
def test_whole_numbers_stay_in_their_range(dtype):
    torch.manual_seed(0)
    for low, high in ((0, 1000), (-1000, 5), (0, 5000), (4, 5), (-(1 << 20) - 1, (1 << 15) - 3)):
        if dtype == torch.float16 and low < -(1 << 15):
            continue
        x = torch.empty(1 << 16, device="rdna", dtype=dtype).random_(low, high)
        assert x.min() >= low and x.max() < high and (x == x.round()).all(), (low, high)
    if dtype == torch.bfloat16:
        with pytest.raises(RuntimeError, match="no whole number from 257 to 257"):
            torch.empty(3, device="rdna", dtype=dtype).random_(257, 258)


WHOLE = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool]


@pytest.mark.parametrize("dtype", [*WHOLE, *REAL], ids=str)
def test_whole_numbers_without_a_range(dtype):
    """From 0 to the type's largest, or to the last up to which it has every number."""
    torch.manual_seed(0)
    digits = {torch.float32: 24, torch.float16: 11, torch.bfloat16: 8, torch.float64: 53}.get(dtype)
    most = 1 << digits if digits else 1 if dtype == torch.bool else torch.iinfo(dtype).max
    x = torch.empty(1 << 18, device="rdna", dtype=dtype).random_().double()
    assert x.min() < 1e-4 * most + 1 and most * (1 - 1e-4) - 1 < x.max() <= most
    if most < 5000:
        assert len(x.unique()) == most + 1
    y = torch.empty(1 << 16, device="rdna", dtype=dtype).random_(most // 2, None).double()
    assert y.min() >= most // 2 and most * (1 - 1e-3) - 1 < y.max() <= most


def test_ranges_that_a_type_does_not_hold():
    """Either both devices refuse, or neither does and all numbers are inside."""
    ends = (-70000, -65504, -32769, -32768, -129, -128, -1, 0, 1, 2, 127, 128, 255, 256, 257, 32768, 65504, 65505, 65600, 1 << 31)

    def told(device):
        try:
            return torch.empty(1 << 10, device=device, dtype=dtype).random_(low, high)
        except RuntimeError as e:
            return str(e).split("(")[0]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of floats that lack numbers
        for dtype in (*WHOLE, torch.float16, torch.float32, torch.float64):
            for low in ends:
                for high in ends:
                    ours, theirs = told("rdna"), told("cpu")
                    if isinstance(theirs, str):
                        assert isinstance(ours, str) and ("bounds" not in theirs or ours == theirs), (dtype, low, high)
                    else:
                        assert low <= ours.min().item() and ours.max().item() < high, (dtype, low, high)


def test_states_of_generators():
    g, twin = torch.Generator("rdna"), torch.Generator("rdna")
    g.manual_seed(7)
    torch.rand(5, device="rdna", generator=g)
    state = g.get_state()
    twin.set_state(state)
    assert torch.equal(*(torch.rand(5, device="rdna", generator=x) for x in (g, twin)))
    for wrong in (state[:15], state.to(torch.int32), torch.stack((state, state), 1)[:, 0], state.to("rdna")):
        with pytest.raises((RuntimeError, TypeError)):
            g.set_state(wrong)


def test_certain_and_impossible_events():
    p = torch.tensor([0.0, 1.0], device="rdna").expand(1 << 16, 2)
    for dtype in REAL:
        assert torch.equal(torch.bernoulli(p.to(dtype)), p.to(dtype))
        for v in (0.0, 1.0):
            assert (torch.empty(1 << 16, device="rdna", dtype=dtype).bernoulli_(v) == v).all()
            kept = F.dropout(torch.ones(1 << 16, device="rdna", dtype=dtype), v) != 0
            assert (kept == (v == 0)).all()


def order(permutation):
    return permutation.argsort()


N = 399  # counters are not all used up
VALUES = {
    "rand": lambda: torch.rand(N, device="rdna"),
    "rand of 16 bits": lambda: torch.rand(N, device="rdna", dtype=torch.float16),
    "rand of 64 bits": lambda: torch.rand(N, device="rdna", dtype=torch.float64),
    "randn": lambda: torch.randn(N, device="rdna"),
    "randn of 64 bits": lambda: torch.randn(N, device="rdna", dtype=torch.float64),
    "normal": lambda: torch.normal(torch.zeros(N, device="rdna"), 1.0),
    "randint": lambda: torch.randint(0, 1 << 40, (N,), device="rdna"),
    "random_": lambda: torch.empty(N, device="rdna", dtype=torch.int32).random_(),
    "exponential": lambda: torch.empty(N, device="rdna").exponential_(),
    "log_normal": lambda: torch.empty(N, device="rdna").log_normal_(),
    "cauchy": lambda: torch.empty(N, device="rdna").cauchy_(),
    "geometric": lambda: torch.empty(N, device="rdna").geometric_(0.01),
    "dropout": lambda: F.dropout(torch.ones(N, device="rdna"), 0.5),
    "dropout of 64 bits": lambda: F.dropout(torch.ones(N, device="rdna").double(), 0.5),
    "bernoulli_": lambda: torch.empty(N, device="rdna").bernoulli_(0.5),
    "bernoulli": lambda: torch.full((N,), 0.5, device="rdna").bernoulli(),
    "multinomial": lambda: torch.multinomial(torch.ones(100, device="rdna"), N, True),
    "poisson": lambda: torch.poisson(torch.full((N,), 99.0, device="rdna")),
    "gamma": lambda: torch._standard_gamma(torch.ones(N, device="rdna")),
    "rrelu": lambda: F.rrelu(-torch.ones(N, device="rdna"), training=True)}
ORDERS = {"randperm": lambda: order(torch.randperm(N, device="rdna")), "multinomial without putting back":
          lambda: order(torch.multinomial(torch.ones(N, device="rdna"), N))}


def overlaps(first, second, alike):
    """Whether some end of |first| is the beginning of |second|, or much of it, or the other way round."""
    return any(alike(a[lag:], b[:N - lag]) for lag in range(N - 63) for a, b in ((first, second), (second, first)))


@pytest.mark.parametrize("name", [*VALUES, *ORDERS])
def test_two_draws_have_no_numbers_in_common(name):
    draw = {**VALUES, **ORDERS}[name]
    ranks = name in ORDERS  # of a permutation, the order of its keys

    def alike(a, b):
        return ((a.argsort() == b.argsort() if ranks else a == b).double().mean() > 0.9).item()

    torch.manual_seed(3)
    state = torch.rdna.get_rng_state()
    draws = [draw().cpu() for _ in range(3)]
    for a, b in ((0, 1), (1, 2), (0, 2)):
        assert not overlaps(draws[a], draws[b], alike)
    assert overlaps(draws[0], draws[0].roll(-200), alike)  # it would be seen
    after = torch.rdna.get_rng_state()
    torch.rdna.set_rng_state(state)
    for expected in draws:
        assert torch.equal(draw().cpu(), expected)
    assert torch.equal(torch.rdna.get_rng_state(), after)

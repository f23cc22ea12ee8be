"""Operators between slices of one tensor: what shares no value works as on other devices, the rest is read before it is
written, and where PyTorch refuses it, so do we."""

import pytest
import torch


@pytest.fixture(autouse=True)
def nothing_falls_back():
    torch.rdna.set_fallback_mode("error")
    yield
    torch.rdna.set_fallback_mode("allow")


def chunks(x, f):
    a, b = x.chunk(2, -1)
    return f(a, b)


APART = {
    "corners of boxes": lambda x: x[..., 2:4].add_(x[..., :2]), "halves": lambda x: chunks(x, lambda a, b: a.mul_(b)),
    "the other half": lambda x: chunks(x, lambda a, b: b.sub_(a)),
    "odd from even": lambda x: x[..., 0::2].add_(x[..., 1::2]),
    "even from odd, scaled": lambda x: x[..., 1::2].add_(x[..., 0::2], alpha=3),
    "planes": lambda x: x[:, 2].sub_(x[:, 1]),
    "div": lambda x: x[:, 2].div_(x[:, 1]), "lerp": lambda x: x[:, 1].lerp_(x[:, 0], 0.3),
    "lerp by tensor": lambda x: x[:, 1].lerp_(x[:, 0], x[:, 2]),
    "addcmul": lambda x: x[:, 1].addcmul_(x[:, 0], x[:, 2]),
    "addcdiv": lambda x: x[:, 1].addcdiv_(x[:, 0], x[:, 2]),
    "maximum": lambda x: torch.maximum(x[:, 0], x[:, 1], out=x[:, 2]),
    "exp": lambda x: torch.exp(x[:, 1], out=x[:, 2]),
    "where": lambda x: torch.where(x[:, 0] > 0, x[:, 1], x[:, 3], out=x[:, 2]),
    "where in place": lambda x: torch.where(x[:, 0] > 0, x[:, 2], x[:, 3], out=x[:, 2]),
    "clamp": lambda x: x[:, 1].clamp_(x[:, 0], x[:, 2]),
    "pow": lambda x: torch.pow(x[:, 1].abs(), x[:, 0], out=x[:, 2]), "copy": lambda x: x[..., 1::2].copy_(x[..., 0::2]),
    "turned": lambda x: x[:, 0, :4, :4].add_(x[:, 1, :4, :4].transpose(1, 2)),
    "one column from all": lambda x: x[..., 1:].mul_(x[..., :1]),
    "backwards": lambda x: torch.flip(x, (3,))[..., :2].add_(x[..., :2]),
    "rows": lambda x: x[:, :, ::2].atan2_(x[:, :, 1::2]),
    "sum": lambda x: torch.sum(x[:, 1:], 1, out=x[:, 0]), "softmax": lambda x: torch.softmax(x[:, 1], -1, out=x[:, 0]),
    "cumsum": lambda x: torch.cumsum(x[:, 1], -1, out=x[:, 0]),
    "compare": lambda x: torch.gt(x[:, 1], x[:, 0], out=x[:, 2]),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64], ids=str)
@pytest.mark.parametrize("name", APART)
def test_slices_that_share_no_value(name, dtype):
    torch.manual_seed(0)
    ours = torch.randn(2, 4, 6, 8).to(dtype).to("rdna")
    theirs = ours.cpu()
    result, expected = APART[name](ours), APART[name](theirs)
    tolerance = {} if dtype != torch.bfloat16 else {"rtol": 2e-2, "atol": 2e-2}
    torch.testing.assert_close(result.cpu(), expected, **tolerance)
    torch.testing.assert_close(ours.cpu(), theirs, **tolerance)


# the place that is written, and f(a, b) of what is read there and elsewhere
TOUCHING = [
    ("neighbours in rows", lambda x: x[:, 1:], lambda x: x[:, :-1]),
    ("neighbours, upwards", lambda x: x[:, :-1], lambda x: x[:, 1:]),
    ("every other", lambda x: x[:, 2:12:2], lambda x: x[:, 0:10:2]),
    ("turned", lambda x: x[:6, :6], lambda x: x[:6, :6].t()),
    ("one column into all", lambda x: x[:, :], lambda x: x[:, 2:3]),
    ("rows", lambda x: x[1:, :5], lambda x: x[:-1, :5])]
WRITTEN = {"add": lambda a, b: a.add_(b), "rsub": lambda a, b: torch.sub(b, a, out=a), "lerp": lambda a,
           b: a.lerp_(b, 0.3),
           "addcmul": lambda a, b: a.addcmul_(b, b), "where": lambda a, b: torch.where(b > 0, a, b, out=a),
           "exp": lambda a, b: torch.exp(b.expand_as(a), out=a)}


@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize("place,source", [t[1:] for t in TOUCHING], ids=[t[0] for t in TOUCHING])
def test_slices_that_share_values_are_read_first(place, source, name):
    torch.manual_seed(0)
    x = torch.randn(9, 300).to("rdna")
    y = x.cpu()
    apart = place(y).clone()
    WRITTEN[name](apart, source(y).clone())
    WRITTEN[name](place(x), source(x))
    torch.testing.assert_close(place(x).cpu(), apart)


def test_dense_slices_that_share_values_are_refused():
    x = torch.arange(9.0, device="rdna")
    for use in (lambda: x[1:].add_(x[:-1]), lambda: torch.exp(x[:-1], out=x[1:]), lambda: x[:1].expand(9).add_(1),
                lambda: torch.where(x[:-1] > 0, x[:-1], x[:-1], out=x[1:])):
        with pytest.raises(RuntimeError, match="single memory location"):
            use()
    assert torch.equal(x.cpu(), torch.arange(9.0))

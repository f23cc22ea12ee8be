"""torch.autocast("rdna"): which operators run in which type, as PyTorch's documentation of autocast has it."""

import pytest
import torch
import torch.nn.functional as F

LOW = [torch.float16, torch.bfloat16]


def indexed(a, b):
    return a.index_put((torch.tensor([0, 1], device=a.device),), b[:2])


def scattered(a, b):
    return a.scatter_add(0, torch.zeros(2, 3, dtype=torch.int64, device=a.device), b[:2])


# "Ops that promote to the widest input type", of two tensors (4, 3)
PROMOTED = {
    "addcdiv": lambda a, b: torch.addcdiv(a, a, b.abs().clamp(0.5)),
    "addcmul": lambda a, b: torch.addcmul(a, b, a),
    "atan2": lambda a, b: torch.atan2(a, b),
    "bilinear": lambda a, b: F.bilinear(a, a, b[:, :, None].expand(4, 3, 3).contiguous()),
    "cat": lambda a, b: torch.cat([a, b]),
    "cross": lambda a, b: torch.cross(a, b, dim=1),
    "dot": lambda a, b: torch.dot(a[0], b[0]),
    "index_put": indexed,
    "scatter_add": scattered,
    "stack": lambda a, b: torch.stack([a, b]),
    "tensordot": lambda a, b: torch.tensordot(a, b, dims=([1], [1])),
    "vdot": lambda a, b: torch.vdot(a[0], b[0]),
}


@pytest.mark.parametrize("low", LOW)
@pytest.mark.parametrize("name", PROMOTED)
def test_the_widest_type_is_taken(name, low):
    torch.manual_seed(0)
    f, a, b = PROMOTED[name], torch.randn(4, 3), torch.randn(4, 3)
    for types in ((low, torch.float32), (torch.float32, low), (low, low)):
        given = [t.to(type_) for t, type_ in zip((a, b), types)]
        with torch.autocast("rdna", low):
            found = f(*(t.to("rdna") for t in given))
        assert found.dtype == (low if types == (low, low) else torch.float32), types
        expected = f(*(t.double() for t in given))
        tolerance = 1e-5 if found.dtype == torch.float32 else 4 * torch.finfo(low).eps
        torch.testing.assert_close(found.cpu().double(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("low", LOW)
def test_the_other_lists(low):
    """Products in the lower type, what needs range or precision in float32, the rest as it is given."""
    x = torch.randn(4, 4, device="rdna")
    y = x.to(low)
    with torch.autocast("rdna", low):
        assert {f(x, x).dtype for f in (torch.mm, torch.matmul, F.linear, lambda a, b: a @ b)} == {low}
        wide = (torch.exp, torch.log1p, lambda t: t.softmax(0), lambda t: F.layer_norm(t, (4,)), torch.sum, torch.norm,
                lambda t: F.mse_loss(t, t), lambda t: t.cumsum(0))
        assert {f(y).dtype for f in wide} == {torch.float32}
        assert torch.sum(y, dtype=low).dtype == low  # a type that is asked for
        assert {f(t).dtype for t in (x,) for f in (torch.relu, torch.neg)} == {torch.float32}
        assert {f(y).dtype for f in (torch.relu, torch.neg)} == {low}
        assert (x + y).dtype == torch.float32
        with torch.autocast("rdna", enabled=False):
            assert torch.mm(x, x).dtype == torch.float32 and torch.exp(y).dtype == low
        with pytest.raises(RuntimeError, match="binary_cross_entropy_with_logits"):
            F.binary_cross_entropy(x.sigmoid(), x.sigmoid())
    assert torch.mm(x, x).dtype == torch.float32

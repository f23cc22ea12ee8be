"""Derivatives in forward mode, and the zeros without memory that they have of what does not vary."""

import pytest
import torch
import torch.autograd.forward_ad as forward_ad
import torch.nn.functional as F

pytestmark = pytest.mark.usefixtures("nothing_falls_back")

FUNCTIONS = {
    "products": lambda x, w: F.linear(x, w) * x + x @ w,
    "choices": lambda x, w: torch.where(x > 0, x, w[0]).sum(0) + torch.maximum(x, w[:4]).prod(1).sum(),
    "a layer": lambda x, w: F.layer_norm(F.gelu(x @ w), (6,)).softmax(-1).log(),
    "parts": lambda x, w: torch.cat((x.exp(), w[:, 2:].t()), 0)[1:, ::2].cumsum(1),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_tangents_are_the_cpu_s(name):
    torch.manual_seed(0)
    x, w, dx = torch.randn(4, 6), torch.randn(6, 6), torch.randn(4, 6)

    def tangent(device):
        with forward_ad.dual_level():  # w does not vary
            y = FUNCTIONS[name](forward_ad.make_dual(x.to(device), dx.to(device)), w.to(device))
            return forward_ad.unpack_dual(y).tangent.cpu()

    torch.testing.assert_close(tangent("rdna"), tangent("cpu"), rtol=1e-4, atol=1e-5)
    f = FUNCTIONS[name]
    torch.testing.assert_close(torch.func.jvp(lambda t: f(t, w.to("rdna")), (x.to("rdna"),), (dx.to("rdna"),))[1].cpu(),
                               tangent("cpu"), rtol=1e-4, atol=1e-5)


def test_second_derivatives():
    torch.manual_seed(1)
    x, w = torch.randn(5), torch.randn(5, 5)

    def f(device):
        return lambda t: (torch.tanh(w.to(device) @ t) * t).sum() ** 2 + t.prod() * t[0]

    torch.testing.assert_close(torch.func.hessian(f("rdna"))(x.to("rdna")).cpu(), torch.func.hessian(f("cpu"))(x),
                               rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.float64, torch.int64, torch.complex64], ids=str)
def test_zeros_without_memory(dtype):
    before = torch.rdna.memory_allocated()
    z = torch._efficientzerotensor((2, 3), dtype=dtype, device="rdna")
    assert z._is_zerotensor() and z.dtype == dtype and z.device == torch.device("rdna:0") and z.shape == (2, 3)
    assert torch.rdna.memory_allocated() == before
    ones = torch.ones(2, 3, dtype=dtype, device="rdna")
    zeros = torch.zeros(2, 3, dtype=dtype)
    assert (z * ones)._is_zerotensor() and z.t()._is_zerotensor()
    for y in (z.cpu(), z.clone(), z - 0 * ones, z * ones, torch.cat((z, z))[:2], z.to(torch.complex64), z[1:].expand(2, 3)):
        assert torch.equal(y.cpu(), zeros.to(y.dtype))
    assert torch.equal((z + ones).cpu(), zeros + 1) and "0" in str(z)
    assert torch.equal(ones.copy_(z).cpu(), zeros)
    with pytest.raises(RuntimeError, match="immutable"):
        z.add_(1)
    assert torch._efficientzerotensor((0, 3), device="rdna").shape == (0, 3)
    with pytest.raises(RuntimeError, match="pinned"):
        torch._efficientzerotensor((2,), device="rdna", pin_memory=True)

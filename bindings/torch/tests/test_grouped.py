"""Products of groups whose sizes lie on the device, with gradients, beside loops in float64; nothing waits for the sizes."""

import pytest
import torch

pytestmark = [pytest.mark.usefixtures("nothing_falls_back"),
              pytest.mark.skipif(not hasattr(torch, "_grouped_mm"), reason="this PyTorch has no _grouped_mm; 2.7 brought it")]
TYPES = [torch.float32, torch.float16, torch.bfloat16]


def looped(a, b, ends):
    """What torch._grouped_mm is defined as."""
    if a.dim() == 3 and b.dim() == 3:
        return a @ b
    starts = [0, *ends[:-1]]
    if a.dim() == 2 and b.dim() == 3:
        rest = a.new_zeros(a.shape[0] - ends[-1], b.shape[-1])
        return torch.cat([a[i:j] @ b[g] for g, (i, j) in enumerate(zip(starts, ends))] + [rest])
    if a.dim() == 3:
        return torch.cat([a[g] @ b[:, i:j] for g, (i, j) in enumerate(zip(starts, ends))], 1)
    return torch.stack([a[:, i:j] @ b[i:j] for i, j in zip(starts, ends)])


FORMS = {
    "rows": ((40, 24), (4, 24, 32), [3, 3, 31, 40]),
    "rows with some behind": ((40, 24), (3, 24, 16), [8, 20, 33]),
    "columns": ((3, 16, 24), (24, 40), [8, 24, 40]),
    "sums": ((16, 40), (40, 24), [0, 17, 40]),
    "batch": ((3, 8, 16), (3, 16, 24), None),
}


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_values_and_gradients(form, turned, dtype):
    a_shape, b_shape, ends = FORMS[form]
    a, b = torch.randn(a_shape).to(dtype), torch.randn(b_shape).to(dtype)
    if turned:
        b = b.mT.contiguous().mT
    offs = None if ends is None else torch.tensor(ends, dtype=torch.int32, device="rdna")
    x, y = (t.to("rdna").requires_grad_() for t in (a, b))
    p, q = (t.double().requires_grad_() for t in (a, b))
    want = looped(p, q, ends)
    weights = torch.randn(want.shape).to(dtype)
    (want * weights.double()).sum().backward()
    given = weights.to("rdna")
    before = torch.rdna.get_sync_debug_mode()
    torch.rdna.set_sync_debug_mode("error")
    try:
        found = torch._grouped_mm(x, y, offs=offs)
        found.backward(given)
    finally:
        torch.rdna.set_sync_debug_mode(before)
    unit, depth = torch.finfo(dtype).eps, max(a_shape[-1], 40)
    for ours, exact in ((found, want), (x.grad, p.grad), (y.grad, q.grad)):
        assert ours.dtype == dtype and ours.shape == exact.shape
        scale = exact.abs().max().item() or 1
        bound = unit * scale + depth * 2**-23 * scale * 8
        assert (ours.detach().cpu().double() - exact).abs().max() <= bound


def test_nothing_is_zeros():
    offs = torch.zeros(2, dtype=torch.int32, device="rdna")
    assert not torch._grouped_mm(torch.randn(16, 8, device="rdna"), torch.randn(2, 8, 8, device="rdna"), offs=offs).any()
    assert not torch._grouped_mm(torch.randn(8, 16, device="rdna"), torch.randn(16, 8, device="rdna"), offs=offs).any()


def test_wrong_arguments_are_the_cpus():
    a, b, offs = torch.randn(8, 8), torch.randn(2, 8, 8), torch.tensor([3, 8], dtype=torch.int32)
    for wrong in ((a, b, None), (a, b, offs.long()), (a, b[:1], offs), (a, b.double(), offs)):
        messages = []
        for device in ("cpu", "rdna"):
            torch.rdna.set_fallback_mode("allow")
            with pytest.raises((RuntimeError, NotImplementedError)) as raised:
                torch._grouped_mm(*(t if t is None else t.to(device) for t in wrong[:2]), offs=wrong[2] if wrong[2] is None else wrong[2].to(device))
            messages.append(str(raised.value))
        assert messages[0] == messages[1]

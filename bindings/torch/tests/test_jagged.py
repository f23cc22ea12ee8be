"""Rows of several lengths and the same filled up, beside a loop over rows."""

import pytest
import torch

pytestmark = pytest.mark.usefixtures("nothing_falls_back")


@pytest.mark.parametrize("lengths", [[2, 1, 3], [0, 4, 0, 2, 0], [0, 0], [5], [7, 2]])
@pytest.mark.parametrize("shape", [(3,), (2, 4), ()])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_there_and_back(lengths, shape, dtype):
    offsets = torch.tensor([0, *lengths]).cumsum(0)
    values = (10 * torch.randn(sum(lengths), *shape)).to(dtype)
    for length in (max(lengths), max(lengths) + 2, 3):  # 3 cuts longer rows off
        want = torch.full((len(lengths), length, *shape), -5.0).to(dtype)
        for row, (begin, end) in enumerate(zip(offsets.tolist(), offsets.tolist()[1:])):
            end = min(end, begin + length)
            want[row, : end - begin] = values[begin:end]
        filled = torch.ops.aten._jagged_to_padded_dense_forward(values.to("rdna"), [offsets.to("rdna")], [length], -5.0)
        assert filled.dtype == dtype and torch.equal(filled.cpu(), want)
        back = torch.ops.aten._padded_dense_to_jagged_forward(filled, [offsets.to("rdna")], sum(lengths) if length > 3 else None).cpu()
        kept = torch.cat([torch.arange(n) < length for n in lengths])
        assert torch.equal(back, values * kept.view(-1, *[1] * len(shape)).to(dtype))


def test_nested_tensors():
    rows = [torch.randn(n, 3) for n in (2, 5, 1)]
    nested = torch.nested.nested_tensor([r.to("rdna") for r in rows], layout=torch.jagged)
    assert torch.equal(nested.to_padded_tensor(0.0).cpu(), torch.nn.utils.rnn.pad_sequence(rows, batch_first=True))

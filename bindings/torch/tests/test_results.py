"""What results are besides their values: layouts, types, and that wrong arguments are refused. Found by opinfo.py."""

import pytest
import torch
import torch.nn.functional as F
from only_cpu import halved
from torch.profiler import ProfilerActivity, profile


def test_profiler_shows_fallbacks():
    x = torch.randn(6, 4).to("rdna")
    torch.rdna.reset_fallback_report()
    with profile(activities=[ProfilerActivity.CPU]) as p:
        (x @ x.T).relu()
        torch.linalg.eigvals(torch.eye(257, device="rdna"))  # of more rows than one group takes
    marks = [e for e in p.events() if e.name == "aten::_to_cpu"]
    assert len(marks) == sum(torch.rdna.fallback_report().values()) == 1
    assert marks[0].cpu_parent.name == "aten::_linalg_eigvals"


def test_fallback_keeps_the_layout_that_the_cpu_chose():
    a = torch.arange(257.0).diag()
    ours, theirs = (torch.linalg.eig(x) for x in (a.to("rdna"), a))
    assert ours.eigenvectors.stride() == theirs.eigenvectors.stride()
    assert torch.equal(ours.eigenvectors.cpu(), theirs.eigenvectors)


def test_fallback_on_a_column_of_a_large_matrix_takes_no_room_for_the_rest():
    column = torch.rand(64, 1 << 16).to("rdna")[:, 5]
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as p:
        halved(column)
    assert max(e.cpu_memory_usage for e in p.events()) < 1 << 16


def test_nonzero_lies_by_dimension():
    x = torch.tensor([[0, 1], [2, 0], [3, 4]])
    assert x.to("rdna").nonzero().stride() == x.nonzero().stride()
    assert torch.equal(x.to("rdna").nonzero().cpu(), x.nonzero())


@pytest.mark.parametrize("split", [False, True])
def test_attention_lies_as_its_query(split):
    def heads():
        t = torch.randn(2, 7, 3, 8) if split else torch.randn(2, 3, 7, 8)
        t = t.to("rdna")
        return (t.transpose(1, 2) if split else t).requires_grad_()

    q, k, v = heads(), heads(), heads()
    out = F.scaled_dot_product_attention(q, k, v)
    assert out.stride() == q.stride()
    assert all(g.stride() == q.stride() for g in torch.autograd.grad(out.sum(), (q, k, v)))


def test_max_unpool_keeps_channels_last():
    x = torch.randn(2, 3, 4, 4).to("rdna").contiguous(memory_format=torch.channels_last)
    y, at = F.max_pool2d(x, 2, return_indices=True)
    assert F.max_unpool2d(y, at, 2).is_contiguous(memory_format=torch.channels_last)


def test_statistics_have_the_type_that_pytorch_says():
    x = torch.randn(4, 6, 5).to("rdna", torch.bfloat16)
    assert torch.native_group_norm(x, None, None, 4, 6, 5, 2, 1e-5)[1].dtype == torch.bfloat16
    assert torch.native_layer_norm(x, (5,), None, None, 1e-5)[1].dtype == torch.float32


def test_a_row_of_one_value_has_no_gradient():
    x = torch.randn(100, 1, device="rdna").requires_grad_()
    (F.layer_norm(x, (1,), torch.tensor([3.7], device="rdna")) * torch.randn(100, 1, device="rdna")).sum().backward()
    assert not x.grad.any()


def refused(error, words, call):
    with pytest.raises(error, match=words) as raised:
        call()
    assert not isinstance(raised.value, NotImplementedError)


def test_wrong_arguments_are_refused():
    x, out = torch.rand(4, 6).to("rdna"), torch.rand(6, device="rdna")
    one = torch.zeros(1, device="rdna").expand(6)
    overlap = "single memory location"
    refused(RuntimeError, overlap, lambda: torch.masked_select(out, out < 2, out=one))
    refused(RuntimeError, overlap, lambda: torch.index_select(x, 1, torch.arange(2, device="rdna"), out=x[:, :1].expand(4, 6)))
    refused(RuntimeError, overlap, lambda: torch.cat((x, x), out=x))
    refused(RuntimeError, overlap, lambda: torch.kthvalue(out, 2, out=(out, torch.tensor(0, device="rdna"))))
    wide = torch.empty(6, dtype=torch.float64, device="rdna")
    refused(RuntimeError, "dtype", lambda: torch.gather(out, 0, torch.arange(6, device="rdna"), out=wide))
    refused(RuntimeError, "dtype", lambda: torch.aminmax(x, dim=0, out=(wide, wide.clone())))
    refused(ValueError, "nonzero", lambda: torch.arange(0, 4, 0.5, out=torch.empty(0, dtype=torch.int64, device="rdna")))
    refused(RuntimeError, "sigma > 0", lambda: out.clone().cauchy_(0, 0))
    refused(RuntimeError, "std > 0", lambda: out.clone().log_normal_(0, 0))
    refused(RuntimeError, "approximate", lambda: F.gelu(out, approximate="erf"))
    refused(RuntimeError, "non-positive", lambda: F.huber_loss(out, out, delta=0))
    refused(RuntimeError, "half of effective", lambda: F.max_pool3d(torch.rand(1, 1, 9, 9, 9, device="rdna"), 2, padding=4))
    refused(RuntimeError, "same shape", lambda: torch.native_layer_norm(x, (4, 6), out, None, 1e-5))


def test_parts_of_one_storage_can_be_joined():
    whole = torch.arange(8.0, device="rdna")
    torch.cat((whole[:2], whole[2:4]), out=whole[4:])
    assert whole.cpu().tolist() == [0, 1, 2, 3, 0, 1, 2, 3]

"""What the CPU's kernels were not made for, and operators that it has not at all: other types, other devices' own."""

import pytest
import torch
import torch.nn.functional as F


@pytest.fixture(autouse=True)
def counted_anew():
    torch.rdna.reset_fallback_report()
    yield
    torch.rdna.set_fallback_mode("allow")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_values_of_16_bits_are_computed_in_32(dtype):
    torch.manual_seed(0)
    x = torch.randn(5, 5)
    x = (x + x.T + 6 * torch.eye(5)).to(dtype)
    note = f"({'Half' if dtype == torch.float16 else 'BFloat16'} computed in Float)"
    value = torch.linalg.ldl_factor(x.to("rdna")).LD
    assert value.dtype == dtype and value.is_rdna
    torch.testing.assert_close(value.cpu(), torch.linalg.ldl_factor(x.float()).LD.to(dtype))
    name = "aten::linalg_ldl_factor_ex.out"
    assert torch.rdna.fallback_report() == {name: 1, f"{name} {note}": 1}
    out = torch.empty(10, 5, device="rdna", dtype=dtype)[::2], torch.empty(5, device="rdna", dtype=torch.int32)
    torch.linalg.ldl_factor(x.to("rdna"), out=out)  # written where it was told
    torch.testing.assert_close(out[0].cpu(), value.cpu())


def test_a_type_that_no_kernel_was_made_for():
    x, grid = torch.ones(1, 1, 3, 3, dtype=torch.int32), torch.zeros(1, 2, 2, 2, dtype=torch.int32)
    with pytest.raises(NotImplementedError,
                       match="aten::grid_sampler_2d has no rdna kernel .* not made for their type: .*'Int'"):
        F.grid_sample(x.to("rdna"), grid.to("rdna"), align_corners=False)
    assert torch.rdna.fallback_report() == {"aten::grid_sampler_2d": 1}
    torch.rdna.reset_fallback_report()


def test_an_operator_that_the_cpu_has_not():
    x = torch.randn(2, 3, device="rdna")
    with pytest.raises(NotImplementedError,
                       match="aten::_cslt_compress has no rdna kernel .*CPU.* has none either"):
        torch._cslt_compress(x)
    assert torch.rdna.fallback_report() == {}


def histogram(x, bins, low, high):
    """Of whole numbers, by Python's."""
    counts = [0] * bins
    for v in x.flatten().tolist():
        if low <= v <= high:
            counts[min((v - low) * bins // (high - low), bins - 1)] += 1
    return torch.tensor(counts, dtype=x.dtype)


def test_a_histogram_whose_places_just_fit():
    torch.rdna.set_fallback_mode("error")
    assert torch.histc(torch.tensor([0, 2**61], device="rdna"), 2, 0, 2**61).tolist() == [1, 1]


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.int16, torch.int8, torch.uint8], ids=str)
def test_histogram_of_whole_numbers(dtype):
    torch.manual_seed(0)
    torch.rdna.set_fallback_mode("error")
    x = torch.randint(0, 100, (9, 11)).to(dtype)
    for bins, low, high in ((100, 0, 99), (8, 0, 7), (7, 3, 96), (3, 0, 10), (49, 0, 49), (1, 5, 6), (200, 10, 90)):
        found = torch.histc(x.to("rdna"), bins=bins, min=low, max=high)
        assert found.dtype == dtype and torch.equal(found.cpu(), histogram(x, bins, low, high)), (bins, low, high)
    assert torch.equal(torch.histc(x.to("rdna"), 6).cpu(), histogram(x, 6, x.min().item(), x.max().item()))
    assert torch.histc(torch.full((5,), 3, dtype=dtype, device="rdna"), 2).tolist() == [0, 5]  # from 2 to 4
    assert torch.histc(x[:0].to("rdna"), 3).tolist() == [0, 0, 0]
    out = torch.ones(7, dtype=dtype, device="rdna")
    assert torch.histc(x.to("rdna"), 4, 0, 99, out=out) is out and torch.equal(out.cpu(), histogram(x, 4, 0, 99))


def test_histogram_of_experts():
    """As mixtures of experts ask for it."""
    torch.rdna.set_fallback_mode("error")
    experts = torch.randint(0, 60, (400, 4))
    counts = torch.histc(experts.to("rdna").int(), bins=60, min=0, max=59)
    assert torch.equal(counts.cpu().long(), torch.bincount(experts.flatten(), minlength=60))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_histogram_of_real_numbers(dtype):
    torch.manual_seed(0)
    torch.rdna.set_fallback_mode("error")
    x = torch.randn(300, dtype=dtype)
    x[::17] = float("nan")
    for arguments in ((10, -1, 1), (100, 0, 2), (7, -0.3, 0.7), (1, -5, 5)):
        assert torch.equal(torch.histc(x.to("rdna"), *arguments).cpu(), torch.histc(x, *arguments)), arguments
    assert torch.equal(torch.histc(x[1:17].to("rdna"), 5).cpu(), torch.histc(x[1:17], 5))
    assert torch.histc(torch.ones(3, dtype=dtype, device="rdna"), 4).tolist() == [0, 0, 3, 0]
    for arguments, words in (((0,), "bins must be > 0"), ((4, 2, 1), "max must be larger"),
                             ((4, float("nan"), 1), "not finite"), ((4,), "not finite")):
        with pytest.raises(RuntimeError, match=words):
            torch.histc(x.to("rdna"), *arguments)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
def test_products_of_a_wider_type(dtype):
    if not hasattr(torch.ops.aten.mm, "dtype"):
        pytest.skip(f"PyTorch {torch.__version__} has no torch.mm(out_dtype=); 2.8 has it")
    torch.manual_seed(0)
    torch.rdna.set_fallback_mode("error")
    a, b, c = torch.randn(3, 5, 40).to(dtype), torch.randn(3, 40, 4).to(dtype), torch.randn(5, 4).to(dtype)
    exact = a.double() @ b.double()
    there = [t.to("rdna") for t in (a, b, c)]
    wide = {"out_dtype": torch.float32}
    results = [(torch.bmm(there[0], there[1], **wide), exact), (torch.mm(there[0][0], there[1][0], **wide), exact[0]),
               (torch.addmm(there[2], there[0][1], there[1][1], **wide, beta=2, alpha=0.5),
                2 * c.double() + exact[1] / 2),
               (torch.baddbmm(there[2].float(), there[0], there[1], **wide), c.double() + exact)]
    for found, expected in results:
        assert found.dtype == torch.float32
        torch.testing.assert_close(found.cpu().double(), expected, rtol=1e-5, atol=1e-5)
    out = torch.empty(5, 4, device="rdna")
    assert torch.mm(there[0][0], there[1][0], **wide, out=out) is out and torch.equal(out, results[1][0])
    with pytest.raises(RuntimeError, match="out_dtype must be"):
        torch.mm(there[0][0], there[1][0], out_dtype=torch.float64)
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        torch.mm(there[0][0], there[0][0], **wide)

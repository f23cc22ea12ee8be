"""Products of 8-bit floats with scales beside float64's of what their codes stand for, and conversions beside the CPU's."""

import itertools

import pytest
import torch

pytestmark = pytest.mark.usefixtures("nothing_falls_back")

E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2
FNUZ = torch.float8_e4m3fnuz, torch.float8_e5m2fnuz
FLOATS = {torch.float32: 1e-5, torch.float16: 1e-3, torch.bfloat16: 8e-3}


def codes(*shape, dtype=E4M3, scale=1.0):
    return (torch.randn(shape) * scale).to(dtype)


def exact(a, b, scale_a, scale_b, bias=None):
    out = (a.double() @ b.double()) * scale_a.double() * scale_b.double()
    return out if bias is None else out + bias.double()


def check(out, a, b, scale_a, scale_b, dtype, bias=None):
    want = exact(a, b, scale_a, scale_b, bias)
    magnitude = (a.double().abs() @ b.double().abs()) * (scale_a * scale_b).double().abs()
    assert out.dtype == dtype and out.device.type == "rdna"
    bound = 1e-5 * magnitude + FLOATS[dtype] * want.abs() + 1e-6
    assert ((out.cpu().double() - want).abs() <= bound).all()


@pytest.mark.parametrize("types", [(E4M3, E4M3), (E4M3, E5M2), (E5M2, E4M3), (FNUZ[0], FNUZ[0]), (FNUZ[1], FNUZ[0])])
@pytest.mark.parametrize("m, k, n", [(1, 16, 16), (33, 48, 80), (5, 7, 3), (0, 16, 16), (4, 0, 16)])
@pytest.mark.parametrize("dtype", FLOATS)
def test_products(types, m, k, n, dtype):
    a, b = codes(m, k, dtype=types[0]), codes(n, k, dtype=types[1]).t()
    for rows in (False, True):
        scale_a, scale_b = (torch.rand(m, 1), torch.rand(1, n)) if rows else (torch.rand(()), torch.rand(1))
        if rows and m == 0:
            continue
        bias = None if dtype == torch.float32 else torch.randn(n).to(dtype)
        on = [t.to("rdna") for t in (a, b, scale_a, scale_b)]
        out = torch._scaled_mm(*on, bias=None if bias is None else bias.to("rdna"), out_dtype=dtype, use_fast_accum=True)
        check(out, a, b, scale_a, scale_b, dtype, bias)
        given = torch.full((m, n), 7.0, dtype=dtype, device="rdna")
        assert torch._scaled_mm(*on, out_dtype=dtype, out=given) is given
        check(given, a, b, scale_a, scale_b, dtype)


def test_a_result_of_8_bits_is_rounded_once():
    a, b, scale, narrow = codes(16, 32), codes(48, 32).t(), torch.tensor(0.5), torch.tensor(0.25)
    on = [t.to("rdna") for t in (a, b, scale, scale)]
    out = torch._scaled_mm(*on, scale_result=narrow.to("rdna"))
    assert out.dtype == E4M3
    mine, want = out.cpu().double(), exact(a, b, scale, scale) * 0.25
    half_step = (want.abs() / 16).clamp_min(2.0**-10)
    assert ((mine - want).abs() <= half_step * (1 + 1e-5)).all()
    assert (mine == want.float().to(E4M3).double()).double().mean() > 0.97  # all but sums that lie halfway, and a little beside
    large = torch._scaled_mm(on[0], on[1], torch.tensor(1e6, device="rdna"), on[3], out_dtype=E5M2).cpu().float()
    assert large.isfinite().all() and large.abs().max() == torch.finfo(E5M2).max


def test_recipes():
    a, b = codes(24, 32), codes(40, 32).t()
    for recipe, shapes in ((0, ((1,), (1,))), (1, ((24, 1), (1, 40)))):
        scale_a, scale_b = (torch.rand(s) for s in shapes)
        out = torch.ops.aten._scaled_mm_v2(a.to("rdna"), b.to("rdna"), [scale_a.to("rdna")], [recipe], [],
                                           [scale_b.to("rdna")], [recipe], [], None, torch.bfloat16)
        check(out, a, b, scale_a, scale_b, torch.bfloat16)


def swizzled(scale):
    """(rows, blocks) in the order of tiles of 128 rows and 4 blocks that cuBLAS asks for."""
    rows, blocks = scale.shape
    padded = torch.full((-(-rows // 128) * 128, -(-blocks // 4) * 4), 3, dtype=torch.uint8)
    padded[:rows, :blocks] = scale.view(torch.uint8)
    out = torch.empty(padded.numel(), dtype=torch.uint8)
    for r, row in enumerate(padded.tolist()):
        for c, value in enumerate(row):
            tile = (r // 128) * (padded.shape[1] // 4) + c // 4
            out[tile * 512 + r % 32 * 16 + r % 128 // 32 * 4 + c % 4] = value
    return out.view(scale.dtype)


def by_blocks(x, scale, rows, block):
    """Values times the scale of their block of |rows| x |block|."""
    return x * scale.double().repeat_interleave(rows, 0)[: x.shape[0]].repeat_interleave(block, 1)[:, : x.shape[1]]


@pytest.mark.parametrize("m, k, n", [(33, 256, 80), (130, 384, 260), (1, 128, 16), (5, 200, 7)])
@pytest.mark.parametrize("dtype", FLOATS)
def test_scales_of_blocks_of_128(m, k, n, dtype):
    """By shapes and by recipes, which lay b's scales out the other way."""
    a, b, blocks = codes(m, k), codes(n, k), -(-k // 128)
    bias = None if dtype == torch.float32 else torch.randn(n).to(dtype)
    for rows_a, rows_b in ((1, 1), (1, 128), (128, 1)):
        scale_a, scale_b = (torch.rand(-(-count // rows), blocks) + 0.5 for count, rows in ((m, rows_a), (n, rows_b)))
        want = by_blocks(a.double(), scale_a, rows_a, 128) @ by_blocks(b.double(), scale_b, rows_b, 128).T
        size = by_blocks(a.double().abs(), scale_a, rows_a, 128) @ by_blocks(b.double().abs(), scale_b, rows_b, 128).T
        if bias is not None:
            want = want + bias.double()
        added = None if bias is None else bias.to("rdna")
        outs = [torch._scaled_mm(a.to("rdna"), b.to("rdna").t(), scale_a.to("rdna"), scale_b.t().to("rdna"), bias=added, out_dtype=dtype)]
        if hasattr(torch.ops.aten, "_scaled_mm_v2"):
            given = [s.t() if rows == 128 else s for s, rows in ((scale_a, rows_a), (scale_b, rows_b))]
            outs.append(torch.ops.aten._scaled_mm_v2(a.to("rdna"), b.to("rdna").t(), [given[0].to("rdna")], [5 if rows_a == 128 else 4], [],
                                                     [given[1].to("rdna")], [5 if rows_b == 128 else 4], [], added, dtype))
        for out in outs:
            assert out.dtype == dtype
            assert ((out.cpu().double() - want).abs() <= 1e-5 * size + FLOATS[dtype] * want.abs() + 1e-6).all()


def e2m1(packed):
    """What pairs of codes of 4 bits stand for, by OCP's table."""
    table = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], dtype=torch.float64)
    both = torch.stack([packed & 15, packed >> 4], -1).flatten(-2).long()
    return table[both]


@pytest.mark.skipif(not hasattr(torch, "float4_e2m1fn_x2"), reason="this PyTorch has no float4_e2m1fn_x2; 2.8 brought it")
@pytest.mark.parametrize("kind", ["mxfp8", "mxfp4", "nvfp4", "nvfp4, two scales"])
@pytest.mark.parametrize("m, k, n", [(33, 128, 80), (130, 96, 260), (16, 32, 16)])
def test_scales_of_small_blocks(kind, m, k, n):
    block = 16 if kind.startswith("nvfp4") else 32
    blocks, four = -(-k // block), kind != "mxfp8"
    a, b = (torch.randint(256, (rows, k // 2), dtype=torch.uint8) if four else codes(rows, k) for rows in (m, n))
    values = [e2m1(t) if four else t.double() for t in (a, b)]
    if block == 16:
        scales = [(torch.rand(rows, blocks) + 0.5).to(E4M3) for rows in (m, n)]
        wide = [s.double() for s in scales]
    else:
        scales = [torch.randint(120, 134, (rows, blocks), dtype=torch.uint8) for rows in (m, n)]
        wide = [torch.exp2(s.double() - 127) for s in scales]
        scales = [s.view(torch.float8_e8m0fnu) for s in scales]
    x, y = (by_blocks(v, s, 1, block) for v, s in zip(values, wide))
    p, q = (t.to("rdna").view(torch.float4_e2m1fn_x2) if four else t.to("rdna") for t in (a, b))
    size, places = x.abs() @ y.abs().T, [swizzled(s).to("rdna") for s in scales]
    if kind != "nvfp4, two scales":
        outs = [torch._scaled_mm(p, q.t(), *places, out_dtype=torch.bfloat16)]
        recipe, second, factor = [2 if block == 16 else 3], [[], []], 1
    else:
        outs, recipe, second, factor = [], [2, 0], [[torch.tensor(0.5, device="rdna")], [torch.tensor(3.0, device="rdna")]], 1.5
    if hasattr(torch.ops.aten, "_scaled_mm_v2"):
        plain = [s.to("rdna") for s in scales]
        outs.append(torch.ops.aten._scaled_mm_v2(p, q.t(), [places[0], *second[0]], recipe, [1, 0][: len(recipe)], [places[1], *second[1]], recipe, [1, 0][: len(recipe)], None, torch.bfloat16))
        outs.append(torch.ops.aten._scaled_mm_v2(p, q.t(), [plain[0], *second[0]], recipe, [], [plain[1], *second[1]], recipe, [], None, torch.bfloat16))
    for out in outs:
        assert ((out.cpu().double() - x @ y.T * factor).abs() <= factor * (1e-5 * size + 8e-3 * (x @ y.T).abs()) + 1e-6).all()


@pytest.mark.parametrize("kind", ["128 x 128", "1 x 128", "NVFP4", "groups"])
def test_memory(kind):
    """Codes are written out to f32 once: 4 bytes a value and a little, of values of 4 bits with their places 6."""
    count, four = 512, kind == "NVFP4"
    if four and not hasattr(torch, "float4_e2m1fn_x2"):
        pytest.skip("this PyTorch has no float4_e2m1fn_x2; 2.8 brought it")
    if kind == "groups" and not hasattr(torch, "_scaled_grouped_mm"):
        pytest.skip("this PyTorch has no _scaled_grouped_mm; 2.7 brought it")
    a, b = (torch.randint(256, (n, count // 2), dtype=torch.uint8).to("rdna").view(torch.float4_e2m1fn_x2) if four else codes(n, count).to("rdna") for n in (16, count))
    weights = codes(4, count, count).to("rdna") if kind == "groups" else b
    of_a = torch.rand(16, count // (16 if four else 128), device="rdna")
    of_b = torch.rand(count // (128 if kind == "128 x 128" else 1), of_a.shape[1], device="rdna")
    run = {
        "NVFP4": lambda: torch.ops.aten._scaled_mm_v2(a, b.t(), [of_a.to(E4M3)], [2], [], [of_b.to(E4M3)], [2], [], None, torch.bfloat16),
        "groups": lambda: torch._scaled_grouped_mm(a, weights.mT, of_a[:, 0].contiguous(), torch.rand(4, count, device="rdna"),
                                                   offs=torch.tensor([0, 8, 8, 16], dtype=torch.int32, device="rdna")),
    }.get(kind, lambda: torch._scaled_mm(a, b.t(), of_a, of_b.t(), out_dtype=torch.bfloat16))
    run()
    torch.rdna.synchronize()
    torch.rdna.reset_peak_memory_stats()
    before = torch.rdna.memory_allocated()
    run()
    torch.rdna.synchronize()
    values = weights.numel() * (2 if four else 1)
    assert torch.rdna.max_memory_allocated() - before < values * (8 if four else 6)


@pytest.mark.skipif(not hasattr(torch, "_scaled_grouped_mm"), reason="this PyTorch has no _scaled_grouped_mm; 2.7 brought it")
def test_products_of_groups():
    """Rows of experts, and their weights' gradients; where groups end is not waited for."""
    ends = [16, 16, 48]
    offs = torch.tensor(ends, dtype=torch.int32, device="rdna")
    a, b = codes(48, 32), codes(3, 64, 32)
    scale_a, scale_b = torch.rand(48), torch.rand(3, 64)
    out = torch._scaled_grouped_mm(a.to("rdna"), b.to("rdna").mT, scale_a.to("rdna"), scale_b.to("rdna"), offs=offs, out_dtype=torch.bfloat16)
    for g, (i, j) in enumerate(zip([0, *ends], ends)):
        check(out[i:j], a[i:j], b[g].t(), scale_a[i:j, None], scale_b[g][None], torch.bfloat16)
    x, y = codes(16, 48), codes(32, 48)
    scale_x, scale_y = torch.rand(3, 16), torch.rand(3, 32)
    out = torch._scaled_grouped_mm(x.to("rdna"), y.to("rdna").t(), scale_x.flatten().to("rdna"), scale_y.flatten().to("rdna"), offs=offs, out_dtype=torch.bfloat16)
    for g, (i, j) in enumerate(zip([0, *ends], ends)):
        check(out[g], x[:, i:j], y[:, i:j].t(), scale_x[g][:, None], scale_y[g][None], torch.bfloat16)
    batch, other = codes(3, 16, 32), codes(3, 64, 32)
    scale_x, scale_y = torch.rand(3, 16), torch.rand(3, 64)
    out = torch._scaled_grouped_mm(batch.to("rdna"), other.to("rdna").mT, scale_x.to("rdna"), scale_y.to("rdna"))
    for g in range(3):
        check(out[g], batch[g], other[g].t(), scale_x[g][:, None], scale_y[g][None], torch.bfloat16)
    with pytest.raises(RuntimeError, match="takes float32 scales of rows of mat_a, 48, and of columns of mat_b, 192; got Float of"):
        torch._scaled_grouped_mm(a.to("rdna"), b.to("rdna").mT, scale_a[:7].to("rdna"), scale_b.to("rdna"), offs=offs)


@pytest.mark.skipif(not hasattr(torch, "float8_e8m0fnu"), reason="this PyTorch has no float8_e8m0fnu; 2.7 brought it")
def test_powers_of_two_of_8_bits():
    every = torch.arange(256, dtype=torch.uint8).view(torch.float8_e8m0fnu)
    for wide in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
        there = every.to("rdna").to(wide)
        assert torch.equal(there.cpu().nan_to_num(7, 8, 9), every.to(wide).nan_to_num(7, 8, 9))
    bits = torch.randint(-2**31, 2**31, (20000,), dtype=torch.int64).int().view(torch.float32)
    halves = torch.exp2(torch.arange(-149, 128).float()) * 1.5
    values = torch.cat([bits, halves, torch.exp2(torch.arange(-149, 128).float()), torch.tensor([0.0, -0.0, float("inf"), float("nan")])])
    assert torch.equal(values.to("rdna").to(torch.float8_e8m0fnu).cpu().view(torch.uint8), values.to(torch.float8_e8m0fnu).view(torch.uint8))


def test_what_cannot_be_multiplied():
    a, b, one = codes(16, 32).to("rdna"), codes(32, 32).t().to("rdna"), torch.ones((), device="rdna")

    def refused(words, *arguments, **more):
        with pytest.raises((RuntimeError, ValueError), match=words):
            torch._scaled_mm(*arguments, **more)

    refused("mat1 must be a matrix", a[0], b, one, one)
    refused(r"cannot be multiplied \(16x32 and 16x32\)", a, a, one, one)
    refused("Expected mat1 to be Float8 matrix got Float", a.float(), b, one, one)
    refused("Expected mat2 to be Float8 matrix got BFloat16", a, b.bfloat16(), one, one)
    refused("Multiplication of two Float8_e5m2 matrices is not supported", a.float().to(E5M2), b.float().to(E5M2), one, one)
    refused("Invalid scaling configuration", a, b, torch.ones(16, 1, device="rdna"), one)
    refused("Invalid scaling configuration", a, b, torch.ones(16, device="rdna"), torch.ones(32, device="rdna"))
    refused("Invalid scaling configuration", a, b, one.half(), one.half())
    refused("Bias must be size 32 but got 31", a, b, one, one, bias=torch.ones(31, device="rdna"), out_dtype=torch.half)
    refused("Bias is not supported when out_dtype is set to Float32", a, b, one, one, bias=torch.ones(32, device="rdna"), out_dtype=torch.float)
    refused("Bias must be BFloat16", a, b, one, one, bias=torch.ones(32, device="rdna").half(), out_dtype=torch.bfloat16)
    refused("output types", a, b, one, one, out_dtype=torch.float64)
    refused("scale_result must be one float32 value, got Half", a, b, one, one, scale_result=one.half())
    refused("scale_result must be one float32 value, got Float of", a, b, one, one, scale_result=torch.ones(32, device="rdna"))
    for wide in FLOATS:
        refused("scale_result is for results of 8-bit floats", a, b, one, one, scale_result=one, out_dtype=wide)

    def recipe(swizzle_a=(), swizzle_b=(), contraction_dim=()):
        return torch.ops.aten._scaled_mm_v2(a, b, [one], [0], swizzle_a, [one], [0], swizzle_b, None, torch.half, contraction_dim)

    assert torch.equal(recipe([0], [0], [1, 0]).cpu(), recipe().cpu())
    for words, arguments in (("not swizzled", ([1], [])), ("not swizzled", ([], [1])), ("contraction_dim", ([], [], [0, 1])), ("contraction_dim", ([], [], [1]))):
        with pytest.raises(ValueError, match=words):
            recipe(*arguments)
    powers = [torch.full((n, 1), 127, dtype=torch.uint8, device="rdna").view(torch.float8_e8m0fnu) for n in (16, 32)]
    with pytest.raises(ValueError, match="Invalid scaling configuration"):  # of blocks and rows, which are read as rows and blocks
        torch.ops.aten._scaled_mm_v2(a, b, [powers[0].t()], [3], [], [powers[1]], [3], [], None, torch.half)
    refused("both or neither must be FNUZ|kernel", a.float().to(FNUZ[0]), b, one, one, out_dtype=torch.half)


@pytest.mark.parametrize("narrow", [E4M3, E5M2, *FNUZ])
def test_conversions_are_those_of_the_cpu(narrow):
    every = torch.arange(256, dtype=torch.uint8).view(narrow)
    for wide in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
        there = every.to("rdna").to(wide)
        assert torch.equal(there.cpu().nan_to_num(7, 8, 9), every.to(wide).nan_to_num(7, 8, 9))
        bits = torch.randint(-2**31, 2**31, (4096,), dtype=torch.int64).int().view(torch.float32)
        values = torch.cat([bits, torch.randn(4096) * 100, torch.randn(4096) / 100, every.float(), torch.tensor([float("inf"), -0.0])]).to(wide)
        mine, theirs = values.to("rdna").to(narrow).cpu(), values.to(narrow)
        nan = theirs.float().isnan()
        assert torch.equal(mine.float().isnan(), nan)
        assert torch.equal(mine.view(torch.uint8)[~nan], theirs.view(torch.uint8)[~nan])
    whole = torch.arange(-500, 500, 3)
    assert torch.equal(whole.to("rdna").to(narrow).cpu().float().nan_to_num(), whole.to(narrow).float().nan_to_num())
    grid = torch.randn(6, 10)
    for a, b in itertools.product((lambda t: t, lambda t: t.t(), lambda t: t[1:, ::3]), repeat=2):
        target = torch.zeros(b(grid).shape, dtype=narrow, device="rdna")
        source = a(b(grid).clone())
        if source.shape == target.shape:
            target.copy_(source.to("rdna"))
            assert torch.equal(target.cpu().float(), source.to(narrow).float())

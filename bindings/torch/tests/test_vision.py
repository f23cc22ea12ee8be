"""torchvision's operators beside loops in float64, and nothing on the CPU.

Where torchvision is not there its operators are declared here, by the signatures that it documents: what is registered for
rdna is found by their names.
"""

import math

import pytest
import torch

TYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
SIZES = "SymInt batch_size, SymInt channels, SymInt height, SymInt width"
BINS = "float spatial_scale, SymInt pooled_height, SymInt pooled_width"
WINDOW = ", ".join(f"SymInt {what}_{d}" for what in ("stride", "pad", "dilation") for d in "hw")
DEFORMED = f"Tensor offset, Tensor mask, Tensor bias, {WINDOW}, SymInt groups, SymInt offset_groups, bool use_mask"
SCHEMAS = [
    f"deform_conv2d(Tensor input, Tensor weight, {DEFORMED}) -> Tensor",
    f"_deform_conv2d_backward(Tensor grad, Tensor input, Tensor weight, {DEFORMED})"
    " -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    f"roi_align(Tensor input, Tensor rois, {BINS}, int sampling_ratio, bool aligned) -> Tensor",
    f"_roi_align_backward(Tensor grad, Tensor rois, {BINS}, {SIZES}, int sampling_ratio, bool aligned) -> Tensor",
    f"roi_pool(Tensor input, Tensor rois, {BINS}) -> (Tensor, Tensor)",
    f"_roi_pool_backward(Tensor grad, Tensor rois, Tensor argmax, {BINS}, {SIZES}) -> Tensor",
    f"ps_roi_align(Tensor input, Tensor rois, {BINS}, int sampling_ratio) -> (Tensor, Tensor)",
    f"_ps_roi_align_backward(Tensor grad, Tensor rois, Tensor channel_mapping, {BINS}, int sampling_ratio, {SIZES})"
    " -> Tensor",
    f"ps_roi_pool(Tensor input, Tensor rois, {BINS}) -> (Tensor, Tensor)",
    f"_ps_roi_pool_backward(Tensor grad, Tensor rois, Tensor channel_mapping, {BINS}, {SIZES}) -> Tensor",
]
ops = torch.ops.torchvision
declared = torch.library.Library("torchvision", "FRAGMENT")
for schema in SCHEMAS:
    if not hasattr(ops, schema.split("(")[0]):
        declared.define(schema)

pytestmark = pytest.mark.usefixtures("nothing_falls_back")


def boxes_in(height, width, count):
    """Inside and across the edges."""
    corners = torch.rand(count, 2) * torch.tensor([width, height]) * 1.2 - 1
    return torch.cat([corners, corners + torch.rand(count, 2) * torch.tensor([width, height]) * 0.7], 1)


def weights_of(low, high, bins, size, grid, least):
    """(bins, size): what each pixel gives the sum of a bin's samples, and how many there are."""
    length = max(high - low, 1) if least else high - low
    bin, samples = length / bins, grid if grid > 0 else max(math.ceil(length / bins), 0)
    weights = torch.zeros(bins, size, dtype=torch.double)
    for b in range(bins):
        for i in range(samples):
            place = low + b * bin + (i + 0.5) * bin / samples
            if -1 <= place <= size:
                distance = (min(max(place, 0), size - 1) - torch.arange(size, dtype=torch.double)).abs()
                weights[b] += (1 - distance).clamp(min=0)
    return weights, samples


def aligned_bins(x, rois, scale, rows, columns, grid, half, ps):
    outs = []
    for image, *corners in rois.tolist():
        x0, y0, x1, y1 = (c * scale - (0.5 if half or ps else 0) for c in corners)
        wy, many = weights_of(y0, y1, rows, x.shape[2], grid, not half and not ps)
        wx, more = weights_of(x0, x1, columns, x.shape[3], grid, not half and not ps)
        out = torch.einsum("iy,jx,cyx->cij", wy, wx, x[int(image)])
        outs.append(out / (many * more if ps else max(many * more, 1)))
    return torch.stack(outs)


def whole_bins(x, rois, scale, rows, columns, reduce, far, size):
    """From whole pixels; |far|: how many pixels the far corner adds."""
    def rounded(v):
        return math.floor(abs(v) + 0.5) * (1 if v >= 0 else -1)

    def range_of(low, high, b, bins, size):
        bin = max(high - low + far, 1) / bins
        ends = low + math.floor(b * bin), low + math.ceil((b + 1) * bin)
        return [min(max(e, 0), size) for e in ends]

    outs = []
    for image, *corners in rois.tolist():
        x0, y0, x1, y1 = (rounded(c * scale) for c in corners)
        out = []
        for i in range(rows):
            a, b = range_of(y0, y1, i, rows, size[0])
            for j in range(columns):
                c, d = range_of(x0, x1, j, columns, size[1])
                part = x[int(image), :, a:b, c:d].flatten(1)
                out.append(reduce(part, 1) if part.shape[1] else part.new_zeros(len(part)))
        outs.append(torch.stack(out, 1).view(-1, rows, columns))
    return torch.stack(outs)


def own_bins(all_bins, rows, columns):
    """Of what every channel has in every bin, each channel's bin alone."""
    k, c = all_bins.shape[:2]
    out = all_bins.view(k, c // (rows * columns), rows, columns, rows, columns)
    return torch.einsum("kcijij->kcij", out)


def check(dtype, forward, backward, reference, channels, last=False):
    torch.manual_seed(3)
    x = torch.randn(2, channels, 9, 13)
    rois = torch.cat([torch.tensor([[0.0], [1], [1], [0], [1]]), boxes_in(18, 26, 5)], 1)
    x, rois = x.to(dtype), (rois * 8).round().div(8).to(dtype)  # corners that every type holds, but for bfloat16's large ones
    want = reference(xs := x.double().requires_grad_(), rois.double())
    grad = torch.randn_like(want).to(dtype)
    (dx,) = torch.autograd.grad(want, xs, grad.double())
    on = x.to("rdna", memory_format=torch.channels_last if last else torch.contiguous_format)
    got, *places = forward(on, rois.to("rdna"))
    back = backward(grad.to("rdna"), rois.to("rdna"), *places, on.shape)
    eps, places_eps = torch.finfo(dtype).eps, torch.finfo(torch.float64 if dtype == torch.float64 else torch.float32).eps
    assert got.dtype == back.dtype == dtype
    torch.testing.assert_close(got.cpu().double(), want.detach(), rtol=eps, atol=200 * places_eps)
    torch.testing.assert_close(back.cpu().double(), dx, rtol=eps, atol=(200 * places_eps) * dx.abs().max().item())
    return places


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("grid,half,last", [(2, True, False), (-1, False, True), (0, True, True)])
def test_roi_align(dtype, grid, half, last):
    check(dtype, lambda x, r: (ops.roi_align(x, r, 0.5, 3, 2, grid, half),),
          lambda g, r, shape: ops._roi_align_backward(g, r, 0.5, 3, 2, *shape, grid, half),
          lambda x, r: aligned_bins(x, r, 0.5, 3, 2, grid, half, False), 16, last)


@pytest.mark.parametrize("dtype", TYPES)
def test_roi_pool(dtype):
    places, = check(dtype, lambda x, r: ops.roi_pool(x, r, 0.5, 3, 2),
                    lambda g, r, p, shape: ops._roi_pool_backward(g, r, p, 0.5, 3, 2, *shape),
                    lambda x, r: whole_bins(x, r, 0.5, 3, 2, torch.amax, 1, x.shape[2:]), 5)
    assert places.dtype == torch.int32 and places.shape == (5, 5, 3, 2)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("grid", [-1, 3])
def test_ps_roi_align(dtype, grid):
    channels, = check(dtype, lambda x, r: ops.ps_roi_align(x, r, 0.5, 3, 2, grid),
                      lambda g, r, p, shape: ops._ps_roi_align_backward(g, r, p, 0.5, 3, 2, grid, *shape),
                      lambda x, r: own_bins(aligned_bins(x, r, 0.5, 3, 2, grid, False, True), 3, 2), 12)
    assert torch.equal(channels.cpu(), torch.arange(12, dtype=torch.int32).view(1, 2, 3, 2).expand(5, 2, 3, 2))


@pytest.mark.parametrize("dtype", TYPES)
def test_ps_roi_pool(dtype):
    check(dtype, lambda x, r: ops.ps_roi_pool(x, r, 0.5, 3, 2),
          lambda g, r, p, shape: ops._ps_roi_pool_backward(g, r, p, 0.5, 3, 2, *shape),
          lambda x, r: own_bins(whole_bins(x, r, 0.5, 3, 2, torch.mean, 0, [s - 1 for s in x.shape[2:]]), 3, 2), 12)


def suppressed(boxes, scores, threshold):
    """In the type that rdna computes in."""
    x0, y0, x1, y1 = boxes.unbind(1)
    area, kept, left = (x1 - x0) * (y1 - y0), [], torch.sort(scores, stable=True, descending=True).indices
    while len(left):
        i, left = left[0], left[1:]
        kept.append(i)
        wide = (torch.minimum(x1[i], x1[left]) - torch.maximum(x0[i], x0[left])).clamp(min=0)
        high = (torch.minimum(y1[i], y1[left]) - torch.maximum(y0[i], y0[left])).clamp(min=0)
        share = wide * high / (area[i] + area[left] - wide * high)
        left = left[~(share > threshold)]
    return torch.stack(kept) if kept else torch.empty(0, dtype=torch.long)


@pytest.mark.parametrize("dtype", TYPES)
def test_nms(dtype):
    for n in (0, 1, 50, 700):
        boxes = boxes_in(60, 80, n).to(dtype)
        scores = torch.randint(40, (n,)).div(40).to(dtype)
        scores[3:n:17] = float("nan")
        wide = torch.float64 if dtype == torch.float64 else torch.float32
        for threshold in (0.3, 0.5, 0.75):
            got = ops.nms(boxes.to("rdna"), scores.to("rdna"), threshold)
            assert got.dtype == torch.long
            assert torch.equal(got.cpu(), suppressed(boxes.to(wide), scores, threshold))


def test_autocast_computes_in_float32():
    x, rois = torch.randn(1, 4, 6, 6).half(), torch.tensor([[0, 0.3, 0.7, 4.1, 5.3]])
    want = ops.roi_align(x.float().to("rdna"), rois.to("rdna"), 1.0, 2, 2, 2, True)
    with torch.autocast("rdna"):
        got = ops.roi_align(x.to("rdna"), rois.to("rdna"), 1.0, 2, 2, 2, True)
        best, _ = ops.roi_pool(x.to("rdna"), rois.to("rdna"), 1.0, 2, 2)
        kept = ops.nms(rois[:, 1:].half().to("rdna"), torch.ones(1, device="rdna"), 0.5)
    assert got.dtype == best.dtype == torch.half and kept.tolist() == [0]
    assert torch.equal(got, want.half())


def test_nothing_to_pool():
    x, none = torch.randn(1, 8, 5, 5, device="rdna"), torch.empty(0, 5, device="rdna")
    assert ops.roi_align(x, none, 1.0, 2, 2, 2, True).shape == (0, 8, 2, 2)
    back = ops._roi_align_backward(torch.empty(0, 8, 2, 2, device="rdna"), none, 1.0, 2, 2, 1, 8, 5, 5, 2, True)
    assert back.shape == x.shape and not back.any()


def test_bad_boxes():
    x, box = torch.randn(1, 8, 5, 5, device="rdna"), torch.tensor([[0.0, 1, 1, 3, 3]], device="rdna")
    for call in (lambda: ops.nms(box, box[0], 0.5), lambda: ops.nms(box[:, 1:], box[0], 0.5),
                 lambda: ops.nms(box[:, 1:], box[0, :1].double(), 0.5), lambda: ops.roi_align(x, box[:, 1:], 1.0, 2, 2, 2, True),
                 lambda: ops.roi_pool(x, box.half(), 1.0, 2, 2), lambda: ops.ps_roi_pool(x, box, 1.0, 3, 2)):
        with pytest.raises(RuntimeError):
            call()
    elsewhere = torch.tensor([[1.0, 1, 1, 3, 3]], device="rdna")  # an image that there is not
    out = ops.roi_align(x, elsewhere, 1.0, 2, 2, 2, True)
    with pytest.raises(IndexError, match="roi_align"):
        out.cpu()
    assert not out.any()


def deformed(x, w, offset, mask, bias, stride, pad, dilation, groups, shared):
    """deform_conv2d: each place of the window sees each pixel by 1 less its distance, where that is positive."""
    n, c, height, width = x.shape
    rows, columns = offset.shape[2:]
    offset = offset.view(n, shared, *w.shape[2:], 2, rows, columns)
    parts = x.view(n, shared, c // shared, height, width)
    out = torch.zeros(n, len(w), rows, columns, dtype=torch.double)
    for i in range(w.shape[2]):
        for j in range(w.shape[3]):
            y = offset[:, :, i, j, 0] + (torch.arange(rows) * stride[0] - pad[0] + i * dilation[0])[:, None]
            z = offset[:, :, i, j, 1] + torch.arange(columns) * stride[1] - pad[1] + j * dilation[1]
            by_row = (1 - (y[..., None] - torch.arange(height)).abs()).clamp(min=0)
            by_column = (1 - (z[..., None] - torch.arange(width)).abs()).clamp(min=0)
            seen = torch.einsum("nsrqy,nsrqx,nscyx->nscrq", by_row, by_column, parts)
            if mask is not None:
                seen = seen * mask.view(n, shared, 1, *w.shape[2:], rows, columns)[:, :, :, i, j]
            seen = seen.reshape(n, groups, c // groups, rows, columns)
            out = out + torch.einsum("ngcrq,goc->ngorq", seen,
                                     w[:, :, i, j].view(groups, -1, c // groups)).reshape(out.shape)
    return out + bias.view(-1, 1, 1)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("stride,pad,dilation,groups,shared,masked,last", [
    ((1, 1), (1, 1), (1, 1), 1, 1, True, False),
    ((2, 1), (0, 2), (1, 2), 2, 3, True, True),
    ((1, 3), (2, 1), (2, 1), 3, 2, False, False),
])
def test_deform_conv2d(stride, pad, dilation, groups, shared, masked, last, dtype):
    n, c, outputs, window, size = 2, 12, 6, (3, 2), (6, 40)
    rows, columns = ((s + 2 * p - d * (k - 1) - 1) // t + 1 for s, p, d, k, t in zip(size, pad, dilation, window, stride))
    places = shared * window[0] * window[1]
    # numbers that every type holds, never where the slope jumps
    offset = (torch.randn(n, 2 * places, rows, columns) * 2).clamp(-7, 7).mul(8).round().div(8) + 1 / 16
    given = [torch.randn(n, c, *size), torch.randn(outputs, c // groups, *window), offset,
             torch.rand(n, places, rows, columns) if masked else torch.zeros(n, 1), torch.randn(outputs)]
    given = [t.to(dtype) for t in given]
    how = (*stride, *pad, *dilation, groups, shared, masked)
    exact = [t.double().clone().requires_grad_() for t in given]
    want = deformed(*exact[:3], exact[3] if masked else None, exact[4], stride, pad, dilation, groups, shared)
    grad = torch.randn_like(want).to(dtype)
    wants = [want, *torch.autograd.grad(want, exact, grad.double(), allow_unused=True, materialize_grads=True)]
    on = [t.to("rdna") for t in given]
    if last:
        on[0] = on[0].contiguous(memory_format=torch.channels_last)
    gots = [ops.deform_conv2d(*on, *how), *ops._deform_conv2d_backward(grad.to("rdna"), *on, *how)]
    eps = torch.finfo(dtype).eps
    for name, got, want in zip(("out", "x", "weight", "offset", "mask", "bias"), gots, wants):
        assert got.dtype == dtype and got.shape == want.shape
        # columns, their product with the mask and each sum are rounded to the type
        room = (4 if dtype.itemsize == 2 else 40) * eps * want.abs().max().item()
        torch.testing.assert_close(got.cpu().double(), want.detach(), rtol=0, atol=room, msg=lambda m: f"{name}: {m}")


def test_deform_conv2d_in_pieces():
    """Three samples whose columns are more than a piece holds; without offsets it is a convolution."""
    x, w, bias = torch.randn(3, 32, 142, 142), torch.randn(4, 32, 3, 3), torch.randn(4)
    given = [x.requires_grad_(), w.requires_grad_()]
    want = torch.nn.functional.conv2d(x, w, bias)
    grad = torch.randn_like(want)
    on = [t.detach().to("rdna") for t in (x, w, torch.zeros(3, 18, 140, 140), torch.zeros(3, 1), bias)]
    how = (1, 1, 0, 0, 1, 1, 1, 1, False)
    gots = [ops.deform_conv2d(*on, *how), *ops._deform_conv2d_backward(grad.to("rdna"), *on, *how)[:2]]
    for got, want in zip(gots, [want, *torch.autograd.grad(want, given, grad)]):
        torch.testing.assert_close(got.cpu(), want.detach(), rtol=0, atol=1e-5 * want.abs().max().item())


def test_deform_conv2d_of_nothing_and_bad_shapes():
    x, w, bias = torch.randn(1, 4, 5, 5, device="rdna"), torch.randn(2, 4, 3, 3, device="rdna"), torch.zeros(2, device="rdna")
    offset, none = torch.zeros(1, 18, 3, 3, device="rdna"), torch.zeros(1, 1, device="rdna")
    how = (1, 1, 0, 0, 1, 1, 1, 1, False)
    out = ops.deform_conv2d(x, w, offset, none, bias, *how)  # without offsets: a convolution
    torch.testing.assert_close(out, torch.nn.functional.conv2d(x, w))
    empty = ops.deform_conv2d(x[:0], w, offset[:0], none[:0], bias, *how)
    assert empty.shape == (0, 2, 3, 3)
    back = ops._deform_conv2d_backward(empty, x[:0], w, offset[:0], none[:0], bias, *how)
    assert [b.shape for b in back] == [x[:0].shape, w.shape, offset[:0].shape, none[:0].shape, bias.shape]
    assert not back[1].any() and not back[4].any()
    for call in (lambda: ops.deform_conv2d(x, w, offset[:, :16], none, bias, *how),
                 lambda: ops.deform_conv2d(x, w, offset, none, bias, 0, *how[1:]),
                 lambda: ops.deform_conv2d(x, w[:, :3], offset, none, bias, *how),
                 lambda: ops.deform_conv2d(x, w, offset.half(), none, bias, *how),
                 lambda: ops.deform_conv2d(x[..., :2], w, offset, none, bias, *how),
                 lambda: ops.deform_conv2d(x, w, offset, none, bias, *how[:-1], True)):
        with pytest.raises(RuntimeError, match="deform_conv2d"):
            call()
    with torch.autocast("rdna"):
        assert ops.deform_conv2d(x.half(), w, offset, none, bias, *how).dtype == torch.half

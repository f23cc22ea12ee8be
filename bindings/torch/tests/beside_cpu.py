"""A function of tensors on rdna beside the same on the CPU in float64."""
import torch


def values_and_gradients(function, inputs, dtype, grad, others=()):
    """Pairs (wanted, got) of function(*inputs, *others) and of its gradients in inputs, got on rdna in |dtype| and with
    nothing on the CPU. Inputs and the gradient of the value, which goes evenly over |grad|, are rounded to |dtype|
    before both."""
    results = []
    for device, computed in (("cpu", torch.float64), ("rdna", dtype)):
        xs = [x.to(dtype).to(device, computed).requires_grad_() for x in inputs]
        torch.rdna.reset_fallback_report()
        value = function(*xs, *[o.to(device, computed if o.is_floating_point() else o.dtype) for o in others])
        steps = torch.linspace(*grad, value.numel(), dtype=dtype).reshape(value.shape)
        grads = torch.autograd.grad(value, xs, steps.to(device, computed))
        if device == "rdna":
            assert torch.rdna.fallback_report() == {}
        results.append([value, *grads])
    for want, got in zip(*results):
        assert got.dtype == dtype and got.shape == want.shape
        yield want, got.detach().cpu().double()

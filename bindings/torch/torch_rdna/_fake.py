"""What graphs are told of results while they are traced, when there are no values: shapes of rdna's own operators, and how
convolutions lie."""

import torch

aten = torch.ops.aten


def hint(n):
    return n if isinstance(n, int) else n.node.hint


def layout(value):
    """Sizes and strides as numbers, for symbolic ones those that were traced with: asking for more would make guards of
    them. None where they are not known before the graph runs."""
    sizes, strides = [hint(n) for n in value.shape], [hint(n) for n in value.stride()]
    return None if None in sizes or None in strides else (sizes, strides)


def _register_shapes():
    def dense(shape, order, like):
        if not order:
            return like.new_empty(shape)
        stride, step = [0] * len(shape), 1
        for d in reversed(order):
            stride[d] = step
            step = step * shape[d]
        return like.new_empty_strided(shape, stride)

    def fused(inputs, steps, numbers, order):
        shape = torch.broadcast_shapes(*(t.shape for t in inputs))
        return dense(shape, order, inputs[0])

    def addmm(bias, a, b, activation, residual):
        return a.new_empty((a.shape[0], b.shape[1]))

    def linear(x, weight, bias, activation, residual):
        return x.new_empty((*x.shape[:-1], weight.shape[0]))

    def convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups, activation):
        return aten.convolution.default(input, weight, bias, stride, padding, dilation, transposed, output_padding,
                                        groups)

    def batch_norm(input, weight, bias, mean, variance, epsilon, residual, relu):
        return torch.empty_like(input)

    def rms_norm(x, weight, epsilon):
        return x.new_empty(x.shape)

    def max_pool(self, kernel_size, stride, padding, dilation, ceil_mode):
        pool = aten.max_pool2d_with_indices if len(kernel_size) == 2 else aten.max_pool3d_with_indices
        return pool.default(self, kernel_size, stride, padding, dilation, ceil_mode)[0]

    for f in (fused, addmm, linear, convolution, batch_norm, rms_norm, max_pool):
        torch.library.register_fake(f"rdna::{f.__name__}", f)


_register_shapes()


def _register_layouts():
    """Results of convolutions lie as their inputs do, and gradients as what they are of. PyTorch's own account knows how its
    backends lay them, and takes all others' for contiguous; Inductor's graphs stop where a tensor lies otherwise."""
    from torch._prims_common import suggest_memory_format
    from torch._subclasses import fake_impls

    def laid(fake_mode, result, like):
        if result is None or layout(like) is None:
            return result
        with fake_mode:
            return torch.empty_like(result, memory_format=suggest_memory_format(like))

    def register(operator, likes):
        original, names = fake_impls.op_implementations_dict[operator], [a.name for a in operator._schema.arguments]

        def implementation(fake_mode, func, *args, **kwargs):
            results = original(fake_mode, func, *args, **kwargs)
            given = [args[i] if i < len(args) else kwargs[names[i]] for i in likes]
            if given[0].fake_device.type != "rdna":
                return results
            if isinstance(results, torch.Tensor):
                return laid(fake_mode, results, given[0])
            return (*(laid(fake_mode, t, like) for t, like in zip(results, given)), *results[len(likes):])

        fake_impls.op_implementations_dict[operator] = implementation

    for operator, likes in ((aten.convolution.default, (0,)), (aten._convolution.default, (0,)), (aten.convolution_backward.default, (1, 2))):
        if operator in fake_impls.op_implementations_dict:  # earlier releases of PyTorch have no account of some
            register(operator, likes)


_register_layouts()

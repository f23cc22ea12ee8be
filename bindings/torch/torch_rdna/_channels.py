"""How the images of a compiled graph lie. The matrix units read channels side by side: given images with channels first, a
convolution of 16 bits copies what it reads and what it writes, each time anew. Here one copy before the first of them takes
the place of these, as all that computes on images leaves them as they lie; results of the graph lie as they did.

What the copies of a graph take is counted in bytes, before and after, and the graph stays as it was where it is not less."""

import math
import operator

import torch

from ._fake import layout
from ._nodes import arguments, name, on_device, order, value

aten = torch.ops.aten

FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}
LEAST_PRODUCTS = 1 << 20  # below, kernels read images as they lie: src/math/conv/conv_layout.c
LEAST_PLANE = 128  # of an image's channel, whose products are made as they lie: src/math/conv/conv_product.c
LAUNCH = 1 << 23  # bytes that are moved in the time of one launch and what it takes to begin: some microseconds; guessed
# These copy what does not lie in the usual order.
WANT_USUAL_ORDER = {"aten::native_layer_norm", "aten::native_layer_norm_backward", "aten::_softmax", "aten::_log_softmax",
                    "aten::cumsum", "aten::sort", "aten::topk"}
_TAGS = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}  # evaluated twice they have other sizes


class _Refused(Exception):
    """The graph is left as it was."""


def _lies_last(v):
    """Channels lie side by side, whether or not they lie so in the usual order too; None where sizes are not known."""
    known = layout(v)
    if known is None:
        return None
    sizes, strides = known
    step = 1
    for d in (1, *range(len(sizes) - 1, 1, -1), 0):
        if sizes[d] != 1 and strides[d] != step:
            return False
        step *= sizes[d]
    return True


def _bytes(v):
    return math.prod(layout(v)[0]) * v.dtype.itemsize


def pass_over(v):
    """Bytes that a kernel moves which reads and writes values like |v| once."""
    return 2 * _bytes(v)


def _copy(v):
    return pass_over(v) + LAUNCH


def _sizes(v):
    known = layout(v)
    return known and known[0]


def _launches(node):
    """(images that are read and made, whether the weight's channels make it copy those that lie otherwise) of each kernel
    that a convolution or its gradient is, where its sizes are known and products are many."""
    given = arguments(node)
    gradient = name(node) == "aten::convolution_backward"
    dy, made = (value(given.pop(0)), value(node)) if gradient else (None, value(node))
    x, weight, transposed, groups = value(given[0]), value(given[1]), given[6], given[8]
    if weight.dtype not in (torch.float16, torch.bfloat16) or x.dim() not in FORMATS or not on_device(x):
        return
    y = dy if gradient else made
    images, taps = _sizes(x if transposed else y), _sizes(weight)
    if images is None or taps is None or math.prod(images) * math.prod(taps[1:]) < LEAST_PRODUCTS:
        return
    one_place = math.prod(taps[2:]) == 1 and set(given[3]) == {1} and set(given[4]) == {0} and groups == 1
    plane = math.prod(images[2:])
    if (one_place and plane >= LEAST_PLANE and plane % 8 == 0) or (taps[1] == 1 and groups > 1):
        return  # as they lie
    inner, outer = taps[1] % 8 == 0, taps[0] // groups % 8 == 0
    picture = taps[1] <= 4 and groups == 1  # which is copied in any case, into rows of the window
    if not gradient:
        if inner and (outer or not transposed):
            yield x, y
        elif picture and not transposed:
            yield (y,)
        return
    if given[9][0] and inner and (outer or transposed):
        yield dy, made[0]
    if given[9][1] and outer and (inner or picture):
        yield (x, dy) if inner else (dy,)


def _copies(graph):
    """What the copies of |graph|'s convolutions take, in bytes."""
    total = 0
    for node in graph.nodes:
        if name(node) in ("aten::convolution", "aten::convolution_backward"):
            total += sum(_copy(v) for images in _launches(node) for v in images if not _lies_last(v))
    return total


class _Turned:
    """|graph| again, with channels last. |cost|: bytes of the copies in it that convolutions do not make themselves."""

    def __init__(self, graph, mode):
        self.new, self.mode = torch.fx.Graph(), mode
        self.made, self.changed, self.laid, self.cost = {}, set(), {}, 0
        for node in graph.nodes:
            if node.op == "output":
                self.new.output(torch.fx.node.map_arg(node.args[0], self.home)).meta.update(node.meta)
                continue
            made = self.made[node] = self.new.node_copy(node, self.made.__getitem__)
            if name(made) in ("aten::convolution", "aten::convolution_backward") and any(_launches(made)):
                for place in (0, 1)[:1 + (name(made) == "aten::convolution_backward")]:
                    made.update_arg(place, self.last(made.args[place], made))
            if not self.changed.isdisjoint(made.all_input_nodes):
                self.follow(made)

    def copy(self, source, form, copied):
        node = self.new.call_function(aten.clone.default, (source,), {"memory_format": form})
        node.meta.update({**source.meta, "val": copied})
        self.cost += _copy(copied)
        return node

    def home(self, node):
        """A result of the graph, as it lay."""
        made = self.made[node]
        if made not in self.changed:
            return made
        lay = order(value(node))
        if lay is None:
            raise _Refused
        with self.new.inserting_before(made.next):  # what is forward stands before what is backward, by which graphs are parted
            if not lay:
                return self.copy(made, torch.contiguous_format, value(node))
            turned = self.permuted(made, lay)
            with self.mode:
                usual = aten.clone.default(value(turned), memory_format=torch.contiguous_format)
            return self.permuted(self.copy(turned, torch.contiguous_format, usual), [lay.index(d) for d in range(len(lay))])

    def permuted(self, source, dims):
        node = self.new.call_function(aten.permute.default, (source, dims))
        with self.mode:
            node.meta.update({**source.meta, "val": value(source).permute(dims)})
        return node

    def last(self, source, reader):
        """What a convolution reads in the place of |source|."""
        if _lies_last(value(source)):
            return source
        if source not in self.laid:
            form = FORMATS[value(source).dim()]
            with self.mode, self.new.inserting_before(reader):
                self.laid[source] = self.copy(source, form, aten.clone.default(value(source), memory_format=form))
            self.laid[source].meta["partitioner_tag"] = reader.meta.get("partitioner_tag")  # of the pass that it stands in
            self.changed.add(self.laid[source])
        return self.laid[source]

    def follow(self, node):
        """Finds how the results of |node| lie, of whose arguments some lie otherwise than they did."""
        if node.target is not operator.getitem:
            if not isinstance(node.target, torch._ops.OpOverload) or not _TAGS.isdisjoint(node.target.tags) or \
                    node.target is aten.as_strided.default:
                raise _Refused
            if node.target._schema.is_mutable:
                if node.args[0] in self.changed:
                    raise _Refused
                return
        old, new = value(node), self.evaluated(node)
        for a, b in zip(*((v,) if isinstance(v, torch.Tensor) else v if isinstance(v, (tuple, list)) else () for v in (old, new))):
            if not isinstance(a, torch.Tensor):
                continue
            known, found = layout(a), layout(b)
            if known is None or found is None or known[0] != found[0] or a.dtype != b.dtype:
                raise _Refused
            if known != found:
                self.changed.add(node)
                if name(node) in WANT_USUAL_ORDER:
                    self.cost += _copy(b)
        if node in self.changed:
            node.meta["val"] = new

    def evaluated(self, node):
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), value)
        with self.mode:
            try:
                return node.target(*args, **kwargs)
            except (RuntimeError, ValueError):
                if name(node) not in ("aten::view", "aten::_unsafe_view"):
                    raise _Refused from None
            node.target = aten.reshape.default
            self.cost += _copy(value(node))
            return node.target(*args, **kwargs)


def channels_last(graph):
    """|graph|, or one with the same results in which images lie with channels last."""
    mode = torch._guards.detect_fake_mode([v for node in graph.nodes if isinstance(v := value(node), torch.Tensor)])
    before = _copies(graph)
    if not before or mode is None:
        return graph
    try:
        with torch._C._DisableAutocast(), torch.no_grad():
            turned = _Turned(graph, mode)
    except _Refused:
        return graph
    return turned.new if turned.cost + _copies(turned.new) < before else graph

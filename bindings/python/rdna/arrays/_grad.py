"""Derivatives of functions of arrays, and functions as plans that are run again.

A function is called once with lazy arrays, which record what it does. It may do anything that arrays do with floats, and branch on
values, which are computed when they are asked for; by what decides a branch nothing is differentiated. Arguments, and results beside
the value, may be nested in lists, tuples and dicts. By a complex argument x + i y the gradient is the derivative by x plus i times that by y, as
PyTorch's.
"""

import functools
import threading

import numpy as np

from ._array import Array, from_numpy, full_on, need, reduce, stream_of
from ._core import library
from ._graph import Graph, Plan, evaluate, gradients, is_lazy, lazy, placeholder, placeholder_of, record


class _State(threading.local):
    depth = 0  # of functions that are being recorded
    plans = 0  # of those, such as are to be plans
    blind = 0  # and such as have placeholders, to whose values nothing leads yet
    drawn = None  # of the plan that is being recorded: placeholders, and what makes their values in each run
    watched = None  # and answers that should be yes in each run, with the sentence for when they are not


_state = _State()


class _recording:
    def __init__(self, plan=False, blind=False):
        self.plan, self.blind = plan, plan or blind

    def __enter__(self):
        _state.depth += 1
        _state.plans += self.plan
        _state.blind += self.blind

    def __exit__(self, *_):
        _state.depth -= 1
        _state.plans -= self.plan
        _state.blind -= self.blind


def recording_plan():
    """Whether what is called now is recorded to be run again."""
    return _state.plans > 0


def drawn_anew(stream, dtype, shape, draw):
    """In a plan that is being recorded, an array that each run gets from |draw|, a function without arguments, which gives this type and shape."""
    place = placeholder_of(stream, dtype, shape)
    _state.drawn.append((place, draw))
    return place


def watch(answer, sentence):
    """In a plan that is being recorded: where |answer|, an array of bool, is not true everywhere in a run, values that are asked for later are an IndexError
    with that sentence."""
    if _state.watched is not None:
        _state.watched.append((reduce(answer, "all", range(answer.ndim), False), sentence))


def without_values():
    """Whether values of lazy arrays may be such as cannot be asked for."""
    return _state.blind > 0


# ---- nested arguments ----


def _flatten(tree, leaves):
    """Appends the arrays of |tree| to |leaves|; returns what _rebuild needs to put others in their place."""
    if isinstance(tree, Array):
        leaves.append(tree)
        return Array
    if isinstance(tree, (list, tuple)):
        return type(tree), [_flatten(x, leaves) for x in tree]
    if isinstance(tree, dict):
        return dict, [(key, _flatten(x, leaves)) for key, x in tree.items()]
    return None, tree


def _rebuild(form, leaves):
    """|leaves| is an iterator."""
    if form is Array:
        return next(leaves)
    kind, inner = form
    if kind is None:
        return inner
    if kind is dict:
        return {key: _rebuild(x, leaves) for key, x in inner}
    parts = [_rebuild(x, leaves) for x in inner]
    return kind(*parts) if hasattr(kind, "_fields") else kind(parts)


def _with_arrays(tree):
    """|tree| with NumPy's arrays as ours."""
    if isinstance(tree, np.ndarray):
        return from_numpy(tree)
    if isinstance(tree, dict):
        return {key: _with_arrays(x) for key, x in tree.items()}
    if not isinstance(tree, (list, tuple)):
        return tree
    parts = [_with_arrays(x) for x in tree]
    return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)


def _exact(value):
    """|value| as something that is equal to itself alone: 0.0 is not -0.0, and NaN is NaN."""
    if isinstance(value, np.generic):
        return value.tobytes()
    if isinstance(value, float):
        return value.hex()
    return (value.real.hex(), value.imag.hex()) if isinstance(value, complex) else value


def _key(form):
    """|form| as something to look up by."""
    if form is Array:
        return Array
    kind, inner = form
    if kind is None:
        return type(inner), _exact(inner)
    if kind is dict:
        return dict, tuple((key, _key(x)) for key, x in inner)
    return kind, tuple(_key(x) for x in inner)


def _check_float(name, x):
    if x.dtype.kind not in "fc":
        raise TypeError(f"{name} is by arrays of floats, not of {x.dtype}; astype makes them")
    return x


def _finish(arrays):
    """Values, unless a function around this one is being recorded."""
    return list(arrays) if _state.depth else evaluate(arrays)


# ---- gradients ----


def value_and_grad(function, argnums=0, has_aux=False):
    """A function that returns function's value, an array of one value, and its gradients by the arguments |argnums|, a number or several.
    With |has_aux| function returns a pair, of which the second is passed on."""
    several = not isinstance(argnums, int)
    wanted = tuple(argnums) if several else (argnums,)
    name = f"the gradient of {getattr(function, '__name__', 'a function')}"

    @functools.wraps(function)
    def wrapped(*arguments, **keywords):
        if any(not -len(arguments) <= i < len(arguments) for i in wanted):
            raise ValueError(f"{name}: argument {max(wanted)} is asked for, and {len(arguments)} are given by their places")
        leaves, arguments = [], list(arguments)
        forms = [_flatten(_as_arrays(arguments[i]), leaves) for i in wanted]
        if not leaves:
            raise TypeError(f"{name}: there is no array among its arguments {wanted}")
        inputs = [lazy(_check_float(name, x)) for x in leaves]
        again = iter(inputs)
        for i, form in zip(wanted, forms):
            arguments[i] = _rebuild(form, again)
        with _recording():
            result = function(*arguments, **keywords)
        value, aux = result if has_aux else (result, None)
        if not isinstance(value, Array) or value.size != 1:
            raise ValueError(f"{name}: its value must be an array of one value, not "
                             f"{f'of shape {value.shape}' if isinstance(value, Array) else type(value).__name__}; vjp takes others")
        if _check_float(name, value).pairs:
            raise TypeError(f"{name}: its value must be real, not {value.dtype}; vjp takes others")
        others = []
        form = _flatten(aux, others)
        found = gradients([value if is_lazy(value) else lazy(value)], None, inputs)
        made = iter(_finish([value, *found, *others]))
        value = next(made)
        found = [next(made) for _ in found]
        slopes = iter(found)
        slopes = tuple(_rebuild(f, slopes) for f in forms)
        slopes = slopes if several else slopes[0]
        return ((value, _rebuild(form, made)) if has_aux else value), slopes
    return wrapped


def _as_arrays(tree):
    """NumPy's arrays as ours."""
    return need("grad", tree) if hasattr(tree, "__array__") and not isinstance(tree, Array) else tree


def grad(function, argnums=0, has_aux=False):
    """A function that returns the gradients alone; with |has_aux| a pair of them and what function returned second. grad(grad(f)) is the
    second derivative."""
    both = value_and_grad(function, argnums, has_aux)

    @functools.wraps(function)
    def wrapped(*arguments, **keywords):
        value, slopes = both(*arguments, **keywords)
        return (slopes, value[1]) if has_aux else slopes
    return wrapped


def _traced(name, function, primals):
    """Lazy inputs, and the arrays that function makes of them with their form."""
    inputs = [lazy(_check_float(name, need(name, x))) for x in primals]
    with _recording():
        result = function(*inputs)
    outputs = []
    form = _flatten(result, outputs)
    if not outputs:
        raise TypeError(f"{name}: the function returned no array")
    return inputs, [_check_float(name, x) if is_lazy(x) else lazy(_check_float(name, x)) for x in outputs], form


def _like(name, tree, arrays):
    """The arrays of |tree|, which has one for each of |arrays|, of their shapes and types."""
    found = []
    _flatten(tree, found)
    if len(found) != len(arrays) or any((a.shape, a.dtype) != (b.shape, b.dtype) for a, b in zip(found, arrays)):
        raise ValueError(f"{name}: needs {', '.join(f'{x.dtype} {x.shape}' for x in arrays)}, not "
                         f"{', '.join(f'{x.dtype} {x.shape}' for x in found) or 'nothing'}")
    return found


def checkpoint(function):
    """function, whose gradient computes what it did once more, rather than keep all that it computed until then: less memory for more time. Arrays of
    floats that it returns are each computed on their own."""
    @functools.wraps(function)
    def wrapped(*arguments, **keywords):
        mark, results = library.rdna_record_mark(), []
        form = _flatten(function(*arguments, **keywords), results)
        return _rebuild(form, iter([record("checkpoint", [x], mark) if is_lazy(x) else x for x in results]))
    return wrapped


def vjp(function, *primals):
    """function(*primals), and a function that takes one array like each result and returns a tuple, for each primal the sum of these
    times its derivatives."""
    inputs, outputs, form = _traced("vjp", function, primals)

    def pull(cotangents):
        return tuple(_finish(gradients(outputs, _like("vjp", cotangents, outputs), inputs)))
    return _rebuild(form, iter(_finish(outputs))), pull


def jvp(function, primals, tangents):
    """function(*primals), and how its results change along |tangents|, one array like each primal."""
    inputs, outputs, form = _traced("jvp", function, primals)
    along = _like("jvp", tuple(tangents), inputs)
    # what vjp gives is linear in its seeds, and the derivative by these is what is asked for
    seeds = [lazy(full_on(stream_of(x), x.shape, 0, x.dtype)) for x in outputs]
    slopes = gradients(outputs, seeds, inputs)
    made = _finish(outputs + gradients(slopes, along, seeds))
    count = len(outputs)
    return _rebuild(form, iter(made[:count])), _rebuild(form, iter(made[count:]))


def stop_gradient(x):
    """The values of x, by which nothing is differentiated."""
    return record("stop", [need("stop_gradient", x)])


# ---- plans ----


class _Kind:
    """A type and shape on a device. Arrays of one kind have one object, so that it is found quickly."""

    __slots__ = ("of",)

    def __init__(self, of):
        self.of = of


_kinds, _LAZY = {}, _Kind(None)


def _kind_of(x):
    """What x is to a plan; of a lazy array, which is no argument of one, a kind that no plan has."""
    if is_lazy(x):
        return _LAZY
    of = x.shape, x.dtype, stream_of(x)
    x._kind = _kinds.get(of) or _kinds.setdefault(of, _Kind(of))
    return x._kind


def compile(function):
    """function as plans: for each set of types and shapes of its arrays, and of its other arguments, which must be hashable, it is
    recorded once and run from then on. What it does beside computing with arrays happens when it is recorded alone, arrays that it takes
    from around it are those of that time, and it may not ask for values. The plans are in `.plans`."""
    plans = {}  # of arrays alone by their kinds, else by the form of what is given and the kinds

    def record_plan(form, leaves):
        inputs, outputs = [placeholder(x) for x in leaves], []
        given, named = _rebuild(form, iter(inputs))
        around, _state.drawn, _state.watched = (_state.drawn, _state.watched), [], []
        try:
            with _recording(plan=True):
                shape = _flatten(function(*given, **named), outputs)
            return (Plan(outputs, inputs, _state.drawn, _state.watched) if outputs else None), shape
        finally:
            _state.drawn, _state.watched = around

    @functools.wraps(function)
    def wrapped(*arguments, **keywords):
        if not keywords and not _state.depth:  # the way of most is short
            kinds = []
            for x in arguments:
                if type(x) is not Array:
                    break
                kinds.append(x._kind or _kind_of(x))
            else:
                found = plans.get(tuple(kinds))
                if found and found[1] is Array:
                    return found[0].run(arguments)[0]
        leaves = []
        form = _flatten(_with_arrays((arguments, keywords)), leaves)
        if _state.depth or any(is_lazy(x) for x in leaves):
            return function(*arguments, **keywords)  # part of what is being recorded
        plain = not keywords and all(type(x) is Array for x in arguments)
        key = tuple(x._kind or _kind_of(x) for x in leaves) if plain else (_key(form), *(x._kind or _kind_of(x) for x in leaves))
        try:
            known = key in plans
        except TypeError as error:
            raise TypeError(f"compile: an argument that is no array must have a hash, by which its plan is found: {error}") from None
        if not known:
            plans[key] = record_plan(form, leaves)
        plan, shape = plans[key]
        made = plan.run(leaves) if plan else ()
        return made[0] if shape is Array else _rebuild(shape, iter(made))
    wrapped.plans = plans
    return wrapped


def graph(function, *arguments, **keywords):
    """What function computes of arguments of these types and shapes, to look at: print it, or .svg() and .plan()."""
    leaves, outputs = [], []
    form = _flatten((arguments, keywords), leaves)
    inputs = [placeholder(x) for x in leaves]
    given, named = _rebuild(form, iter(inputs))
    with _recording(blind=True):
        _flatten(function(*given, **named), outputs)
    if not outputs:
        raise TypeError("graph: the function returned no array")
    return Graph(outputs, inputs)

"""Optimizers with PyTorch's formulas, all parameters in one launch (rdna/op/optim.h), and schedules of their learning rate.

    adam = optim.Adam(lr=1e-3)
    adam.update(model, slopes)      # writes the model's parameters where they are

What is kept of float32 parameters, and of those of bfloat16 and float16, is float32: of these the sums of all steps too, as what a step adds is often
less than they can tell apart. The parameters are those sums, rounded.
"""

import ctypes
import math

from .. import _types
from ._array import Array, again, become, cast, empty_on, full_on, need, run, stream_of, tensor_of
from ._core import BF16, F32, F64, I64, check, library, make
from ._types import float16 as F16
from ._making import asarray
from ._pointwise import minimum, sqrt, where


def _copy(x):
    """x's values in memory of their own, as states are written where they are."""
    made = empty_on(stream_of(x), x.shape, x.dtype)
    run("copy", x, x, made)
    return made


SUM = "sum"  # before a parameter's name in a state


class Optimizer:
    """|lr| may be changed between updates."""

    kind, states = 0, ()

    def __init__(self, lr, weight_decay=0.0, maximize=False, **options):
        self.lr, self.step, self.options = lr, 0, dict(options, weight_decay=weight_decay, maximize=maximize)
        self.state = {}  # of each parameter, by its name
        self.sums = {}  # of narrow ones (float32, what the parameter then was); None: it has not been compared with that yet
        self.copies = []  # of the state and sums, for further devices of a DataParallel

    def _state_of(self, state, name, x):
        if name not in state:
            state[name] = [full_on(stream_of(x), x.shape, 0, F32) if used else None for used in self.states]
        for kept in state[name]:
            if kept is not None and kept.shape != x.shape:
                raise ValueError(f"update: {name} has shape {x.shape}, and what is kept of it {kept.shape}")
        return state[name]

    def state_dict(self):
        """Arrays that go on where this is now: the step, the rate, and what is kept of each parameter, "0.weight" being the first such."""
        made = {"step": asarray(self.step, dtype=I64), "lr": asarray(self.lr, dtype=F64)}
        for name, states in self.state.items():
            made.update({f"{i}.{name}": _copy(x) for i, x in enumerate(states) if x is not None})
        return {**made, **{f"{SUM}.{name}": _copy(x) for name, (x, _) in self.sums.items()}}

    def load_state_dict(self, state):
        """Takes what state_dict of an optimizer with the same options gave, or NumPy's arrays of these names."""
        if not {"step", "lr"} <= state.keys():
            raise ValueError("load_state_dict: 'step' and 'lr' of an optimizer are not there")
        used, found, sums = {i for i, flag in enumerate(self.states) if flag}, {}, {}
        for name in state.keys() - {"step", "lr"}:
            number, dot, parameter = name.partition(".")
            if not dot or number not in (SUM, *map(str, used)):
                raise ValueError(f"load_state_dict: {name!r} is nothing that {type(self).__name__} keeps with these options")
            x = need("load_state_dict", state[name])
            if x.dtype != F32:
                raise TypeError(f"load_state_dict: {name} is {x.dtype}, and float32 is kept")
            if number == SUM:
                sums[parameter] = _copy(x), None
            else:
                found.setdefault(parameter, [None] * len(self.states))[int(number)] = _copy(x)
        for parameter, states in found.items():
            if {i for i, x in enumerate(states) if x is not None} != used or len({x.shape for x in states if x is not None}) > 1:
                raise ValueError(f"load_state_dict: of {parameter} there is not all that {type(self).__name__} keeps, in one shape")
        self.step, self.lr, self.state, self.sums, self.copies = int(state["step"].item()), float(state["lr"].item()), found, sums, []

    def update(self, model, gradients, scale=None):
        """One step for model's parameters, or for a dict of arrays, by gradients of the same names, float32, float16 or bfloat16, which are divided by
        |scale| as they are read: that by which a loss in float16 was multiplied. For a DataParallel by what its value_and_grad gives, on each of its
        devices."""
        replicas = getattr(model, "replicas", None)
        if replicas is None:
            self._update(model if isinstance(model, dict) else model.parameters(), gradients, self.state, self.sums, scale)
        else:
            if len(gradients) != len(replicas):
                raise ValueError(f"update: gradients for {len(gradients)} devices, and the model is on {len(replicas)}")
            while len(self.copies) < len(replicas) - 1:
                device = model.group.devices[len(self.copies) + 1]
                self.copies.append(({name: [None if x is None else _copy(asarray(x, device=device)) for x in states] for name, states in self.state.items()},
                                    {name: (_copy(asarray(x, device=device)), None) for name, (x, _) in self.sums.items()}))
            for replica, slopes, kept in zip(replicas, gradients, [(self.state, self.sums), *self.copies]):
                self._update(replica.parameters(), slopes, *kept, scale)
        self.step += 1

    @staticmethod
    def _sum_of(sums, name, x):
        """What x is to be rounded from: the sum of before, as long as nobody has assigned other values to x since then."""
        if name not in sums:
            return cast(x, F32)
        kept, then = sums.pop(name)
        if then is None:  # read from a file
            return where(cast(kept, x.dtype) == x, kept, cast(x, F32))
        return kept if then.pointer == x.pointer else cast(x, F32)

    def _update(self, parameters, gradients, kept, sums, scale):
        if parameters.keys() != gradients.keys():
            raise ValueError(f"update: {sorted(parameters.keys() ^ gradients.keys())} are among the parameters or the gradients alone")
        if not parameters:
            return
        if len({id(x) for x in parameters.values()}) < len(parameters):
            raise ValueError("update: one array has several names, and a gradient of each; a Module's parameters() have it once")
        for name, x in parameters.items():  # all before any, so that what is refused leaves all as it was
            g = gradients[name]
            if not {x.dtype, g.dtype} <= {F32, F16, BF16} or g.shape != x.shape:
                raise TypeError(f"update: {name} is {x.dtype} {x.shape} and its gradient {g.dtype} {g.shape}; float32, bfloat16 and float16 are trained, by "
                                "gradients of these types")
            if name in sums and sums[name][0].shape != x.shape:
                raise ValueError(f"update: {name} has shape {x.shape}, and what is kept of it {sums[name][0].shape}")
            self._state_of(kept, name, x)
        of_types, held, rounded = {}, [], []  # gradients of one call are of one type
        for name, x in parameters.items():
            g = gradients[name]
            narrow = x.dtype != F32
            own = self._sum_of(sums, name, x) if narrow else Array(make("rdna_array_own", x.pointer))
            own = Array(make("rdna_array_contiguous", own.pointer))
            g = Array(make("rdna_array_contiguous", g.pointer))
            state = kept[name]
            held += [own, g]
            states = (ctypes.c_void_p * 3)(*(None if s is None else tensor_of(s) for s in (*state, None, None, None)[:3]))
            of_types.setdefault(g.dtype, []).append(_types.rdna_optim_item(tensor_of(own), tensor_of(g), states))
            if narrow:
                rounded.append((name, x, own))
            else:
                become(x, own)
        stream = stream_of(next(iter(parameters.values())))
        scale = None if scale is None or scale == 1 else full_on(stream, (), scale, F32)
        options = _types.rdna_optim(ctypes.sizeof(_types.rdna_optim), self.kind, self.lr, step=self.step + 1, **self.options)
        for items in of_types.values():
            check(library.rdna_op_optim_step(stream, ctypes.byref(options), (_types.rdna_optim_item * len(items))(*items), len(items),
                                             None if scale is None else tensor_of(scale), None))
        for name, x, own in rounded:
            place = Array(make("rdna_array_own", x.pointer))
            run("copy", x, own, place)
            become(x, place)
            del place
            sums[name] = own, again(x)  # with which it is x's alone no longer: who assigns to a part of x makes it another array


class SGD(Optimizer):
    """With momentum, and Nesterov's."""

    def __init__(self, lr=1e-3, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False, maximize=False):
        super().__init__(lr, weight_decay, maximize, momentum=momentum, dampening=dampening, nesterov=nesterov)
        self.states = (momentum != 0,)


class Adam(Optimizer):
    kind = 1

    def __init__(self, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, amsgrad=False, maximize=False, decoupled=False):
        super().__init__(lr, weight_decay, maximize, beta1=betas[0], beta2=betas[1], epsilon=eps, amsgrad=amsgrad, decoupled=decoupled)
        self.states = (True, True, amsgrad)


class AdamW(Adam):
    """Adam whose weight decay is no part of the gradient."""

    def __init__(self, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01, amsgrad=False, maximize=False):
        super().__init__(lr, betas, eps, weight_decay, amsgrad, maximize, decoupled=True)


class RMSprop(Optimizer):
    kind = 2

    def __init__(self, lr=0.01, alpha=0.99, eps=1e-8, weight_decay=0.0, momentum=0.0, centered=False, maximize=False):
        super().__init__(lr, weight_decay, maximize, beta1=alpha, epsilon=eps, momentum=momentum, centered=centered)
        self.states = (True, centered, momentum != 0)


def clip_grad_norm(gradients, max_norm):
    """The gradients, scaled so that the norm of all together is max_norm at most, and the norm that it was."""
    norm = sqrt(sum((g * g).sum() for g in (cast(g, F32) if g.dtype.itemsize == 2 else g for g in gradients.values())))
    factor = minimum(max_norm / (norm + 1e-6), 1.0)
    return {name: g * cast(factor, g.dtype) for name, g in gradients.items()}, norm


# ---- schedules ----


class Schedule:
    """Sets optimizer.lr, now and at each step()."""

    def __init__(self, optimizer):
        self.optimizer, self.first, self.count = optimizer, optimizer.lr, 0
        self._set()

    def _set(self):
        self.optimizer.lr = self.rate(self.count)

    def step(self):
        self.count += 1
        self._set()


class StepLR(Schedule):
    """gamma times as much after every step_size steps."""

    def __init__(self, optimizer, step_size, gamma=0.1):
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer)

    def rate(self, n):
        return self.first * self.gamma ** (n // self.step_size)


class MultiStepLR(Schedule):
    """gamma times as much after each of the milestones."""

    def __init__(self, optimizer, milestones, gamma=0.1):
        self.milestones, self.gamma = milestones, gamma
        super().__init__(optimizer)

    def rate(self, n):
        return self.first * self.gamma ** sum(n >= m for m in self.milestones)


class ExponentialLR(Schedule):
    """gamma times as much after every step."""

    def __init__(self, optimizer, gamma):
        self.gamma = gamma
        super().__init__(optimizer)

    def rate(self, n):
        return self.first * self.gamma ** n


class LinearLR(Schedule):
    """From start_factor to end_factor times the rate within total_iters steps: a warm-up."""

    def __init__(self, optimizer, start_factor=1 / 3, end_factor=1.0, total_iters=5):
        self.factors, self.total_iters = (start_factor, end_factor), total_iters
        super().__init__(optimizer)

    def rate(self, n):
        start, end = self.factors
        return self.first * (start + (end - start) * min(n, self.total_iters) / self.total_iters)


class CosineAnnealingLR(Schedule):
    """Down to eta_min within T_max steps, and up again, as half a period of a cosine."""

    def __init__(self, optimizer, T_max, eta_min=0.0):
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer)

    def rate(self, n):
        return self.eta_min + (self.first - self.eta_min) * (1 + math.cos(math.pi * n / self.T_max)) / 2


class ReduceLROnPlateau:
    """factor times as much when step(value) has been given nothing lower, by a share of |threshold|, more than |patience| times."""

    def __init__(self, optimizer, factor=0.1, patience=10, threshold=1e-4, min_lr=0.0):
        self.optimizer, self.factor, self.patience, self.threshold, self.min_lr = optimizer, factor, patience, threshold, min_lr
        self.best, self.bad = math.inf, 0

    def step(self, value):
        value = float(value)
        if value < self.best * (1 - self.threshold):
            self.best, self.bad = value, 0
        else:
            self.bad += 1
        if self.bad > self.patience:
            self.optimizer.lr, self.bad = max(self.optimizer.lr * self.factor, self.min_lr), 0

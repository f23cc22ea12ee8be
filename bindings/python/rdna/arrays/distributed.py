"""Several devices: collective operations among ranks, and networks that are trained on all of them, each with its share of the batch.

    from rdna.arrays import distributed, nn, optim
    model = distributed.DataParallel(nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 3)), ["rocm:0", "rocm:1"])
    step = model.value_and_grad(lambda net, x, target: nn.cross_entropy(net(x), target), compiled=True)
    adam = optim.Adam(lr=1e-2)
    value, slopes = step(x, target)      # of the whole batch, its parts on the devices
    adam.update(model, slopes)           # on every device

That is one process. A process for each device, on several machines too, is started by `python -m rdna.arrays.distributed -n 2 train.py`, torchrun or
whatever sets RANK and WORLD_SIZE, and says `group = distributed.init()`; each gives DataParallel(model, group) its own part of the batch.

The work is RCCL's or NCCL's (include/rdna/comm.h), queued behind what computes its arrays. For the host, and where "host" is asked for, arrays are
copied to the host and combined there, which needs no library and waits for the values.
"""

import argparse
import copy
import ctypes
import functools
import os
import socket
import subprocess
import sys
import threading
import time

import numpy as np

from .. import _types
from . import _core, nn
from ._array import Array, cast, empty_on, from_numpy, is_lazy, need, stream_of, tensor_of
from ._core import Tensor, check, library, make
from ._grad import _flatten, _rebuild, _with_arrays
from ._making import asarray

_OPS = {"sum": 0, "product": 1, "max": 2, "min": 3, "mean": 4}  # rdna_comm_op
_AT_ONCE = 32  # collective operations that are handed over together
_HELLO = b"rdna.arrays 1\n"


# ---- how arrays come together ----


def _own(x):
    """x in memory that nobody else sees, contiguous."""
    x = Array(make("rdna_array_own", x.pointer), x.pairs)
    return Array(make("rdna_array_contiguous", x.pointer), x.pairs)


def _memory(x):
    tensor = Tensor.from_address(tensor_of(x))
    count = 1
    for n in tensor.shape[:tensor.rank]:
        count *= n
    return tensor.data, count, tensor.dtype


class _ByLibrary:
    """By communicators, one for each of this process's ranks. Lists of arrays are given for each of these, and returned."""

    name = "library"

    def __init__(self, ids, ranks, size, streams):
        """All ranks call it at once. |ids| makes the id on the process that has rank 0, and gives it to the others."""
        devices = [library.rdna_stream_device(stream) for stream in streams]
        given, self.streams, self.comms = _types.rdna_comm_id(), streams, [ctypes.c_void_p() for _ in ranks]
        if ranks[0] == 0:
            check(library.rdna_comm_id_create(devices[0], ctypes.byref(given)))
        ctypes.memmove(ctypes.byref(given), ids(bytes(given)), ctypes.sizeof(given))
        failures = []

        def begin(i):  # returns when all have come
            try:
                check(library.rdna_comm_create(devices[i], ctypes.byref(given), ranks[i], size, ctypes.byref(self.comms[i])))
            except Exception as error:
                failures.append(error)
        threads = [threading.Thread(target=begin, args=(i,)) for i in range(1, len(ranks))]
        for thread in threads:
            thread.start()
        begin(0)
        for thread in threads:
            thread.join()
        if failures:
            self.close()
            raise failures[0]

    def _queue(self, count, call):
        """call(comm, stream, i, k) for array |i| of member |k|."""
        for comm in self.comms:
            check(library.rdna_comm_check(comm))
        for start in range(0, count, _AT_ONCE):
            check(library.rdna_comm_begin(self.comms[0]))
            try:
                for i in range(start, min(start + _AT_ONCE, count)):
                    for k, (comm, stream) in enumerate(zip(self.comms, self.streams)):
                        check(call(comm, stream, i, k))
            finally:
                ended = library.rdna_comm_end(self.comms[0])
            check(ended)

    def all_reduce(self, lists, op):
        made = [[_own(x) for x in arrays] for arrays in lists]
        places = [[_memory(x) for x in arrays] for arrays in made]
        self._queue(len(made[0]), lambda comm, stream, i, k: library.rdna_comm_all_reduce(comm, stream, places[k][i][0], *places[k][i], _OPS[op]))
        return made

    def broadcast(self, lists, root):
        made = [[_own(x) for x in arrays] for arrays in lists]
        places = [[(Tensor.from_address(tensor_of(x)).data, x.nbytes) for x in arrays] for arrays in made]
        self._queue(len(made[0]), lambda comm, stream, i, k: library.rdna_comm_broadcast(comm, stream, places[k][i][0], *places[k][i], root))
        return made

    def all_gather(self, lists, size):
        given = [[_own(x) for x in arrays] for arrays in lists]
        made = [[empty_on(stream_of(x), _gathered(x.shape, size), x.dtype) for x in arrays] for arrays in given]

        def call(comm, stream, i, k):
            source, target = (Tensor.from_address(tensor_of(x)).data for x in (given[k][i], made[k][i]))
            return library.rdna_comm_all_gather(comm, stream, source, target, given[k][i].nbytes)
        self._queue(len(made[0]), call)
        return made

    def close(self):
        for comm, stream in zip(self.comms, self.streams):
            if comm:
                check(library.rdna_stream_synchronize(stream))
                library.rdna_comm_release(comm)
        self.comms = []


def _gathered(shape, size):
    return (size * shape[0], *shape[1:]) if shape else (size,)


class _ByHost:
    """Through the host's memory: all that the ranks of this process have, or what comes by connections to the other processes."""

    name = "host"

    def __init__(self, rank, size, links):
        """|links| are on rank 0 those to each other rank, on others one to rank 0, and None where all ranks are this process's."""
        self.rank, self.size, self.links = rank, size, links

    def all_reduce(self, lists, op):
        def combine(values):
            wide = [v.astype(np.float32) if v.dtype == np.float16 else v for v in values]
            if wide[0].dtype == bool:
                way = np.logical_or if op in ("sum", "max") else np.logical_and
            else:
                way = {"product": np.multiply, "max": np.maximum, "min": np.minimum}.get(op, np.add)
            found = functools.reduce(way, wide)
            return (found / len(values) if op == "mean" else found).astype(values[0].dtype)
        return self._meet(f"all_reduce {op}", lists, combine, lambda shape: shape)

    def broadcast(self, lists, root):
        return self._meet(f"broadcast from {root}", lists, lambda values: values[root], lambda shape: shape)

    def all_gather(self, lists, size):
        return self._meet("all_gather", lists, lambda values: np.concatenate([v.reshape(v.shape or (1,)) for v in values]),
                          lambda shape: _gathered(shape, size))

    def _meet(self, call, lists, combine, becomes):
        """What |combine| makes of the values of all ranks, for every one of them the same."""
        values = [[x.numpy() for x in arrays] for arrays in lists]
        if self.links is None:
            found = [combine(each) for each in zip(*values)]
        else:
            found = self._over(_what(call, lists[0]), values[0], combine, becomes)
        return [[cast(from_numpy(v, x.device), x.dtype) for v, x in zip(found, arrays)] for arrays in lists]  # bfloat16 went as float32

    def _over(self, asked, own, combine, becomes):
        if self.rank:
            _send(self.links[0], asked, own)
            answer = [np.empty(becomes(v.shape), v.dtype) for v in own]
            _expect(self.links[0], asked, answer, 0)
            return answer
        ranks, wrong = [own], None
        for r, link in enumerate(self.links, 1):
            try:
                ranks.append(_expect(link, asked, [np.empty(v.shape, v.dtype) for v in own], r))
            except ValueError as error:
                wrong = wrong or error
        if wrong:
            for link in self.links:
                _send(link, str(wrong), [])
            raise wrong
        found = [np.ascontiguousarray(combine(each)) for each in zip(*ranks)]
        for link in self.links:
            _send(link, asked, found)
        return found

    def close(self):
        for link in self.links or ():
            link.close()
        self.links = None


# ---- connections between processes ----


def _what(call, values):
    return f"{call} of {', '.join(f'{v.dtype} {v.shape}' for v in values)}"


def _send(link, words, values):
    words = words.encode()
    link.sendall(len(words).to_bytes(4, "little") + words)
    for v in values:
        link.sendall(memoryview(np.ascontiguousarray(v)).cast("B") if v.size else b"")


def _fill(link, place, rank):
    """Reads until |place| is full."""
    place = memoryview(place).cast("B")
    while place:
        try:
            got = link.recv_into(place)
        except TimeoutError:
            raise TimeoutError(f"distributed: rank {rank} did not come within {link.gettimeout():g} s") from None
        if not got:
            raise ConnectionError(f"distributed: rank {rank} is gone")
        place = place[got:]


def _words(link, rank):
    size = bytearray(4)
    _fill(link, size, rank)
    size = int.from_bytes(size, "little")
    if size > 1 << 24:
        raise ConnectionError(f"distributed: what rank {rank} sends is none of this program's")
    words = bytearray(size)
    _fill(link, words, rank)
    return words.decode(errors="replace")


def _expect(link, asked, places, rank):
    """Fills |places| with what |rank| sends for the same call."""
    words = _words(link, rank)
    if words != asked:
        raise ValueError(words if words.startswith("distributed: ") else f"distributed: rank {rank} asks for {words}, another for {asked}")
    for place in places:
        if place.size:
            _fill(link, place.reshape(-1).view(np.uint8), rank)
    return places


def _listen(address, size, timeout):
    """Connections from ranks 1 to size - 1, in their order."""
    found, end = [None] * (size - 1), time.monotonic() + timeout
    with socket.create_server(address, backlog=size) as server:
        while None in found:
            server.settimeout(max(end - time.monotonic(), 0.01))
            try:
                link, _ = server.accept()
            except TimeoutError:
                for other in filter(None, found):
                    other.close()
                raise TimeoutError(f"distributed: of {size} ranks {[i + 1 for i, x in enumerate(found) if x is None]} did not come to {address[0]}:{address[1]} "
                                   f"within {timeout:g} s") from None
            link.settimeout(timeout)
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            said = bytearray(len(_HELLO) + 8)
            try:
                _fill(link, said, "?")
                rank, of = (int.from_bytes(said[i:i + 4], "little") for i in (len(_HELLO), len(_HELLO) + 4))
            except OSError:
                said = b""
            if not said.startswith(_HELLO) or of != size or not 0 < rank < size or found[rank - 1]:
                link.close()  # no rank of this group
                continue
            found[rank - 1] = link
    return found


def _connect(address, rank, size, timeout):
    end = time.monotonic() + timeout
    while True:
        try:
            link = socket.create_connection(address, timeout=max(end - time.monotonic(), 0.01))
            break
        except OSError as error:
            if time.monotonic() >= end:
                raise TimeoutError(f"distributed: rank 0 was not at {address[0]}:{address[1]} within {timeout:g} s: {error}") from None
            time.sleep(0.05)
    link.settimeout(timeout)
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    link.sendall(_HELLO + rank.to_bytes(4, "little") + size.to_bytes(4, "little"))
    return link


# ---- groups ----


class Group:
    """Ranks from 0 to size - 1, of which |ranks| are this process's, each with a device. All make the same calls in the same order. Where a process has
    one rank, its functions take and give arrays, or lists, tuples and dicts of them; where it has several, a list with such of each rank."""

    def __init__(self, size, ranks, devices, way, several):
        self.size, self.ranks, self.devices, self._way, self._several = size, ranks, devices, way, several

    rank = property(lambda self: self.ranks[0], doc="The first of this process's ranks.")
    by = property(lambda self: self._way.name, doc='"library" where RCCL or NCCL does the work, "host" where arrays go through the host\'s memory.')

    def _call(self, name, trees, call):
        trees = list(trees) if self._several else [trees]
        if len(trees) != len(self.ranks):
            raise ValueError(f"{name}: a list of {len(self.ranks)}, one for each of {self.devices}, not of {len(trees)}")
        lists, forms = [], []
        for tree in trees:
            leaves = []
            forms.append(_flatten(tree, leaves))
            lists.append([need(name, x) for x in leaves])
        kinds = [[(x.shape, x.dtype) for x in arrays] for arrays in lists]
        if any(kind != kinds[0] for kind in kinds):
            raise ValueError(f"{name}: arrays of all ranks have the same types and shapes, not {kinds}")
        for arrays, device in zip(lists, self.devices):
            for x in arrays:
                if is_lazy(x):
                    raise ValueError(f"{name}: an array {x.dtype} {x.shape} has no values yet; call it behind what is compiled or differentiated")
                if x.device != device:
                    raise ValueError(f"{name}: an array is on {x.device}, and its rank on {device}")
        made = [_rebuild(form, iter(arrays)) for form, arrays in zip(forms, call(lists) if lists[0] else lists)]
        return made if self._several else made[0]

    def all_reduce(self, arrays, op="sum"):
        """The sum over all ranks, on each of them; "product", "max", "min", "mean". Of bool sum and max are any, product and min all."""
        if op not in _OPS:
            raise ValueError(f"all_reduce: the operation is one of {', '.join(_OPS)}, not {op!r}")

        def call(lists):
            for x in lists[0]:
                if x.pairs and op not in ("sum", "mean") or op == "mean" and x.dtype.kind not in "fc":
                    raise TypeError(f"all_reduce: there is no {op} of {x.dtype}")
            return self._way.all_reduce(lists, op)
        return self._call("all_reduce", arrays, call)

    def broadcast(self, arrays, root=0):
        """What rank |root| has, on all."""
        if not 0 <= root < self.size:
            raise ValueError(f"broadcast: from rank {root}; there are 0 to {self.size - 1}")
        return self._call("broadcast", arrays, lambda lists: self._way.broadcast(lists, root))

    def all_gather(self, arrays):
        """What all ranks have, one behind the other along the first axis."""
        return self._call("all_gather", arrays, lambda lists: self._way.all_gather(lists, self.size))

    def barrier(self):
        """Returns when all ranks have called it, and what they queued before is done."""
        ones = [from_numpy(np.ones(1, np.float32), device) for device in self.devices]
        for x in self._way.all_reduce([[x] for x in ones], "sum"):
            x[0].numpy()

    def close(self):
        """Ends the communication, when its work is done."""
        self._way.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def _has_library(devices):
    return all(not device.startswith("host") for device in devices)


def _checked(by):
    if by not in ("auto", "library", "host"):
        raise ValueError(f"distributed: by 'auto', 'library' or 'host', not {by!r}")
    return by


def of_devices(devices, by="auto"):
    """A group of this process's devices, by their names. |by| "library": RCCL or NCCL; "host": through the host's memory; "auto": the latter for the host
    alone. Where the library is missing it says so."""
    streams = [_core.stream(device) for device in devices]
    names = [_core.device_name(stream) for stream in streams]
    if not names:
        raise ValueError("distributed: a group has one device at least")
    ranks = list(range(len(names)))
    if _checked(by) == "host" or by == "auto" and not _has_library(names):
        return Group(len(names), ranks, names, _ByHost(0, len(names), None), True)
    if len(set(names)) < len(names):
        raise ValueError(f"distributed: {names} has a device twice, which RCCL and NCCL do not take; by='host' does")
    return Group(len(names), ranks, names, _ByLibrary(lambda own: own, ranks, len(names), streams), True)


def _number(given, name):
    value = os.environ.get(name) if given is None else given
    if value is None:
        raise ValueError(f"distributed.init: {name} is not set; `python -m rdna.arrays.distributed -n 2 program.py` and torchrun set it, or give it as an argument")
    return int(value)


def init(rank=None, size=None, address=None, device=None, by="auto", timeout=60.0):
    """The group of several processes, each with one rank. Without arguments RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT say what torchrun says by them
    (whose own store has the port: ours is the next), and the device is the LOCAL_RANK-th of the default one's driver, which is the default from then on.
    |address| "host:port" is where rank 0 listens, for |timeout| seconds; whoever reaches it can take part."""
    rank, size = _number(rank, "RANK"), _number(size, "WORLD_SIZE")
    if not 0 <= rank < size:
        raise ValueError(f"distributed.init: rank {rank} of {size}; ranks are 0 to size - 1")
    if address is None:
        taken = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
        address = f"{os.environ.get('MASTER_ADDR', '127.0.0.1')}:{int(os.environ.get('MASTER_PORT', 29400)) + taken}"
    host, _, port = address.rpartition(":")
    if device is None:
        driver = _core.device_name(_core.stream()).partition(":")[0]
        like = [name for name in _core.devices() if name.partition(":")[0] == driver]
        device = like[int(os.environ.get("LOCAL_RANK", rank)) % len(like)]
    _core.set_default(device)
    stream = _core.stream(device)
    device = _core.device_name(stream)
    through_host = _checked(by) == "host" or by == "auto" and not _has_library([device])
    links = _listen((host, int(port)), size, timeout) if rank == 0 else [_connect((host, int(port)), rank, size, timeout)]
    way = f"host {through_host}"

    def ids(own):
        """Rank 0's, on all, which must want the same."""
        given = np.frombuffer(own, np.uint8).copy()
        return _ByHost(rank, size, links).broadcast([[from_numpy(given, "host")]], 0)[0][0].numpy().tobytes()
    try:
        _ByHost(rank, size, links)._over(_what(way, []), [], None, None)
        if through_host:
            return Group(size, [rank], [device], _ByHost(rank, size, links), False)
        made = _ByLibrary(ids, [rank], size, [stream])
    except BaseException:
        for link in links:
            link.close()
        raise
    for link in links:
        link.close()
    return Group(size, [rank], [device], made, False)


# ---- networks ----


def _replica(model, device):
    """model with arrays of its own on |device|; what is tied stays so."""
    made, moved = copy.deepcopy(model), {}
    for _, module, at in list(made._places()):
        x = getattr(module, at)
        setattr(module, at, moved.setdefault(id(x), asarray(x, device=device)))
    return made


class DataParallel:
    """|model| on each device of |group|, a Group or the names of devices: each computes its share of the batch, and all get the sum of their gradients, so
    that they stay equal. `model` and `replicas` are the networks; running statistics are those of each share, and the first network's are kept."""

    def __init__(self, model, group):
        self.group = group if isinstance(group, Group) else of_devices(group)
        first, *others = self.group.devices
        moved = {}
        for _, module, at in list(model._places()):
            x = getattr(module, at)
            setattr(module, at, moved.setdefault(id(x), asarray(x, device=first)))
        self.model = model
        self.replicas = [model, *(_replica(model, device) for device in others)]
        self.synchronize()

    def __call__(self, *arguments, **keywords):
        """The first network's."""
        return self.model(*arguments, **keywords)

    def synchronize(self):
        """All networks get the values of rank 0's, running statistics too."""
        states = [replica._arrays() for replica in self.replicas]
        made = self.group.broadcast(states if self.group._several else states[0])
        for replica, state in zip(self.replicas, made if self.group._several else [made]):
            nn.Module.load_state_dict(replica, state)

    def parameters(self):
        return self.model.parameters()

    def state_dict(self):
        return self.model.state_dict()

    def load_state_dict(self, state):
        self.model.load_state_dict(state)
        for replica in self.replicas[1:]:
            replica.load_state_dict(state)

    def train(self, training=True):
        for replica in self.replicas:
            replica.train(training)
        return self

    def eval(self):
        return self.train(False)

    def value_and_grad(self, function, compiled=False, reduction="mean"):
        """As nn.value_and_grad, of function(model, *arguments): the first axis of arrays among the arguments is divided among this process's devices, as
        evenly as it can be, the rest is given as it is. |reduction| says whether function's value is a mean over the batch or a sum. Returns the value of the
        whole, and what Optimizer.update takes with this: the gradients for each device."""
        if reduction not in ("mean", "sum"):
            raise ValueError(f"DataParallel: reduction is 'mean' or 'sum', not {reduction!r}")
        steps = []
        for replica in self.replicas:
            def scaled(share, *arguments, _replica=replica, **keywords):
                value = function(_replica, *arguments, **keywords)
                return value if share == 1.0 else value * share
            steps.append(nn.value_and_grad(replica, scaled, compiled))
        count, elsewhere = len(self.replicas), self.group.size // len(self.replicas)

        @functools.wraps(function)
        def wrapped(*arguments, **keywords):
            leaves = []
            form = _flatten(_with_arrays((arguments, keywords)), leaves)
            whole = {len(x) for x in leaves if x.ndim}
            if len(whole) != 1 or min(whole) < count:
                raise ValueError(f"DataParallel: arrays among the arguments have one batch, their first axis, of {count} at least; these are of "
                                 f"{[x.shape for x in leaves]}")
            rows = whole.pop()
            ends = [rows * i // count for i in range(count + 1)]
            made = []
            for i, (step, device) in enumerate(zip(steps, self.group.devices)):
                own = (asarray(x[ends[i]:ends[i + 1]] if x.ndim and count > 1 else x, device=device) for x in leaves)
                given, named = _rebuild(form, own)
                made.append(step((ends[i + 1] - ends[i]) / rows / elsewhere if reduction == "mean" else 1.0, *given, **named))
            made = self.group.all_reduce(made if self.group._several else made[0])
            made = made if self.group._several else [made]
            return made[0][0], [slopes for _, slopes in made]
        return wrapped


# ---- the command ----


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m rdna.arrays.distributed", description="Runs a program in several processes of this machine, with RANK, "
                                     "LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, by which distributed.init() makes them a group.")
    parser.add_argument("-n", type=int, required=True, metavar="COUNT", help="how many processes")
    parser.add_argument("--port", type=int, help="where rank 0 listens; a free one without it")
    parser.add_argument("program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    given = parser.parse_args(arguments)
    if given.n < 1:
        parser.error(f"{given.n} processes")
    port = given.port
    if port is None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
    common = {**os.environ, "WORLD_SIZE": str(given.n), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    running = {rank: subprocess.Popen([sys.executable, given.program, *given.arguments], env={**common, "RANK": str(rank), "LOCAL_RANK": str(rank)})
               for rank in range(given.n)}
    try:
        while running:
            for rank, child in list(running.items()):
                if child.poll() is None:
                    continue
                del running[rank]
                if child.returncode:
                    print(f"rank {rank} ended with {child.returncode}", file=sys.stderr)
                    return child.returncode if child.returncode > 0 else 128 - child.returncode
            time.sleep(0.02)
    finally:
        for child in running.values():
            child.terminate()
        for child in running.values():
            child.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())

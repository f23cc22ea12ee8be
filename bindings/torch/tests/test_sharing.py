"""Tensors of rdna between processes, through torch.multiprocessing."""

import io
import warnings
from multiprocessing.reduction import ForkingPickler

import pytest
import torch
import torch.multiprocessing as mp
from torch import nn

pytestmark = [pytest.mark.filterwarnings("ignore:a tensor of rdna goes to another process"),
              pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")]


def there(*shape, **more):
    return torch.randn(shape, device="rdna", **more)


def base_and_views():
    x = there(4, 6)
    return [x, x[1:3], x.t(), x.view(-1)[5::7], x[:0]]


THINGS = {
    "types": lambda: [(torch.arange(6) % 2).to("rdna", t) for t in (
        torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int8, torch.uint8, torch.bool,
        torch.complex64, torch.float8_e4m3fn)],
    "shapes": lambda: [there(), there(0), there(3, 0, 2), there(2, 3, 4)],
    "views": base_and_views,
    "parameters": lambda: [nn.Parameter(there(3)), nn.Parameter(there(2), requires_grad=False), there(2).requires_grad_()],
    "mixed": lambda: [torch.ones(2), there(2), {"a": [there(1), "b"]}],
    "sparse": lambda: [torch.eye(3).to_sparse().to("rdna"), torch.eye(3).to_sparse_csr().to("rdna")],
    "storages": lambda: [there(5).untyped_storage(), torch.empty(0, device="rdna").untyped_storage()],
}


def flat(thing):
    if isinstance(thing, dict):
        thing = list(thing.values())
    return sum(map(flat, thing), []) if isinstance(thing, list) else [thing]


def look(thing):
    """What a tensor is, as the host's plain objects."""
    if isinstance(thing, torch.UntypedStorage):
        return "storage", thing.device.type, thing.nbytes(), thing.cpu().tolist()
    if not isinstance(thing, torch.Tensor):
        return thing
    on_host = thing.detach().cpu()
    values = on_host.to_dense() if thing.layout != torch.strided else on_host
    values = values.float() if values.dtype == torch.float8_e4m3fn else values
    where = (thing.stride(), thing.storage_offset()) if thing.layout == torch.strided else ()
    return (type(thing), str(thing.device), thing.dtype, thing.layout, tuple(thing.shape), where, thing.requires_grad,
            values.tolist())


def child(received, answers):
    while (name := received.get(timeout=60)) is not None:
        things = received.get(timeout=60)
        answer = [look(t) for t in flat(things)]
        if name == "views":
            things[0].fill_(7)
            answer.append([sorted(set(t.flatten().tolist())) for t in things])
        answers.put(answer)
        del things


def test_what_arrives_is_what_was_sent():
    context = mp.get_context("spawn")
    sent, answers = context.Queue(), context.Queue()
    process = context.Process(target=child, args=(sent, answers))
    process.start()
    try:
        for name, make in THINGS.items():
            things = make()
            sent.put(name)
            sent.put(things)
            answer = answers.get(timeout=60)
            expected = [look(t) for t in flat(things)]
            if name == "views":  # they share their memory there, and it is not the sender's
                expected.append([[7], [7], [7], [7], []])
                assert things[0].max().item() != 7
            assert answer == expected, name
        sent.put(None)
        process.join(60)
        assert process.exitcode == 0
    finally:
        process.kill()


def take(model, x, results):
    assert model[0].bias is model[1].bias
    with torch.no_grad():
        results.put(model(x).tolist())


def test_a_model_is_an_argument_of_a_process():
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)).to("rdna").eval()
    model[0].bias = model[1].bias
    x, context = there(2, 3), mp.get_context("spawn")
    results = context.SimpleQueue()
    process = context.Process(target=take, args=(model, x, results))
    process.start()
    with torch.no_grad():
        expected = model(x).tolist()
    found = results.get()
    process.join(60)
    assert process.exitcode == 0 and found == expected


def test_that_it_is_a_copy_is_said_once():
    from torch_rdna import _sharing

    _sharing._warned = False
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(2):
            ForkingPickler(io.BytesIO()).dump(there(3))
    assert sum("as a copy" in str(w.message) for w in seen) == 1


def test_what_another_stream_writes_is_sent_as_written():
    side = torch.rdna.Stream()
    with torch.rdna.stream(side):
        x = torch.ones(1 << 20, device="rdna")
        for _ in range(20):
            x = x + 1
    rebuild, arguments = ForkingPickler._extra_reducers[torch.UntypedStorage](x.untyped_storage())
    again = torch.empty(0, device="rdna").set_(rebuild(*arguments))
    assert (again == 21).all().item()


def test_a_graph_is_not_sent():
    x = there(3, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="non-leaf"):
        ForkingPickler(io.BytesIO()).dump(x)

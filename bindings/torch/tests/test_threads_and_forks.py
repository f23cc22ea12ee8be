"""Several threads on the device, and processes forked after it was used."""

import copy
import os
import subprocess
import sys
import threading

import pytest
import torch
import torch.nn.functional as F
from test_device import IMPORT, run
from test_interchange import PINNED_FOR
from test_models import GPT2
from test_training import SmallCNN, batches
from torch import nn
from torch.utils.data import DataLoader, Dataset


def in_threads(count, work):
    """Runs work(i) in a thread each, at once; what they returned, by i. Raises what one of them raised."""
    results, raised, ready = {}, [], threading.Barrier(count)

    def body(i):
        try:
            ready.wait()
            results[i] = work(i)
        except BaseException as error:  # noqa: B902  raised again below
            raised.append(error)

    threads = [threading.Thread(target=body, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "a thread hangs"
    if raised:
        raise raised[0]
    return results


def train(model, data, device, steps=8):
    model = copy.deepcopy(model).to(device)
    optimizer, losses = torch.optim.AdamW(model.parameters(), 1e-3, eps=1e-3, fused=True), []
    for step in range(steps):
        optimizer.zero_grad()
        loss = model(data[step % len(data)].to(device))
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses).cpu()


@pytest.mark.parametrize("own_stream", [False, True], ids=["default stream", "own streams"])
def test_threads_train_models_of_their_own(own_stream):
    torch.manual_seed(0)
    model = GPT2()
    data = [[torch.randint(61, (2, 16)) for _ in range(3)] for _ in range(4)]

    def work(i):
        stream = torch.rdna.Stream() if own_stream else torch.rdna.default_stream()
        before = torch.rdna.current_stream()
        assert before == torch.rdna.default_stream()  # the current stream is the thread's own
        with torch.rdna.stream(stream):
            return train(model, data[i], "rdna")

    found = in_threads(4, work)
    for i in range(4):
        torch.testing.assert_close(found[i], train(model, data[i], "cpu"), rtol=2e-4, atol=0)


def test_a_model_is_trained_by_one_thread_and_used_by_another():
    torch.manual_seed(0)
    model, (x, y) = SmallCNN().to("rdna"), next(batches(SmallCNN()))
    side, made = torch.rdna.Stream(), {}

    def forward(_):
        with torch.rdna.stream(side):
            made["loss"] = F.cross_entropy(model(x.to("rdna")), y.to("rdna"))
            made["done"] = side.record_event()

    in_threads(1, forward)
    torch.rdna.current_stream().wait_event(made["done"])
    made["loss"].backward()  # autograd runs it on the stream of the forward pass, and this thread's stream waits
    mine = {name: p.grad.cpu() for name, p in model.named_parameters()}
    reference = SmallCNN()
    reference.load_state_dict({k: v.cpu() for k, v in model.state_dict().items()})
    F.cross_entropy(reference(x), y).backward()
    for name, p in reference.named_parameters():
        torch.testing.assert_close(mine[name], p.grad, rtol=1e-3, atol=1e-4)


def test_memory_that_another_stream_uses_is_not_handed_out_again():
    side = torch.rdna.Stream()
    for i in range(50):
        x = torch.full((1 << 18,), float(i), device="rdna")
        side.wait_stream(torch.rdna.current_stream())
        with torch.rdna.stream(side):
            y = x.sin()
            for _ in range(3):
                y = y * 1
            z = x + y
        x.record_stream(side)
        del x
        torch.full((1 << 18,), -1.0, device="rdna")  # would take the place of x, were it free for this stream
        side.synchronize()
        torch.testing.assert_close(z.cpu(), torch.full((1 << 18,), float(i)).sin() + float(i))


class Samples(Dataset):
    """What workers do: random numbers and arithmetic on CPU tensors, inherited ones included."""

    def __init__(self):
        self.table = torch.arange(64.0).reshape(32, 2)

    def __len__(self):
        return len(self.table)

    def __getitem__(self, i):
        return (self.table[i] @ torch.eye(2)).exp().log(), torch.rand(3), i


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
@pytest.mark.parametrize("pin", [False, True], ids=["pageable", "pinned"])
def test_data_loaders_fork_workers_after_the_device_was_used(pin):
    dataset, model = Samples(), nn.Linear(2, 2).to("rdna")
    model(torch.ones(1, 2, device="rdna")).sum().backward()
    for _ in range(2):
        seen = []
        loader = DataLoader(dataset, batch_size=4, num_workers=2, pin_memory=pin, timeout=60,
                            multiprocessing_context="fork", **PINNED_FOR)
        for x, noise, i in loader:
            assert x.is_pinned() == pin
            there = x.to("rdna", non_blocking=True)
            model(there).sum().backward()
            torch.testing.assert_close(there.cpu(), dataset.table[i])
            seen.append(noise)
        seen = torch.cat(seen)
        assert len(seen.unique(dim=0)) == len(dataset)  # each worker has its own random numbers


FORK = IMPORT + """
import os, signal
t = torch.ones(3, device='rdna')
event = torch.rdna.Event()
event.record()
p = torch.ones(4).pin_memory()
child = os.fork()
if child:
    status = os.waitpid(child, 0)[1]
    assert torch.equal((t + 1).cpu(), torch.full((3,), 2.0))
    raise SystemExit(f"the child ended with status {status}" if status else 0)
signal.alarm(20)
def tried(what):
    try:
        return what()
    except RuntimeError as error:
        assert 'rdna was used before this process was forked' in str(error), error
"""


def test_a_forked_child_may_not_use_the_device():
    done = run(FORK + """
for what in (lambda: t + 1, lambda: t.cpu(), lambda: torch.ones(3, device='rdna'), lambda: torch.rdna.synchronize(),
             lambda: torch.ones(3).to('rdna'), lambda: torch.rdna.Stream(), lambda: event.synchronize(),
             lambda: event.query(), lambda: event.record(), lambda: torch.ones(4).pin_memory(), lambda: t[0].item(),
             lambda: torch.rdna.current_stream().synchronize(), lambda: repr(t), lambda: t[torch.tensor([0])],
             lambda: torch.randn(3, device='rdna')):
    assert tried(what) is None, 'it went through'
assert torch.rdna._is_in_bad_fork() and not torch.rdna.is_initialized()
torch.manual_seed(1)
torch.rdna.empty_cache()
print((torch.ones(2) @ torch.ones(2)).item(), p.sum().item(), torch.rdna.memory_allocated())
""", RDNA_DRIVER=os.environ["RDNA_DRIVER"], PYTHONPATH=os.environ.get("PYTHONPATH", ""))
    assert (done.returncode, done.stdout) == (0, "2.0 4.0 0\n"), done.stderr


def test_a_forked_child_ends_in_peace():
    """It frees what it inherited and leaves through Python's end: nothing of that reaches the driver."""
    done = run(FORK + "del t, event, p\nprint('freed')\n", RDNA_DRIVER=os.environ["RDNA_DRIVER"],
               PYTHONPATH=os.environ.get("PYTHONPATH", ""))
    assert (done.returncode, done.stdout) == (0, "freed\n"), done.stderr


def test_a_child_forked_before_the_first_use_has_the_device():
    """On the host: counting the devices of a GPU's driver starts it, as in PyTorch's own CUDA."""
    done = run(IMPORT + "import os, signal\nassert torch.rdna.is_available()\nchild = os.fork()\nsignal.alarm(20)\n"
               "os.write(1, b'%g\\n' % (torch.ones(2, device='rdna') + 1).sum().item())\n"
               "raise SystemExit(os.waitpid(child, 0)[1] if child else 0)",
               RDNA_DRIVER="host", PYTHONPATH=os.environ.get("PYTHONPATH", ""))
    assert (done.returncode, done.stdout) == (0, "4\n4\n"), done.stderr


def test_a_program_ends_in_peace_right_after_a_backward_pass():
    """Without our hook at exit every third such program was aborted (9 of 24)."""
    script = "import torch, torch_rdna; torch.ones(3, device='rdna', requires_grad=True).sum().backward()"
    for _ in range(2):
        running = [subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE, text=True) for _ in range(4)]
        for program in running:
            said = program.communicate()[1]
            assert program.returncode == 0, said

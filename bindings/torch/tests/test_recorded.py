"""torch.compile(mode="reduce-overhead"): inference that the driver records. The host's driver records nothing and says so."""

import os

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from test_device import IMPORT, emulated, run

DEVICE = IMPORT + """
import threading
from torch import nn
from torch.nn import functional as F

def report():
    made = torch.rdna.compile_report()
    return made["recorded"], made["not_recorded"]

def compiled(f):
    torch._dynamo.reset()
    torch.rdna.reset_compile_report()
    return torch.compile(f, backend="rdna", mode="reduce-overhead")

torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.norm, self.b = nn.Linear(8, 12), nn.LayerNorm(12), nn.Linear(12, 3)
        self.register_buffer("scale", torch.rand(3) + 0.5)
    def forward(self, x):
        return self.b(F.gelu(self.norm(self.a(x)))) * self.scale, x

plain = Net().eval()
model = Net().eval()
model.load_state_dict(plain.state_dict())
model = model.to("rdna")
f = compiled(model)

def same(x, given=None):
    with torch.no_grad():
        mine, echo = f(x.to("rdna") if given is None else given)
        expected, _ = plain(x)
    torch.testing.assert_close(mine.cpu(), expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(echo.cpu(), x)
    return mine

# a recording is made at the second call, reads what it is given then, and its results are the caller's
results = [(x, same(x)) for x in (torch.randn(4, 8) for _ in range(4))]
for x, mine in results:
    torch.testing.assert_close(mine.cpu(), plain(x)[0], rtol=1e-5, atol=1e-5)
assert report() == (1, {}), report()
same(torch.randn(8, 4).t(), None)

# parameters are read where they lie
with torch.no_grad():
    for p, q in zip(model.parameters(), plain.parameters()):
        p.mul_(0.5)
        q.mul_(0.5)
    model.scale += 1
    plain.scale += 1
same(torch.randn(4, 8))
before = report()[0]
with torch.no_grad():  # and where they are moved, it is recorded again
    model.a.weight.data = model.a.weight.data.clone()
    model.a.weight *= 3
    plain.a.weight *= 3
same(torch.randn(4, 8))
assert report() == (before + 1, {}), report()

# other shapes are others
for rows in (1, 7, 7, 7, 1, 4):
    same(torch.randn(rows, 8))

for rows in range(20, 32):  # more than there are recordings of
    for _ in range(3):
        same(torch.randn(rows, 8))
assert report()[1] == {"has 8 recordings already, for as many shapes": 1}, report()
f = compiled(model)

# a stream of its own, threads of their own
with torch.rdna.stream(torch.rdna.Stream()):
    for _ in range(3):
        same(torch.randn(4, 8))
wrong = []
def work():
    try:
        for _ in range(5):
            same(torch.randn(4, 8))
    except BaseException as e:
        wrong.append(e)
threads = [threading.Thread(target=work) for _ in range(3)]
[t.start() for t in threads]
[t.join() for t in threads]
assert not wrong, wrong

# what cannot be replayed is not recorded
for g, why in ((lambda x: F.dropout(x, 0.5), "others each time"), (lambda x: x.add_(1), "writes into")):
    g = compiled(g)
    with torch.no_grad():
        drawn = [g(torch.ones(1000, device="rdna")).cpu() for _ in range(3)]
    assert why == "writes into" or not torch.equal(drawn[1], drawn[2])
    count, reasons = report()
    assert count == 0 and any(why in reason for reason in reasons), (count, reasons)
assert torch.equal(drawn[0], torch.full((1000,), 2.0))
g = compiled(lambda x, y: x * y.item())  # of which Dynamo makes two graphs
with torch.no_grad():
    assert [g(torch.ones(2, device="rdna"), torch.tensor(float(i), device="rdna")).tolist() for i in range(3)] == [[0, 0], [1, 1], [2, 2]]

# layouts: results and inputs with gaps, inputs that overlap; of what is read by strides of its own there is no recording
rows = lambda i: torch.arange(32.0).view(4, 8) + 100 * i  # noqa: E731
for g, given, records in ((lambda x: (x * 2 + 1)[:, -1], lambda i: rows(i), True), (lambda x: x * 2, lambda i: rows(i)[:, ::2], True),
                          (lambda x: x + 1, lambda i: rows(i)[:1].expand(3, 8), True),
                          (lambda x: x[0].as_strided((4,), (1,), 9) + 0.5, lambda i: rows(i)[1:], False),
                          (lambda x: x.as_strided((4,), (2,)) * 1.5, lambda i: rows(i), False)):
    h = compiled(g)
    with torch.no_grad():
        for i in range(4):
            host = given(i)
            on_card = host._base.to("rdna").view(4, 8) if host._base is not None else host.to("rdna")
            on_card = on_card.as_strided(host.shape, host.stride(), host.storage_offset())
            torch.testing.assert_close(h(on_card).cpu(), g(host))
    assert report()[0] == records, report()

# another device than the current one
if torch.rdna.device_count() > 1:
    h = compiled(lambda x: x * 2 + 1)
    with torch.no_grad():
        assert [h(torch.full((3,), float(i), device="rdna:1"))[0].item() for i in range(4)] == [1, 3, 5, 7]

# gradients are not recorded, and come
model.zero_grad()
f(torch.randn(4, 8, device="rdna"))[0].square().sum().backward()
assert model.a.weight.grad is not None
del f, g
torch._dynamo.reset()
print("equal")
"""


def test_recorded_inference_on_emulated_cards():
    done = run(DEVICE, PYTHONPATH=os.environ.get("PYTHONPATH", ""), **{**emulated(), "RDNA_EMULATE": "gfx1100,gfx1100"})
    assert (done.returncode, done.stdout) == (0, "equal\n"), done.stdout + done.stderr


@pytest.mark.skipif(os.environ.get("RDNA_DRIVER") != "host", reason="other drivers record: the host's alone does not")
@pytest.mark.parametrize("options", [{"backend": "rdna"}, {}])
def test_the_host_says_why_it_records_nothing(options):
    torch._dynamo.reset()
    torch.rdna.reset_compile_report()
    model, x = nn.Sequential(nn.Linear(8, 5), nn.ReLU()), torch.randn(4, 8)
    expected = model(x)
    model = model.to("rdna")
    f = torch.compile(model, mode="reduce-overhead", **options)
    with torch.no_grad():
        for _ in range(3):
            torch.testing.assert_close(f(x.to("rdna")).cpu(), expected)
    report = torch.rdna.compile_report()
    assert report["recorded"] == 0
    assert [("cannot record a graph" in reason, count) for reason, count in report["not_recorded"].items()] == [(True, 1)]

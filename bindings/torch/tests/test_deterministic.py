"""torch.use_deterministic_algorithms reaches librdna."""

import pytest
import torch

from test_device import IMPORT, run
import os


@pytest.fixture(autouse=True)
def as_it_was():
    yield
    torch.use_deterministic_algorithms(False)


def why():
    a = torch.randn(8, 16, device="rdna")
    a @ a.t()
    return torch.rdna.last_choice("gemm")[1]


def test_it_reaches_librdna_and_goes_again():
    assert why() != "deterministic"
    torch.use_deterministic_algorithms(True)
    assert why() == "deterministic"
    torch.use_deterministic_algorithms(False)
    assert why() != "deterministic"
    torch.set_deterministic_debug_mode("warn")
    assert why() == "deterministic"


def test_what_the_environment_asks_for_stays():
    done = run(IMPORT + "def why():\n  a = torch.ones(8, 8, device='rdna'); a @ a; return torch.rdna.last_choice('gemm')[1]\n"
               "print(why())\nfor on in (True, False):\n  torch.use_deterministic_algorithms(on); print(why())",
               RDNA_DRIVER="host", RDNA_DETERMINISTIC="1", PYTHONPATH=os.environ.get("PYTHONPATH", ""))
    assert done.stdout == "deterministic\n" * 3, done.stderr


def test_the_same_bits_each_time():
    torch.use_deterministic_algorithms(True)
    i = torch.randint(50, (4000,), device="rdna")
    v = torch.randn(4000, 8, device="rdna")
    first = None
    for _ in range(3):
        out = torch.zeros(50, 8, device="rdna").index_add_(0, i, v).cpu()
        first = out if first is None else first
        assert torch.equal(out, first)


def test_memory_without_a_value_gets_one():
    torch.use_deterministic_algorithms(True)
    for make in (lambda: torch.empty(1000, device="rdna"), lambda: torch.empty_strided((10, 10), (1, 10), device="rdna"),
                 lambda: torch.empty(2, device="rdna").resize_(2000)[2:]):
        assert make().isnan().all().item()
    assert torch.empty(5, dtype=torch.int32, device="rdna").tolist() == [2**31 - 1] * 5
    torch.utils.deterministic.fill_uninitialized_memory = False
    try:
        torch.ones(1 << 14, device="rdna")
        assert not torch.empty(1 << 14, device="rdna").isnan().all().item()
    finally:
        torch.utils.deterministic.fill_uninitialized_memory = True


def test_a_choice_that_was_not_made():
    with pytest.raises(RuntimeError, match="nothing"):
        torch.rdna.last_choice("nothing")

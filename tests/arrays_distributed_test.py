"""rdna.arrays.distributed: several devices of a process and several processes, on the host and on emulated cards with the stand-in of RCCL."""
import os
import pathlib
import socket
import subprocess
import sys
import threading
import unittest

import rdna_program
from arrays_tools import ROOT, emulated_card, ra
from rdna.arrays import distributed, nn

BUILT = pathlib.Path(rdna_program.PROGRAM).parent.parent
RANKS = [str(ROOT / "tests/arrays_ranks.py")]


def emulated(case, fake=True):
    """The environment of two emulated cards, with the stand-in of RCCL or without."""
    card, fakes = emulated_card(case, "gfx1100,gfx1100"), BUILT / "fakes/hip_math"
    if not (fakes / "librccl.so.1").exists():
        case.skipTest(f"needs {fakes}/librccl.so.1: cmake --build build/release")
    return {**card, **({"RDNA_VENDOR_PATH": str(fakes)} if fake else {})}


def run(arguments, **environment):
    paths = os.pathsep.join([str(ROOT / "bindings/python"), str(ROOT / "tests")])
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=200,
                          env={**os.environ, "RDNA_DRIVER": "host", "PYTHONPATH": paths, **environment})


class Ranks(unittest.TestCase):
    def done(self, done, *lines):
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(sorted(done.stdout.splitlines()), sorted(lines))

    def test_one_device_three_times_through_the_host(self):
        self.done(run([*RANKS, "devices", "host,host,host"]), "[0, 1, 2] of 3 by host on ['host', 'host', 'host'] done")

    def test_two_emulated_cards_by_the_library(self):
        self.done(run([*RANKS, "devices", "hip:0,hip:1"], **emulated(self)), "[0, 1] of 2 by library on ['hip:0', 'hip:1'] done")

    def test_three_processes_through_the_host(self):
        self.done(run(["-m", "rdna.arrays.distributed", "-n", "3", *RANKS, "processes"]), *(f"[{r}] of 3 by host on ['host'] done" for r in range(3)))

    def test_two_processes_on_emulated_cards_by_the_library(self):
        self.done(run(["-m", "rdna.arrays.distributed", "-n", "2", *RANKS, "processes"], **emulated(self)),
                  *(f"[{r}] of 2 by library on ['hip:{r}'] done" for r in range(2)))

    def test_a_rank_that_fails_ends_the_others(self):
        done = run(["-m", "rdna.arrays.distributed", "-n", "2", str(ROOT / "tests/there_is_none.py")])
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"rank \d ended with 2")

    def test_without_the_library_it_says_so(self):
        done = run(["-c", "from rdna.arrays import distributed as d\nprint(d.of_devices(['hip:0', 'hip:1'], by='host').by)\nd.of_devices(['hip:0', 'hip:1'])"],
                   **emulated(self, fake=False))
        self.assertEqual(done.stdout, "host\n")
        self.assertRegex(done.stderr, "librccl.so.1 is not looked for on an emulated card")


class Refusals(unittest.TestCase):
    def test_groups(self):
        for call, words in ((lambda: distributed.of_devices([]), "one device at least"),
                            (lambda: distributed.of_devices(["host"], by="magic"), "not 'magic'"),
                            (lambda: distributed.of_devices(["host"], by="library"), "host driver"),
                            (lambda: distributed.init(), "RANK is not set"),
                            (lambda: distributed.init(2, 2), "rank 2 of 2")):
            with self.assertRaisesRegex((ValueError, TypeError), words):
                call()

    def test_ranks_that_do_not_come(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{free.getsockname()[1]}"
        with self.assertRaisesRegex(TimeoutError, r"of 3 ranks \[1, 2\] did not come"):
            distributed.init(0, 3, address, timeout=0.2)
        with self.assertRaisesRegex(TimeoutError, "rank 0 was not at 127.0.0.1"):
            distributed.init(1, 3, address, timeout=0.2)

    def test_strangers_and_ranks_that_go(self):
        """Others' connections are let go of, and a rank whose peer is gone says so."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            host, port = free.getsockname()
        found = []
        thread = threading.Thread(target=lambda: found.append(distributed.init(0, 2, f"{host}:{port}", timeout=20)))
        thread.start()
        stranger = distributed._connect((host, port), 5, 2, 20)  # a rank that is not
        link = distributed._connect((host, port), 1, 2, 20)
        words = distributed._what("host True", [])
        distributed._send(link, words, [])
        distributed._expect(link, words, [], 0)
        thread.join()
        self.assertEqual(stranger.recv(1), b"")
        link.close()
        stranger.close()
        with self.assertRaisesRegex((ConnectionError, BrokenPipeError), "rank 1 is gone"):
            found[0].all_reduce(ra.ones(3))
        found[0].close()

    def test_batches_that_cannot_be_shared(self):
        model = distributed.DataParallel(nn.Linear(2, 2), ["host", "host"])
        step = model.value_and_grad(lambda net, x, y: (net(x) * y).sum())
        for x, y in ((ra.ones((1, 2)), ra.ones((1, 2))), (ra.ones((4, 2)), ra.ones((3, 2)))):
            with self.assertRaisesRegex(ValueError, "one batch, their first axis, of 2 at least"):
                step(x, y)
        with self.assertRaisesRegex(ValueError, "'mean' or 'sum'"):
            model.value_and_grad(lambda net: net, reduction="none")
        with self.assertRaisesRegex(ValueError, "has no values yet"):
            ra.compile(lambda x: model.group.all_reduce([x, x]))(ra.ones(3))


if __name__ == "__main__":
    unittest.main()

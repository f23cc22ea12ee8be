"""trace_origins: sentences of failures say where arrays were made, results are what they were, and nothing is left when it is turned off."""
import gc
import unittest

import numpy as np
from arrays_tools import ra
from rdna.arrays import nn


class Origins(unittest.TestCase):
    def setUp(self):
        self.before = {name: vars(ra.Array).get(name) for name in dir(ra.Array)}, dict(vars(ra)), dict(vars(nn))
        ra.trace_origins()
        ra.trace_origins()  # twice is once

    def tearDown(self):
        ra.trace_origins(False)
        after = {name: vars(ra.Array).get(name) for name in dir(ra.Array)}, dict(vars(ra)), dict(vars(nn))
        for old, new in zip(self.before, after):
            self.assertEqual([name for name in old if new[name] is not old[name]], [])

    def test_sentences_have_the_lines(self):
        x = ra.ones((2, 3))
        y = x * 2 + 1
        z = ra.asarray(np.ones((4, 5)))
        line = ra.origin(z).rpartition(":")
        self.assertEqual(line[0], __file__)
        at = {name: f"{__file__}:{int(line[2]) + d}" for name, d in (("x", -2), ("y", -1), ("z", 0))}
        self.assertEqual((ra.origin(x), ra.origin(y), ra.origin(z)), (at["x"], at["y"], at["z"]))
        of_y, of_z = f"float32 (2, 3) was made at {at['y']}", f"float64 (4, 5) was made at {at['z']}"
        for error, call, said in ((ValueError, lambda: y + z, (of_y, of_z)), (ValueError, lambda: y @ z, (of_y, of_z)), (ValueError, lambda: y == z, (of_y, of_z)),
                                  (ValueError, lambda: ra.concat([y, z]), (of_y, of_z)), (ValueError, lambda: nn.conv2d(y, weight=z), (of_y, of_z)),
                                  (IndexError, lambda: y[7], (of_y,)), (ValueError, lambda: y.reshape((5,)), (of_y,)), (ValueError, lambda: ra.linalg.inv(y), (of_y,)),
                                  (ValueError, lambda: ra.grad(lambda a: (a @ z).sum())(y), (of_z,))):
            with self.assertRaises(error) as caught:
                call()
            for words in said:
                self.assertEqual(str(caught.exception).count(words), 1, str(caught.exception))
        with self.assertRaisesRegex(TypeError, "unsupported operand"):
            y + "a"

    def test_values_are_the_same_and_nothing_is_kept(self):
        from rdna.arrays import _origins

        x = ra.asarray(np.arange(6.0).reshape(2, 3))
        np.testing.assert_array_equal((2 / (x + 1) - x).numpy(), 2 / (np.arange(6.0).reshape(2, 3) + 1) - np.arange(6.0).reshape(2, 3))
        np.testing.assert_array_equal(ra.compile(lambda a: ra.exp(a).sum(axis=0))(x).numpy(), np.exp(np.arange(6.0).reshape(2, 3)).sum(0))
        x[0] = 5
        self.assertEqual(x[0].tolist(), [5, 5, 5])
        del x
        gc.collect()
        self.assertEqual(_origins._made, {})
        self.assertEqual(ra.origin(ra.Array.__new__(ra.Array)), "")


if __name__ == "__main__":
    unittest.main()

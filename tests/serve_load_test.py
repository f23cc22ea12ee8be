"""A short run of serve_load.py, which runs for longer each night: 64 clients, of whom some go away."""
import unittest

import serve_load


class Load(unittest.TestCase):
    def test_load(self):
        serve_load.main(["10"])


if __name__ == "__main__":
    unittest.main()

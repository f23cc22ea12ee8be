"""A short run of serve_load.py, which runs for longer each night: 64 clients, of whom some go away."""
import contextlib
import io
import pathlib
import tempfile
import unittest

import serve_load  # which finds tools/
import made_model


class Load(unittest.TestCase):
    def test_load(self):
        serve_load.main(["10"])

    def test_rates(self):
        printed = io.StringIO()
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(printed):
            model = pathlib.Path(folder) / "tiny.gguf"
            made_model.write(model, "tiny")
            serve_load.main(["--model", str(model), "--rates", "1,3"])
        one, three = ([float(field) for field in line.replace(" ms", "").replace(",", "").split()] for line in printed.getvalue().splitlines()[-2:])
        self.assertEqual([one[0], three[0], one[2]], [1, 3, 1])
        self.assertTrue(one[1] > 0 and three[1] > 0)


if __name__ == "__main__":
    unittest.main()

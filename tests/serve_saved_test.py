"""What rdna serve has read, saved at its end and read again at its start; files that are no longer what they were, and
disks that are full."""
import json
import random
import resource
import unittest

import rdna_program  # first: it makes tools/ importable
import serving
from rdna_program import DEMO_MODEL

OPTIONS = ("--slots", 2, "--keep", 2, "--context", 512, "--kv", "f32", "--lanes", 8)


class Saved(unittest.TestCase):
    def setUp(self):
        folder = serving.folder_for(self)
        self.folder = folder / "kept"
        self.file = self.folder / "demo.kv"
        self.rng = random.Random(3)

    def start(self, *options, **more):
        options = {**dict(zip(OPTIONS[::2], OPTIONS[1::2])), **dict(zip(options[::2], options[1::2]))}
        return serving.Server(DEMO_MODEL, "--name", "demo", "--cache-dir", self.folder, *(word for pair in options.items() for word in pair), **more)

    def ask(self, server, ids):
        """The log probabilities with every digit that they have, and how much was known."""
        got = server.post("/v1/completions", prompt=ids, max_tokens=6, temperature=0, logprobs=3)
        return got["choices"][0]["logprobs"], got["usage"]["prompt_tokens_details"]["cached_tokens"]

    def draw(self, count):
        return [self.rng.randrange(100, 400) for _ in range(count)]

    def save(self, *options, prompts=None):
        """Prompts, and what a server that had no past said to them."""
        server = self.start(*options)
        prompts = prompts or [self.draw(100), self.draw(70)]
        said = [self.ask(server, ids)[0] for ids in prompts]
        self.assertEqual(server.stop(), "")
        return prompts, said

    def test_texts_go_on(self):
        prompts, said = self.save()
        self.assertEqual(self.file.stat().st_mode & 0o777, 0o600)
        self.assertEqual([path.name for path in self.folder.iterdir()], ["demo.kv"])
        for turn in range(2):  # what was restored is saved again
            server = self.start()
            if turn == 0:
                self.assertEqual(server.metrics()["cache_free_pages"], server.metrics()["cache_pages"] - 4 - 3)
            for ids, want in zip(prompts, said):
                self.assertEqual(self.ask(server, ids), (want, len(ids) - 1))
            more = prompts[0] + self.draw(9)
            got, cached = self.ask(server, more)
            self.assertGreaterEqual(cached, 100)
            self.assertEqual(got, self.ask(server, more)[0])
            self.assertEqual(server.stop(), "")

    def test_pages_that_texts_share(self):
        begin = self.draw(128)
        prompts, said = self.save(prompts=[begin + self.draw(40), begin + self.draw(40)])
        server = self.start()
        metrics = server.metrics()
        self.assertEqual(metrics["cache_pages"] - metrics["cache_free_pages"], 4 + 2 + 2)
        self.assertEqual([self.ask(server, ids) for ids in prompts], [(want, 167) for want in said])
        server.stop()
        server = self.start("--cache", 352)  # one goes for a third text, and what it shared stays
        self.ask(server, self.draw(90))
        self.assertEqual(self.ask(server, prompts[1]), (said[1], 167))
        server.stop()

    def test_a_model_of_which_the_host_has_layers(self):
        prompts, said = self.save("--gpu-layers", 2)
        server = self.start("--gpu-layers", 2)
        self.assertEqual([self.ask(server, ids) for ids in prompts], [(want, len(ids) - 1) for ids, want in zip(prompts, said)])
        server.stop()
        self.prompts = prompts
        self.refused("other options", "--gpu-layers", 1)

    def test_as_many_as_there_is_room_for(self):
        prompts, said = self.save()
        server = self.start("--cache", 96, "--context", 96)  # not for the first, which is longer than a text may be here
        self.assertEqual(self.ask(server, prompts[1]), (said[1], 69))
        server.stop()
        prompts, said = self.save(prompts=[self.draw(60) for _ in range(4)])
        server = self.start("--keep", 0)  # two places: for those that were used last
        self.assertEqual([self.ask(server, prompts[i])[1] for i in (3, 2)], [59, 59])
        server.stop()

    def refused(self, mentions, *options):
        prompts = self.prompts
        server = self.start(*options)
        self.assertEqual(self.ask(server, prompts[0])[1], 0)
        stderr = server.stop()
        self.assertIn("what 'demo' has read is not restored, and all goes on without", stderr)
        self.assertIn(mentions, stderr)

    def test_files_that_are_not_it(self):
        self.prompts, said = self.save()
        whole = self.file.read_bytes()
        middle = bytearray(whole)
        middle[len(middle) // 2] ^= 4
        token = bytearray(whole)
        token[80 + 20] ^= 1
        for data, mentions in ((b"", "no cache"), (b"RDNA", "no cache"), (b"x" * 5000, "no cache"), (whole[:60], "no cache"), (whole[:-1], "is cut"), (whole[:90], "is cut"),
                               (whole + b"x", "longer"), (bytes(middle), "sum"), (bytes(token), "sum"), (whole[:8] + b"\1" + whole[9:], "another model")):
            with self.subTest(mentions, size=len(data)):
                self.file.write_bytes(data)
                self.refused(mentions)
        for options in (("--kv", "f16"), ("--lanes", 0)):
            self.file.write_bytes(whole)
            self.refused("other options", *options)
        self.file.unlink()
        self.file.mkdir()
        self.refused("demo.kv")  # and it cannot be saved

    def test_another_model(self):
        """One with the same name and shapes, and one other weight."""
        self.prompts, said = self.save()
        import gguf_file as gf
        file = gf.Reader(DEMO_MODEL)
        path = self.folder.parent / "demo.gguf"
        tensors = [(name, gf.TENSOR_F32, array.copy()) for name, array in file.tensors.items()]
        keys = [(key, *gf.typed(value)) for key, value in file.keys.items() if key != "general.file_type"]
        texts = []
        for change in (0, 1):
            tensors[-1][2].reshape(-1)[0] += change
            gf.write(path, keys, tensors)
            server = serving.Server(path, "--name", "demo", "--cache-dir", self.folder, *OPTIONS)
            self.assertEqual(self.ask(server, self.prompts[0])[1], 0)
            texts.append(server.stop())
        self.assertTrue(all("another model" in text for text in texts), texts)

    def test_a_full_disk(self):
        self.prompts, said = self.save()
        before = self.file.read_bytes()
        server = self.start()
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (len(before) // 2, len(before) // 2))
        self.ask(server, self.draw(50))
        stderr = server.stop()
        self.assertIn("what 'demo' has read is not saved, and all goes on without", stderr)
        self.assertIn("cannot be written", stderr)
        self.assertEqual(self.file.read_bytes(), before)
        self.assertEqual([path.name for path in self.folder.iterdir()], ["demo.kv"])
        server = self.start()
        self.assertEqual(self.ask(server, self.prompts[0]), (said[0], 99))
        server.stop()

    def test_a_model_that_leaves_and_comes_back(self):
        presets = self.folder.parent / "models.json"
        presets.write_text(json.dumps({"models": [{"path": str(DEMO_MODEL), "name": "a/b%c", "preload": True}, {"path": str(DEMO_MODEL), "name": "other"}]}))
        server = serving.Server(presets, "--loaded", 1, "--log", "--cache-dir", self.folder, *OPTIONS, model_option="--models")
        ids = self.draw(80)
        ask = lambda model: server.post("/v1/completions", model=model, prompt=ids, max_tokens=4, temperature=0)
        first = ask("a/b%c")
        self.assertEqual(ask("other")["usage"]["prompt_tokens_details"]["cached_tokens"], 0)
        again = ask("a/b%c")
        self.assertEqual((again["choices"][0]["text"], again["usage"]["prompt_tokens_details"]["cached_tokens"]), (first["choices"][0]["text"], 79))
        events = [json.loads(line) for line in server.stop().splitlines()]
        self.assertEqual([(event["model"], event["action"], event["texts"], event["whole"]) for event in events if event["event"] == "cache"],
                         [("a/b%c", "saved", 1, True), ("other", "saved", 1, True), ("a/b%c", "restored", 1, True), ("a/b%c", "saved", 1, True)])
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["a%2Fb%25c.kv", "other.kv"])

    def test_a_folder_that_cannot_be(self):
        result = rdna_program.run("serve", DEMO_MODEL, "--port", 0, "--cache-dir", DEMO_MODEL / "x")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn(b"--cache-dir", result.stderr)


if __name__ == "__main__":
    unittest.main()

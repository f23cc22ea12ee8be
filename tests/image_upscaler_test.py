"""Networks of ESRGAN's kind: librdna against modules of this file's own, in float64 on random weights, whole and by tiles;
and rdna upscale, with opacity, other scales and files that are refused."""
import ctypes
import io
import json
import os
import subprocess
import unittest
import zipfile

import diffusers_python  # first: this goes on in a Python that has PyTorch
import numpy as np
import PIL.Image
import PIL.PngImagePlugin
import safetensors.torch
import torch
from torch import nn
from torch.nn import functional as F

import rdna_program
import serving
from image_library import BAD_DATA, BF16, DEVICE, F16, F32, INT, INVALID, LIBRARY, NOT_FOUND, POINTER, TEXT, UNSUPPORTED, declare

torch.set_num_threads(1)
declare("rdna_image_upscaler_", [("create", INT, [POINTER, TEXT, INT, POINTER]), ("release", None, [POINTER]),
                                 ("get_info", POINTER, [POINTER]), ("run", INT, [POINTER, POINTER, POINTER])])
PROGRESS = ctypes.CFUNCTYPE(ctypes.c_bool, POINTER, INT, INT)
CANCELLED = 11  # rdna_status


class Info(ctypes.Structure):
    _fields_ = [("network", TEXT), ("scale", INT), ("blocks", INT), ("features", INT), ("weights_bytes", ctypes.c_size_t)]


class Input(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("picture", POINTER), ("height", INT), ("width", INT), ("tile", INT), ("progress", PROGRESS), ("data", POINTER)]


class Upscaler:
    def __init__(self, path, dtype=F32):
        self.handle = POINTER()
        self.status = LIBRARY.rdna_image_upscaler_create(DEVICE, str(path).encode(), dtype, ctypes.byref(self.handle))
        self.sentence = LIBRARY.rdna_last_error().decode() if self.status else ""
        if self.status == 0:
            self.info = Info.from_address(LIBRARY.rdna_image_upscaler_get_info(self.handle))

    def run(self, picture, tile=0, progress=None):
        """|picture| (3, height, width) of 0 to 1; so is the result."""
        values = np.ascontiguousarray(2 * picture - 1, np.float32)
        _, height, width = values.shape
        out = np.full((3, height * self.info.scale, width * self.info.scale), np.nan, np.float32)
        given = Input(ctypes.sizeof(Input), values.ctypes.data, height, width, tile, PROGRESS(progress) if progress else PROGRESS())
        self.status = LIBRARY.rdna_image_upscaler_run(self.handle, ctypes.byref(given), out.ctypes.data)
        return (out.astype(np.float64) + 1) / 2

    def __del__(self):
        LIBRARY.rdna_image_upscaler_release(self.handle)


# ---- the networks, as Wang et al. (2018, 2021) describe them ----

def leaky(x):
    return F.leaky_relu(x, 0.2)


class Row(nn.Module):
    """Five convolutions, each of which reads the input and what those before made."""

    def __init__(self, features, growth):
        super().__init__()
        for i in range(5):
            setattr(self, f"conv{i + 1}", nn.Conv2d(features + i * growth, features if i == 4 else growth, 3, padding=1))

    def forward(self, x):
        seen = [x]
        for i in range(4):
            seen.append(leaky(getattr(self, f"conv{i + 1}")(torch.cat(seen, 1))))
        return x + 0.2 * self.conv5(torch.cat(seen, 1))


class Dense(nn.Module):
    def __init__(self, features, growth):
        super().__init__()
        self.rdb1, self.rdb2, self.rdb3 = (Row(features, growth) for _ in range(3))

    def forward(self, x):
        return x + 0.2 * self.rdb3(self.rdb2(self.rdb1(x)))


class RRDBNet(nn.Module):
    def __init__(self, features=6, growth=4, blocks=2, doublings=2, gathered=1):
        super().__init__()
        self.gathered = gathered
        self.conv_first = nn.Conv2d(3 * gathered**2, features, 3, padding=1)
        self.body = nn.ModuleList(Dense(features, growth) for _ in range(blocks))
        self.conv_body = nn.Conv2d(features, features, 3, padding=1)
        self.doublings = doublings
        for i in range(doublings):
            setattr(self, f"conv_up{i + 1}", nn.Conv2d(features, features, 3, padding=1))
        self.conv_hr = nn.Conv2d(features, features, 3, padding=1)
        self.conv_last = nn.Conv2d(features, 3, 3, padding=1)

    def forward(self, x):
        x = first = self.conv_first(F.pixel_unshuffle(x, self.gathered))
        for block in self.body:
            x = block(x)
        x = first + self.conv_body(x)
        for i in range(self.doublings):
            x = leaky(getattr(self, f"conv_up{i + 1}")(F.interpolate(x, scale_factor=2, mode="nearest")))
        return self.conv_last(leaky(self.conv_hr(x)))


class Compact(nn.Module):
    def __init__(self, features=8, between=3, scale=4):
        super().__init__()
        self.scale = scale
        body = [nn.Conv2d(3, features, 3, padding=1), nn.PReLU(features)]
        for _ in range(between):
            body += [nn.Conv2d(features, features, 3, padding=1), nn.PReLU(features)]
        self.body = nn.Sequential(*body, nn.Conv2d(features, 3 * scale**2, 3, padding=1))

    def forward(self, x):
        return F.pixel_shuffle(self.body(x), self.scale) + F.interpolate(x, scale_factor=self.scale, mode="nearest")


def random_network(network, seed):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, p in network.named_parameters():
            size = 2 / np.sqrt(p[0].numel()) if p.ndim > 1 else 0.3
            p.copy_(size * torch.randn(p.shape, generator=generator))
    return network.double().eval()


def trunk_names(state, blocks):
    """As ESRGAN's own program called them."""
    ends = {"conv_body": "trunk_conv", "conv_up1": "upconv1", "conv_up2": "upconv2", "conv_hr": "HRconv"}
    return {".".join([ends.get(name.split(".")[0], name.split(".")[0].replace("body", "RRDB_trunk")), *name.split(".")[1:]]).replace("rdb", "RDB"): t
            for name, t in state.items()}


def number_names(state, blocks, doublings=2):
    """… and before that."""
    ends = {"conv_first": 0, "conv_body": f"1.sub.{blocks}", "conv_hr": 3 * doublings + 2, "conv_last": 3 * doublings + 4}
    ends |= {f"conv_up{i + 1}": 3 + 3 * i for i in range(doublings)}
    out = {}
    for name, t in state.items():
        parts = name.split(".")
        if parts[0] in ends:
            out[f"model.{ends[parts[0]]}.{parts[1]}"] = t
        else:
            out[f"model.1.sub.{parts[1]}.{parts[2].upper()}.{parts[3]}.0.{parts[4]}"] = t
    return out


def save(path, state, dtype=torch.float32):
    safetensors.torch.save_file({name: t.to(dtype).contiguous() for name, t in state.items()}, path)
    return path


def wanted(network, picture):
    """Of a picture whose sides are no multiples of what is gathered, mirrored at its end."""
    _, height, width = picture.shape
    gathered = getattr(network, "gathered", 1)
    x = np.pad(picture, ((0, 0), (0, -height % gathered), (0, -width % gathered)), "reflect" if min(height, width) > 3 else "edge")
    with torch.no_grad():
        made = network(torch.from_numpy(x)[None])[0].numpy()
    scale = made.shape[1] // x.shape[1]
    return made[:, :height * scale, :width * scale]


def error(got, want):
    assert got.shape == want.shape and np.isfinite(got).all()
    return np.linalg.norm(got - want) / np.linalg.norm(want)


NETWORKS = {"x4": lambda: RRDBNet(), "six blocks": lambda: RRDBNet(features=8, growth=8, blocks=6), "x2plus": lambda: RRDBNet(gathered=2, blocks=1),
            "gathered by four": lambda: RRDBNet(gathered=4, blocks=1), "wide": lambda: RRDBNet(features=64, growth=32, blocks=1),
            "compact": lambda: Compact(), "no convolution between": lambda: Compact(between=0, scale=2), "compact x3": lambda: Compact(features=5, scale=3),
            "compact x1": lambda: Compact(scale=1)}


class Networks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = serving.folder_for(cls)

    def opened(self, path, *arguments):
        ours = Upscaler(path, *arguments)
        self.assertEqual(ours.status, 0, ours.sentence)
        return ours

    def picture(self, height, width, seed=0):
        return np.random.default_rng(seed).random((3, height, width))

    def test_values(self):
        for i, (name, make) in enumerate(NETWORKS.items()):
            network = random_network(make(), i)
            ours = self.opened(save(self.folder / "n.safetensors", network.state_dict()))
            sizes = [(1, 1), (4, 5), (13, 22), (32, 7)] if name != "wide" else [(9, 10)]
            for size in sizes:
                with self.subTest(network=name, size=size):
                    picture = self.picture(*size, seed=i)
                    self.assertLess(error(ours.run(picture), wanted(network.float().double(), picture)), 1e-5)

    def test_names(self):
        for names in (trunk_names, number_names):
            network = random_network(RRDBNet(blocks=3), 5)
            ours = self.opened(save(self.folder / "n.safetensors", names(network.state_dict(), 3)))
            self.assertEqual((ours.info.network, ours.info.scale, ours.info.blocks, ours.info.features), (b"RRDBNet", 4, 3, 6))
            picture = self.picture(9, 14)
            self.assertLess(error(ours.run(picture), wanted(network.float().double(), picture)), 1e-5)
        for doublings in (0, 1, 3):
            network = random_network(RRDBNet(blocks=1, doublings=doublings), doublings)
            ours = self.opened(save(self.folder / "n.safetensors", number_names(network.state_dict(), 1, doublings)))
            self.assertEqual(ours.info.scale, 2**doublings)
            self.assertLess(error(ours.run(picture), wanted(network.float().double(), picture)), 1e-5)

    def test_types(self):
        """Rounded weights against the same weights in f64, and what 16 bits make of activations."""
        for make in (lambda: RRDBNet(features=16, growth=8), lambda: Compact(features=16, between=6)):
            for of_file, dtype, limit in ((torch.float16, F32, 1e-5), (torch.bfloat16, F32, 1e-5), (torch.float16, F16, 4e-3), (torch.bfloat16, BF16, 3e-2)):
                network = random_network(make(), 3)
                path = save(self.folder / "n.safetensors", network.state_dict(), of_file)
                network.load_state_dict({name: t.double() for name, t in safetensors.torch.load_file(path).items()})
                picture = self.picture(20, 17)
                got = error(self.opened(path, dtype).run(picture), wanted(network, picture))
                self.assertLess(got, limit)
                self.assertTrue(dtype == F32 or got > 1e-5)  # it was computed in 16 bits

    def test_tiles(self):
        """A network that sees no farther than tiles overlap makes the same of them; another differs near their edges alone."""
        network = random_network(Compact(between=4), 1)  # 6 pixels
        ours = self.opened(save(self.folder / "n.safetensors", network.state_dict()))
        picture = self.picture(70, 49)
        want = wanted(network.float().double(), picture)
        for tile in (4, 12, 32, 68, 72):
            self.assertLess(error(ours.run(picture, tile), want), 1e-5)
        network = random_network(RRDBNet(blocks=1, gathered=2), 2)  # 20 places of 2 pixels
        ours = self.opened(save(self.folder / "n.safetensors", network.state_dict()))
        picture = self.picture(101, 130)
        whole, tiled = ours.run(picture, 256), ours.run(picture, 100)
        self.assertLess(error(whole, wanted(network.float().double(), picture)), 1e-5)
        apart = np.abs(whole - tiled).max(0)
        far = 2 * (1 + 15 + 1 + 3)  # pixels that a value depends on, of which 16 are beyond the edge
        reach = 2 * (far - 16)
        self.assertGreater(apart[200 - reach:200 + reach].max(), 1e-5)
        apart[200 - reach:200 + reach] = apart[:, 200 - reach:200 + reach] = 0
        self.assertLess(apart.max(), 1e-5)

    def test_progress(self):
        ours = self.opened(save(self.folder / "n.safetensors", random_network(Compact(), 0).state_dict()))
        said = []

        def note(_, done, tiles):
            said.append((done, tiles))
            return len(said) < stop
        stop = 100
        ours.run(self.picture(20, 30), 16, note)
        self.assertEqual((ours.status, said), (0, [(i, 4) for i in range(5)]))
        said.clear()
        stop = 2
        ours.run(self.picture(20, 30), 16, note)
        self.assertEqual((ours.status, said), (CANCELLED, [(0, 4), (1, 4)]))

    def test_pytorch(self):
        """Files as PyTorch saves them, in which programs for training have one of several dictionaries."""
        network = random_network(RRDBNet(blocks=1), 4).float()
        state, picture, path = network.state_dict(), self.picture(9, 7), self.folder / "n.pth"
        want = self.opened(save(self.folder / "n.safetensors", state)).run(picture)
        other = random_network(RRDBNet(blocks=1), 5).float().state_dict()
        held = {name: nn.Parameter(t) for name, t in state.items()}
        parts = torch.cat([t.flatten() for t in state.values()])  # of which each is a piece
        at = np.cumsum([0, *(t.numel() for t in state.values())])
        pieces = {name: parts[at[i]:at[i + 1]].view(t.shape) for i, (name, t) in enumerate(state.items())}
        many = {f"more {i}": [i, float(i), None, True, (i, 2**40, -3), {"a": 3}] for i in range(300)}
        for saved in (state, dict(state), {"params_ema": state, "params": other, "iter": 400000}, {"params": state, **many}, {"state_dict": held, "optimizer": {"lr": [1e-4]}}, held, pieces):
            torch.save(saved, path)
            np.testing.assert_array_equal(self.opened(path).run(picture), want)
        torch.save({name: t.half() for name, t in state.items()}, path)
        self.assertLess(error(self.opened(path).run(picture), want), 1e-3)

    def test_pickles(self):
        """Nothing is run, and what is damaged is refused."""
        class Calls:
            def __reduce__(self):
                return (open, (str(folder / "made"), "w"))
        folder, path, state = self.folder, self.folder / "n.pth", random_network(RRDBNet(blocks=1), 0).float().state_dict()

        def refused(status, sentence):
            ours = Upscaler(path)
            self.assertEqual(ours.status, status, ours.sentence)
            self.assertRegex(ours.sentence, sentence)
        for saved, status, sentence in [({**state, "x": Calls()}, UNSUPPORTED, r"asks for \w+\.open"), ({**state, "x": torch.ones(3, 2).t()}, UNSUPPORTED, "contiguous"), (torch.ones(2), UNSUPPORTED, "no dictionary"),
                                        ({"x": 3}, UNSUPPORTED, "no ESRGAN"), ({**state, "x": torch.ones(2).expand(4, 2)}, UNSUPPORTED, "contiguous"), ({**state, "x": torch.ones(2, dtype=torch.complex64)}, UNSUPPORTED, "ComplexFloatStorage")]:
            torch.save(saved, path)
            refused(status, sentence)
        self.assertFalse((folder / "made").exists())
        torch.save({**state, "x": torch.empty(3, 0)}, path)  # contiguous, whatever its strides are
        refused(UNSUPPORTED, "x")
        self.assertNotIn("contiguous", Upscaler(path).sentence)
        number = lambda of: b"J" + of.to_bytes(4, "little")
        text = lambda of: b"X" + len(of).to_bytes(4, "little") + of
        storage = b"(" + text(b"storage") + b"ctorch\nFloatStorage\n" + text(b"0") + text(b"cpu") + number(0) + b"tQ"
        with zipfile.ZipFile(path, "w") as made:  # of strides that only a product with the last size has
            made.writestr("x/data/0", b"")
            made.writestr("x/data.pkl", b"\x80\x02}(" + text(b"a") + b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + number(0) + b"(" + 3 * number(2**31 - 1) + number(0) +
                          b"t(" + 3 * number(0) + number(1) + b"t\x89}tRu.")
        refused(UNSUPPORTED, "contiguous")
        torch.save(state, path, _use_new_zipfile_serialization=False)
        refused(UNSUPPORTED, "before 1.6.*safetensors.torch.save_file")
        torch.save(state, path)
        whole = path.read_bytes()
        for at in [*range(4, 3000, 61), *range(len(whole) - 1500, len(whole) - 1, 61)]:
            path.write_bytes(whole[:at])
            refused(BAD_DATA, "n.pth")
        chance = np.random.default_rng(0)
        for _ in range(300):  # in the pickle, or in the directory
            damaged, size = bytearray(whole), int(chance.integers(1, 4))
            at = int(chance.choice([chance.integers(0, 4000), chance.integers(len(whole) - 2000, len(whole) - size)]))
            damaged[at:at + size] = chance.bytes(size)
            path.write_bytes(bytes(damaged))
            ours = Upscaler(path)
            self.assertIn(ours.status, (0, UNSUPPORTED, BAD_DATA), ours.sentence)
        torch.save({f"{i}": state["conv_last.bias"] for i in range(9000)}, path)  # one tensor by many names
        refused(UNSUPPORTED, "more than 8192 tensors")
        with zipfile.ZipFile(path, "w") as many:
            for i in range(9000):
                many.writestr(f"x/data/{i}", b"")
        refused(UNSUPPORTED, "9000 entries")
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed, zipfile.ZipFile(io.BytesIO(whole)) as plain:
            for name in plain.namelist():
                packed.writestr(name, plain.read(name))
        refused(UNSUPPORTED, "packed")

    def test_refused(self):
        network = random_network(RRDBNet(blocks=1), 0)
        state, compact = network.state_dict(), random_network(Compact(), 0).state_dict()
        changed = lambda of, **more: {**{k: v for k, v in of.items() if k not in more}, **{k: v for k, v in more.items() if v is not None}}
        cases = [(UNSUPPORTED, "no ESRGAN", {"x.weight": torch.ones(3)}),
                 (UNSUPPORTED, "does not speak|do not speak", changed(state, **{"body.0.rdb1.conv1x1.weight": torch.ones(4, 6, 1, 1)})),
                 (BAD_DATA, "no tensor 'conv_hr.bias'", changed(state, **{"conv_hr.bias": None})),
                 (BAD_DATA, "no tensor 'body.0.rdb3.conv5.weight'", changed(state, **{"body.0.rdb3.conv5.weight": None})),
                 (BAD_DATA, "'conv_last.weight' is 4 x 6 x 3 x 3", changed(state, **{"conv_last.weight": torch.ones(4, 6, 3, 3)})),
                 (UNSUPPORTED, "reads 1 channels", changed(state, **{"conv_first.weight": torch.ones(6, 1, 3, 3)})),
                 (UNSUPPORTED, "smaller", changed(state, **{"conv_first.weight": torch.ones(6, 48, 3, 3), "conv_up2.weight": None})),
                 (UNSUPPORTED, "no PReLU", changed(compact, **{"body.1.weight": None})),
                 (BAD_DATA, "no tensor 'body.3.weight'", changed(compact, **{"body.3.weight": None})),
                 (UNSUPPORTED, "makes 50 channels", changed(compact, **{"body.8.weight": torch.ones(50, 8, 3, 3)})),
                 (UNSUPPORTED, "row of 1", {"body.0.weight": torch.ones(4, 3, 3, 3)}),
                 (BAD_DATA, "1025 channels", changed(state, **{"conv_first.weight": torch.ones(1025, 3, 3, 3)}))]
        for status, sentence, tensors in cases:
            with self.subTest(sentence):
                ours = Upscaler(save(self.folder / "n.safetensors", tensors))
                self.assertEqual(ours.status, status, ours.sentence)
                self.assertRegex(ours.sentence, sentence)
        self.assertEqual(Upscaler(self.folder / "none.safetensors").status, NOT_FOUND)
        path = save(self.folder / "n.safetensors", state)
        self.assertEqual(Upscaler(path, 3).status, INVALID)  # f64
        ours = self.opened(path)
        for tile in (-4, 6, 4100):
            ours.run(self.picture(4, 4), tile)
            self.assertEqual(ours.status, INVALID)
        for cut in range(0, 2000, 37):
            (self.folder / "cut.safetensors").write_bytes(path.read_bytes()[:cut])
            self.assertEqual(Upscaler(self.folder / "cut.safetensors").status, BAD_DATA)


class Command(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = serving.folder_for(cls)
        cls.network = random_network(Compact(scale=2), 1)
        cls.model = save(cls.folder / "toy-x2.safetensors", cls.network.state_dict())
        chance = np.random.default_rng(2)
        cls.picture = PIL.Image.fromarray(chance.integers(0, 256, (19, 26, 4), np.uint8), "RGBA")
        text = PIL.PngImagePlugin.PngInfo()
        text.add_text("parameters", "a lighthouse\nSteps: 4")
        cls.picture.save(cls.folder / "a.png", pnginfo=text)

    def upscale(self, *arguments, name="a.png"):
        said = json.loads(rdna_program.output("upscale", self.model, self.folder / name, "--out", self.folder / "out.png", "--json", "--device", rdna_program.DEVICE, *arguments))
        with PIL.Image.open(self.folder / "out.png") as made:
            made.load()
        self.assertEqual((said["width"], said["height"]), made.size)
        return said, made

    def wanted(self):
        """Pixels of the colours, before they are rounded."""
        colours = np.asarray(self.picture)[..., :3].transpose(2, 0, 1) / 255
        return 255 * wanted(self.network.float().double(), colours).transpose(1, 2, 0).clip(0, 1)

    def test_picture(self):
        said, made = self.upscale()
        self.assertEqual((said["network"], said["network_scale"], made.mode, made.size), ("SRVGGNetCompact", 2, "RGBA", (52, 38)))
        pixels = np.asarray(made).astype(float)
        self.assertLess(np.abs(pixels[..., :3] - self.wanted()).max(), 0.501)
        opacity = self.picture.getchannel("A").resize((52, 38), PIL.Image.BICUBIC)
        np.testing.assert_array_equal(pixels[..., 3], np.asarray(opacity))
        self.assertEqual(made.text["parameters"], "a lighthouse\nSteps: 4, Postprocess upscale by: 2, Postprocess upscaler: toy-x2")
        self.picture.convert("RGB").save(self.folder / "b.png")
        _, plain = self.upscale("--tile", 12, name="b.png")
        self.assertEqual((plain.mode, plain.text), ("RGB", {}))
        self.assertLessEqual(np.abs(np.asarray(plain).astype(int) - np.asarray(made)[..., :3]).max(), 1)
        self.picture.convert("RGB").save(self.folder / "c.jpg")
        self.assertEqual(self.upscale(name="c.jpg")[1].size, (52, 38))

    def test_scales(self):
        _, whole = self.upscale()
        for scale, size in ((1, (26, 19)), (1.5, (39, 28)), (5, (130, 95))):
            _, made = self.upscale("--scale", scale)
            self.assertEqual(made.size, size)
            colours = whole.convert("RGB").resize(size, PIL.Image.BICUBIC)
            np.testing.assert_array_equal(np.asarray(made)[..., :3], np.asarray(colours))

    def test_default_name(self):
        result = subprocess.run([rdna_program.PROGRAM, "upscale", self.model, "a.png", "--device", rdna_program.DEVICE], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stdout), (0, "a-large.png\n"), result.stderr)
        with PIL.Image.open(self.folder / "a-large.png") as made:
            self.assertEqual(made.size, (52, 38))

    def test_refused(self):
        def refused(*arguments, status=1):
            result = rdna_program.run("upscale", *arguments, "--device", rdna_program.DEVICE)
            self.assertEqual(result.returncode, status, result.stderr)
            return result.stderr.decode(errors="replace")
        picture, out = self.folder / "a.png", self.folder / "no.png"
        self.assertIn("none.png", refused(self.model, self.folder / "none.png", "--out", out))
        self.assertIn("none.safetensors", refused(self.folder / "none.safetensors", picture, "--out", out))
        self.assertIn("PNG and JPEG", refused(self.model, self.model, "--out", out))
        self.assertIn("a.png", refused(self.model, picture, "--out", picture))
        self.assertIn("the larger picture", refused(self.model, picture, "--out", out, "--scale", 0.01))
        self.assertIn("multiples of 4", refused(self.model, picture, "--out", out, "--tile", 6))
        self.assertIn("--scale", refused(self.model, picture, "--scale", 100, status=2))
        other = self.folder / os.fsdecode(b"n\xff.safetensors")  # a name that parameters and JSON cannot say
        other.write_bytes(self.model.read_bytes())
        self.assertIn("no UTF-8", refused(other, picture, "--out", out))
        self.assertIn("no UTF-8", refused(self.model, picture, "--json", "--out", self.folder / os.fsdecode(b"o\xff.png")))
        self.assertEqual(rdna_program.run("upscale", f"n={other}", picture, "--out", self.folder / "named.png", "--device", rdna_program.DEVICE).returncode, 0)
        PIL.Image.new("RGB", (9000, 3)).save(self.folder / "wide.png")
        self.assertIn("18000 x 6", refused(self.model, self.folder / "wide.png", "--out", out))
        self.assertFalse(out.exists())


if __name__ == "__main__":
    unittest.main()

"""`rdna tune` and what `rdna info` says of vendors' libraries, on stand-ins: a libcuda whose kernels do nothing and whose
clock stands still, a libcublasLt, and libraries of AMD's on an emulated card."""
import json
import pathlib
import subprocess
import tempfile
import unittest

import rdna_program
from rdna_program import output, run

BUILD = pathlib.Path(rdna_program.PROGRAM).parent.parent
CUDA = BUILD / "fakes/cuda/libcuda.so.1"
HEADER = "gpu,arch,driver,pack,operator,shape,libraries,implementation,ms,next,next_ms"


class Tune(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.environment = {"RDNA_CUDA_LIBRARY": str(CUDA), "RDNA_VENDOR_PATH": str(BUILD / "fakes/cuda_math"),
                            "XDG_CACHE_HOME": str(self.folder / "cache")}

    def tune(self, *arguments, **more):
        return output("tune", "--driver", "cuda", *arguments, environment={**self.environment, **more})

    def test_measures_once(self):
        first = json.loads(self.tune("--json", "--type", "f16", "64x48x32", "1x48x32"))
        self.assertEqual("Fake A100,sm_80,cuda 12.9", first["device"])
        self.assertEqual(len(first["choices"]), 2)
        for choice in first["choices"]:
            self.assertEqual((choice["operator"], choice["why"]), ("gemm", "measured"))
            self.assertGreater(choice["ms"], 0)
            self.assertIn("f16 f16 f16 nt", choice["shape"])
        self.assertTrue((self.folder / "cache/rdna/tune.sqlite").exists())
        second = json.loads(self.tune("--json", "--type", "f16", "64x48x32", "1x48x32"))
        self.assertEqual({c["why"] for c in second["choices"]}, {"stored"})
        self.assertEqual([(c["shape"], c["implementation"], c["ms"]) for c in second["choices"]],
                         [(c["shape"], c["implementation"], c["ms"]) for c in first["choices"]])
        # without the library there are other candidates, which are measured
        third = json.loads(self.tune("--json", "--type", "f16", "64x48x32", RDNA_VENDOR="off"))
        self.assertEqual([c["why"] for c in third["choices"]], ["measured"])
        self.assertNotIn("cublaslt", [third["choices"][0]["implementation"], third["choices"][0]["next"]])
        self.assertIn("shape", self.tune("--type", "f16", "64x48x32").decode().splitlines()[2])

    def test_text_goes_out_and_in(self):
        self.tune("--type", "f16", "64x48x32")
        exported, again = self.folder / "a.csv", self.folder / "b.csv"
        self.assertEqual(output("tune", "--export", exported, environment=self.environment), b"1 measurement\n")
        lines = exported.read_text().splitlines()
        self.assertEqual(lines[0], HEADER)
        self.assertTrue(lines[1].startswith("Fake A100,sm_80,cuda 12.9,"), lines[1])
        other = {"RDNA_TUNE_FILE": str(self.folder / "other.sqlite")}
        self.assertEqual(output("tune", "--import", exported, environment=other), b"1 measurement\n")
        output("tune", "--export", again, environment=other)
        self.assertEqual(again.read_text(), exported.read_text())
        stored = json.loads(self.tune("--json", "--type", "f16", "64x48x32", **other))
        self.assertEqual(stored["choices"][0]["why"], "stored")

    def test_other_code_is_measured_anew(self):
        """What was found holds until the code of the families changes whose kernels were compared."""
        code, packs = self.folder / "code", self.folder / "packs"
        packs.mkdir()
        output("kernels", "--target", "sm_80", "--extract", code, environment=self.environment)

        def pack(*changed):
            images = []
            for family in ("fill", "gemm", "gemm_bf16", "gemm_f16"):
                images.append(self.folder / f"{family}.ptx")
                images[-1].write_bytes((code / f"{family}.sm_80.ptx").read_bytes() + b".const .b8 changed;\n" * (family in changed))
            subprocess.run([BUILD / "bin/rdna_pack_builder", packs / "sm_80.rdnapack", "sm_80", "1", *images], check=True)

        def choice():
            text = self.tune("--json", "--type", "f16", "64x48x32", RDNA_KERNEL_PATH=str(packs))
            return json.loads(text)["choices"][0]["why"]

        pack()
        self.assertEqual(choice(), "measured")
        self.assertEqual(choice(), "stored")
        pack("gemm_bf16", "fill")
        self.assertEqual(choice(), "stored")
        pack("gemm_f16")
        self.assertEqual(choice(), "measured")
        pack("gemm")  # which adds up what parts leave
        self.assertEqual(choice(), "measured")
        pack("gemm_f16")
        self.assertEqual(choice(), "stored")

    def test_misuse(self):
        for status, arguments in ((2, ("tune", "12x13")), (2, ("tune", "0x1x1")), (2, ("tune", "1x1x1x1")),
                                  (1, ("tune", "--driver", "host")), (1, ("tune", "--import", "/nowhere"))):
            result = run(*arguments, environment=self.environment)
            self.assertEqual((result.returncode, result.stdout), (status, b""), arguments)
            self.assertEqual(result.stderr.count(b"\n"), 1, result.stderr)
        broken = self.folder / "broken.csv"
        broken.write_text(HEADER + "\na,b\n")
        result = run("tune", "--import", broken, environment=self.environment)
        self.assertIn(b"line 2", result.stderr)

    def test_info_names_the_libraries(self):
        libraries = json.loads(output("info", "--json", environment=self.environment))["libraries"]
        found = {(l["device"], l["name"]): l for l in libraries}
        self.assertEqual(found["cuda:0", "cublaslt"]["status"], "OK")
        self.assertEqual(found["cuda:0", "cublaslt"]["version"], "13.1.0")
        self.assertIn("cublaslt", output("info", environment=self.environment).decode())
        environment = {"RDNA_EMULATE": "gfx1100,gfx1030", "RDNA_VENDOR_PATH": str(BUILD / "fakes/hip_math")}
        libraries = json.loads(output("info", "--json", environment=environment))["libraries"]
        found = {(l["device"], l["name"]): l for l in libraries if l["device"].startswith("hip")}
        self.assertEqual(sorted(found), sorted((f"hip:{i}", name) for i in (0, 1)
                                               for name in ("rocblas", "hipblaslt", "miopen", "rccl")))
        self.assertEqual(found["hip:0", "rocblas"]["status"], "OK")
        self.assertEqual(found["hip:1", "rocblas"]["status"], "UNSUPPORTED")
        self.assertIn("no kernels for gfx1030", found["hip:1", "rocblas"]["message"])
        self.assertEqual(found["hip:1", "miopen"]["status"], "OK")


if __name__ == "__main__":
    if not CUDA.exists() or not (BUILD / "fakes/cuda_math/libcublasLt.so.13").exists():
        print("skipped: the stand-ins of vendors' libraries were not built")
        raise SystemExit(77)
    unittest.main()

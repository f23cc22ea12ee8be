#!/usr/bin/env python3
"""A block format that was just added computes: tests/adding_format.py NAME [--emulate gfx1100]

Builds a copy of the tree that has the families which a block format concerns and no others, so in a minute or two, and
from ccache in seconds; compares the format with its definition, and the kernels with their twins, on the host and on an
emulated card."""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FAMILIES = ("common", "gemm", "quant", "vendor")
KERNELS = ("quant", "quant_encode", "quant_gemm", "quant_gemv", "quant_mma", "quant_pack")


def run(*command, **options):
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          **options)
    if done.returncode:
        sys.exit(f"{done.stdout[-6000:]}\nfailed with {done.returncode}: {' '.join(map(str, command))}")
    return done.stdout


def left_out(folder, names):
    inside = pathlib.Path(folder).relative_to(ROOT)
    if inside == pathlib.Path("."):
        return {"build", ".git"} & set(names)
    if inside == pathlib.Path("src/math"):
        return {n for n in names if (ROOT / inside / n).is_dir() and n not in FAMILIES}
    return {n for n in names if n.endswith("_vendor_test.c")}


def reference_makes_and_reads_it(to, name):
    """Random blocks of the reference are about as large as was asked."""
    run(sys.executable, "-c", f"""if True:
        import gguf_file as gf, numpy as np
        kind = gf.TENSOR_{name.upper()}
        raw = np.frombuffer(gf.random_blocks(kind, np.random.default_rng(1), (64, 512), 0.5), np.uint8)
        values = gf.decode_blocks(kind, raw.reshape(-1, gf.BLOCKS[kind][1]))
        assert values.size == 64 * 512 and 0.2 < values.std() < 1, values.std()""", cwd=to / "tools")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="as rdna_dtype_name has it")
    parser.add_argument("--emulate", default="gfx1100")
    args = parser.parse_args()
    emulated = {**os.environ, "RDNA_EMULATE": args.emulate, "RDNA_EMULATE_CHECK": "1", "RDNA_TEST_DEVICE": "hip"}
    with tempfile.TemporaryDirectory(prefix="rdna-format.") as folder:
        to = pathlib.Path(folder) / "rdna"
        build = to / "build"
        shutil.copytree(ROOT, to, ignore=left_out)
        for text in re.findall(r"^rdna_chain_text\((\S+?)[ )]", (ROOT / "src/math/CMakeLists.txt").read_text(), re.M):
            (to / text).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / text, to / text)
        # of the families that are left out, some name operators and tables that nothing here runs
        run("cmake", "-S", to, "-B", build, "-G", "Ninja", f"-DRDNA_TARGETS={args.emulate}",
            "-DCMAKE_EXE_LINKER_FLAGS=-no-pie -Wl,--unresolved-symbols=ignore-all")
        reference_makes_and_reads_it(to, args.name)
        images = [f"kernels/{args.emulate}/{family}.hsaco" for family in KERNELS]
        run("cmake", "--build", build, "--target", "cases_test", "tensor_test", "quant_test", "rdna_emulator",
            "rdna_pack_builder", *images)
        run("bin/rdna_pack_builder", f"kernels/{args.emulate}.rdnapack", args.emulate, 9, *images, cwd=build)
        run(build / "bin/tensor_test")
        for environment, device in ((os.environ, "host"), (emulated, "hip")):
            said = run(build / "bin/cases_test", device, 8, f"_{args.name}_f32", env=environment)
            for kernel in (f"dequantize_{args.name}_f32", f"gemm_f32_{args.name}_f32_large", f"gemv_f32_{args.name}_f32_m1"):
                if not re.search(rf"ok +{kernel} +8 cases", said):
                    sys.exit(f"{kernel} did not run on {device}:\n{said}")
            run(build / "bin/quant_test", env=environment)
    print(f"{args.name} computes on the host and on {args.emulate}")


if __name__ == "__main__":
    main()

"""A block format is added by the steps of docs/adding.md alone, in a copy of the tree, and computes.

    tests/adding_format.py [--emulate gfx1100]

The copy has the families that a block format concerns and no others, so that it is built in a minute or two, and from
ccache in seconds. The sample, q4_E: a byte e and nibbles of 32, value = 2^(e - 128) (q - 8)."""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FAMILIES = ("common", "gemm", "quant", "vendor")
KERNELS = ("quant", "quant_gemm", "quant_gemv")

# file: (the text that the addition goes before, the addition)
STEPS = {
    "include/rdna/tensor.h": [
        ("  RDNA_DTYPE_COUNT\n", "  RDNA_Q4_E, /* 32 values: a power of two in a byte, 16 bytes of nibbles, offset 8 */\n")],
    "src/base/block_formats.h": [
        (" *   256 values\n *   q2_K",
         " *   q4_E    17 bytes: a byte e, nibbles of 32.                        value = 2^(e - 128) (q - 8)\n *\n"),
        ("  F(X, q8_0,",
         "  F(X, q4_E, Q4_E, 99, 32, 17, NONE, PLAIN, .low_at = 1, .low_bits = 4, .span = 32, .run = 32, .zero = 8, \\\n"
         "    .scales = RDNA__SCALES_POWER) \\\n")],
    "src/base/tensor_test.c": [
        ("  assert_int_equal(rdna_dtype_bytes(RDNA_Q8_0, 33), 0);", "  assert_int_equal(rdna_dtype_bytes(RDNA_Q4_E, 64), 2 * (1 + 16));\n")],
    "src/math/quant/testing_blocks.h": [
        ("    case RDNA_Q4_0:\n",
         "    case RDNA_Q4_E:\n      value = ldexp(test_nibble(b + 1, at) - 8, b[0] - 128);\n      break;\n")],
    "tools/gguf_file.py": [
        ("\n\ndef encode_q8_0", "TENSOR_Q4_E = 99\n"),
        ("          TENSOR_IQ4_XS: (256, 136)}", "          TENSOR_Q4_E: (32, 17),\n"),
        ("        if kind == TENSOR_MXFP4:\n            return", 
         "        if kind == TENSOR_Q4_E:\n            return 2.0 ** (raw[:, :1].astype(int) - 128) * (q - 8)\n"),
        ("    if kind == TENSOR_MXFP4:\n        raw", 
         "    if kind == TENSOR_Q4_E:\n"
         "        raw[:, 0] = 128 + round(np.log2(deviation / 4.6)) + rng.integers(-1, 2, len(raw))\n"
         "        return raw.tobytes()\n")],
}
MOST_FILES = 7


def run(*command, **options):
    result = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    assert result.returncode == 0, f"{' '.join(map(str, command))}: exit status {result.returncode}\n{result.stdout[-4000:]}"
    return result.stdout


def copy_tree(to):
    for name in run("git", "ls-files", "-co", "--exclude-standard", cwd=ROOT).splitlines():
        family = re.match(r"src/math/(\w+)/", name)
        if (not family or family[1] in FAMILIES) and not name.endswith("_vendor_test.c") and (ROOT / name).exists():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name)
    lists = to / "src/math/CMakeLists.txt"
    lists.write_text(lists.read_text().replace("rdna_kernels(TARGETS ${RDNA_TARGETS})",
                                               f"rdna_kernels(TARGETS ${{RDNA_TARGETS}} FAMILIES {' '.join(KERNELS)})"))


def add_format(to, steps=STEPS):
    recipe = (ROOT / "docs/adding.md").read_text().split("\n## A block format\n")[1].split("\n## ")[0]
    assert len(steps) <= MOST_FILES
    for name, additions in steps.items():
        assert f"`{name}`" in recipe, f"docs/adding.md does not name {name}"
        text = (to / name).read_text()
        for before, addition in additions:
            assert text.count(before) == 1, f"{name} has {text.count(before)} places that say {before!r}"
            text = text.replace(before, addition + before)
        (to / name).write_text(text)


def refuses_what_is_not_whole(to, build):
    """Configuring stops where a step is left out, and says which file lacks what."""
    for name in ("include/rdna/tensor.h", "src/math/quant/testing_blocks.h", "tools/gguf_file.py"):
        whole = (to / name).read_text()
        (to / name).write_text(whole.replace("Q4_E", "Q4_F"))
        result = subprocess.run(["cmake", "-S", to, "-B", build], capture_output=True, text=True)
        (to / name).write_text(whole)
        said = re.sub(r"\s+", " ", result.stderr)
        assert result.returncode != 0 and f"{name} lacks" in said and "of Q4_E" in said, said


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--emulate", default="gfx1100")
    target = parser.parse_args().emulate
    with tempfile.TemporaryDirectory(prefix="rdna_adding_") as folder:
        to = pathlib.Path(folder) / "rdna"
        build = to / "build"
        copy_tree(to)
        add_format(to)
        run("cmake", "-S", to, "-B", build, "-G", "Ninja", f"-DRDNA_TARGETS={target}")
        refuses_what_is_not_whole(to, build)
        run("cmake", "--build", build, "--target", "cases_test", "tensor_test", "quant_test", "kernels", "rdna_emulator")
        emulated = {**os.environ, "RDNA_EMULATE": target, "RDNA_EMULATE_CHECK": "1", "RDNA_TEST_DEVICE": "hip"}
        run(build / "bin/tensor_test")
        for environment, device in ((os.environ, "host"), (emulated, "hip")):
            said = run(build / "bin/cases_test", device, 8, "q4_E", env=environment)
            for kernel in ("dequantize_q4_E_f32", "gemm_f32_q4_E_f32_large", "gemv_f32_q4_E_f32_m1"):
                assert re.search(rf"ok +{kernel} +8 cases", said), said
            run(build / "bin/quant_test", env=environment)
        print(f"a block format in {len(STEPS)} files: on the host and on {target}")


if __name__ == "__main__":
    main()

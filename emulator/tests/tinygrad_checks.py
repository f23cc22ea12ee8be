"""tinygrad's checks of single instructions, which its authors validated on RDNA 3 cards (test/amd/hw of its sources), on
this emulator's libamdhip64, with the checker: a finding fails the check. The sources are fetched beside this repository; 77 where they are not.

    PYTHON emulator/tests/tinygrad_checks.py [LIBRDNA_EMULATOR_SO] [CHECKOUT]       PYTHON has pytest and NumPy"""
import ctypes
import os
import pathlib
import subprocess
import sys
import tempfile

import emulator

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LIBRARY = sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/release/emulator/librdna_emulator.so"
CHECKOUT = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else os.environ.get("RDNA_TINYGRAD", ROOT.parent / "tinygrad")).resolve()
ROOM = 65536  # bytes of code
# s_cmp_lg_u32 0, 0: every check stores SCC at its end, also those whose instructions write none
CLEAR_SCC = bytes.fromhex("808007bf")
ELSEWHERE = {  # other instruction sets, and graphics
    "test_cdna_": "CDNA", "test_rdna4_": "RDNA 4", "test_vinterp.py": "interpolation of graphics", "row_bcast": "GFX9 alone has it",
    "s_fmamk_f32": "RDNA 3.5",
}
KERNEL = """.text
.globl test
.p2align 8
.type test,@function
test:
.fill {words}, 4, 0xBFB00000
.size test, .-test
.rodata
.p2align 6
.amdhsa_kernel test
  .amdhsa_next_free_vgpr 256
  .amdhsa_next_free_sgpr 96
  .amdhsa_wavefront_size32 {wave32}
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_kernarg_size 8
  .amdhsa_group_segment_fixed_size 65536
  .amdhsa_private_segment_fixed_size 65536
  .amdhsa_enable_private_segment 1
.end_amdhsa_kernel
.amdgpu_metadata
---
amdhsa.version: [1, 0]
amdhsa.target: amdgcn-amd-amdhsa--gfx1100
amdhsa.kernels:
  - .name: test
    .symbol: test.kd
    .kernarg_segment_size: 8
    .group_segment_fixed_size: 65536
    .private_segment_fixed_size: 65536
    .kernarg_segment_align: 8
    .wavefront_size: {wave}
    .sgpr_count: 96
    .vgpr_count: 256
    .max_flat_workgroup_size: 1024
    .args: [{{.address_space: global, .offset: 0, .size: 8, .value_kind: global_buffer}}]
...
.end_amdgpu_metadata
"""


def code_object(wave):
    """A kernel of nothing but s_endpgm, into which instructions are written, and where they begin."""
    with tempfile.TemporaryDirectory() as folder:
        made, linked = os.path.join(folder, "o"), os.path.join(folder, "hsaco")
        subprocess.run([emulator.tool("llvm-mc"), "-triple=amdgcn-amd-amdhsa", "-mcpu=gfx1100", f"-mattr=+wavefrontsize{wave}", "-filetype=obj", "-o", made],
                       input=KERNEL.format(words=ROOM // 4, wave=wave, wave32=int(wave == 32)), text=True, check=True)
        subprocess.run([emulator.tool("ld.lld"), "-shared", made, "-o", linked], check=True)
        image = pathlib.Path(linked).read_bytes()
    return image, image.index(bytes.fromhex("0000b0bf") * (ROOM // 4))


class Card:
    def __init__(self):
        self.hip = ctypes.CDLL(str(LIBRARY))
        self.objects = {wave: code_object(wave) for wave in (32, 64)}

    def call(self, name, *arguments):
        status = getattr(self.hip, name)(*arguments)
        if status:
            raise RuntimeError(f"{name}: {status}")

    def run(self, code, lanes, room, wave=32):
        """What |code| stored in a buffer of |room| zeros, whose address lies behind its kernel's arguments' address."""
        image, at = self.objects[wave]
        assert len(code) <= ROOM
        image = image[:at] + code + image[at + len(code):]
        module, function, memory, out = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(), (ctypes.c_uint8 * room)()
        self.call("hipModuleLoadData", ctypes.byref(module), image)
        self.call("hipModuleGetFunction", ctypes.byref(function), module, b"test")
        self.call("hipMalloc", ctypes.byref(memory), ctypes.c_size_t(room))
        self.call("hipMemset", memory, 0, ctypes.c_size_t(room))
        arguments = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.pointer(memory), ctypes.c_void_p))
        try:
            self.call("hipModuleLaunchKernel", function, 1, 1, 1, lanes, 1, 1, 0, None, arguments, None)
            self.call("hipDeviceSynchronize")
            self.call("hipMemcpy", out, memory, ctypes.c_size_t(room), 2)
        finally:
            self.hip.hipFree(memory)
            self.hip.hipModuleUnload(module)
        return bytes(out)


class Here:
    """A plugin of pytest: the checks run on the card, not on tinygrad's own emulator."""

    def pytest_collection_modifyitems(self, config, items):
        left_out = [i for i in items if any(name in i.nodeid for name in ELSEWHERE)]
        items[:] = [i for i in items if i not in left_out]
        config.hook.pytest_deselected(items=left_out)

    def pytest_configure(self):
        import test.amd.hw.helpers as helpers
        import test.amd.hw.test_dpp as dpp

        card = Card()

        def run(instructions, n_lanes=1):
            first, last = helpers.get_prologue_epilogue(n_lanes)
            code = CLEAR_SCC + helpers.assemble(first + instructions + last)
            return helpers.parse_output(card.run(code, n_lanes, helpers._out_bytes(n_lanes)), n_lanes)

        def run_64(instructions, out_reg=1):
            return list(memoryview(card.run(dpp._wave64_code(instructions, out_reg), 64, 256, wave=64)).cast("I"))

        helpers.run_program_emu, dpp._run_wave64_emu = run, run_64


def main():
    if not (CHECKOUT / "test/amd/hw").is_dir():
        print(f"{CHECKOUT}/test/amd/hw is not there: left out")
        return 77
    import pytest

    os.environ.setdefault("RDNA_EMULATE", "gfx1100")
    os.environ.setdefault("RDNA_EMULATE_CHECK", "1")
    os.environ.setdefault("RDNA_EMULATE_EXITCODE", "0")  # pytest knows what failed
    sys.path.insert(0, str(CHECKOUT))
    os.chdir(CHECKOUT)
    return pytest.main(["-q", "-p", "no:cacheprovider", "test/amd/hw"], plugins=[Here()])


if __name__ == "__main__":
    raise SystemExit(main())

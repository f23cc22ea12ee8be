"""Emulated AMD GPUs in place of AMD's libamdhip64.

    import rdna_emulator
    rdna_emulator.load("gfx1201", check=True)     # before anything loads libamdhip64

loads the emulator into this process under all of AMD's names, so that whatever asks the dynamic loader for one of them
gets it; `environment` is the same for processes that are started. Both need nothing but Python's own library.
"""
import ctypes
import os
import pathlib

_HERE = pathlib.Path(__file__).resolve().parent
# what LD_LIBRARY_PATH wants: the wheel's, or that of `cmake --install`
FOLDER = _HERE / "lib" if (_HERE / "lib").exists() else _HERE.parent.parent / "dropin"
LIBRARY = FOLDER / "libamdhip64.so.7"  # the emulator; the others of the folder lead to it
NAMES = ("libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so")

_loaded = []


def environment(target=None, check=False, base=None):
    """A copy of |base| (os.environ) with which a program finds the emulator. target: "gfx1201", or several with commas;
    None: whatever RDNA_EMULATE says. check: True, or "report", which makes findings no errors of the launches."""
    settings = dict(os.environ if base is None else base)
    others = [p for p in settings.get("LD_LIBRARY_PATH", "").split(os.pathsep) if p and p != str(FOLDER)]
    settings["LD_LIBRARY_PATH"] = os.pathsep.join([str(FOLDER), *others])
    settings["RDNA_HIP_LIBRARY"] = str(LIBRARY)
    if target:
        settings["RDNA_EMULATE"] = target
    if check:
        settings["RDNA_EMULATE_CHECK"] = "report" if check == "report" else "1"
    return settings


def load(target=None, check=False):
    """Loads the emulator into this process, sets the environment for it and for programs started from here, and returns
    it as a ctypes library. It must come before the first use of a GPU: devices are those of the first call."""
    os.environ.update(environment(target, check))
    if not _loaded:
        # by their sonames, which a later dlopen("libamdhip64.so") finds; kept for as long as the process
        _loaded.extend(ctypes.CDLL(str(FOLDER / name), ctypes.RTLD_GLOBAL) for name in NAMES)
    return _loaded[0]


def take_reports():
    """Waits for all that was launched in this process, and returns what the checker has found and which launches failed
    since the last call, a sentence each. The first call finds nothing: from then on reports are kept."""
    take = load().emu_report_take
    take.restype = ctypes.c_size_t
    text = ctypes.create_string_buffer(1 << 20)
    take(text, ctypes.c_size_t(len(text)))
    return text.value.decode(errors="replace").splitlines()

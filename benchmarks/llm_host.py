#!/usr/bin/env python3
"""Language models on the processor beside llama.cpp's libraries: benchmarks/llm_host.py FOLDER

FOLDER has libllama, libggml, libggml-base and libggml-cpu (or one for each kind of processor) of a build of llama.cpp. Of models of random
weights prints how fast a prompt of 512 tokens is read, and how fast 16 tokens are written behind it and behind a longer text: ours over theirs.
Both sides run in turns, each in a process of its own, and the least time of several rounds counts; the time is that of the processor in the
programs (user time of all threads), which other programs disturb less than the clock does. With --clock it is the clock's, for machines that
do nothing else. User time of several threads counts what threads wait in a loop, too. Needs NumPy and a built librdna (RDNA_LIBRARY)."""
import argparse
import ctypes
import math
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import made_model
from rdna_ctypes import Options

MODELS = [name.removeprefix("host-") for name in made_model.SHAPES if name.startswith("host-")]


class SessionOptions(Options):
    _fields_ = [("context", ctypes.c_int), ("kv_dtype", ctypes.c_int), ("batch", ctypes.c_int), ("exact", ctypes.c_int)]


class Ours:
    def __init__(self, library, model, context, exact):
        self.library = ctypes.CDLL(library)
        self.library.rdna_last_error.restype = ctypes.c_char_p
        device, file, llm, self.session = (ctypes.c_void_p() for _ in range(4))
        self.call("rdna_device_open", b"host", ctypes.byref(device))
        self.call("rdna_gguf_open", model.encode(), ctypes.byref(file))
        self.call("rdna_llm_open", device, file, None, None, ctypes.byref(llm))
        options = SessionOptions(context, 1, 512, exact)
        self.call("rdna_llm_session_create", llm, ctypes.byref(options), ctypes.byref(self.session))
        self.logits = (ctypes.c_float * (1 << 18))()

    def call(self, name, *arguments):
        if getattr(self.library, name)(*arguments) != 0:
            raise RuntimeError(self.library.rdna_last_error().decode())

    def read(self, tokens):
        self.call("rdna_llm_session_eval", self.session, tokens, len(tokens), self.logits)

    def forget(self, position):
        self.call("rdna_llm_session_rewind", self.session, position)


class Parameters(ctypes.Structure):
    """Any of llama.cpp's structs of them, which are shorter; a context's begins with its length and its batches."""
    _fields_ = [("words", ctypes.c_uint32 * 128)]


class Batch(ctypes.Structure):
    """llama_batch"""
    _fields_ = [("n_tokens", ctypes.c_int32)] + [(name, ctypes.c_void_p) for name in ("token", "embd", "pos", "n_seq_id", "seq_id", "logits")]


class Theirs:
    def __init__(self, folder, model, context, threads):
        def load(name):
            found = sorted(pathlib.Path(folder).glob(f"lib{name}.so*")) + sorted(pathlib.Path(folder).glob(f"lib{name}.v*.so"))
            if not found:
                sys.exit(f"no lib{name}.so in {folder}")
            return ctypes.CDLL(str(found[0]), ctypes.RTLD_GLOBAL)

        self.silent = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)(lambda *_: None)
        load("ggml-base")
        registry = load("ggml")
        self.llama = llama = load("llama")
        llama.llama_log_set(self.silent, None)
        for name in ("model", "context"):
            getattr(llama, f"llama_{name}_default_params").restype = Parameters
        for name, arguments in (("llama_model_load_from_file", (ctypes.c_char_p, Parameters)), ("llama_init_from_model", (ctypes.c_void_p, Parameters)),
                                ("llama_get_memory", (ctypes.c_void_p,))):
            getattr(llama, name).argtypes, getattr(llama, name).restype = arguments, ctypes.c_void_p
        llama.llama_batch_get_one.restype = Batch
        llama.llama_batch_get_one.argtypes = ctypes.POINTER(ctypes.c_int32), ctypes.c_int32
        llama.llama_decode.argtypes = ctypes.c_void_p, Batch
        llama.llama_memory_seq_rm.argtypes = ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32, ctypes.c_int32
        registry.ggml_backend_load_all_from_path(folder.encode())
        opened = llama.llama_model_load_from_file(model.encode(), llama.llama_model_default_params())
        parameters = llama.llama_context_default_params()
        parameters.words[0] = context
        self.context = llama.llama_init_from_model(opened, parameters) if opened else None
        if not self.context:
            sys.exit(f"llama.cpp does not open {model}")
        llama.llama_set_n_threads(ctypes.c_void_p(self.context), threads, threads)

    def read(self, tokens):
        if self.llama.llama_decode(self.context, self.llama.llama_batch_get_one(tokens, len(tokens))) != 0:
            raise RuntimeError("llama_decode failed")
        self.llama.llama_synchronize(ctypes.c_void_p(self.context))

    def forget(self, position):
        self.llama.llama_memory_seq_rm(self.llama.llama_get_memory(self.context), 0, position, -1)


def now(clock):
    return time.perf_counter() if clock else resource.getrusage(resource.RUSAGE_SELF).ru_utime


def serve(side, clock):
    """Times what the lines of the standard input ask: how many tokens are there before, and how many are read at once and how often."""
    there = 0
    for line in sys.stdin:
        before, count, times = map(int, line.split())
        if there < before:
            for at in range(there, before, 512):
                side.read((ctypes.c_int32 * min(512, before - at))(*(i % 1000 + 5 for i in range(at, min(at + 512, before)))))
        side.forget(before)
        tokens = (ctypes.c_int32 * count)(*(i * 7 % 1000 + 5 for i in range(count)))
        start = now(clock)
        for _ in range(times):
            side.read(tokens)
        print(now(clock) - start, flush=True)
        side.forget(before)
        there = before


def start(arguments, side, model, threads):
    command = [sys.executable, __file__, arguments.folder, "--side", side, "--model", str(model), "--context", str(arguments.depth + 640)]
    command += ["--threads", str(threads)] + ["--clock"] * arguments.clock + ["--exact"] * arguments.exact
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "RDNA_THREADS": str(threads)})


def ask(process, work):
    try:
        print(*work, file=process.stdin, flush=True)
    except BrokenPipeError:
        pass
    answer = process.stdout.readline()
    if not answer:
        sys.exit(f"the side in process {process.pid} ended; what it said is above")
    return float(answer)


def works_of(depth):
    """How many tokens are there before, and how many are read at once and how often, by names."""
    return {"prompt": (0, 512, 1), "write": (64, 1, 16), f"write behind {depth}": (depth, 1, 8), f"prompt behind {depth}": (depth, 128, 1)}


def compare(arguments, model, threads):
    """(name, tokens, ours, theirs) of each kind of work, in seconds."""
    sides = [start(arguments, side, model, threads) for side in ("ours", "theirs")]
    for name, work in works_of(arguments.depth).items():
        if name not in arguments.works:
            continue
        for side in sides:
            ask(side, (work[0], work[1], 1))  # to be warm
        times = [[ask(side, work) for side in sides] for _ in range(arguments.rounds)]
        yield name, work[1] * work[2], *(min(each) for each in zip(*times))
    for side in sides:
        side.stdin.close()
        side.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--models", default=",".join(MODELS), help="of " + ", ".join(MODELS))
    parser.add_argument("--works", help="of prompt, write, write behind DEPTH, prompt behind DEPTH, by commas; all where not given")
    parser.add_argument("--threads", default="1")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--depth", type=int, default=2048)
    parser.add_argument("--clock", action="store_true", help="the clock's time")
    parser.add_argument("--exact", action="store_true", help="ours does not round activations")
    parser.add_argument("--keep", help="a folder for the models, which are made where they are not there")
    for name in ("--side", "--model", "--context"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.side:
        library, context = os.environ.get("RDNA_LIBRARY", str(ROOT / "build/release/lib/librdna.so")), int(arguments.context)
        serve(Ours(library, arguments.model, context, int(arguments.exact)) if arguments.side == "ours"
              else Theirs(arguments.folder, arguments.model, context, int(arguments.threads)), arguments.clock)
        return
    works = list(works_of(arguments.depth))
    arguments.works, models = arguments.works.split(",") if arguments.works else works, arguments.models.split(",")
    for asked, known, what in ((arguments.works, works, "works"), (models, MODELS, "models")):
        if unknown := [name for name in asked if name not in known]:
            parser.error(f"{what} are {', '.join(known)}; there is no {', '.join(unknown)}")
    ratios = []
    with tempfile.TemporaryDirectory() as temporary:
        for name in models:
            model = pathlib.Path(arguments.keep or temporary) / f"{name}.gguf"
            if not model.exists():
                made_model.write(model, f"host-{name}")
            for threads in map(int, arguments.threads.split(",")):
                for work, tokens, ours, theirs in compare(arguments, model, threads):
                    ratios.append(theirs / ours)
                    print(f"{name:8} {threads} threads  {work:20} {tokens / ours:9.1f} {tokens / theirs:9.1f} tokens/s  {ratios[-1]:5.2f}", flush=True)
            if not arguments.keep:
                model.unlink()
    print(f"geometric mean of {len(ratios)}: {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}, least {min(ratios):.2f}")


if __name__ == "__main__":
    main()

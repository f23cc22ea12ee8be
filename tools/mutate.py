#!/usr/bin/env python3
"""Plants mistakes, one at a time, in a copy of the sources, and sees whether the tests find them.

    tools/mutate.py [--count 60] [--seed TEXT] [--area AREA,…] [--pattern PATTERN,…] [--only ID,…] [--list] [--json FILE]
                    [--kernels-from BUILD]

A mistake is a pattern of PATTERNS at one place: a comparison that takes its end in or not, a barrier that is gone, a
wait, a check, a bound off by one, a constant, a grid half as large, another type. Which places are taken follows from
the seed and the text of the line, so that a sample stays the same while other lines change. Of each area of AREAS comes
its share.

Each mistake is built in build/mutate and tried by the commands of its file, quickest first, until one fails: they are
commands that `make test` runs, or parts of them, and those of them that could see a mistake there; a mistake that
another suite alone would see counts as a survivor. Not planted are what other vendors' GPUs alone execute, what only
words a message, and which of several kernels runs where (costs, thresholds, sizes of tiles): that is a matter of speed.
A mistake that does not compile is replaced by the next.

The areas' shares are about as large as what can go wrong there, and as what users meet: of 100 mistakes 38 are in the
operators with their kernels and twins, 13 in the layers below them, 17 in language models, the server and the command,
22 in the emulator, 10 in the PyTorch plugin. Not covered: NCCL's process group, which CI has no GPUs for, and benches
beside `rdna bench`.

The table says what found it; those that nothing found are shown as they read. tools/mutants.txt lists the known
survivors, each with its reason: "equivalent", where the program does the same (another order, a heuristic of speed), or
what is not tested and why. Equivalent ones are left out of the rate. The exit status is 1 where fewer than 95 % are
found, or where a listed survivor is found after all. Run alone on a machine: suites that look at time fail under load.
"""

import argparse
import glob
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COPY = os.path.join(ROOT, "build", "mutate")
KNOWN = os.path.join(ROOT, "tools", "mutants.txt")
GPU = "RDNA_TEST_DEVICE=hip RDNA_EMULATE=gfx1100 RDNA_EMULATE_CHECK=1"
CASES = 8  # of a kernel, as many as CI has

# name: expression, replacement; one mutant for each match. None where no line of that file can have it.
PATTERNS = {
    "comparison": [(r"(?<=[\w)\]]) < (?=[\w(*-])", " <= "), (r" <= ", " < "), (r"(?<=[\w)\]]) > (?=[\w(*-])", " >= "),
                   (r" >= ", " > ")],
    "equality": [(r" == (?!NULL)", " != "), (r" != (?!NULL)", " == ")],
    "logic": [(r" && ", " || "), (r" \|\| ", " && ")],
    "bound": [(r"(?<=\w) - 1(?=[;,)\]])", ""), (r"(?<=\w) \+ 1(?=[;,)\]])", ""), (r"\bmin\(", "max("), (r"\bmax\(", "min(")],
    "sign": [(r"(?<=[\w)\]]) \+ (?=[a-z(])", " - "), (r"(?<=[\w)\]]) - (?=[a-z(])", " + ")],
    "shift": [(r"<< (\d+)\b", lambda m: f"<< {int(m[1]) + 1}"), (r">> (\d+)\b", lambda m: f">> {int(m[1]) + 1}")],
    "constant": [(r"(?<=[=*/+(,] )(\d+\.\d+f?)\b(?!f)", lambda m: f"(1.01f * {m[1]})" if float(m[1].rstrip("f")) else "0.01f"),
                 (r"& 0x([0-9a-f]+)\b", lambda m: f"& 0x{int(m[1], 16) >> 1:x}")],
    "barrier": [(r"^\s*(group_barrier|wave_barrier|group_barrier_global)\(\);$", "")],
    "wait": [(r"^\s*RDNA_TRY\((\w*(?:wait|synchronize)\w*\(.*\))\);$", ""),
             (r"^\s*\w*(?:_wait|_synchronize|StreamWaitEvent|_join)\w*\([^;]*\);$", "")],
    "grid": [(r"(?<=, )([\w ()*]+)(?=, &grid\.x\)\))", lambda m: f"2 * ({m[1]})"),
             (r"\(rdna_grid\)\{(?![01],)((?:\([^{}]*?\))?[^{},]+),", lambda m: "(rdna_grid){" + f"(({m[1]}) + 1) / 2,")],
    "dtype": [(r"\bRDNA_F16\b", "RDNA_BF16"), (r"\bRDNA_BF16\b", "RDNA_F16"), (r"\bRDNA_I32\b", "RDNA_U8")],
    "check": [(r"^\s*RDNA_TRY\(rdna__check_\w+\(.*\)\);$", ""), (r"^\s*if \(.*\) return rdna__fail\(.*\);$", "")],
    "statement": [(r"^\s*[\w.>\[\]-]+ (?:[-+|&^*]|<<|>>)?= [^;{}]*;$", ""), (r"^\s*[\w.>\[\]-]+(?:\+\+|--);$", "")],
}
FLAG = [(r"\btrue\b", "false"), (r"\bfalse\b(?!;)", "true")]  # of calls into PyTorch: descending, keepdim, what is returned
PYTHON_PATTERNS = {
    "comparison": PATTERNS["comparison"],
    "equality": PATTERNS["equality"],
    "logic": [(r" and ", " or "), (r" or ", " and "), (r"\bnot ", "")],
    "bound": PATTERNS["bound"][:2],
    "constant": [(r"\bTrue\b", "False"), (r"\bFalse\b", "True")],
}

# Which of several kernels runs is a matter of speed: each of them must be right, and is compared with its twin.
HEURISTIC = re.compile(r"cost|appl(y|ies)$|aligned|grain|prefer|choose|choice|_fits|most_groups|grid_of|chunk_grid")

# Code that no machine of CI executes: other vendors' and other generations' branches.
ELSEWHERE = re.compile(r"RDNA_NVIDIA|__NVPTX__|__CUDA|WGMMA|MFMA|gfx9|gfx10[1]|gfx12|GFX9|GFX12|WAVE_SIZE == 64|FAKE_|__APPLE__|_WIN32|SIMD_WIDTH [=>]+ [48]")


def runs_on_gpu(file):
    with open(os.path.join(ROOT, file), encoding="utf-8") as f:
        return file.endswith(".hip") or file.endswith(".h") and re.search(r"\bRDNA_(DEVICE|SCALAR|MEMBER)\b", f.read())


def suites_of(file):
    """Commands for a file of src/math: the folder's suites on the host, then on an emulated card, and its kernels' cases."""
    folder = os.path.dirname(file)
    here = os.listdir(os.path.join(ROOT, folder))
    tests = sorted(f[:-2] for f in here if f.endswith("_test.c") and "vendor" not in f and f != "comm_test.c")
    families = sorted(f[:-4] for f in here if f.endswith(".hip"))
    own = os.path.splitext(os.path.basename(file))[0]
    families.sort(key=lambda f: (not own.startswith(f), f))  # the file's own first
    host = [f"bin/{t}" for t in tests]
    if "vendor" in file or re.search(r"_lt|rocblas|miopen", file):
        return [f"bin/{f[:-2]}" for f in here if f.endswith("vendor_test.c")] or ["bin/gemm_vendor_test"]
    if "/comm/" in file:
        return ["bin/comm_test"]
    cases = [f"{GPU} bin/cases_test hip {CASES} {f}" for f in families]
    card = [f"{GPU} bin/{t}" for t in tests]
    return (cases + card + host) if runs_on_gpu(file) else (host + card + cases)


def suites(*names):
    """C suites of the host: bin/NAME_test."""
    return [f"bin/{name}_test" for name in names]


def sanitized(*names):
    """C suites with the address and undefined-behaviour sanitizers, which see what lies beyond an array's end."""
    return [f"cd ../asan && bin/{name}_test" for name in names]


def on_card(*names):
    """C suites on an emulated card: launch grids are seen there alone."""
    return [f"{GPU} bin/{name}_test" for name in names]


def programs(*names):
    """Suites of tests/, as ctest runs them."""
    helpers = {"grammar": "RDNA_GRAMMAR_WALK=$PWD/bin/grammar_walk ", "reply": "RDNA_REPLY_CUTS=$PWD/bin/reply_cuts ",
               "host_memory": "RDNA_FAILING_MALLOC=$PWD/tests/libfailing_malloc.so "}
    return [f"RDNA_PROGRAM=$PWD/bin/rdna {helpers.get(name, '')}PYTHONDONTWRITEBYTECODE=1 python3 {{root}}/tests/{name}_test.py"
            for name in names]


def emulator(*names):
    """Suites of the emulator, by ctest's names after the first dot."""
    return [f"ctest -Q -j2 --stop-on-failure -R '^emulator.({'|'.join(names)})$'"]


def by_file(*rows, otherwise=()):
    """The commands of the first row whose expression is in a file's path."""
    return lambda file: next((commands for path, commands in rows if re.search(path, file)), list(otherwise))


CONFORMANCE = ["bin/conformance_test host", "bin/conformance_test null"]
CONFORMANCE_HIP = ["RDNA_EMULATE=gfx1100,gfx1030 bin/conformance_test hip"]
device = by_file(
    ("driver/cuda/overlap", suites("overlap", "cuda") + sanitized("overlap")),
    ("driver/cuda", suites("cuda") + programs("tune") + sanitized("cuda")),
    ("driver/hip", suites("hip") + CONFORMANCE_HIP + programs("tune", "host_memory", "emulated") + sanitized("hip")),
    ("driver/gpu", suites("hip", "cuda") + CONFORMANCE_HIP + programs("host_memory", "emulated") + sanitized("hip", "cuda")),
    ("driver/host", suites("host_queue") + CONFORMANCE + suites("profile", "faults", "overlap", "arguments") + programs("command")
     + sanitized("host_queue", "conformance")),
    ("driver/null", CONFORMANCE + suites("registry")),
    ("driver/rehearsal", suites("rehearsal", "llm") + programs("plan")),
    ("driver/library", suites("hip", "cuda", "doctor", "gemm_vendor") + programs("tune")),
    otherwise=suites("registry", "topology", "traits", "doctor", "memory", "profile", "host_queue", "overlap", "allocator", "faults", "rehearsal")
    + CONFORMANCE + suites("hip", "cuda") + CONFORMANCE_HIP + programs("tune", "command", "host_memory")
    + sanitized("topology", "doctor", "memory", "allocator", "faults", "conformance"))

kernel_layer = by_file(
    ("tuner", suites("tuner", "tuner_shipped") + programs("tune", "host_memory") + sanitized("tuner")),
    ("kernel/(compile|code_object|kernel_name|ptx|module|hip_subset)", suites("compile") + programs("compile") + sanitized("compile")),
    ("retarget", suites("retarget", "retarget_hostile", "loader") + sanitized("retarget_hostile")),
    ("pack|loader|manifest", suites("pack", "loader", "kernel", "manifest", "retarget") + programs("kernels", "command", "host_memory") + sanitized("pack", "loader")),
    ("kernel/dtype", suites("cast", "reduce", "scan", "indexed", "pointwise", "sort", "arguments")),
    ("kernel/(case|host)", suites("case", "host", "selftest", "kernel")),
    otherwise=suites("kernel", "host", "case", "scalar", "scalar64", "cast", "pack", "loader", "tuner") + sanitized("kernel"))

ANY_MODEL = programs("logits") + suites("llm", "cache", "missing_arguments") + programs("host_memory", "sessions", "architectures", "embed")
model = by_file(
    ("model/gguf", suites("gguf", "gguf_write", "missing_arguments") + programs("convert", "logits", "host_memory", "convert_architectures") + sanitized("gguf", "gguf_write")),
    ("model/grammar", suites("grammar") + programs("grammar", "host_memory", "serve_tools") + sanitized("grammar")),
    ("model/reply", programs("reply", "serve_tools", "chat")),
    ("model/template", suites("template", "missing_arguments") + programs("template", "chat", "host_memory") + sanitized("template")),
    ("model/tokenizer", suites("tokenizer", "tokenizer_vocab", "missing_arguments") + programs("wordpiece", "command", "host_memory", "convert_architectures") + sanitized("tokenizer")),
    ("model/sampler", suites("sampler", "missing_arguments") + programs("command", "host_memory", "serve") + sanitized("sampler")),
    ("weights/(quantize|transcode|imatrix)|llm/importance", programs("convert", "imatrix", "perplexity", "host_memory")),
    ("weights/(hf|safetensors|convert|keys)", programs("convert") + suites("missing_arguments") + programs("host_memory", "convert_architectures")),
    ("weights/", programs("convert", "logits") + suites("llm") + programs("command", "host_memory", "plan", "split", "architectures")),
    ("llm/arch/", programs("logits", "host_memory", "architectures", "convert_architectures", "embed")),
    ("llm/plan", suites("llm", "missing_arguments") + programs("plan", "split", "host_memory")),
    ("llm/|nn/", ANY_MODEL + programs("split", "plan") + sanitized("llm", "cache")))

serve = programs("serve", "serve_interfaces", "serve_tools", "serve_responses")
server = by_file(
    ("server/page", programs("serve_page")),
    ("jobs|job|heartbeat|watch|worker", programs("serve_worker", "serve_operation", "serve_limits")),
    ("loader|catalog|preset|keep_alive|model", programs("serve_models", "serve_worker", "serve_limits", "serve")),
    ("clients|operation|log|scheduler|http|server/server|routes|bytes", programs("serve_limits", "serve_operation") + serve + programs("serve_models", "host_memory")),
    ("anthropic|ollama|texts", programs("serve_interfaces", "serve_tools", "serve")),
    ("responses", programs("serve_responses")),
    ("openai|answer", serve + programs("embed", "serve_operation")),
    ("grammars|parts", programs("serve_tools", "serve_responses", "serve_interfaces")),
    otherwise=serve)

command = by_file(
    ("command/(convert|quantize)", programs("convert", "imatrix")),
    ("command/imatrix", programs("imatrix", "host_memory")),
    ("command/perplexity", programs("perplexity", "host_memory")),
    ("command/logits", programs("logits")),
    ("command/tune", programs("tune")),
    ("command/compile", programs("compile")),
    ("command/emulate", programs("emulate")),
    ("command/embed", programs("embed", "host_memory")),
    ("command/kernels|command/where", suites("where") + programs("kernels", "command", "tune", "emulated")),
    ("command/(chat|template|text)", programs("chat", "template", "command")),
    ("command/serve", programs("serve", "serve_interfaces", "serve_tools")),
    ("command/(placement|run|generation|weights)", programs("command", "chat", "serve", "plan", "split")),
    otherwise=programs("command", "chat", "tune", "convert"))

base = by_file(
    ("json", suites("base") + programs("command", "serve", "convert")),
    ("random", suites("base", "sampler", "random") + programs("command", "serve")),
    ("options", suites("options") + programs("command")),
    otherwise=suites("base", "options", "strmap", "tensor", "kernel", "arguments") + programs("command")
    + sanitized("base", "options", "strmap", "tensor"))

shared_by_operators = by_file(
    ("math/(selftest|manifest|routes)", suites("manifest", "routes", "selftest") + programs("kernels", "command", "emulated")),
    ("common/host|gemm_blocked", suites("cast", "gemm", "quant", "softmax", "norm", "reduce", "pointwise", "loss", "deterministic", "scan", "sort", "attention")),
    otherwise=suites("check", "route", "arguments", "movement", "pointwise", "reduce", "pool", "fused", "upsample", "conv", "indexed")
    + on_card("pool", "upsample", "fused", "movement", "pointwise") + sanitized("check", "route"))

instructions = emulator("semantics", "opcodes")
machine = by_file(
    ("checker|watch|schedule", emulator("planted.*", "dispatch") + emulator("launch", "emulated_hip_test") + instructions
     + emulator("conversion", "matrix", "kernels", "random")),
    ("hardware|dot|divide|transcendental", emulator("hardware.*") + instructions + emulator("conversion", "matrix", "kernels")),
    otherwise=instructions + emulator("conversion", "matrix", "kernels", "dispatch", "random", "planted.*") + emulator("launch"))

PLUGIN = "RDNA_DRIVER=host PYTHONPATH=../torch PYTHONDONTWRITEBYTECODE=1 {python} "
PYTEST = PLUGIN + "-m pytest -x -q -p no:cacheprovider {root}/bindings/torch/tests/"
# All of PyTorch's samples that make test has at every commit, beside the tests; the last resort, being longest.
WHOLE_PLUGIN = [PLUGIN + "{root}/bindings/torch/tests/opinfo.py --section float32/forward", PYTEST]


def pytests(*names):
    return [PLUGIN + "-m pytest -x -q -p no:cacheprovider" + "".join(f" {{root}}/bindings/torch/tests/test_{name}.py" for name in names)]


plugin = by_file(
    (r"ops/(random|sampling)|generator", pytests("random", "sampling")),
    (r"ops/(grid_sample|upsample)", pytests("resampling")),
    (r"ops/fft", pytests("fft")),
    (r"ops/(linalg|lu|matmul|qr|spectral)|matrices", pytests("linalg", "doubles", "transformer")),
    (r"ops/complex|parts", pytests("complex", "fft", "edges")),
    (r"ops/special", pytests("special")),
    (r"ops/recurrent", pytests("recurrent")),
    (r"ops/(attention|transformer)|_encoder", pytests("attention", "transformer")),
    (r"ops/foreach", pytests("foreach")),
    (r"ops/(optim|amp)|autocast", pytests("training", "autocast")),
    (r"ops/embedding_bag", pytests("embedding_bag", "sparse")),
    (r"ops/sparse", pytests("sparse", "modules", "edges", "bad_input")),
    (r"ops/ctc", pytests("ctc")),
    (r"ops/(vision|deform)", pytests("vision")),
    (r"ops/(histogram|order|segments)", pytests("order", "segments", "fallback_types")),
    (r"ops/(sync_batch|norm|weight_norm)", pytests("sync_batch_norm", "modules", "margins", "edges", "doubles", "results")),
    (r"ops/(loss|margin)", pytests("margins", "targets", "edges", "bad_input", "doubles")),
    (r"ops/(conv|pool|fractional_pool|movement)", pytests("windows", "edges", "results", "doubles", "modules", "bad_input")),
    (r"ops/", pytests("edges", "results", "slices", "bad_input", "doubles", "device", "complex")),
    (r"as_cuda", pytests("as_cuda")),
    (r"_compile", pytests("compile")),
    (r"profiler", pytests("profiler")),
    (r"_(accelerate|libraries|lightning|safetensors|transformers)", pytests("libraries")),
    (r"history|_sensors|graphs|memory|nvtx|streams", pytests("names", "device")),
    (r"fallback", pytests("fallback_types", "device", "results")),
    (r"dlpack|set_data|pinned|sharing", pytests("interchange", "sharing")),
    (r"one_device|outside|device|guard|hooks", pytests("device", "modules", "bad_input", "names")),
    otherwise=pytests("device", "edges", "slices", "results", "names", "libraries"))


# (area, share of the sample, files, commands of a file, the quickest first). Commands run in the build folder.
AREAS = [
    ("kernels", 24, r"src/math/\w+/\w+\.(hip|h)$", suites_of),  # of headers those with device code
    ("twins", 10, r"src/math/\w+/\w+_host(_\w+)?\.c$", suites_of),
    ("operators", 20, r"src/math/\w+/\w+\.c$", lambda f: ["bin/arguments_test"] + suites_of(f)),
    ("math common", 4, r"src/math/(common/(plan|host)/\w+|gemm/gemm_blocked|\w+)\.(c|h)$", shared_by_operators),
    ("kernel headers", 4, r"src/(kernel/(prelude|mma|scalar|scalar64|float8)|math/common/device/\w+)\.h$",
     lambda f: ["bin/scalar_test", "bin/scalar64_test", "bin/cast_test", f"{GPU} bin/cases_test hip {CASES}"]),
    ("kernel layer", 6, r"src/kernel/\w+\.(c|h)$", kernel_layer),
    ("device", 12, r"src/device/(\w+|driver/(\w+/)?\w+)\.(c|h)$", device),
    ("base", 4, r"src/base/\w+\.(c|h)$", base),
    ("model", 16, r"src/model/(\w+/)*\w+\.c$", model),
    ("server", 8, r"src/server/\w+\.(c|h)$", server),
    ("command", 4, r"src/command/\w+\.(c|h)$", command),
    ("emulator machine", 20, r"emulator/machine/\w+\.(c|h)$", machine),
    ("emulator decoder", 6, r"emulator/isa/\w+\.(c|h)$",
     lambda f: emulator("isa_test", "isa_corpus_.*") + emulator("isa_llvm_.*") + emulator("semantics", "opcodes")),
    ("emulator runtime", 10, r"emulator/(hip|object)/\w+\.(c|h)$",
     lambda f: emulator("object_test", "emulated_hip_test", "exit_test", "names_test") + emulator("hipcc_.*", "launch", "planted.*")
     + emulator("rocrand_test", "conformance") + programs("emulate")),
    ("plugin", 12, r"bindings/torch/csrc/(ops/)?\w+\.(cpp|h)$", lambda f: plugin(f) + WHOLE_PLUGIN),
    ("plugin Python", 4, r"bindings/torch/torch_rdna/\w+\.py$", lambda f: plugin(f) + WHOLE_PLUGIN),
]
NOT_A_SOURCE = re.compile(r"_(test|bench|fuzz|cases|builder|choice)\.c$|conv_(direct|layout)\.c$|/(fake_\w+|case\w*|main)\.[ch]$|_(tests?|cases?)\.h$"
                          r"|/testing\w*\.h$|/test/|isa_(samples|llvm|objects|corpus)|wgmma|process_group")


class Mutant:
    def __init__(self, area, file, number, pattern, line, changed):
        self.area, self.file, self.number, self.pattern = area, file, number, pattern
        self.line, self.changed = line, changed
        self.id = ""

    def show(self):
        return f"{self.id}  {self.file}:{self.number}  {self.pattern}\n    - {self.line.strip()}\n    + {self.changed.strip() or '(gone)'}"


def lines_that_run(text, python):
    """(number, line) of the lines that can hold a mistake: code that CI's machines execute, in functions."""
    elsewhere, comment, function = [], False, ""
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip()
        if python:
            if stripped and not stripped.startswith(("#", '"', "'", "import ", "from ", "raise ", "def ", "class ")):
                yield number, line
            continue
        if re.match(r"#\s*if", stripped):
            elsewhere.append(bool(ELSEWHERE.search(stripped)))
            continue
        if re.match(r"#\s*el(if|se)", stripped) and elsewhere:
            elsewhere[-1] = not elsewhere[-1] if stripped.startswith("#else") else bool(ELSEWHERE.search(stripped))
            continue
        if re.match(r"#\s*endif", stripped) and elsewhere:
            elsewhere.pop()
            continue
        starts, comment_before = stripped.startswith("/*"), comment
        if "/*" in line and "*/" not in line.split("/*")[-1]:
            comment = True
        if "*/" in line:
            comment = False
        if comment_before or starts or not stripped or any(elsewhere):
            continue
        if stripped.startswith(("#", "//", "assert", "static_assert", "_Static_assert", "__builtin_", '"')) or "#define" in line:
            continue
        if line[:1] not in " \t":  # a declaration, or where a function begins
            if name := re.match(r"[\w *]*?(\w+)\(", line):
                function = name[1]
            continue
        if HEURISTIC.search(function) or re.match(r"[{]|[A-Z0-9_]+ = [^;]*$", stripped):  # rows of tables, sizes of tiles
            continue
        if re.search(r"^\s*(return )?rdna__\w*fail\(|rdna__log|snprintf|printf\(|pragma|RDNA_LIKELY", line):
            continue  # what only words a message
        yield number, line.split(" //")[0].split(" /*")[0]


def mutants_of(area, file):
    python = file.endswith(".py")
    with open(os.path.join(ROOT, file), encoding="utf-8") as f:
        text = f.read()
    seen = {}
    for number, line in lines_that_run(text, python):
        for pattern, changes in (PYTHON_PATTERNS if python else {**PATTERNS, "flag": FLAG} if area == "plugin" else PATTERNS).items():
            for expression, replacement in changes:
                for m in re.finditer(expression, line):
                    if line[: m.start()].count('"') % 2:
                        continue  # inside a string
                    new = replacement(m) if callable(replacement) else replacement
                    changed = line[: m.start()] + new + line[m.end() :]
                    mutant = Mutant(area, file, number, pattern, line, changed)
                    key = (file, line.strip(), changed.strip())
                    seen[key] = seen.get(key, 0) + 1
                    digest = hashlib.sha256("\0".join((*key, str(seen[key]))).encode()).hexdigest()
                    mutant.id = digest[:8]
                    yield mutant


def sample(count, seed, areas, patterns):
    """For each area its share, in the order in which they are tried: spare ones follow."""
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    total = sum(share for name, share, _, _ in AREAS if not areas or name in areas)
    chosen = []
    taken = set()
    for name, share, path, commands in AREAS:
        files = [f for f in tracked if re.match(path, f) and not NOT_A_SOURCE.search(f) and f not in taken]
        taken.update(files)
        if name == "kernels":
            files = [f for f in files if runs_on_gpu(f)]
        if areas and name not in areas:
            continue
        found = [m for f in files for m in mutants_of(name, f) if not patterns or m.pattern in patterns]
        # Frequent patterns do not crowd out rare ones: the sample takes the patterns in turns.
        order = {}
        for m in sorted(found, key=lambda m: hashlib.sha256((seed + m.id).encode()).hexdigest()):
            order.setdefault(m.pattern, []).append(m)
        turns = [m for _, _, m in sorted(((i, hashlib.sha256((seed + name + p).encode()).hexdigest(), m)
                                          for p, ms in order.items() for i, m in enumerate(ms)), key=lambda t: t[:2])]
        want = max(1, round(count * share / total))
        chosen.append((name, want, turns, commands))
    return chosen


def shell(command, folder, limit, log):
    with open(log, "ab") as f:
        f.write(f"\n$ {command}\n".encode())
        f.flush()
        process = subprocess.Popen(["bash", "-c", command], cwd=folder, stdin=subprocess.DEVNULL, stdout=f, stderr=f, start_new_session=True)
        try:
            return process.wait(limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
            return None


class Copy:
    """The sources of HEAD and of the working tree's changes, built once, then once for each mistake."""

    def __init__(self, kernels_from=None):
        self.kernels_from = kernels_from
        self.tree, self.log = os.path.join(COPY, "tree"), os.path.join(COPY, "log")
        self.build = os.path.join(self.tree, "build", "release")  # where ccache knows its files
        self.python = None
        self.times = {}
        os.makedirs(self.tree, exist_ok=True)
        files = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True).stdout
        listed = [f for f in files.decode().split("\0") if f and os.path.exists(os.path.join(ROOT, f))]
        kept = set(listed)
        for f in listed:  # only what differs, so that nothing is built again without need
            source, target = os.path.join(ROOT, f), os.path.join(self.tree, f)
            with open(source, "rb") as a:
                new = a.read()
            if os.path.exists(target):
                with open(target, "rb") as b:
                    if b.read() == new:
                        continue
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy(source, target)
        for folder, folders, names in os.walk(self.tree):  # what the sources no longer have
            folders[:] = [f for f in folders if os.path.join(folder, f) != os.path.join(self.tree, "build")]
            for name in names:
                path = os.path.join(folder, name)
                if os.path.relpath(path, self.tree) not in kept:
                    os.remove(path)
        shared = os.path.join(os.path.dirname(ROOT), "shared")
        link = os.path.join(COPY, "shared")
        if os.path.isdir(shared) and not os.path.exists(link):
            os.symlink(shared, link)
        os.makedirs(self.build, exist_ok=True)
        for script in ("torch", "client"):  # what suites in Python compare with is made once
            made = subprocess.run([os.path.join(ROOT, f"packaging/{script}-venv.sh")], capture_output=True, text=True, check=True).stdout.strip()
            venv = os.path.dirname(os.path.dirname(made))
            link = os.path.join(self.tree, "build", os.path.basename(venv))
            if not os.path.exists(link):
                os.symlink(venv, link)

    def make(self, plugin):
        configure = f"cmake -S {self.tree} -B {self.build} -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo"
        if self.kernels_from:
            with open(os.path.join(self.kernels_from, "CMakeCache.txt"), encoding="utf-8") as f:
                targets = re.search(r"^RDNA_TARGETS:\w+=(.*)$", f.read(), re.M)[1]
            configure += f" -DRDNA_KERNELS_FROM={os.path.abspath(self.kernels_from)} '-DRDNA_TARGETS={targets}'"
        if shell(configure, ROOT, 600, self.log) != 0:
            sys.exit(f"mutate: the unchanged sources cannot be configured; see {self.log}")
        if plugin:
            self.python = subprocess.run([os.path.join(ROOT, "packaging/torch-venv.sh")], capture_output=True, text=True, check=True).stdout.strip()
            configure = (f"cmake -S {self.tree}/bindings/torch -B {self.tree}/build/torch -G Ninja -DCMAKE_BUILD_TYPE=Release "
                         f"-DRDNA_DIR={self.build}/lib -DPython3_EXECUTABLE={self.python}")
            library = "cmake --build . --target rdna_shared"  # which the plugin's configuration looks for
            if (shell(library, self.build, 3600, self.log) != 0 or shell(configure, ROOT, 600, self.log) != 0
                    or shell("cmake --build ../torch", self.build, 7200, self.log) != 0):
                sys.exit(f"mutate: the unchanged plugin does not build; see {self.log}")

    def wanted(self, commands):
        """What must be built for |commands|: the programs that they name, and what these load."""
        if any("pytest" in c for c in commands):
            return "cmake --build . --target rdna_shared kernels && cmake --build ../torch"
        targets = set()
        if commands[0].startswith("cd ../asan"):
            configure = (f"cmake -S {self.tree} -B ../asan -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo "
                         f"-DRDNA_SANITIZE=address,undefined -DRDNA_KERNELS_FROM={self.build}")
            suite = re.search(r"bin/(\w+)", commands[0])[1]
            return f"([ -e ../asan/build.ninja ] || {configure}) && cmake --build ../asan --target {suite}"
        for c in commands:
            targets.update(re.findall(r"bin/(\w+)", c))
            if "ctest" in c:
                targets.update(("emulator/all", "kernels"))
            if "/tests/" in c:
                targets.update(("rdna_shared", "rdna_emulator", "kernels"))
            if "host_memory_test" in c:
                targets.add("failing_malloc")
            if "tune_test" in c:
                targets.update("fake_" + name for name in "cuda cublaslt hipblaslt rocblas miopen nccl rccl".split())
            if "hip" in c and "kernels" not in targets:
                targets.update(("rdna_emulator", "kernels" if "gfx1030" in c or self.kernels_from else "kernels_gfx1100"))
        return "cmake --build . --target " + " ".join(sorted(targets))

    def command(self, c):
        return c.format(root=self.tree, python=self.python) if "{" in c else c

    def baseline(self, c):
        """The unchanged sources pass, in how many seconds."""
        for suite in re.findall(r"bin/(\w+_test)\b", c):  # a program of an older tree may still lie there
            if not glob.glob(f"{self.tree}/[se]*/**/{suite}.c", recursive=True):
                sys.exit(f"mutate: AREAS names {suite}, which has no source")
        if shell(self.wanted([c]), self.build, 3600, self.log) != 0:
            sys.exit(f"mutate: the unchanged sources do not build; see {self.log}")
        began = time.time()
        code = shell(self.command(c), self.build, 1800, self.log)
        if code not in (0, 77):
            sys.exit(f"mutate: the unchanged sources fail: {c}; see {self.log}")
        if code == 77:
            print(f"      skips, and finds nothing: {c}", flush=True)
        self.times[c] = time.time() - began

    def write(self, file, text):
        with open(os.path.join(self.tree, file), "w", encoding="utf-8") as f:
            f.write(text)

    def try_one(self, mutant, commands):
        """What found it, "" where nothing did, None where it does not compile."""
        with open(os.path.join(self.tree, mutant.file), encoding="utf-8") as f:
            text = f.read()
        lines = text.split("\n")
        lines[mutant.number - 1] = lines[mutant.number - 1].replace(mutant.line, mutant.changed, 1)
        with open(self.log, "ab") as f:
            f.write(f"\n==== {mutant.show()}\n".encode())
        planted = False
        try:
            for c in sorted(commands, key=lambda c: self.times.get(c, 1e9)):  # new ones as they are listed, after the known
                if c not in self.times:
                    if planted:
                        self.write(mutant.file, text)
                    planted = False
                    self.baseline(c)
                if not planted:
                    self.write(mutant.file, "\n".join(lines))
                planted = True
                if shell(self.wanted([c]), self.build, 900, self.log) != 0:
                    return None
                code = shell(self.command(c), self.build, 30 + 5 * self.times[c], self.log)
                if code not in (0, 77):
                    return c if code is not None else c + " (did not end)"
            return ""
        finally:
            self.write(mutant.file, text)


def known():
    """id: reason of the listed survivors."""
    listed = {}
    if os.path.exists(KNOWN):
        with open(KNOWN, encoding="utf-8") as f:
            for line in f:
                if line.strip() and not line.startswith(("#", " ")):
                    key, reason = line.split(None, 1)
                    listed[key] = reason.strip()
    return listed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", default="rdna")
    parser.add_argument("--area", default="", help="names of AREAS, with commas")
    parser.add_argument("--pattern", default="", help="names of PATTERNS, with commas")
    parser.add_argument("--only", default="", help="ids, with commas")
    parser.add_argument("--skip", type=int, default=0, help="leave out so many of each area's share first: the next sample")
    parser.add_argument("--kernels-from", metavar="BUILD", help="take the kernels of this build folder, where no area has any")
    parser.add_argument("--list", action="store_true", help="show the sample, plant nothing")
    parser.add_argument("--json", help="write what was found to FILE")
    args = parser.parse_args()
    areas = [a for a in args.area.split(",") if a]
    for a in areas:
        if a not in {name for name, *_ in AREAS}:
            parser.error(f"--area {a}: there is {', '.join(name for name, *_ in AREAS)}")
    only = set(filter(None, args.only.split(",")))
    chosen = sample(args.count, args.seed, areas, list(filter(None, args.pattern.split(","))))
    if only:
        chosen = [(n, len(w), w, c) for n, _, turns, c in chosen if (w := [m for m in turns if m.id in only])]
    if args.list:
        for name, want, turns, _ in chosen:
            print(f"== {name}: {want} of {len(turns)}")
            for m in turns[args.skip : args.skip + want]:
                print(m.show())
        return 0
    listed = known()
    copy = Copy(args.kernels_from)
    print("preparing the copy …", flush=True)
    copy.make(any(name.startswith("plugin") for name, *_ in chosen))
    rows, began = [], time.time()
    for name, want, turns, commands_of in chosen:
        done, at = 0, args.skip
        while done < want and at < len(turns):
            mutant = turns[at]
            at += 1
            found = copy.try_one(mutant, commands_of(mutant.file))
            if found is None:
                continue
            done += 1
            reason = listed.get(mutant.id, "")
            result = "found" if found else "equivalent" if reason.startswith("equivalent") else "SURVIVED"
            rows.append({"id": mutant.id, "area": name, "file": mutant.file, "line": mutant.number, "pattern": mutant.pattern,
                         "was": mutant.line.strip(), "is": mutant.changed.strip(), "result": result, "by": found, "reason": reason})
            if args.json:
                with open(args.json, "w", encoding="utf-8") as f:
                    json.dump(rows, f, indent=1)
            print(f"{len(rows):4d}  {result:10s}  {name:17s} {mutant.pattern:11s} {mutant.file}:{mutant.number}  {found or reason}", flush=True)
    stale = [r for r in rows if r["result"] == "found" and r["reason"]]
    print()
    for r in rows:
        if r["result"] == "SURVIVED":
            print(f"{r['id']}  {r['file']}:{r['line']}  {r['pattern']}{'  ' + r['reason'] if r['reason'] else ''}\n    - {r['was']}\n    + {r['is'] or '(gone)'}")
    for r in stale:
        print(f"{r['id']} is listed in tools/mutants.txt, but {r['by']} finds it: take it out")
    counted = [r for r in rows if r["result"] != "equivalent"]
    caught = sum(r["result"] == "found" for r in counted)
    print(f"\n{'area':18s} planted  found")
    for name, *_ in AREAS:
        here = [r for r in counted if r["area"] == name]
        if here:
            print(f"{name:18s} {len(here):7d} {sum(r['result'] == 'found' for r in here):6d}")
    print(f"{caught} of {len(counted)} found ({100 * caught / max(1, len(counted)):.0f} %), {len(rows) - len(counted)} equivalent ones left out, "
          f"{(time.time() - began) / 60:.0f} min")
    return 1 if stale or caught < 0.95 * len(counted) else 0


if __name__ == "__main__":
    sys.exit(main())

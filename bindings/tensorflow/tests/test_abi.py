"""What csrc/abi.h and csrc/functions.def say of TensorFlow is what the headers of the installed wheel say."""

import pathlib
import re
import subprocess

import tensorflow as tf

SOURCES = pathlib.Path(__file__).resolve().parent.parent / "csrc"
HEADERS = """
#include "tensorflow/c/experimental/stream_executor/stream_executor.h"
#include "tensorflow/c/experimental/grappler/grappler.h"
#include "tensorflow/c/experimental/pluggable_profiler/pluggable_profiler.h"
#include "tensorflow/c/kernels.h"
typedef struct TF_OpDefinitionBuilder TF_OpDefinitionBuilder; /* which the next is not complete without in C */
typedef struct TF_ShapeHandle TF_ShapeHandle;
typedef struct TF_DimensionHandle TF_DimensionHandle;
typedef struct TF_ShapeInferenceContext TF_ShapeInferenceContext;
#include "tensorflow/c/ops.h"
#include "tensorflow/c/tf_tensor.h"
"""


def structs():
    """The structs of abi.h: {name: fields}."""
    text = (SOURCES / "abi.h").read_text()
    found = {}
    for name, body in re.findall(r"typedef struct (\w+) \{(.*?)\n\} \1;", text, re.S):
        fields = re.findall(r"\(\*(\w+)\)|(\w+);", body)
        found[name] = [a or b for a, b in fields]
    assert len(found) == len(re.findall(r"^typedef struct \w+ \{", text, re.M))
    return found


def compiled(tmp_path, name, headers, flags):
    lines = [headers, "#include <stddef.h>", "#include <stdio.h>", "int main(void) {"]
    for struct, fields in structs().items():
        lines.append(f'printf("{struct} %zu\\n", sizeof({struct}));')
        lines += [f'printf("{struct}.{f} %zu %zu\\n", offsetof({struct}, {f}), sizeof((({struct} *)0)->{f}));' for f in fields]
    for value in re.findall(r"^  ((?:TF|SE)_[A-Z0-9_]+)\b", (SOURCES / "abi.h").read_text(), re.M):
        lines.append(f'printf("{value} %d\\n", (int){value});')
    source = tmp_path / f"{name}.c"
    source.write_text("\n".join(lines + ["return 0; }"]))
    subprocess.run(["cc", "-std=c17", *flags, str(source), "-o", str(tmp_path / name)], check=True)
    return subprocess.run([str(tmp_path / name)], check=True, capture_output=True, text=True).stdout


def test_layouts(tmp_path):
    ours = compiled(tmp_path, "ours", '#include "abi.h"', [f"-I{SOURCES}"])
    theirs = compiled(tmp_path, "theirs", HEADERS, [f"-I{tf.sysconfig.get_include()}"])
    assert "SP_StreamExecutor 288" in ours
    assert ours == theirs


def test_functions(tmp_path):
    include = pathlib.Path(tf.sysconfig.get_include())
    headers = "".join(header.read_text() for header in (include / "tensorflow" / "c").glob("*.h"))
    rows = (SOURCES / "functions.def").read_text()
    for name in re.findall(r"^MAYBE\([^,]*, (\w+)", rows, re.M):
        if f"TF_{name}(" not in headers:
            rows = re.sub(rf"^MAYBE\([^,]*, {name},.*\n", "", rows, flags=re.M)
    source = tmp_path / "functions.c"
    source.write_text(HEADERS + """
#define TF(result, name, arguments) \\
  _Static_assert(__builtin_types_compatible_p(__typeof__(&TF_##name), result (*) arguments), "TF_" #name);
#define MAYBE TF
""" + rows)
    subprocess.run(["cc", "-std=c17", "-fsyntax-only", f"-I{include}", str(source)], check=True)

"""Every skip of a test says why, in words that whoever reads the log can act on: C tests through skip_because of
base/testing.h, programs that exit with 77 in what they print before, tests in Python in a reason of four words or more.
What this PyTorch has not, another has: its release is named."""
import ast
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SKIP = re.compile(r"\b(pytest\.(mark\.)?(skip|skipif)|self\.skipTest|unittest\.(skip|skipIf|skipUnless|SkipTest))$")
EXIT = re.compile(r"\breturn 77;|\b_?exit\(77\)|SystemExit\(77\)|\bexit 77\b")
PRINTS = re.compile(r"\b(f?printf|print|puts|echo)\b")


def fault_of(reason):
    """What is wrong with a reason, if anything. What is neither a text nor an f-string is taken for a sentence."""
    if reason is None:
        return "without a reason"
    if isinstance(reason, ast.JoinedStr):
        text = " ".join(part.value if isinstance(part, ast.Constant) else "value" for part in reason.values)
    elif isinstance(reason, ast.Constant):
        text = str(reason.value)
    else:
        return ""
    if len(text.split()) < 4:
        return f"for '{text}': no sentence"
    return f"for '{text}': which release has it?" if re.search(r"PyTorch .*has no|\b(newer|older)\b", text) and not re.search(r"\d\.\d", text) else ""


def python_skips(text):
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call) or not (name := SKIP.search(ast.unparse(node.func))):
            continue
        named = {k.arg: k.value for k in node.keywords}
        at = 1 if name[0].endswith(("skipIf", "skipUnless", "skipif")) else 0
        fault = fault_of(named.get("reason", node.args[at] if len(node.args) > at else None))
        if fault:
            yield node.lineno, f"{name[0]} {fault}"


def other_skips(name, text):
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if re.search(r"(?<![\w.>])skip\(\);", line) and name != "src/base/testing.h":
            yield number, "skip() says no reason: skip_because(…) does"
        if EXIT.search(line) and not PRINTS.search("\n".join(lines[max(0, number - 6):number])):
            yield number, "ends with 77 and does not say why"


problems = []
names = subprocess.run(["git", "ls-files", "*.c", "*.h", "*.cpp", "*.hip", "*.py", "*.sh", "*.cmake", "*CMakeLists.txt"],
                       cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
for name in names:
    if name == "tools/check_skips.py" or not (ROOT / name).exists():
        continue
    text = (ROOT / name).read_text()
    found = [*(python_skips(text) if name.endswith(".py") else ()), *other_skips(name, text)]
    problems += [f"{name}:{number}: {what}" for number, what in found]
print("\n".join(problems) if problems else f"{len(names)} files: every skip says why")
sys.exit(bool(problems))

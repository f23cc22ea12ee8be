"""No function is longer than 80 lines, and no file than 1,000. Kernels and tests may have longer functions: a kernel is
one loop over registers, a test one story."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FUNCTION_LINES, FILE_LINES = 80, 1000
TEST = re.compile(r"_tests?\.[ch]|_fuzz\.c|_cases(_\w+)?\.[ch]$|/tests?/|/fake_|hipcc_\w+\.hip$")
DEVICE = re.compile(r"^template\b|\bRDNA_DEVICE\b", re.M)
VALUE = re.compile(r"=\s*$")


def without_words(text):
    """The text with comments, strings, characters and preprocessor lines blanked, line by line the same."""
    blank = lambda match: "\n" * match[0].count("\n") + " "
    text = re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text, flags=re.S)
    return re.sub(r"^[ \t]*#(?:\\\n|[^\n])*", blank, text, flags=re.M)


def functions(text):
    """(first line, last line, name) of each function that is not inside another."""
    line, begin, statement, depth, body, column_0 = 1, 1, "", 0, None, True
    for character in without_words(text):
        if character == "\n":
            line += 1
            column_0 = True
            continue
        if column_0 and statement.endswith(")") and character not in " {":  # a macro's call stands alone
            statement = ""
        column_0 = False
        if body is not None:
            depth += {"{": 1, "}": -1}.get(character, 0)
            if depth == 0:
                if body:
                    yield begin, line, body
                body, statement = None, ""
        elif character == "{" and (VALUE.search(statement) or ")" in statement):
            name = re.search(r"([\w:~]+)\s*\(", statement)
            body, depth = name[1] if name and not VALUE.search(statement) else "", 1
        elif character in ";{}":
            statement = ""
        elif not character.isspace() or statement:
            if not statement:
                begin = line
            statement += character


problems = []
names = subprocess.run(["git", "ls-files", "*.c", "*.h", "*.hip", "*.cpp", "*.def", "*.py"], cwd=ROOT,
                       capture_output=True, text=True, check=True).stdout.split()
for name in names:
    if not (ROOT / name).exists():
        continue
    text = (ROOT / name).read_text()
    if text.count("\n") > FILE_LINES:
        problems.append(f"{name} has {text.count(chr(10))} lines, more than {FILE_LINES}: divide it")
    if not name.endswith((".c", ".h", ".cpp")) or TEST.search(name) or DEVICE.search(text):
        continue
    for first, last, function in functions(text):
        if last - first + 1 > FUNCTION_LINES:
            problems.append(f"{name}:{first}: {function} has {last - first + 1} lines, more than {FUNCTION_LINES}")
print("\n".join(problems) if problems else f"{len(names)} files: none above {FILE_LINES} lines, no function above "
      f"{FUNCTION_LINES}")
sys.exit(bool(problems))

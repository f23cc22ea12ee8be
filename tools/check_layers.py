"""No folder includes upward, and no operator asks for a driver or an architecture by its name. The build's include paths
already say the first for src/; this also catches relative includes, holds the emulator and the bindings to their own, and
finds families of src/math that include each other in a circle."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LAYERS = ["base", "device", "kernel", "math", "array", "graph", "model", "picture", "server", "command"]


def allowed(path, include):
    """Whether the file at |path|, relative to the root, may include |include|."""
    parts = path.parts
    if include.startswith("rdna/"):
        return parts[0] != "emulator"
    if parts[0] == "src":
        first = include.split("/")[0]
        return first in LAYERS[: LAYERS.index(parts[1]) + 1]
    if parts[0] == "include":
        return False
    if parts[0] in ("emulator", "bindings"):
        return include.split("/")[0] not in LAYERS
    return True


def circles(families):
    """A sentence for each family that includes itself through others. |families|: who includes whom, and where."""
    for first in families:
        trail = {family: [place] for family, place in families[first].items()}
        waiting = list(trail)
        while waiting and first not in trail:
            family = waiting.pop()
            for other, place in families.get(family, {}).items():
                if other not in trail:
                    trail[other] = trail[family] + [place]
                    waiting.append(other)
        if first in trail:
            yield "\n".join(trail[first]) + f"\n  src/math/{first} includes itself this way: let one of them give the other what it has"


# Whose libraries and communicators go with a driver; the report of a self-test says which it was.
NAMES_A_DRIVER = ("src/math/vendor/", "src/math/comm/", "src/math/selftest.c")


def asks_by_name(name, line):
    """Whether an operator compares a device's driver or architecture with a name; properties are device/traits.h's."""
    operator = name.startswith("src/math/") and name.endswith((".c", ".h")) and "_test.c" not in name
    return operator and not name.startswith(NAMES_A_DRIVER) and re.search(r"strn?cmp\([^;]*(driver|arch\b)", line)


problems, families = [], {}
names = subprocess.run(["git", "ls-files", "*.c", "*.h", "*.hip", "*.cpp", "*.def"], cwd=ROOT, capture_output=True,
                       text=True, check=True).stdout.split()
for name in names:
    path = pathlib.Path(name)
    if not (ROOT / path).exists():
        continue
    for number, line in enumerate((ROOT / path).read_text().splitlines(), 1):
        if asks_by_name(name, line):
            problems.append(f"{name}:{number}: asks a device for its name; ask for a property, see src/device/traits.h")
        match = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
        if match and (".." in match[1] or not allowed(path, match[1])):
            problems.append(f"{name}:{number}: may not include {match[1]}")
        if match and match[1].startswith("math/") and name.startswith("src/math/"):
            family, other = name.split("/")[2], match[1].split("/")[1]
            if family != other:
                families.setdefault(family, {}).setdefault(other, f"{name}:{number}: includes {match[1]}")
problems += circles(families)
print("\n".join(problems) if problems else f"{len(names)} files include nothing above them, and no family itself")
sys.exit(bool(problems))

"""No folder includes upward. The build's include paths already say so for src/; this also catches relative includes, and
holds the emulator and the bindings to their own."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LAYERS = ["base", "device", "kernel", "math", "model", "serve", "command"]


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


problems = []
names = subprocess.run(["git", "ls-files", "*.c", "*.h", "*.hip", "*.cpp", "*.def"], cwd=ROOT, capture_output=True,
                       text=True, check=True).stdout.split()
for name in names:
    path = pathlib.Path(name)
    if not (ROOT / path).exists():
        continue
    for number, line in enumerate((ROOT / path).read_text().splitlines(), 1):
        match = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
        if match and (".." in match[1] or not allowed(path, match[1])):
            problems.append(f"{name}:{number}: may not include {match[1]}")
print("\n".join(problems) if problems else f"{len(names)} files include nothing above them")
sys.exit(bool(problems))

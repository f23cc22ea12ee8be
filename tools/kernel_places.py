"""Where each kernel's code stands, asked of clang when the rdna command is built: names are made by macros, and only the
compiler knows which of them made one.

    kernel_places.py scan OUT clang FLAGS… SOURCE   the functions that one source defines, one "name file:line" a line
    kernel_places.py merge OUT.c MANIFEST SCANS… SOURCES_OF_CASES…   all of them as the table in command/places.h

MANIFEST is src/math/manifest.c after the preprocessor; it says which case maker a kernel has."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TWIN = "rdna__host_baseline_"
MAKER = re.compile(r"RDNA_CASE_MAKER\((\w+)\)")
ENTRY = re.compile(r'\{"(\w+)", "(\w+)", sizeof\([\w ]+\), [^,]+, (\w+),')


class Reader:
    """Follows the places in clang's tree as text, each of which leaves out what the one before it had too."""

    def __init__(self):
        self.file, self.line = "", 0

    def take(self, text):
        """Moves to a place such as "file.h:3:14", "line:3:14" or "col:14"; false when |text| is none."""
        match = re.fullmatch(r"(.+):(\d+):(\d+)", text)
        if match:
            if match[1] != "line":
                self.file = match[1]
            self.line = int(match[2])
        return bool(match) or re.fullmatch(r"col:\d+", text) is not None


def functions(lines):
    """Yields (name, file, line) of the functions with a body: of their first parameter, which stands in the macro that
    made them where their name does not stand anywhere."""
    reader, name = Reader(), None
    for text in lines:
        head = re.match(r"[ |`-]*(FunctionDecl|ParmVarDecl|CompoundStmt) 0x[0-9a-f]+ (?:parent 0x[0-9a-f]+ )?"
                        r"(?:prev 0x[0-9a-f]+ )?<(.*?)>(?= |$)(.*)", text.rstrip().replace("<scratch space>", "scratch"))
        if not head:
            continue
        for part in head[2].split(", "):
            reader.take(part)
        after = head[3].split()
        if head[1] == "FunctionDecl":
            if after and reader.take(after[0]):
                after = after[1:]
            after = [word for word in after if word not in ("used", "referenced", "invalid")]
            name, place = (after[0] if after else None), None
        elif head[1] == "ParmVarDecl" and name and not place:
            reader.take(head[2].split(", ")[0])
            place = reader.file, reader.line
        elif name and place:
            yield (name, *place)
            name = None


def in_tree(path):
    """|path| from the root on, through the links of the layers; None for what is not ours."""
    path = pathlib.Path(path).resolve()
    return path.relative_to(ROOT) if path.is_relative_to(ROOT / "src") else None


def scan(out, command):
    tree = subprocess.run([*command, "-fsyntax-only", "-w", "-Xclang", "-ast-dump", "-fno-color-diagnostics", "-MD",
                           "-MF", out + ".d", "-MT", out], capture_output=True, text=True)
    if tree.returncode != 0:
        sys.exit(tree.stderr)
    with open(out, "w") as file:
        for name, path, line in functions(tree.stdout.splitlines()):
            if in_tree(path):
                file.write(f"{name} {in_tree(path)}:{line}\n")


def merge(out, manifest, sources):
    device, host, makers = {}, {}, {}
    for path in sources:
        for number, line in enumerate(open(path), 1):
            if path.endswith(".txt"):
                name, place = line.split()
                (device if path.endswith(".hip.txt") else host)[name] = place.rsplit(":", 1)
            elif match := MAKER.match(line):
                makers[match[1]] = in_tree(path), number
    rows, missing = [], []
    for name, family, maker in sorted(ENTRY.findall(open(manifest).read())):
        places = [device.get(name), host.get(TWIN + name), makers.get(maker)]
        missing += [f"{what} of {name}" for what, place in zip(("device code", "twin", f"case maker {maker}"), places)
                    if not place]
        rows.append('{"%s", "%s", {%s}},' % (name, maker, ", ".join('{"%s", %s}' % tuple(p or ("", 0)) for p in places)))
    if missing or not rows:
        sys.exit("kernel_places.py cannot find the\n  " + "\n  ".join(missing or ["kernels in " + manifest]))
    with open(out, "w") as file:
        file.write('#include "command/places.h"\nconst kernel_place kernel_places[] = {\n' + "\n".join(rows) +
                   "\n};\nconst int kernel_place_count = sizeof kernel_places / sizeof *kernel_places;\n")


if sys.argv[1] == "scan":
    scan(sys.argv[2], sys.argv[3:])
else:
    merge(sys.argv[2], sys.argv[3], sys.argv[4:])

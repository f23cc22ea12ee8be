"""Where each kernel's code stands, asked of clang when the rdna command is built: names are made by macros, and only the
compiler knows which of them made one.

    kernel_places.py scan OUT clang FLAGS… SOURCE     the functions that one source defines, one "name file:line" a line
    kernel_places.py merge OUT.c MANIFEST SCANS…      all of them as the table in command/places.h

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
    """Writes what |command|, clang with a source, finds. A source for the host has case makers or twins."""
    source = command[-1]
    if source.endswith("_cases.c"):
        found = [(match[1], source, number) for number, line in enumerate(open(source), 1)
                 for match in MAKER.finditer(line)]
    else:
        tree = subprocess.run([*command[:-1], "-fsyntax-only", "-w", "-Xclang", "-ast-dump", "-fno-color-diagnostics",
                               "-MD", "-MF", out + ".d", "-MT", out, source], capture_output=True, text=True)
        if tree.returncode != 0:
            sys.exit(tree.stderr)
        found = functions(tree.stdout.splitlines())
    with open(out, "w") as file:
        for name, path, line in found:
            if in_tree(path):
                file.write(f"{name} {in_tree(path)}:{line}\n")


def merge(out, manifest, scans):
    device, host, makers = {}, {}, {}
    for path in scans:
        of = device if ".hip." in path else makers if "_cases.c." in path else host
        for line in open(path):
            name, place = line.split()
            of[name] = place.rsplit(":", 1)
    rows, missing = [], []
    for name, family, maker in sorted(ENTRY.findall(open(manifest).read())):
        places = [device.get(name), host.get(TWIN + name), makers.get(maker)]
        missing += [f"{name}: no {what}" for what, place in zip(("kernel", "twin", f"case maker {maker}"), places)
                    if not place]
        rows.append('{"%s", "%s", {%s}},' % (name, maker, ", ".join('{"%s", %s}' % tuple(p or ("", 0)) for p in places)))
    if missing or not rows:
        sys.exit("kernel_places.py cannot find\n  " + "\n  ".join(missing or ["any kernel in " + manifest]))
    with open(out, "w") as file:
        file.write('#include "command/places.h"\nconst rdna__kernel_place rdna__kernel_places[] = {\n' + "\n".join(rows) +
                   "\n};\nconst int rdna__kernel_place_count = sizeof rdna__kernel_places / sizeof *rdna__kernel_places;\n")


if sys.argv[1] == "scan":
    scan(sys.argv[2], sys.argv[3:])
else:
    merge(sys.argv[2], sys.argv[3], sys.argv[4:])

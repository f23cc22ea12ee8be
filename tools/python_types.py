#!/usr/bin/env python3
"""Writes bindings/python/rdna/_types.py, what ctypes has to know of include/rdna: structs with their fields, and the arguments and results of functions.

    python3 tools/python_types.py           # writes the file
    python3 tools/python_types.py --check   # says what differs, and fails if it does
"""
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "bindings/python/rdna/_types.py"
TYPES = {"bool": "c_bool", "char": "c_char", "int": "c_int", "unsigned": "c_uint", "float": "c_float", "double": "c_double", "size_t": "c_size_t",
         **{f"{sign}int{bits}_t": f"c_{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}}
HEAD = '''"""What ctypes has to know of include/rdna, as tools/python_types.py writes it. A struct is made when it is asked for by its name."""

import ctypes


def _kind(text):
    base, *sizes = text.split("*")
    kind = None if base == "None" else getattr(ctypes, base, None) or globals().get(base) or __getattr__(base)
    for size in reversed(sizes):
        kind = kind * int(size)
    return kind


def __getattr__(name):
    if name not in STRUCTS:
        raise AttributeError(f"include/rdna has no struct {name!r}")
    fields = (field.split() for field in STRUCTS[name].split(", "))
    made = globals()[name] = type(name, (ctypes.Structure,), {"_fields_": [(field, _kind(kind)) for field, kind in fields]})
    return made


def function(name):
    """The result and the arguments of a function, as ctypes has them."""
    result, *arguments = map(_kind, FUNCTIONS[name].split())
    return result, arguments

'''


def sources():
    """The headers without comments and lines of the preprocessor, by their names; numbers that #define gives."""
    texts, numbers = {}, {}
    for path in sorted((ROOT / "include/rdna").rglob("*.h")):
        text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", path.read_text(), flags=re.S)
        numbers.update((m[1], int(m[2])) for m in re.finditer(r"^#define (\w+) (\d+)$", text, re.M))
        texts[path] = re.sub(r"^\s*#(?:[^\n]*\\\n)*[^\n]*$", "", text, flags=re.M)
    return texts, numbers


class Reader:
    def __init__(self):
        texts, self.numbers = sources()
        self.text = "\n".join(texts.values())
        self.enums, self.structs, self.pointers = set(), {}, set()
        for m in re.finditer(r"enum\s*(\w*)\s*\{([^}]*)\}\s*(\w*)", self.text):
            self.enums |= {m[1], m[3]} - {""}
            self.count(m[2])
        self.pointers |= {m[1] for m in re.finditer(r"typedef[^;{}]*\(\*(\w+)\)\s*\(", self.text)}
        bodies = {m[2]: m[1] for m in re.finditer(r"typedef\s+struct\s+\w*\s*\{([^{}]*)\}\s*(\w+)\s*;", self.text)}
        self.bodies = bodies
        for name in bodies:
            self.struct(name)

    def count(self, body):
        value = -1
        for entry in filter(None, (e.strip() for e in body.split(","))):
            m = re.fullmatch(r"(\w+)(?:\s*=\s*(.+))?", entry, re.S)
            if not m:
                continue
            value = self.value(m[2]) if m[2] else value + 1
            if value is None:
                return
            self.numbers[m[1]] = value

    def value(self, text):
        text = re.sub(r"[A-Za-z_]\w*", lambda m: str(self.numbers.get(m[0], "?")), text.strip())
        return eval(text) if re.fullmatch(r"[\d\s()+*<|-]+", text) else None  # noqa: S307  digits and signs alone

    def type_of(self, text, stars):
        """ctypes' name for a type; pointers are addresses, to text bytes."""
        words = [w for w in text.split() if w not in ("const", "struct", "enum")]
        if stars:
            return "c_char_p" if words == ["char"] and stars == 1 else "c_void_p"
        name = words[0]
        if name in TYPES:
            return TYPES[name]
        if name in self.enums:
            return "c_int"
        if name in self.pointers:
            return "c_void_p"
        if name in self.bodies:
            self.struct(name)
            return name
        raise ValueError(f"python_types.py: what is a {text!r}?")

    def struct(self, name):
        if name in self.structs:
            return
        fields = []
        for line in filter(None, (part.strip() for part in self.bodies[name].split(";"))):
            function = re.match(r".*\(\*(\w+)\)\s*\(", line, re.S)
            if function:
                fields.append((function[1], "c_void_p"))
                continue
            m = re.fullmatch(r"((?:const\s+|struct\s+|unsigned\s+)*\w+)\s+(.*)|((?:const\s+)?\w+)\s*(\*.*)", line, re.S)
            base, names = (m[1], m[2]) if m[1] else (m[3], m[4])
            for declared in names.split(","):
                d = re.fullmatch(r"\s*((?:\*|const|\s)*)(\w+)((?:\s*\[[^\]]*\])*)\s*", declared, re.S)
                kind = self.type_of(base, d[1].count("*"))
                for size in reversed(re.findall(r"\[([^\]]*)\]", d[3])):
                    number = self.value(size)
                    if number is None:
                        raise ValueError(f"python_types.py: {name} has {declared.strip()}, whose size is no number that is known")
                    kind = f"{kind} * {number}"
                fields.append((d[2], kind))
        self.structs[name] = fields  # behind those that it has inside

    def functions(self):
        found = {}
        for m in re.finditer(r"RDNA_(API|CHECKED)\s+([^();]*?)(\**)\s*(rdna_\w+)\s*\(([^;]*?)\)\s*;", self.text, re.S):
            result = "None" if m[2].split()[-1] == "void" and not m[3] else self.type_of(m[2], m[3].count("*"))
            arguments = []
            for text in self.split(m[5]):
                if text in ("void", ""):
                    continue
                if "(*" in text or "[" in text:
                    arguments.append("c_void_p")
                    continue
                a = re.fullmatch(r"(.*?)((?:\s*\*\s*(?:const)?)*)\s*\w+", text, re.S)
                arguments.append(self.type_of(a[1], a[2].count("*")))
            found[m[4]] = result, arguments
        return found

    @staticmethod
    def split(text):
        parts, depth, at = [], 0, 0
        for i, c in enumerate(text + ","):
            depth += (c == "(") - (c == ")")
            if c == "," and not depth:
                parts.append(text[at:i].strip())
                at = i + 1
        return parts


def text():
    reader = Reader()
    functions = reader.functions()
    lines = [HEAD, "STRUCTS = {  # fields and their types"]
    for name, fields in reader.structs.items():
        row = ", ".join(f"{field} {kind.replace(' * ', '*')}" for field, kind in fields)
        first, *rest = (repr(part).replace("'", '"') for part in textwrap.wrap(row, 130, break_on_hyphens=False, drop_whitespace=False))
        lines += [f'    "{name}": {first}', *("        " + part for part in rest)]
        lines[-1] += ","
    lines += ["}", "FUNCTIONS = {  # result, arguments", *(f'    "{name}": "{" ".join([result, *arguments])}",' for name, (result, arguments) in sorted(functions.items())), "}"]
    return "\n".join(lines) + "\n"


def main():
    made = text()
    if "--check" not in sys.argv[1:]:
        OUT.write_text(made)
        return 0
    if OUT.read_text() == made:
        return 0
    import difflib
    sys.stdout.writelines(difflib.unified_diff(OUT.read_text().splitlines(True), made.splitlines(True), str(OUT.relative_to(ROOT)), "include/rdna"))
    print("python_types.py: the headers have changed; run tools/python_types.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())

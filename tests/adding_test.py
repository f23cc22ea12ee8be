#!/usr/bin/env python3
"""docs/adding.md is exact: tests/adding_test.py SECTION does to a copy of the repository what the section says, and runs
its commands.

A step is a paragraph that begins "In `FILE`, before the line `TEXT`", or "after the line", or "instead of the line", or
"New file `FILE`", with a block of code behind it. TEXT is a line, or a part of one, that the file has once. A block of sh
is run. RDNA_ADDING_KEEP=FOLDER: where the copy is made, and stays."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
STEP = re.compile(r"In `([^`]+)`, (before|after|instead of) the line `([^`]+)`|New file `([^`]+)`")


def section(title):
    """The paragraphs and blocks of code of a section, in order: (language or "", text)."""
    text = (ROOT / "docs/adding.md").read_text()
    match = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", text, re.S | re.M)
    if not match:
        sys.exit(f"docs/adding.md has no section '{title}'; it has: {', '.join(re.findall(r'^## (.*)', text, re.M))}")
    parts = re.split(r"^```(\w*)\n(.*?)^```\n", match[1], flags=re.S | re.M)
    for i in range(0, len(parts), 3):
        for paragraph in parts[i].split("\n\n"):
            if paragraph.strip():
                yield "", " ".join(paragraph.split())
        if i + 2 < len(parts):
            yield parts[i + 1], parts[i + 2]


def copy_tree(to):
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    present = b"\0".join(n for n in names.split(b"\0") if n and (ROOT / os.fsdecode(n)).exists())
    pack = subprocess.run(["tar", "-c", "--null", "-T", "-"], cwd=ROOT, input=present, capture_output=True, check=True)
    subprocess.run(["tar", "-x"], cwd=to, input=pack.stdout, check=True)


def apply(tree, step, code):
    """Does what a step says, and returns its file."""
    name, place, text, new = step
    path = tree / (name or new)
    if new:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code)
        return new
    lines = path.read_text().splitlines(keepends=True)
    found = [i for i, line in enumerate(lines) if text in line]
    if len(found) != 1:
        sys.exit(f"docs/adding.md: {name} has {len(found)} lines with '{text}', not one; make the recipe name another")
    at = found[0]
    lines[at + (place == "after") : at + (place != "before")] = [code]
    path.write_text("".join(lines))
    return name


def follow(title, tree):
    """Yields each command, once the steps before it are done."""
    step, files = None, []
    for language, text in section(title):
        if not language:
            match = STEP.match(text)
            step = match.groups() if match else step if not files and step else None
        elif language == "sh":
            print(f"{len(set(files))} files: {', '.join(dict.fromkeys(files))}", flush=True)
            yield from textwrap.dedent(text).splitlines()
        elif step:
            files.append(apply(tree, step, text))
            step = None
        else:
            sys.exit(f"docs/adding.md: no step says where this goes:\n{text}")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory(prefix="rdna-adding.") as scratch:
        tree = pathlib.Path(os.environ.get("RDNA_ADDING_KEEP") or scratch)
        tree.mkdir(parents=True, exist_ok=True)
        copy_tree(tree)
        for command in follow(sys.argv[1], tree):
            print("$", command, flush=True)
            done = subprocess.run(["bash", "-c", command], cwd=tree, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True, errors="replace")
            if done.returncode:
                sys.exit(f"{done.stdout[-6000:]}\nfailed with {done.returncode}: {command}")
            print(done.stdout.rstrip().rsplit("\n", 1)[-1], flush=True)


main()

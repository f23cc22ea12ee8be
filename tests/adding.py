#!/usr/bin/env python3
"""docs/adding.md is exact: tests/adding.py [SECTION…] does to a copy of the repository what a section says, and runs
its commands; without a name, all sections that have steps.

A step is a paragraph that begins "In `FILE`, before the line `TEXT`", or "after the line", or "instead of the line", or
"New file `FILE`", with a block of code behind it. TEXT is a line, or a part of one, that the file has once. A block of sh
is run. RDNA_ADDING_KEEP=FOLDER: where the copy is made, and stays."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
STEP = re.compile(r"In `([^`]+)`, (before|after|instead of) the line `([^`]+)`|New file `([^`]+)`")


def sections():
    """{title: [(language, or "" for a paragraph, text), …]} of the sections that have steps."""
    found = {}
    text = (ROOT / "docs/adding.md").read_text()
    for title, body in re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", text, re.S | re.M):
        parts, items = re.split(r"^```(\w*)\n(.*?)^```\n", body, flags=re.S | re.M), []
        for i in range(0, len(parts), 3):
            items += [("", " ".join(p.split())) for p in parts[i].split("\n\n") if p.strip()]
            items += [(parts[i + 1], parts[i + 2])] if i + 2 < len(parts) else []
        if any(not language and STEP.match(text) for language, text in items):
            found[title] = items
    return found


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


def commands(items, tree):
    """Yields each command, once the steps before it are done."""
    step, files = None, []
    for language, text in items:
        if not language:
            match = STEP.match(text)
            step = match.groups() if match else None
        elif language == "sh":
            print(f"{len(set(files))} files: {', '.join(dict.fromkeys(files))}", flush=True)
            yield from text.splitlines()
        elif step:
            files.append(apply(tree, step, text))
            step = None
        else:
            sys.exit(f"docs/adding.md: no step says where this goes:\n{text}")


def follow(items, tree):
    copy_tree(tree)
    ran = 0
    for command in commands(items, tree):
        print("$", command, flush=True)
        done = subprocess.run(["bash", "-c", command], cwd=tree, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", check=False)
        if done.returncode:
            sys.exit(f"{done.stdout[-6000:]}\nfailed with {done.returncode}: {command}")
        print(done.stdout.rstrip().rsplit("\n", 1)[-1], flush=True)
        ran += 1
    if not ran:
        sys.exit("docs/adding.md: the section runs nothing")


def main():
    found = sections()
    if not (ROOT / ".git").exists():
        print("no checkout of git, whose files to copy")
        sys.exit(77)
    for title in sys.argv[1:] or found:
        if title not in found:
            sys.exit(f"docs/adding.md has no section '{title}' with steps; it has: {', '.join(found)}")
        print(f"== {title}", flush=True)
        if os.environ.get("RDNA_ADDING_KEEP"):
            tree = pathlib.Path(os.environ["RDNA_ADDING_KEEP"]) / title.replace(" ", "_")
            tree.mkdir(parents=True, exist_ok=True)
            follow(found[title], tree)
        else:
            with tempfile.TemporaryDirectory(prefix="rdna-adding.") as scratch:
                follow(found[title], pathlib.Path(scratch))


main()

"""Every public function has a comment: behind it, before it, or before the neighbours that it stands with."""
import glob
import os
import re
import sys

DECLARATION = re.compile(r"^RDNA_(?:API|CHECKED)\b[^;]*?\b(rdna_\w+)\(", re.M)


def bare(text):
    """The functions of a header whose paragraph does not begin with a comment, and that have none behind them."""
    for paragraph in re.split(r"\n\s*\n", re.sub(r'^extern "C" \{$|^#.*$', "", text, flags=re.M)):
        first = DECLARATION.search(paragraph)
        if not first or "*/" in paragraph[:first.start()]:
            continue
        for declaration in re.split(r";", paragraph):  # up to the first comment, which the rest stands with
            found = DECLARATION.search(declaration)
            if found and "*/" in declaration[:found.start()]:
                break
            behind = paragraph[paragraph.index(declaration) + len(declaration):].split("\n")[0]
            if found and "/*" not in behind:
                yield found[1]


def main():
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "include", "rdna")
    assert list(bare("\n/* What it is. */\nRDNA_API int rdna_a(void);\nRDNA_API int rdna_b(void);\n")) == []
    assert list(bare("\nRDNA_API int rdna_a(int,\n  int);\nRDNA_API int rdna_b(void); /* what it is */\n")) == ["rdna_a"]
    count, failed = 0, []
    for path in sorted(glob.glob(os.path.join(root, "**", "*.h"), recursive=True)):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        count += len(DECLARATION.findall(text))
        failed += [f"{os.path.relpath(path, root)}: {name} has no comment; say what it does" for name in bare(text)]
    print("\n".join(failed) if failed else f"{count} functions")
    return 1 if failed or count < 100 else 0


sys.exit(main())

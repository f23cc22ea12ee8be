#!/usr/bin/env python3
"""Writes src/model/tokenizer/unicode_tables.h, what Unicode's normal form C needs, from Python's unicodedata."""
import pathlib
import sys
import unicodedata

OUT = pathlib.Path(__file__).parents[1] / "src/model/tokenizer/unicode_tables.h"


def decompositions():
    """(character, first, second or 0) of one step, but for Hangul's syllables, which are computed."""
    for code in range(0x110000):
        text = unicodedata.decomposition(chr(code))
        if text and not text.startswith("<"):
            parts = [int(part, 16) for part in text.split()]
            yield code, parts[0], parts[1] if len(parts) > 1 else 0


def classes():
    """(first, last, class) of characters in a row whose combining class is one and not 0."""
    start, before = 0, 0
    for code in range(0x110001):
        now = unicodedata.combining(chr(code)) if code < 0x110000 else 0
        if now != before:
            if before:
                yield start, code - 1, before
            start, before = code, now


def array(name, kind, numbers, comment):
    lines, line = [], " "
    for number in numbers:
        text = f" {number:#x}," if number > 9 else f" {number},"
        if len(line) + len(text) > 119:
            lines.append(line)
            line = " "
        line += text
    return "\n".join([f"/* {comment} */", f"static const {kind} {name}[] = {{", *lines, line, "};", ""])


def main():
    rows = list(decompositions())
    # those that composing makes: not excluded, and not of one character
    made = [i for i, (code, _, second) in enumerate(rows) if second and unicodedata.normalize("NFC", chr(code)) == chr(code)]
    made.sort(key=lambda i: rows[i][1:])
    OUT.write_text("\n".join([
        f"/* Made by tools/unicode_tables.py: decompositions and combining classes of Unicode {unicodedata.unidata_version}. */",
        "#ifndef RDNA_MODEL_UNICODE_TABLES_H", "#define RDNA_MODEL_UNICODE_TABLES_H", "", "#include <stdint.h>", "",
        "/* clang-format off */",
        array("unicode_decompositions", "uint32_t", [n for row in rows for n in row],
              "a character, what it is made of, or once more 0; ascending"),
        array("unicode_compositions", "uint16_t", made, "rows above that are composed, by their two parts"),
        array("unicode_classes", "uint32_t", [n for row in classes() for n in row],
              "the first and the last of some characters, their class; ascending"),
        "#endif", ""]))


if __name__ == "__main__":
    sys.exit(main())

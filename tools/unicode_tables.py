#!/usr/bin/env python3
"""Writes src/model/tokenizer/unicode_tables.h, what Unicode's normal forms need, and unicode_classes.h, what BERT's
vocabularies do, from Python's unicodedata."""
import pathlib
import sys
import unicodedata

FOLDER = pathlib.Path(__file__).parents[1] / "src/model/tokenizer"


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


def ranges(wanted):
    """(first, last) of characters in a row that |wanted| is true of."""
    start = None
    for code in range(0x110001):
        now = code < 0x110000 and wanted(chr(code))
        if now and start is None:
            start = code
        if not now and start is not None:
            yield start, code - 1
            start = None


def lower_cases():
    """(first, last, step, difference) of characters, every step-th one, whose lower case is so much further on."""
    rows = []
    for code in range(0x110000):
        lower = chr(code).lower()
        if len(lower) != 1 or ord(lower) == code:
            continue  # a dotted capital I is two characters, of which the second is a mark that goes
        difference = ord(lower) - code
        if rows and rows[-1][3] == difference and code - rows[-1][1] in (1, 2) and (
                rows[-1][0] == rows[-1][1] or code - rows[-1][1] == rows[-1][2]):
            rows[-1][2] = code - rows[-1][1]
            rows[-1][1] = code
        else:
            rows.append([code, code, 1, difference])
    return rows


def array(name, kind, numbers, comment):
    lines, line = [], " "
    for number in numbers:
        text = f" {number:#x}," if abs(number) > 9 else f" {number},"
        if len(line) + len(text) > 119:
            lines.append(line)
            line = " "
        line += text
    return "\n".join([f"/* {comment} */", f"static const {kind} {name}[] = {{", *lines, line, "};", ""])


def header(name, what, arrays):
    guard = f"RDNA_MODEL_{name.upper()}_H"
    (FOLDER / f"{name}.h").write_text("\n".join([
        f"/* Made by tools/unicode_tables.py: {what} of Unicode {unicodedata.unidata_version}. */",
        f"#ifndef {guard}", f"#define {guard}", "", "#include <stdint.h>", "", "/* clang-format off */", *arrays,
        "#endif", ""]))


def flat(rows):
    return [n for row in rows for n in row]


def is_dropped(c):
    return unicodedata.category(c) in ("Cc", "Cf", "Co") and c not in "\t\n\r" or c == "\ufffd"


def is_punctuation(c):
    return unicodedata.category(c)[0] == "P" or "!" <= c <= "~" and not c.isalnum()


def main():
    rows = list(decompositions())
    # those that composing makes: not excluded, and not of one character
    made = [i for i, (code, _, second) in enumerate(rows) if second and unicodedata.normalize("NFC", chr(code)) == chr(code)]
    made.sort(key=lambda i: rows[i][1:])
    header("unicode_tables", "decompositions and combining classes", [
        array("unicode_decompositions", "uint32_t", flat(rows),
              "a character, what it is made of, or once more 0; ascending"),
        array("unicode_compositions", "uint16_t", made, "rows above that are composed, by their two parts"),
        array("unicode_classes", "uint32_t", flat(classes()),
              "the first and the last of some characters, their class; ascending")])
    header("unicode_kinds", "kinds of characters", [
        array("unicode_dropped", "uint32_t", flat(ranges(is_dropped)),
              "the first and the last of characters that steer, have no meaning of their own, or stand for none; ascending"),
        array("unicode_marks", "uint32_t", flat(ranges(lambda c: unicodedata.category(c) == "Mn")),
              "the same of marks without a width, accents"),
        array("unicode_punctuation", "uint32_t", flat(ranges(is_punctuation)),
              "the same of punctuation, and of ASCII's signs"),
        array("unicode_lower_cases", "int32_t", flat(lower_cases()),
              "the first and the last of some capitals, 1 or 2 from one to the next, how far on their small letters are")])


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/python3
"""Writes the table behind src/text/unicode_classes.h from the Unicode Character Database.

usage: make_unicode_classes.py UCD_FOLDER OUT.inc

UCD_FOLDER holds UnicodeData.txt, Scripts.txt and PropList.txt (Debian: package unicode-data, /usr/share/unicode). The output is
C++: the classes of all 0x110000 code points as blocks of 256, equal blocks stored once.
"""

import re
import sys
from pathlib import Path

CODE_POINTS = 0x110000
BLOCK = 256

# The bits of kilin::CharClass, in its order.
BITS = {name: 1 << i for i, name in enumerate(["Han", "LuLt", "Ll", "LmLo", "M", "N", "WhiteSpace", "StrIsSpace"])}
BIT_OF_CATEGORY = {
    "Lu": "LuLt", "Lt": "LuLt", "Ll": "Ll", "Lm": "LmLo", "Lo": "LmLo",
    "Mn": "M", "Mc": "M", "Me": "M", "Nd": "N", "Nl": "N", "No": "N",
}


def lines(file):
    """The fields of each line that is no comment."""
    for line in file.read_text(encoding="utf-8").splitlines():
        fields = [field.strip() for field in line.split("#")[0].split(";")]
        if fields != [""]:
            yield fields


def code_points_of(file, value):
    """The code points to which a property file (ranges; value) gives `value`."""
    for code, name, *_ in lines(file):
        if name == value:
            first, _, last = code.partition("..")
            yield from range(int(first, 16), int(last or first, 16) + 1)


def classes_of_all(folder):
    classes = bytearray(CODE_POINTS)
    first = None  # of a range that UnicodeData.txt gives by its ends
    for fields in lines(folder / "UnicodeData.txt"):
        code, name, category, bidi = int(fields[0], 16), fields[1], fields[2], fields[4]
        if name.endswith(", First>"):
            first = code
            continue
        begin, first = (code if first is None else first), None
        bits = BITS[BIT_OF_CATEGORY[category]] if category in BIT_OF_CATEGORY else 0
        if category == "Zs" or bidi in ("WS", "B", "S"):  # the definition of Python's str.isspace
            bits |= BITS["StrIsSpace"]
        for c in range(begin, code + 1):
            classes[c] |= bits
    for c in code_points_of(folder / "Scripts.txt", "Han"):
        classes[c] |= BITS["Han"]
    for c in code_points_of(folder / "PropList.txt", "White_Space"):
        classes[c] |= BITS["WhiteSpace"]
    return classes


def rows(values):
    """The numbers as lines of C++."""
    return "\n".join("    " + ", ".join(map(str, values[i:i + 24])) + "," for i in range(0, len(values), 24))


def main():
    folder, out = Path(sys.argv[1]), Path(sys.argv[2])
    version = re.match(r"# PropList-(\d+)\.(\d+)\.\d+\.txt", (folder / "PropList.txt").read_text(encoding="utf-8"))
    if version is None:
        sys.exit(f"{folder / 'PropList.txt'}: the first line names no version")
    classes = classes_of_all(folder)
    blocks, index = [], []  # distinct blocks; which one each 256 code points have
    place = {}
    for begin in range(0, CODE_POINTS, BLOCK):
        block = bytes(classes[begin:begin + BLOCK])
        if block not in place:
            place[block] = len(blocks)
            blocks.append(block)
        index.append(place[block])
    if len(blocks) > 256:
        sys.exit(f"{len(blocks)} distinct blocks; their index is a byte")
    out.write_text(
        f"// Written by tools/make_unicode_classes.py from Unicode {version[1]}.{version[2]}. Not to be edited.\n"
        f"constexpr int kUnicodeMajor = {version[1]}, kUnicodeMinor = {version[2]};\n"
        f"constexpr uint8_t kBlockOf[{len(index)}] = {{\n{rows(index)}\n}};\n"
        f"constexpr uint8_t kBlocks[{len(blocks)}][{BLOCK}] = {{\n"
        + "".join(f"  {{\n{rows(list(block))}\n  }},\n" for block in blocks)
        + "};\n", encoding="utf-8")


main()

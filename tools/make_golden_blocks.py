#!/usr/bin/python3
"""Writes tests/golden/gguf/blocks.gguf: a few rows of every block format with the values that they stand for.

    tools/make_golden_blocks.py ../shared/golden/gguf tests/golden/gguf/blocks.gguf

The rows are cut, bit for bit, out of files that llama.cpp wrote (mini-*.gguf). The values are computed here in fp64, where
nothing rounds, from the description of each format and not from Kilin's code, and rounded to fp32 once. The output holds
for each format F the tensors `F` and `F.values`, both [ROWS, COLUMNS].
"""

import math
import struct
import sys
from pathlib import Path

import numpy as np

ROWS, COLUMNS = 4, 256
ALIGNMENT = 32
F32 = 0

# What an element is: scale of its group times its code's value, plus the group's offset. Each function below takes blocks as
# rows of bytes, [blocks, bytes], and gives the elements of each as a row.


def half(blocks, at):
    return np.ascontiguousarray(blocks[:, at : at + 2]).view("<f2").astype(np.float64)


def integer(blocks, at, kind):
    """A number of several bytes, as a column."""
    return np.ascontiguousarray(blocks[:, at : at + np.dtype(kind).itemsize]).view(kind).astype(np.int64)


def bits(blocks, byte, shift, count):
    """Fields of `count` bits; `byte` and `shift` say for each element where its field is."""
    return blocks[:, byte].astype(np.int64) >> shift & ((1 << count) - 1)


SMALL = np.arange(32)  # the elements of a block of 32
LARGE = np.arange(256)  # and of one of 256
IQ4 = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113])
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


def nibbles_of_32(blocks, at):
    """Element j of the first 16 is the low half of byte j, element 16 + j its high half."""
    return bits(blocks, at + SMALL % 16, SMALL // 16 * 4, 4)


def fifth_bits(blocks, at):
    """A word whose bit j belongs to element j."""
    return integer(blocks, at, "<u4") >> SMALL & 1


def q4_0(blocks):
    return half(blocks, 0) * (nibbles_of_32(blocks, 2) - 8)


def q4_1(blocks):
    return half(blocks, 0) * nibbles_of_32(blocks, 4) + half(blocks, 2)


def q5_0(blocks):
    return half(blocks, 0) * ((nibbles_of_32(blocks, 6) | fifth_bits(blocks, 2) << 4) - 16)


def q5_1(blocks):
    return half(blocks, 0) * (nibbles_of_32(blocks, 8) | fifth_bits(blocks, 4) << 4) + half(blocks, 2)


def q8_0(blocks):
    return half(blocks, 0) * blocks[:, 2:].view(np.int8)


def iq4_nl(blocks):
    return half(blocks, 0) * IQ4[nibbles_of_32(blocks, 2)]


def mxfp4(blocks):
    return np.exp2(integer(blocks, 0, "u1") - 127.0) * E2M1[nibbles_of_32(blocks, 1)]


def pairs_of_128(blocks, at):
    """Each 128 elements have 32 bytes, each byte four elements that lie 32 apart, the first in the lowest bits."""
    return bits(blocks, at + LARGE // 128 * 32 + LARGE % 32, LARGE % 128 // 32 * 2, 2)


def nibbles_of_64(blocks, at):
    """Each 64 elements have 32 bytes, each byte two elements that lie 32 apart."""
    return bits(blocks, at + LARGE // 64 * 32 + LARGE % 32, LARGE % 64 // 32 * 4, 4)


def single_bits(blocks, at):
    """32 bytes; bit k of byte j belongs to element 32 k + j."""
    return bits(blocks, at + LARGE % 32, LARGE // 32, 1)


def six_bit_pairs(blocks, at):
    """Scales and minima of the eight groups of 32 in Q4_K and Q5_K, for each element."""
    word = [blocks[:, at + i].astype(np.int64) for i in range(12)]
    scales = [word[g] & 63 for g in range(4)]
    scales += [word[8 + g] & 15 | word[g] >> 6 << 4 for g in range(4)]
    minima = [word[4 + g] & 63 for g in range(4)]
    minima += [word[8 + g] >> 4 | word[4 + g] >> 6 << 4 for g in range(4)]
    return (np.repeat(np.stack(part, axis=1), 32, axis=1) for part in (scales, minima))


def q2_k(blocks):
    pair = blocks[:, LARGE // 16].astype(np.int64)
    return half(blocks, 80) * (pair & 15) * pairs_of_128(blocks, 16) - half(blocks, 82) * (pair >> 4)


def q3_k(blocks):
    group = LARGE // 16
    scale = bits(blocks, 96 + group % 8, group // 8 * 4, 4) | bits(blocks, 104 + group % 4, group // 4 * 2, 2) << 4
    code = pairs_of_128(blocks, 32) | single_bits(blocks, 0) << 2
    return half(blocks, 108) * (scale - 32) * (code - 4)


def q4_k(blocks):
    scale, minimum = six_bit_pairs(blocks, 4)
    return half(blocks, 0) * scale * nibbles_of_64(blocks, 16) - half(blocks, 2) * minimum


def q5_k(blocks):
    scale, minimum = six_bit_pairs(blocks, 4)
    code = nibbles_of_64(blocks, 48) | single_bits(blocks, 16) << 4
    return half(blocks, 0) * scale * code - half(blocks, 2) * minimum


def q6_k(blocks):
    low = bits(blocks, LARGE // 128 * 64 + LARGE % 64, LARGE % 128 // 64 * 4, 4)
    scale = blocks[:, 192 + LARGE // 16].view(np.int8)
    return half(blocks, 208) * scale.astype(np.int64) * ((low | pairs_of_128(blocks, 128) << 4) - 32)


def iq4_xs(blocks):
    group = LARGE // 32
    scale = bits(blocks, 4 + group // 2, group % 2 * 4, 4) | (integer(blocks, 2, "<u2") >> 2 * group & 3) << 4
    return half(blocks, 0) * (scale - 32) * IQ4[bits(blocks, 8 + group * 16 + LARGE % 16, LARGE % 32 // 16 * 4, 4)]


# Format: its number in GGUF, elements and bytes of a block, the file that llama.cpp wrote.
FORMATS = {
    q4_0: (2, 32, 18, "q4_0"),
    q4_1: (3, 32, 20, "q4_1"),
    q5_0: (6, 32, 22, "q5_0"),
    q5_1: (7, 32, 24, "q5_1"),
    q8_0: (8, 32, 34, "q8_0"),
    q2_k: (10, 256, 84, "q2_k"),
    q3_k: (11, 256, 110, "q3_k_m"),
    q4_k: (12, 256, 144, "q4_k_m"),
    q5_k: (13, 256, 176, "q5_k_m"),
    q6_k: (14, 256, 210, "q6_k"),
    iq4_nl: (20, 32, 18, "iq4_nl"),
    iq4_xs: (23, 256, 136, "iq4_xs"),
    mxfp4: (39, 32, 17, "mxfp4"),
}


class Reader:
    """A GGUF file's tensors: name -> (extents, type, where its data begins)."""

    SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
    STRING, ARRAY = 8, 9

    def __init__(self, file):
        self.data, self.at, self.tensors = file.read_bytes(), 8, {}
        tensors, keys = self.take("<QQ")
        for _ in range(keys):
            self.string()
            self.skip(*self.take("<I"))
        for _ in range(tensors):
            name = self.string()
            extents = self.take(f"<{self.take('<I')[0]}Q")
            self.tensors[name] = (extents, *self.take("<IQ"))
        self.begin = self.at + -self.at % ALIGNMENT

    def take(self, layout):
        values = struct.unpack_from(layout, self.data, self.at)
        self.at += struct.calcsize(layout)
        return values

    def string(self):
        size, = self.take("<Q")
        self.at += size
        return self.data[self.at - size : self.at]

    def skip(self, kind):
        if kind == self.STRING:
            self.string()
        elif kind == self.ARRAY:
            element, count = self.take("<IQ")
            for _ in range(count):
                self.skip(element)
        else:
            self.at += self.SIZES[kind]

    def first_bytes(self, kind, count):
        """Of the first tensor of a type and of rows of COLUMNS, in the file's order."""
        for extents, its_kind, offset in self.tensors.values():
            if its_kind == kind and extents[0] == COLUMNS and math.prod(extents[1:]) >= ROWS:
                return self.data[self.begin + offset : self.begin + offset + count]
        raise SystemExit(f"no tensor of type {kind} has {ROWS} rows of {COLUMNS}")


def padded(data):
    return data + bytes(-len(data) % ALIGNMENT)


def gguf(tensors):
    """A file without keys of (name, type, data), all [ROWS, COLUMNS]."""
    head, body = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), 0), b""
    for name, kind, data in tensors:
        head += struct.pack("<Q", len(name)) + name.encode()
        head += struct.pack("<IQQIQ", 2, COLUMNS, ROWS, kind, len(body))
        body += padded(data)
    return padded(head) + body


def main():
    source, target = map(Path, sys.argv[1:])
    tensors = []
    for dequantize, (number, elements, size, kind) in FORMATS.items():
        data = Reader(source / f"mini-{kind}.gguf").first_bytes(number, ROWS * COLUMNS // elements * size)
        blocks = np.frombuffer(data, np.uint8).reshape(-1, size)
        values = dequantize(blocks) + 0.0  # zero has no sign here: adding an offset of 0 takes it away
        tensors.append((dequantize.__name__, number, data))
        tensors.append((dequantize.__name__ + ".values", F32, values.astype("<f4").tobytes()))
    target.write_bytes(gguf(tensors))


if __name__ == "__main__":
    main()

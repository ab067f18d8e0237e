#!/usr/bin/python3
"""Samples of the reference's inner values and of the logits after its edits, small enough for a clone.

Usage: make_golden_inside.py SHARED/golden/inside/T065.npz tests/golden/inside/T065_samples.safetensors

Every array of n elements becomes [max, v[0], v[1 * 7919 % n], v[2 * 7919 % n], ...] in fp32: the largest finite magnitude of
all, which tolerances are relative to, then at most 64 elements (256 of the logits after an edit). The ids stay whole.
"""
import json
import struct
import sys

import numpy as np

STEP = 7919
INNER, EDITED = 64, 256


def sampled(name, array):
    if name == "ids":
        return array.astype(np.int32)
    flat = array.astype(np.float32).reshape(-1)
    count = min(flat.size, EDITED if name.startswith("edit:") else INNER)
    largest = np.abs(flat[np.isfinite(flat)]).max()
    return np.concatenate([[largest], flat[np.arange(count) * STEP % flat.size]]).astype(np.float32)


def write_safetensors(path, arrays):
    header, data = {}, b""
    for name, array in arrays.items():
        part = array.tobytes()
        dtype = {"float32": "F32", "int32": "I32"}[array.dtype.name]
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [len(data), len(data) + len(part)]}
        data += part
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def main():
    source, target = sys.argv[1:]
    with np.load(source) as arrays:
        write_safetensors(target, {name: sampled(name, arrays[name]) for name in arrays.files})


if __name__ == "__main__":
    main()

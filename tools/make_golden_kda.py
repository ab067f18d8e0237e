#!/usr/bin/python3
"""Makes the KDA cases of tests/golden small enough for the repository.

Usage: make_golden_kda.py FROM TO      (folders: ../shared/golden/kda, tests/golden/kda)

A case loses what Hugging Face computed in fp32 and what stands between input and output (`*_hf_*`, `mid.*`): no test needs the
former, and cases 01 and 14 keep the latter. What stays keeps its bytes.
"""
import json
import struct
import sys
from pathlib import Path

WHOLE = ("01_", "14_", "weights")


def without_extras(data):
    """The same safetensors file with fewer tensors, packed in their order."""
    header_bytes = struct.unpack("<Q", data[:8])[0]
    header, body = json.loads(data[8:8 + header_bytes]), data[8 + header_bytes:]
    metadata = header.pop("__metadata__", None)
    kept, parts, offset = {} if metadata is None else {"__metadata__": metadata}, [], 0
    for name, tensor in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        if name.startswith("mid.") or "_hf_" in name:
            continue
        begin, end = tensor["data_offsets"]
        kept[name] = {**tensor, "data_offsets": [offset, offset + end - begin]}
        parts.append(body[begin:end])
        offset += end - begin
    text = json.dumps(kept, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(parts)


def main():
    source, target = Path(sys.argv[1]), Path(sys.argv[2])
    for file in sorted(source.glob("*.safetensors")):
        data = file.read_bytes()
        (target / file.name).write_bytes(data if file.name.startswith(WHOLE) else without_extras(data))


if __name__ == "__main__":
    main()

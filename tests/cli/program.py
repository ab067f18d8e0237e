"""Runs the built program for the tests beside this file. KILIN names it; else it is the release build's. KILIN_SANITIZE says what
it was built with, if anything."""
import ast
import json
import math
import os
import struct
import subprocess
import tempfile
import unittest
from base64 import b64encode
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KILIN = os.environ.get("KILIN", str(ROOT / "build/release/bin/kilin"))
SANITIZED = bool(os.environ.get("KILIN_SANITIZE"))
TINY = ROOT / "models/tiny"
IDS_ONLY = ROOT / "tests/golden/tiny-kimi-linear"  # has no tokenizer; vocabulary 512
TIMEOUT_S = 300  # far beyond what any run takes, sanitised or not

SUCCESS, FAILURE, USAGE = 0, 1, 2


def kilin(*args, stdin="", **options):
    """Runs kilin with pipes for all three streams."""
    stdin = stdin if isinstance(stdin, bytes) else stdin.encode()
    return subprocess.run([KILIN, *map(str, args)], input=stdin, capture_output=True, timeout=TIMEOUT_S, **options)


def ids_text(ids):
    return ",".join(map(str, ids))


def read_npy(file):
    """Shape and values of the first array of a .npy file, float32 or int32."""
    data = Path(file).read_bytes()
    assert data[:8] == b"\x93NUMPY\x01\0", data[:8]
    begin = 10 + struct.unpack("<H", data[8:10])[0]
    header = ast.literal_eval(data[10:begin].decode())
    assert not header["fortran_order"], header
    count = math.prod(header["shape"])
    return header["shape"], struct.unpack_from(f"<{count}{ {'<f4': 'f', '<i4': 'i'}[header['descr']] }", data, begin)


class ProgramTest(unittest.TestCase):
    def output(self, *args, **options):
        """Standard output of a run that must succeed."""
        result = kilin(*args, **options)
        self.assertEqual(result.returncode, SUCCESS, result.stderr.decode())
        return result.stdout.decode()

    def json(self, *args, **options):
        return json.loads(self.output(*args, **options))

    def refusal(self, code, *args, **options):
        """The message of a run that must fail: a line, perhaps with a list under it, and nothing on standard output."""
        result = kilin(*args, **options)
        message = result.stderr.decode()
        self.assertEqual(result.returncode, code, f"{args}: {message}")
        self.assertEqual(result.stdout, b"", args)
        self.assertRegex(message, r"\Akilin: [^\n]+\n(  [^\n]+\n)*\Z", args)
        return message

    def temporary_folder(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return Path(folder.name)

    def ids_model(self, **config_changes):
        """The golden model without a tokenizer, its config.json changed."""
        folder = self.temporary_folder()
        for file in IDS_ONLY.iterdir():
            if file.name not in ("config.json", "generation_config.json"):
                (folder / file.name).symlink_to(file)
        config = json.loads((IDS_ONLY / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**config, **config_changes}))
        return folder

    def byte_model(self):
        """The same with a tokenizer of single bytes and 256 specials: its answers are noise, but quick and long."""
        folder = self.ids_model(model_max_length=1 << 20, eos_token_id=258)
        ranks = (f"{b64encode(bytes([byte])).decode()} {byte}\n" for byte in range(256))
        (folder / "tiktoken.model").write_text("".join(ranks))
        return folder

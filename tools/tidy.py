#!/usr/bin/python3
"""Runs clang-tidy-14 over the library, and not again over a file that has passed and has not changed since.

Usage: tidy.py BUILD

BUILD holds a compile_commands.json made for clang. A file has passed in the form of everything that can change the verdict:
the checks, its command line, and its own text with that of every header of this tree that it includes. Such forms are kept
as empty files in build/tidy.
"""
import concurrent.futures
import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PASSED = ROOT / "build" / "tidy"
CLANG_TIDY = "clang-tidy-14"
INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)
INCLUDE_FOLDERS = (ROOT / "src", ROOT / "tests")


def with_headers(file, seen):
    """Adds `file` and all of this tree that it includes to `seen`: path -> text."""
    if file in seen:
        return
    seen[file] = file.read_bytes()
    for name in INCLUDE.findall(seen[file]):
        for folder in INCLUDE_FOLDERS:
            header = folder / name.decode()
            if header.is_file():
                with_headers(header, seen)


def form_of(entry):
    """A name for all that the verdict over a compile command depends on."""
    texts = {}
    with_headers(Path(entry["file"]), texts)
    form = hashlib.sha256((ROOT / ".clang-tidy").read_bytes())
    form.update(entry["command"].encode())
    for file in sorted(texts):
        form.update(f"\0{file.relative_to(ROOT)}\0".encode() + texts[file])
    return form.hexdigest()


def check(entry, build):
    """The complaints about one file; "" if there are none."""
    done = subprocess.run([CLANG_TIDY, "-p", build, "--quiet", entry["file"]], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        (PASSED / form_of(entry)).touch()
        return ""
    return done.stdout + done.stderr


def is_checked(file):
    return (ROOT / "src") in file.parents and not file.name.endswith("_test.cpp")


def main():
    build = sys.argv[1]
    commands = json.loads((Path(build) / "compile_commands.json").read_text())
    PASSED.mkdir(parents=True, exist_ok=True)
    entries = [e for e in commands if is_checked(Path(e["file"])) and not (PASSED / form_of(e)).exists()]
    faults = 0
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for complaints in pool.map(lambda entry: check(entry, build), entries):
            if complaints:
                print(complaints, flush=True)
                faults += 1
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

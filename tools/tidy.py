#!/usr/bin/python3
"""Runs clang-tidy-14 over the library, and not again over a file that has passed and has not changed since.

Usage: tidy.py BUILD

BUILD holds a compile_commands.json made for clang. A file has passed in the form of everything that can change the verdict:
the checks, its command line, and its own text with that of every header of this tree that it includes. Such forms are kept
as empty files in build/tidy.

Most of clang-tidy's time goes into the headers of the standard library, for every file anew. So several files are written
one after another into one text, and their headers are looked at once. Where such a batch has complaints, or does not compile
because two files give one name to two things, its files are checked one by one: every complaint is a file's own.
"""
import concurrent.futures
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PASSED = ROOT / "build" / "tidy"
CLANG_TIDY = "clang-tidy-14"
FILES_OF_A_BATCH = 10
INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)
INCLUDE_FOLDERS = (ROOT / "src", ROOT / "tests")
# What a formatted file declares in its first column is of namespace scope: "constexpr size_t kBytes = 3;", "struct Row {".
DECLARED = re.compile(rb"^[A-Za-z_][^\n;={(]*?(?<![:\w])(\w+)[ ]?(?:[\[={(;]|:(?!:)|$)", re.MULTILINE)


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


def flags_of(entry):
    """The compiler's arguments without those that name the file."""
    words = shlex.split(entry["command"])
    return [w for before, w in zip(words, words[1:]) if before not in ("-o", "-c") and w not in ("-o", "-c")]


def batches_of(entries):
    """Lists of files that have the flags in common and, as far as the first column shows, no declared name."""
    batches = []  # (flags, names, entries)
    for entry in entries:
        flags = flags_of(entry)
        names = set(DECLARED.findall(Path(entry["file"]).read_bytes())) - {b"kilin", b"namespace"}
        for others, taken, batch in batches:
            if others == flags and len(batch) < FILES_OF_A_BATCH and not names & taken:
                taken |= names
                batch.append(entry)
                break
        else:
            batches.append((flags, names, [entry]))
    return [batch for _, _, batch in batches]


def complaints_of(file, flags):
    """What clang-tidy says about one text; "" if nothing."""
    command = [CLANG_TIDY, "--quiet", f"--config-file={ROOT / '.clang-tidy'}", file, "--", *flags]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr if done.returncode else ""


def passes_together(batch, number):
    text = PASSED / f"batch_{number}.cpp"
    text.write_bytes(b"\n".join(Path(entry["file"]).read_bytes() for entry in batch))
    passed = not complaints_of(text, flags_of(batch[0]))
    text.unlink()
    return passed


def check(batch, number):
    """The complaints about each file of a batch that has any."""
    together = len(batch) > 1 and passes_together(batch, number)
    complaints = []
    for entry in batch:
        said = "" if together else complaints_of(entry["file"], flags_of(entry))
        if said:
            complaints.append(said)
        else:
            (PASSED / form_of(entry)).touch()
    return complaints


def is_checked(file):
    return (ROOT / "src") in file.parents and not file.name.endswith("_test.cpp")


def main():
    commands = json.loads((Path(sys.argv[1]) / "compile_commands.json").read_text())
    PASSED.mkdir(parents=True, exist_ok=True)
    batches = batches_of(e for e in commands if is_checked(Path(e["file"])) and not (PASSED / form_of(e)).exists())
    faults = 0
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for complaints in pool.map(check, batches, range(len(batches))):
            for said in complaints:
                print(said, flush=True)
                faults += 1
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

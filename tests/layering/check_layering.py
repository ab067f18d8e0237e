#!/usr/bin/python3
"""Fails on an #include that climbs the ladder of src/.

Usage: check_layering.py [ROOT]

Every folder of src/ may include itself and the folders that ALLOWED gives it. Includes are written from src/
("core/error.h"), never relative to the file. The DEPS of the folder's CMakeLists.txt must name what its files include,
directly or through another dependency, and nothing that ALLOWED forbids. A folder's tests (*_test.cpp) keep to the same
arrows; they may include tests/support too.
"""
import re
import sys
from pathlib import Path

WEIGHTS = {"core", "checkpoint", "kernels", "config"}
MODEL = WEIGHTS | {"parallel", "taps", "cache", "weights"}
LOADING = MODEL | {"text", "gguf", "model"}
ENGINE = LOADING | {"loading"}
INSIDE = ENGINE | {"engine", "synthetic"}
PROGRAM = INSIDE | {"inside"}
ALLOWED = {
    "core": set(),
    "checkpoint": {"core"},
    "text": {"core"},
    "kernels": {"core"},
    "parallel": {"core"},
    "taps": {"core"},
    "cache": {"core", "kernels"},
    "config": {"core", "kernels"},
    "weights": WEIGHTS,
    "gguf": WEIGHTS | {"text", "weights"},
    "synthetic": WEIGHTS | {"text", "weights"},
    "model": MODEL,
    "loading": LOADING,
    "engine": ENGINE,
    "inside": INSIDE,
    "serve": PROGRAM,
    "cli": PROGRAM,
    "python": PROGRAM,
}
UMBRELLA = "kilin.h"  # src/kilin.h gives users the whole library
SOURCES = {".h", ".cpp", ".inl", ".inc"}

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
INCLUDE = re.compile(r"^[ \t]*#[ \t]*include\b[ \t]*(.*?)[ \t]*$", re.MULTILINE)
DEPS = re.compile(r"\bkilin_library\s*\(([^)]*)\)", re.DOTALL)


def includes(text):
    """Yields (line number, what stands after #include) of C++ source. Comments are blanked, their line ends kept."""
    text = COMMENT.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)
    for match in INCLUDE.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, match.group(1)


def deps_of(cmake):
    """The DEPS of the kilin_library(...) in a CMakeLists.txt."""
    call = DEPS.search(re.sub(r"#[^\n]*", "", cmake))
    deps, reading = set(), False
    for word in call.group(1).split()[1:] if call else []:
        if word.isupper() and "::" not in word:
            reading = word == "DEPS"
        elif reading:
            deps.add(word)
    return deps


def closure(folder, deps):
    """What `folder` reaches by DEPS, itself among it."""
    reached, open_ = set(), [folder]
    while open_:
        folder = open_.pop()
        if folder not in reached:
            reached.add(folder)
            open_ += deps.get(folder, ())
    return reached


def fault_of(folder, spec, is_test, linked):
    """Why `folder` may not include `spec`, or None. `linked`: the folders that its CMake target reaches; None: any."""
    if not spec or spec[0] not in '"<':
        return f"#include {spec}: a name made by a macro hides where the arrow points"
    name = spec[1:-1]
    if ".." in name.split("/"):
        return f'"{name}" is relative; write it from src/'
    first = name.split("/")[0]
    if spec[0] == "<" and (first not in ALLOWED or "/" not in name):
        return None
    if first == "support" and is_test:
        return None
    if name == UMBRELLA:
        return None if folder == "python" else f'"{UMBRELLA}" is for users of the library'
    if first not in ALLOWED or "/" not in name:
        return f'"{name}" starts with no folder of src/; write it from src/'
    if first != folder and first not in ALLOWED[folder]:
        return f'"{name}": {folder} may not use {first}'
    if linked is not None and first not in linked:
        return f'"{name}": {first} is missing from DEPS in src/{folder}/CMakeLists.txt'
    return None


def check(root):
    """The faults of the tree, one line each."""
    faults, deps = [], {}
    src = root / "src"
    folders = sorted(p for p in src.iterdir() if p.is_dir()) if src.is_dir() else []
    for folder in folders:
        if folder.name not in ALLOWED:
            faults.append(f"src/{folder.name}: not on the ladder of tests/layering/check_layering.py")
            continue
        cmake = folder / "CMakeLists.txt"
        deps[folder.name] = deps_of(cmake.read_text()) if cmake.is_file() else set()
        for dep in sorted(deps[folder.name] - ALLOWED[folder.name]):
            faults.append(f"src/{folder.name}/CMakeLists.txt: DEPS {dep}: {folder.name} may not use {dep}")
    python = root / "python"
    for folder in [f for f in folders if f.name in ALLOWED] + ([python] if python.is_dir() else []):
        linked = closure(folder.name, deps) if folder != python else None
        for file in sorted(p for p in folder.rglob("*") if p.suffix in SOURCES):
            for line, spec in includes(file.read_text()):
                fault = fault_of(folder.name, spec, file.name.endswith("_test.cpp"), linked)
                if fault:
                    faults.append(f"{file.relative_to(root)}:{line}: {fault}")
    return faults


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parents[2])
    faults = check(root)
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

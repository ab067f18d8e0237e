"""Lets CMake build the extension, and takes the embedded model along: `pip install --no-build-isolation .`"""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).parent.resolve()
VERSION = re.search(r"project\(kilin VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
TESTS_ONLY = ("expected", "eval.txt")  # of the embedded model's folder


class CMakeBuild(build_ext):
    """Builds into build/pip, where a second call finds what the first compiled."""

    def build_extension(self, extension):
        build = ROOT / "build/pip"
        subprocess.run(["cmake", "--preset", "release", "-B", build, "-DKILIN_BUILD_TESTS=OFF", "-DKILIN_BUILD_BENCH=OFF",
                        "-DKILIN_BUILD_PYTHON=REQUIRED", f"-DKILIN_PYTHON_EXECUTABLE={sys.executable}"], check=True, cwd=ROOT)
        jobs = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL", str(os.cpu_count()))
        subprocess.run(["cmake", "--build", build, "--target", "_kilin", "-j", jobs], check=True)
        target = Path(self.get_ext_fullpath(extension.name)).resolve()
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(next((build / "python/kilin").glob("_kilin*.so")), target)
        shutil.copytree(ROOT / "models/tiny", target.parent / "models/tiny", dirs_exist_ok=True,
                        ignore=lambda _, names: [n for n in names if n.startswith(TESTS_ONLY)])


setup(version=VERSION, ext_modules=[Extension("kilin._kilin", sources=[])], cmdclass={"build_ext": CMakeBuild})

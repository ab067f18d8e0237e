#!/usr/bin/python3
"""The layering check fails on each kind of wrong arrow, and on nothing else."""
import tempfile
import unittest
from pathlib import Path

from check_layering import check, deps_of, includes

GOOD = {
    "src/core/CMakeLists.txt": "kilin_library(core LINK Threads::Threads fmt::fmt)\n",
    "src/core/error.h": "#include <fmt/core.h>\n#include <string>\n",
    "src/core/error_test.cpp": '#include "core/error.h"\n#include "support/golden.h"\n#include <gtest/gtest.h>\n',
    "src/kernels/CMakeLists.txt": "kilin_library(kernels DEPS core)\n",
    "src/kernels/avx2.cpp": '#include "core/error.h"\n#include "kernels/generic/matmul.inl"\n',
    "src/kernels/generic/matmul.inl": '// #include "engine/engine.h"\n/* text\n#include "cli/main.h" */\n',
    "src/cache/CMakeLists.txt": "kilin_library(cache DEPS kernels)\n",
    "src/cache/pool.cpp": '#include "core/error.h"\n#  include "kernels/kda.h"  // reached through kernels\n',
    "src/kilin.h": '#include "cache/pool.h"\n',
    "python/module.cpp": '#include "kilin.h"\n#include "cache/pool.h"\n',
}


def faults_with(changes):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {**GOOD, **changes}.items():
            file = Path(folder, name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return check(Path(folder))


class CheckLayering(unittest.TestCase):
    def expect_fault(self, file, text, *parts):
        faults = faults_with({file: text})
        self.assertEqual(len(faults), 1, faults)
        for part in (file, *parts):
            self.assertIn(part, faults[0])

    def test_a_right_tree_has_no_faults(self):
        self.assertEqual(faults_with({}), [])

    def test_an_arrow_upwards_fails_and_names_its_line(self):
        self.expect_fault("src/core/bad.cpp", '\n#include "kernels/kda.h"\n', ":2:", "core may not use kernels")
        self.expect_fault("src/kernels/generic/bad.inl", '#include "cache/pool.h"\n', "kernels may not use cache")
        self.expect_fault("src/cache/bad.h", "#include <kernels/../core/error.h>\n", "relative")

    def test_an_arrow_sideways_fails(self):
        self.expect_fault("src/kernels/bad.cpp", '#include "text/bpe.h"\n', "kernels may not use text")
        self.expect_fault("src/kernels/bad.h", "#include <text/bpe.h>\n", "kernels may not use text")
        self.expect_fault("python/bad.cpp", '#include "cli/main.h"\n', "python may not use cli")

    def test_a_test_keeps_to_the_arrows_too(self):
        self.expect_fault("src/core/bad_test.cpp", '#include "kernels/kda.h"\n', "core may not use kernels")

    def test_only_tests_may_use_the_support_of_tests(self):
        self.expect_fault("src/core/bad.cpp", '#include "support/golden.h"\n', "no folder of src/")

    def test_a_relative_include_fails(self):
        self.expect_fault("src/core/bad.cpp", '#include "../core/error.h"\n', "relative")
        self.expect_fault("src/core/bad.cpp", '#include "error.h"\n', "no folder of src/")
        self.expect_fault("src/core/bad.cpp", '#include "core/../kernels/kda.h"\n', "relative")

    def test_an_include_by_macro_fails(self):
        self.expect_fault("src/core/bad.cpp", "#include KILIN_HEADER\n", "macro")

    def test_the_umbrella_header_is_not_for_the_library_itself(self):
        self.expect_fault("src/cache/bad.cpp", '#include "kilin.h"\n', "for users")

    def test_what_is_included_must_be_linked(self):
        self.expect_fault("src/model/a.cpp", '#include "core/error.h"\n', "core is missing from DEPS in src/model")

    def test_what_is_linked_must_be_allowed(self):
        self.expect_fault("src/text/CMakeLists.txt", "kilin_library(text DEPS core kernels)\n", "text may not use kernels")

    def test_a_folder_off_the_ladder_fails(self):
        faults = faults_with({"src/util/a.h": ""})
        self.assertEqual(len(faults), 1)
        self.assertIn("src/util: not on the ladder", faults[0])


class Reading(unittest.TestCase):
    def test_deps_end_at_the_next_keyword(self):
        self.assertEqual(deps_of("kilin_library(model\n  DEPS core text # cache\n  LINK fmt::fmt)\n"), {"core", "text"})
        self.assertEqual(deps_of("# kilin_library(x DEPS core)\nadd_executable(kilin main.cpp)\n"), set())

    def test_lines_are_counted_past_comments(self):
        self.assertEqual(list(includes('/* a\nb */\n//\n#include "x/y.h"\n')), [(4, '"x/y.h"')])


if __name__ == "__main__":
    unittest.main()

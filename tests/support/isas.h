// The instruction sets as parameters of tests, so that ctest names each.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "core/cpu_info.h"
#include "kernels/isa.h"
#include "kernels/kernel_table.h"

namespace kilin::testing {

/// All of this CPU's architecture, weakest first, whether this CPU has them or not: see ISA_OR_SKIP.
inline std::vector<std::string> isas() {
  std::vector<std::string> names;
  for (Isa isa : kIsas)
    if (kernels_of(isa) != nullptr) names.emplace_back(to_string(isa));
  return names;
}

/// As part of a test's name, which takes letters, digits and underscores: "avx2_vnni".
inline std::string name_in_tests(std::string isa) {
  std::ranges::replace(isa, '+', '_');
  return isa;
}

inline bool cpu_has(const std::string& name) {
  for (Isa isa : kIsas)
    if (to_string(isa) == name) return supports(CpuInfo::detect(), isa);
  return false;
}

/// The last of isas() that this CPU has: what runs where nothing is asked for.
inline std::string best_isa() {
  std::vector<std::string> names = isas();
  std::erase_if(names, [](const std::string& name) { return !cpu_has(name); });
  return names.back();
}

/// Why a test of whole layers or models does not run on it here; empty where it does. KILIN_TEST_ISAS=picked leaves the one
/// that runs where nothing is asked for: a sanitised model takes minutes, and the tests of kernels reach the other sets.
inline std::string reason_to_skip(const std::string& name) {
  if (!cpu_has(name)) return "this CPU has no " + name;
  const char* wanted = std::getenv("KILIN_TEST_ISAS");
  if (wanted != nullptr && std::string_view(wanted) == "picked" && name != best_isa()) return "only on " + best_isa();
  return {};
}

/// Its kernels; the ops that KILIN_NAIVE names stay naive.
inline KernelChoice kernels_for(const std::string& isa) { return {isa, KernelChoice::from_environment().naive}; }

}  // namespace kilin::testing

/// Skips the test, visibly, where it does not run on the instruction set.
#define ISA_OR_SKIP(name) \
  if (const std::string reason = ::kilin::testing::reason_to_skip(name); !reason.empty()) GTEST_SKIP() << reason

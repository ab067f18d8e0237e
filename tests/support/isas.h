// The instruction sets as parameters of tests, so that ctest lists each by name.
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

/// All sets of this CPU's architecture, weakest first, whether or not this CPU has them: see ISA_OR_SKIP.
inline std::vector<std::string> isas() {
  std::vector<std::string> names;
  for (Isa isa : kIsas)
    if (kernels_of(isa) != nullptr) names.emplace_back(to_string(isa));
  return names;
}

/// The set's name in a test's name, which allows letters, digits and underscores only: "avx2_vnni".
inline std::string name_in_tests(std::string isa) {
  std::ranges::replace(isa, '+', '_');
  return isa;
}

inline bool cpu_has(const std::string& name) {
  for (Isa isa : kIsas)
    if (to_string(isa) == name) return supports(CpuInfo::detect(), isa);
  return false;
}

/// The last of isas() that this CPU has, which runs by default.
inline std::string best_isa() {
  std::vector<std::string> names = isas();
  std::erase_if(names, [](const std::string& name) { return !cpu_has(name); });
  return names.back();
}

/// Why a test of whole layers or models does not run on this set here; empty if it does. KILIN_TEST_ISAS=picked leaves only the
/// default one: a sanitised model takes minutes, and the tests of kernels cover the other sets.
inline std::string reason_to_skip(const std::string& name) {
  if (!cpu_has(name)) return "this CPU has no " + name;
  const char* wanted = std::getenv("KILIN_TEST_ISAS");
  if (wanted != nullptr && std::string_view(wanted) == "picked" && name != best_isa()) return "only on " + best_isa();
  return {};
}

/// The kernels of a set; the ops that KILIN_NAIVE names stay naive.
inline KernelChoice kernels_for(const std::string& isa) { return {isa, KernelChoice::from_environment().naive}; }

}  // namespace kilin::testing

/// Visibly skips the test if it does not run on the instruction set.
#define ISA_OR_SKIP(name) \
  if (const std::string reason = ::kilin::testing::reason_to_skip(name); !reason.empty()) GTEST_SKIP() << reason

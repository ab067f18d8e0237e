// The list of the published checkpoint's tensors. It is part of the repository, so that no test is skipped: 35 lines with
// ranges of layers and experts (tests/golden/real/tensor_ranges.tsv), which these functions expand to the 20,493 tensors.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace kilin::testing {

/// All texts that a pattern stands for: "a.{0-2,7}.b" for a.0.b, a.1.b, a.2.b and a.7.b; several braces for all combinations.
/// @throws std::invalid_argument, which quotes the pattern, if it holds anything else between braces
std::vector<std::string> expand_ranges(std::string_view pattern);

/// Name, dtype and shape of each tensor of the published checkpoint: "model.norm.weight\tBF16\t2304".
std::set<std::string> published_tensors();

}  // namespace kilin::testing

#include "inside/verify/check_packs.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "weights/pack_cache.h"

namespace kilin {

namespace {

namespace fs = std::filesystem;

Check check_file(const fs::path& file, const PackPlan& plan, const PackOrigin& origin, ThreadPool& pool) {
  const auto damaged = damaged_packs(file, plan, origin, &pool);
  if (!damaged)
    return note(fmt::format("{}: is of other weights or another version; the next load makes it anew", file.string()));
  if (!damaged->empty())
    return failed(fmt::format("{}: {} of {} matrices are not what was packed; remove it, or load with --check-pack-cache",
                              file.string(), damaged->size(), plan.packs().size()),
                  *damaged);
  return ok(fmt::format("{}: {} matrices", file.string(), plan.packs().size()));
}

// As they stand, and what --quantize may have asked for of weights that are in no blocks yet.
std::vector<std::optional<QuantType>> ways_to_load(const TensorStore& weights) {
  std::vector<std::optional<QuantType>> ways = {std::nullopt};
  if (std::ranges::any_of(weights.names(), [&](const std::string& name) { return weights.require(name).format.is_block(); }))
    return ways;
  for (const std::string& name : quant_type_names()) ways.emplace_back(parse_quant_type(name));
  return ways;
}

}  // namespace

void check_packs(CheckReporter& reporter, const ModelFiles& files, const ModelConfig& config, const PackPlacement& placement,
                 ThreadPool& pool) {
  const auto weights = files.weights(config);
  for (const auto& quantize : ways_to_load(*weights)) {
    const PackOrigin origin = {.weights = weights, .quantize = quantize};
    for (const fs::path& file : possible_pack_files(placement, files.path(), origin)) {
      std::error_code ignored;
      if (!fs::is_regular_file(file, ignored)) continue;
      reporter.run("packed weights", [&] { return check_file(file, PackPlan::of(*weights, config, quantize), origin, pool); });
    }
  }
}

}  // namespace kilin

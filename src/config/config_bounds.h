// The bounds that a model's sizes must satisfy, whichever file they come from. No such model comes near them; they are chosen
// so that the bytes of all weights together can't overflow 64 bits:
// 3 x 2^17 hidden x 2^20 width x 2^18 experts x 4 bytes = 2^58.6.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "config/config_reader.h"
#include "config/model_config.h"

namespace kilin {

inline constexpr size_t kMaxHidden = size_t{1} << 17;
inline constexpr size_t kMaxWidth = size_t{1} << 20;
inline constexpr size_t kMaxVocabulary = size_t{1} << 24;
inline constexpr size_t kMaxLayers = 1024;
inline constexpr size_t kMaxLayersTimesExperts = size_t{1} << 18;
inline constexpr size_t kMaxPositions = std::numeric_limits<int32_t>::max();

/// A file's names of the numbers that check_experts compares, for its messages.
struct ExpertKeys {
  std::string_view layers, experts, experts_per_token, groups, groups_per_token;
};

/// Checks the widths that are products of two sizes. @pre each size is at most kMaxWidth. @throws Corrupt
void check_widths(const ConfigReader& in, const ModelConfig& c);

/// Checks the numbers of experts, of experts per token, and of groups. @pre each is at least 1. @throws Corrupt
void check_experts(const ConfigReader& in, const ModelConfig& c, const ExpertKeys& keys);

}  // namespace kilin

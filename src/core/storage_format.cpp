#include "core/storage_format.h"

#include <algorithm>

namespace kilin {

namespace {

struct BlockFacts {
  BlockFormat format;
  std::string_view name;
  BlockSize size;
};

constexpr BlockFacts kFacts[] = {
    {BlockFormat::q4_0, "q4_0", {32, 18}},     {BlockFormat::q4_1, "q4_1", {32, 20}},
    {BlockFormat::q5_0, "q5_0", {32, 22}},     {BlockFormat::q5_1, "q5_1", {32, 24}},
    {BlockFormat::q8_0, "q8_0", {32, 34}},     {BlockFormat::q2_k, "q2_k", {256, 84}},
    {BlockFormat::q3_k, "q3_k", {256, 110}},   {BlockFormat::q4_k, "q4_k", {256, 144}},
    {BlockFormat::q5_k, "q5_k", {256, 176}},   {BlockFormat::q6_k, "q6_k", {256, 210}},
    {BlockFormat::iq4_nl, "iq4_nl", {32, 18}}, {BlockFormat::iq4_xs, "iq4_xs", {256, 136}},
    {BlockFormat::mxfp4, "mxfp4", {32, 17}},
};

constexpr bool in_order() {
  for (size_t i = 0; i < std::size(kFacts); ++i)
    if (kFacts[i].format != kBlockFormats[i] || static_cast<size_t>(kFacts[i].format) != i) return false;
  return std::size(kFacts) == kBlockFormats.size();
}
static_assert(in_order(), "a block format's facts stand at its number");

const BlockFacts& facts_of(BlockFormat format) { return kFacts[static_cast<size_t>(format)]; }

}  // namespace

BlockSize block_size(BlockFormat format) { return facts_of(format).size; }

std::string_view to_string(BlockFormat format) { return facts_of(format).name; }

std::optional<BlockFormat> find_block_format(std::string_view name) {
  const auto at =
      std::find_if(std::begin(kFacts), std::end(kFacts), [&](const BlockFacts& facts) { return facts.name == name; });
  if (at == std::end(kFacts)) return std::nullopt;
  return at->format;
}

size_t StorageFormat::bytes_of(size_t elements) const {
  if (!is_block_) return elements * size_of(dtype_);
  const BlockSize size = block_size(block_);
  assert(elements % size.elements == 0);
  return elements / size.elements * size.bytes;
}

std::string_view to_string(StorageFormat format) {
  return format.is_block() ? to_string(format.block()) : to_string(format.dtype());
}

}  // namespace kilin

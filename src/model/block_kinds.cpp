#include "model/block_kinds.h"

namespace kilin {

std::vector<BlockKind> block_kinds(const ModelConfig& config) {
  std::vector<BlockKind> kinds;
  for (size_t layer = 0; layer < config.num_hidden_layers; ++layer)
    kinds.push_back({config.is_kda(layer) ? BlockKind::Attention::Kda : BlockKind::Attention::Mla,
                     config.is_moe(layer) ? BlockKind::FeedForward::Moe : BlockKind::FeedForward::Dense});
  return kinds;
}

}  // namespace kilin

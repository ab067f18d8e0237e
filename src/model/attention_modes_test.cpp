// A prompt in one Extend, or all but its last tokens in one and those token by token: the two modes of one attention layer
// agree within the rounding of their arithmetic.
#include <gtest/gtest.h>

#include "support/compare.h"
#include "support/kda_layer.h"
#include "support/mla_layer.h"
#include "support/naive_layers.h"

namespace kilin {
namespace {

using testing::LayerOptions;
using Floats = std::vector<float>;

constexpr size_t kHidden = 128;
constexpr size_t kLengths[] = {64, 65, 130, 200}, kDecoded[] = {8, 16, 63};
const LayerOptions kBf16 = {.activations = ActivationType::bf16, .kv_type = KvType::bf16};

// What `layer` gives for tokens [begin, end) of the prompt `x`, which follow on those that it has seen.
template <typename Layer>
Floats run(Layer& layer, const Floats& x, size_t begin, size_t end, ForwardMode mode) {
  const Floats part(x.begin() + static_cast<ptrdiff_t>(begin * kHidden), x.begin() + static_cast<ptrdiff_t>(end * kHidden));
  return layer.run(part, {0, end - begin}, mode, begin);
}

template <typename Make>
void expect_modes_agree(Make&& make, double of_each, double of_max) {
  for (size_t tokens : kLengths)
    for (size_t decoded : kDecoded) {
      const Floats x = testing::made_up_values(tokens * kHidden, tokens);
      auto whole = make(), in_two = make();
      const Floats expected = run(whole, x, 0, tokens, ForwardMode::Extend);
      Floats out = run(in_two, x, 0, tokens - decoded, ForwardMode::Extend);
      for (size_t t = tokens - decoded; t < tokens; ++t) {
        const Floats token = run(in_two, x, t, t + 1, ForwardMode::Decode);
        out.insert(out.end(), token.begin(), token.end());
      }
      EXPECT_EACH_CLOSE(out, expected, of_each, of_each) << tokens << " tokens, the last " << decoded << " decoded";
      EXPECT_CLOSE_TO_MAX(out, expected, of_max) << tokens << " tokens, the last " << decoded << " decoded";
      const StateSlot slot = whole.handles[0].slot();
      EXPECT_CLOSE_TO_MAX(in_two.pools.states.snapshot(slot).values, whole.pools.states.snapshot(slot).values, of_max);
    }
}

void expect_kda_modes_agree(DType weights_type, const LayerOptions& options, double of_each, double of_max) {
  const ModelConfig config = testing::kda_config(kHidden, 2, 64);
  testing::MadeUpWeights weights(weights_type);
  testing::add_kda(weights, "", config);
  expect_modes_agree([&] { return testing::KdaLayer(weights, config, 1, options); }, of_each, of_max);
}

void expect_mla_modes_agree(DType weights_type, const LayerOptions& options, double of_each, double of_max) {
  const ModelConfig config = testing::mla_config({kHidden, 4, 64, 32, 16, 32});
  testing::MadeUpWeights weights(weights_type);
  testing::add_mla(weights, "", config);
  expect_modes_agree([&] { return testing::MlaLayer(weights, config, 1, 200, options); }, of_each, of_max);
}

TEST(KimiDeltaAttention, DecodingTheLastTokensIsExtendingThemInFp32) { expect_kda_modes_agree(DType::f32, {}, 1e-5, 5e-6); }
TEST(KimiMlaAttention, DecodingTheLastTokensIsExtendingThemInFp32) { expect_mla_modes_agree(DType::f32, {}, 1e-5, 5e-6); }

// A rounding that falls on the other side is what differs: 4e-5 of the largest in KDA; in MLA, where a set that multiplies bf16
// rounds the exponentials of Decode too, 1.6e-3.
TEST(KimiDeltaAttention, DecodingTheLastTokensIsExtendingThemInBf16) { expect_kda_modes_agree(DType::bf16, kBf16, 1e-3, 1e-3); }
TEST(KimiMlaAttention, DecodingTheLastTokensIsExtendingThemInBf16) { expect_mla_modes_agree(DType::bf16, kBf16, 5e-3, 3e-3); }

}  // namespace
}  // namespace kilin

// One layer of latent attention: against loops in double over odd shapes, and what it promises beside its values.
#include <gtest/gtest.h>

#include "support/compare.h"
#include "support/mla_layer.h"
#include "support/naive_layers.h"

namespace kilin {
namespace {

using testing::MadeUpWeights;
using testing::MlaLayer;
using testing::MlaShape;
using Floats = std::vector<float>;

constexpr double kTolerance = 5e-6;
constexpr MlaShape kShape = {40, 3, 33, 5, 7, 9};

MadeUpWeights weights_of(const ModelConfig& config) {
  MadeUpWeights weights;
  testing::add_mla(weights, "", config);
  return weights;
}

Floats naive(const MadeUpWeights& weights, const ModelConfig& config, const Floats& x) {
  return testing::rounded(testing::naive_mla(weights, "", config, {x.begin(), x.end()}));
}

Floats rows(const Floats& x, size_t hidden, size_t begin, size_t end) {
  return {x.begin() + static_cast<ptrdiff_t>(begin * hidden), x.begin() + static_cast<ptrdiff_t>(end * hidden)};
}

TEST(KimiMlaAttention, AgreesWithALoopInFp64InBothModes) {
  for (const MlaShape& shape :
       {MlaShape{24, 2, 16, 8, 4, 12}, kShape, MlaShape{17, 1, 64, 16, 1, 31}, MlaShape{64, 5, 20, 1, 16, 3}})
    for (size_t tokens : {1, 70, 530}) {  // within a page, over pages, over a block of the past
      const ModelConfig config = testing::mla_config(shape);
      const MadeUpWeights weights = weights_of(config);
      const Floats x = testing::made_up_values(tokens * shape.hidden, tokens), truth = naive(weights, config, x);
      for (ForwardMode mode : {ForwardMode::Extend, ForwardMode::Decode}) {
        MlaLayer layer(weights, config, 1, tokens);
        EXPECT_CLOSE_TO_MAX(layer.run(x, {0, tokens}, mode), truth, kTolerance)
            << to_string(mode) << ", hidden " << shape.hidden << ", tokens " << tokens;
      }
    }
}

// eps counts where latents are small: here their mean square is about 1e-6.
TEST(KimiMlaAttention, NormsLatentsWithAnEpsOf1e6WhateverRmsNormEpsIs) {
  ModelConfig config = testing::mla_config(kShape);
  MadeUpWeights weights = weights_of(config);
  Floats small = weights.values("kv_a_proj_with_mqa.weight");
  for (float& v : small) v *= 1e-3f;
  weights.set("kv_a_proj_with_mqa.weight", weights.shape("kv_a_proj_with_mqa.weight"), small);
  const Floats x = testing::made_up_values(30 * kShape.hidden, 1), truth = naive(weights, config, x);
  for (double eps : {1e-6, 1e-5, 0.5}) {
    config.rms_norm_eps = eps;
    MlaLayer layer(weights, config, 1, 30);
    EXPECT_CLOSE_TO_MAX(layer.run(x, {0, 30}, ForwardMode::Extend), truth, kTolerance) << eps;
  }
}

// No channel knows a position: what the last token reads of the others does not depend on their order.
TEST(KimiMlaAttention, RotatesNothingSoThatTheOrderOfThePastDoesNotMatter) {
  constexpr size_t kTokens = 90, kWidth = kShape.hidden;
  const ModelConfig config = testing::mla_config(kShape);
  const MadeUpWeights weights = weights_of(config);
  const Floats x = testing::made_up_values(kTokens * kWidth, 4);
  Floats reversed;
  for (size_t t = kTokens - 1; t-- > 0;) {
    const Floats row = rows(x, kWidth, t, t + 1);
    reversed.insert(reversed.end(), row.begin(), row.end());
  }
  const Floats last = rows(x, kWidth, kTokens - 1, kTokens);
  reversed.insert(reversed.end(), last.begin(), last.end());
  for (ForwardMode mode : {ForwardMode::Extend, ForwardMode::Decode}) {
    MlaLayer a(weights, config, 1, kTokens), b(weights, config, 1, kTokens);
    const Floats in_order = a.run(x, {0, kTokens}, mode), backwards = b.run(reversed, {0, kTokens}, mode);
    EXPECT_CLOSE_TO_MAX(rows(backwards, kWidth, kTokens - 1, kTokens), rows(in_order, kWidth, kTokens - 1, kTokens), kTolerance)
        << to_string(mode);
  }
}

TEST(KimiMlaAttention, GivesTheSameBytesAloneOrTogetherOnAnyNumberOfThreads) {
  const ModelConfig config = testing::mla_config(kShape);
  const MadeUpWeights weights = weights_of(config);
  const size_t lengths[] = {70, 1, 33};
  const Floats x = testing::made_up_values(104 * kShape.hidden, 5);
  for (KvType type : {KvType::f32, KvType::bf16, KvType::q8})
    for (ForwardMode mode : {ForwardMode::Extend, ForwardMode::Decode}) {
      Floats alone;
      for (size_t n = 0, at = 0; n < 3; at += lengths[n++]) {
        MlaLayer layer(weights, config, 1, 70, {.kv_type = type, .threads = 1});
        const Floats out = layer.run(rows(x, kShape.hidden, at, at + lengths[n]), {0, lengths[n]}, mode);
        alone.insert(alone.end(), out.begin(), out.end());
      }
      for (size_t threads : {1, 2, 5}) {
        MlaLayer layer(weights, config, 3, 70, {.kv_type = type, .threads = threads});
        EXPECT_BYTES_EQ(layer.run(x, {0, 70, 71, 104}, mode), alone) << to_string(mode) << ", threads " << threads;
      }
    }
}

TEST(KimiMlaAttention, ACutOfAPromptAtAMultipleOf64ChangesNoByte) {
  constexpr size_t kTokens = 600;
  const ModelConfig config = testing::mla_config(kShape);
  const MadeUpWeights weights = weights_of(config);
  const Floats x = testing::made_up_values(kTokens * kShape.hidden, 6);
  MlaLayer whole(weights, config, 1, kTokens);
  const Floats expected = whole.run(x, {0, kTokens}, ForwardMode::Extend);
  for (size_t cut : {64, 192, 512, 576}) {
    MlaLayer layer(weights, config, 1, kTokens);
    Floats out = layer.run(rows(x, kShape.hidden, 0, cut), {0, cut}, ForwardMode::Extend);
    const Floats rest = layer.run(rows(x, kShape.hidden, cut, kTokens), {0, kTokens - cut}, ForwardMode::Extend, cut);
    out.insert(out.end(), rest.begin(), rest.end());
    EXPECT_BYTES_EQ(out, expected) << cut;
    EXPECT_BYTES_EQ(layer.memory(), whole.memory()) << cut;
  }
}

}  // namespace
}  // namespace kilin

// One KDA layer of any width against a loop in fp64; the golden cases are of one width only.
#include <gtest/gtest.h>

#include "support/compare.h"
#include "support/kda_layer.h"
#include "support/naive_layers.h"
#include "support/recorder.h"

namespace kilin {
namespace {

using testing::MadeUpWeights;
using Layer = testing::KdaLayer;
using Floats = Layer::Floats;

MadeUpWeights made_up_layer(size_t hidden, size_t heads, size_t d) {
  MadeUpWeights w;
  testing::add_kda(w, "", testing::kda_config(hidden, heads, d));
  return w;
}

void expect_reference(size_t hidden, size_t heads, size_t d, size_t tokens) {
  const MadeUpWeights weights = made_up_layer(hidden, heads, d);
  const ModelConfig config = testing::kda_config(hidden, heads, d);
  const Floats x = testing::made_up_values(tokens * hidden, 99);
  const Floats truth = testing::rounded(testing::naive_kda(weights, "", config, {x.begin(), x.end()}));
  for (ForwardMode mode : {ForwardMode::Extend, ForwardMode::Decode})
    for (size_t start : {size_t{0}, size_t{50}, size_t{1} << 20}) {  // the grid's place must not matter
      Layer layer(weights, config, 1);
      EXPECT_CLOSE_TO_MAX(layer.run(x, {0, tokens}, mode, start), truth, 5e-6) << to_string(mode) << " from " << start;
    }
}

TEST(KimiDeltaAttention, TheRealWidthAgreesWithALoopInFp64) { expect_reference(2304, 32, 128, 20); }

TEST(KimiDeltaAttention, HeadsOfAnyWidthAgreeWithALoopInFp64) {
  for (size_t d : {17u, 20u, 32u, 48u, 64u}) expect_reference(40, 3, d, 70);
}

TEST(KimiDeltaAttention, ShiftingAPromptByMultiplesOf64ChangesNoByte) {
  const MadeUpWeights weights = made_up_layer(64, 2, 32);
  const Floats x = testing::made_up_values(150 * 64, 98);
  const auto from = [&](size_t start) {
    Layer layer(weights, testing::kda_config(64, 2, 32), 1);
    return layer.run(x, {0, 150}, ForwardMode::Extend, start);
  };
  const Floats at_zero = from(0);
  for (size_t start : {size_t{64}, size_t{6400}, size_t{1} << 30}) EXPECT_BYTES_EQ(from(start), at_zero) << start;
}

TEST(KimiDeltaAttention, StagesOneAfterTheOtherForTapsGiveTheSameBytesAsHeadByHead) {
  const MadeUpWeights weights = made_up_layer(64, 3, 20);
  const Floats x = testing::made_up_values(450 * 64, 97);
  for (ForwardMode mode : {ForwardMode::Extend, ForwardMode::Decode})
    for (size_t start : {0, 50, 64, 100}) {
      Layer watched(weights, testing::kda_config(64, 3, 20), 2), alone(weights, testing::kda_config(64, 3, 20), 2);
      testing::Recorder recorder;
      EXPECT_BYTES_EQ(watched.run(x, {0, 300, 450}, mode, start, &recorder), alone.run(x, {0, 300, 450}, mode, start))
          << to_string(mode) << " from " << start;
      for (size_t n : {0, 1}) {
        RecurrentStatePool &a = watched.pools.states, &b = alone.pools.states;
        EXPECT_BYTES_EQ(a.snapshot(watched.handles[n].slot()).values, b.snapshot(alone.handles[n].slot()).values)
            << to_string(mode) << " from " << start << ", sequence " << n;
      }
    }
}

}  // namespace
}  // namespace kilin

// The stages of a forward pass: what each costs, worked out by hand from the shapes of models/tiny, and that looking changes no
// byte.
#include <gtest/gtest.h>

#include "support/compare.h"
#include "support/golden.h"
#include "support/ids.h"
#include "support/isas.h"
#include "support/model_runner.h"

namespace kilin {
namespace {

using testing::ModelRunner;
using testing::RunnerOptions;
using testing::some_ids;
using testing::TestSequence;

const std::filesystem::path tiny() { return testing::in_repository("models/tiny"); }

constexpr size_t kPast = 10;

// The profile of one Decode token after kPast others.
StageProfile profile_of_one_token(const RunnerOptions& options) {
  ModelRunner r(tiny(), options);
  TestSequence s = r.fresh();
  r.run({{&s, ForwardMode::Extend, some_ids(kPast, 1)}});
  StageProfile profile;
  r.set_profile(&profile);
  r.run({{&s, ForwardMode::Decode, some_ids(1, 2)}});
  return profile;
}

// 4 KDA layers of 4 heads x 64, 2 MLA layers (4 heads, nope 64, rope 32, value 64, rank 128), a dense layer of 512, 5 with 8
// experts of 256, 2 a token, and a shared one; hidden 256, vocabulary 4096; bf16.
TEST(ForwardProfile, CostsAreThoseOfTheShapes) {
  const StageProfile p = profile_of_one_token({});
  const auto products = [](uint64_t elements) {
    return StageCost{.weight_bytes = 2 * elements, .fp32_operations = 2 * elements};
  };
  EXPECT_EQ(p[Stage::Embedding].cost, StageCost{.weight_bytes = 2 * 256});
  EXPECT_EQ(p[Stage::Norms].cost, StageCost{});
  EXPECT_EQ(p[Stage::Activations].cost, StageCost{});
  // q, k, v; the pairs of decay and gate; beta
  EXPECT_EQ(p[Stage::KdaProjections].cost, products(4 * (3 * 256 * 256 + 2 * (64 * 256 + 256 * 64) + 4 * 256)));
  // 768 channels of 4 weights, tails of 3 rows and states of 4 heads read and written
  EXPECT_EQ(p[Stage::KdaRecurrence].cost, (StageCost{.weight_bytes = 4 * 768 * 4 * sizeof(float),
                                                     .state_bytes = 4 * 2 * (3 * 768 + 4 * 64 * 64) * sizeof(float),
                                                     .fp32_operations = 4 * (2 * 768 * 4 + 7 * 4 * 64 * 64)}));
  EXPECT_EQ(p[Stage::KdaOutput].cost, products(4 * 256 * 256));
  EXPECT_EQ(p[Stage::MlaProjections].cost, products(2 * (384 * 256 + 160 * 256)));
  // kv_b_proj once; a row written, 11 read; 11 keys for each head's 160 of scores and 128 of sums, and the two halves of kv_b
  EXPECT_EQ(p[Stage::MlaAttention].cost, (StageCost{.weight_bytes = 2 * 2 * 512 * 128,
                                                    .latent_bytes = 2 * (1 + 11) * 160 * sizeof(float),
                                                    .fp32_operations = 2 * 2 * 4 * (11 * (160 + 128) + 128 * (64 + 64))}));
  EXPECT_EQ(p[Stage::MlaOutput].cost, products(2 * 256 * 256));
  EXPECT_EQ(p[Stage::Router].cost, products(5 * 8 * 256));
  StageCost experts = products(5 * 2 * 3 * 256 * 256);
  experts.experts = 5 * 2;
  EXPECT_EQ(p[Stage::Experts].cost, experts);
  EXPECT_EQ(p[Stage::SharedExpert].cost, products(5 * 3 * 256 * 256));
  EXPECT_EQ(p[Stage::DenseMlp].cost, products(3 * 512 * 256));
  EXPECT_EQ(p[Stage::LmHead].cost, products(4096 * 256));
  EXPECT_EQ(p[Stage::Sampling].cost, StageCost{});
}

TEST(ForwardProfile, IntegerProductsAndPackedBytesAreCountedAsSuch) {
  const StageProfile p =
      profile_of_one_token({.kv_type = KvType::q8, .activations = ActivationType::int8, .quantize = QuantType::q8_0});
  constexpr uint64_t kOutput = 4 * 256 * 256;  // elements, in blocks of 32 with 34 bytes
  EXPECT_EQ(p[Stage::KdaOutput].cost, (StageCost{.weight_bytes = kOutput / 32 * 34, .int8_operations = 2 * kOutput}));
  // beta stays in fp32 arithmetic, as the low-rank pairs do
  EXPECT_EQ(p[Stage::KdaProjections].cost.int8_operations, 4u * 2 * 3 * 256 * 256);
  EXPECT_EQ(p[Stage::KdaProjections].cost.fp32_operations, 4u * 2 * (2 * (64 * 256 + 256 * 64) + 4 * 256));
  EXPECT_EQ(p[Stage::MlaAttention].cost.latent_bytes, 2 * (1 + 11) * latent_row_bytes(KvType::q8, 160));
}

TEST(ForwardProfile, AbsorbedAttentionOverBf16LatentsIsOfBf16WhereActivationsAreRounded) {
  const StageProfile p = profile_of_one_token({.kv_type = KvType::bf16, .activations = ActivationType::int8});
  EXPECT_EQ(p[Stage::MlaAttention].cost.bf16_operations, 2u * 2 * 4 * 11 * (160 + 128));
  EXPECT_EQ(p[Stage::MlaAttention].cost.fp32_operations, 2u * 2 * 4 * 128 * (64 + 64));
  EXPECT_EQ(profile_of_one_token({.kv_type = KvType::bf16})[Stage::MlaAttention].cost.bf16_operations, 0u);
}

TEST(ForwardProfile, APromptReadsWeightsOnceAndSeesKeysCausally) {
  ModelRunner r(tiny(), {});
  TestSequence a = r.fresh(), b = r.fresh();
  StageProfile profile;
  r.set_profile(&profile);
  r.run({{&a, ForwardMode::Extend, some_ids(3, 1)}, {&b, ForwardMode::Extend, some_ids(2, 2)}});
  EXPECT_EQ(profile[Stage::KdaOutput].cost,
            (StageCost{.weight_bytes = 2 * 4 * 256 * 256, .fp32_operations = 5 * 2 * 4 * 256 * 256}));
  // Both sequences' states; 6 and 3 pairs of query and key, and their keys decompressed by kv_b_proj, once a sequence
  EXPECT_EQ(profile[Stage::KdaRecurrence].cost.state_bytes, 2 * 4 * 2 * (3 * 768 + 4 * 64 * 64) * sizeof(float));
  EXPECT_EQ(profile[Stage::MlaAttention].cost.fp32_operations, 2u * 2 * 4 * (6 + 3) * (96 + 64) + 2 * 5 * 2 * 512 * 128);
  EXPECT_EQ(profile[Stage::MlaAttention].cost.latent_bytes, 2 * 2 * 5 * 160 * sizeof(float));
  const StageCost& experts = profile[Stage::Experts].cost;
  EXPECT_GE(experts.experts, 5u * 2);
  EXPECT_LE(experts.experts, 5u * 8);
  EXPECT_EQ(experts.weight_bytes, experts.experts * 2 * 3 * 256 * 256);
  EXPECT_EQ(experts.fp32_operations, 5u * 5 * 2 * 2 * 3 * 256 * 256);
}

TEST(ForwardProfile, LookingChangesNoByte) {
  for (const std::string& isa : testing::isas()) {
    if (!testing::cpu_has(isa)) continue;
    RunnerOptions options;
    options.kernels = testing::kernels_for(isa);
    ModelRunner plain(tiny(), options), profiled(tiny(), options);
    StageProfile profile(StageProfile::steady_clock());
    profiled.set_profile(&profile);
    TestSequence a = plain.fresh(), b = profiled.fresh();
    for (const ForwardMode mode : {ForwardMode::Extend, ForwardMode::Decode}) {
      EXPECT_BYTES_EQ(plain.run({{&a, mode, some_ids(70, 3)}}), profiled.run({{&b, mode, some_ids(70, 3)}})) << isa;
      EXPECT_BYTES_EQ(plain.memory_of(a), profiled.memory_of(b)) << isa;
    }
  }
}

// Every stage but sampling is a part of the forward pass: none is left without time, and nothing is counted outside of one.
TEST(ForwardProfile, EveryStageIsOpenedAndNothingIsCountedOutside) {
  ModelRunner r(tiny(), {});
  uint64_t ticks = 0;
  StageProfile profile([&ticks] { return ++ticks; });
  r.set_profile(&profile);
  r.prefill(some_ids(5, 1));
  StageCost inside;
  for (size_t i = 0; i < kStages; ++i) {
    const auto stage = static_cast<Stage>(i);
    inside += profile[stage].cost;
    EXPECT_TRUE(stage == Stage::Sampling || profile[stage].ns > 0) << to_string(stage);
  }
  EXPECT_EQ(inside, profile.sum().cost);
}

}  // namespace
}  // namespace kilin

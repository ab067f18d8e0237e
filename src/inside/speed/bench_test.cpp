// Tests what is counted, how figures are computed and what is refused; never speed.
#include "inside/speed/bench.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "inside/speed/row_lengths.h"
#include "inside/speed/synthetic_past.h"
#include "support/golden.h"
#include "support/ids.h"

namespace kilin {
namespace {

Engine tiny_engine(const BenchPlan& plan, const EngineOptions& options = {}) {
  EngineOptions own = options;
  own.threads = 2;
  own.max_sequences = plan.max_sequences();
  own.pool_tokens = plan.pool_tokens();
  own.drive = EngineOptions::Drive::ByCaller;
  return Engine(LoadedModel::load(testing::in_repository("models/tiny")), own);
}

BenchRow row_of(std::vector<double> seconds) {
  BenchRow row;
  row.tokens = 20;
  row.steps = 10;
  row.seconds = std::move(seconds);
  return row;
}

TEST(Spread, IsTheMiddleAndTheEnds) {
  EXPECT_EQ(spread_of({3}).median, 3);
  EXPECT_EQ(spread_of({5, 1, 3}).median, 3);
  const Spread even = spread_of({8, 2, 4, 1});
  EXPECT_EQ(even.median, 3);
  EXPECT_EQ(even.min, 1);
  EXPECT_EQ(even.max, 8);
}

TEST(BenchRow, FiguresAreMediansOfRepeats) {
  BenchRow row = row_of({2, 1, 4});
  EXPECT_EQ(row.seconds_per_step(), 0.2);
  EXPECT_EQ(row.tokens_per_s().median, 10);
  EXPECT_EQ(row.tokens_per_s().min, 5);
  EXPECT_EQ(row.tokens_per_s().max, 20);
  EXPECT_EQ(row.per_step(60), 2);
}

TEST(BenchRow, GenerationIsBoundByItsBytesAndThenByAttention) {
  BenchRow row = row_of({2, 1, 4});  // 30 steps in all
  row.before = {.read_bytes_per_s = 100, .fp32_operations_per_s = 1000};
  row.after = {.read_bytes_per_s = 300, .fp32_operations_per_s = 3000};
  {
    const StageScope scope(&row.profile, Stage::LmHead);
    row.profile.add({.weight_bytes = 3000,
                     .state_bytes = 2000,
                     .latent_bytes = 1000,
                     .int8_operations = 1u << 30,
                     .fp32_operations = 1u << 30});
  }
  EXPECT_EQ(generation_bound_s(row), 1.0);  // 200 bytes per step at 200 bytes/s
  {
    const StageScope scope(&row.profile, Stage::MlaAttention);
    row.profile.add({.fp32_operations = 30'000});
  }
  EXPECT_EQ(generation_bound_s(row), 1.5);  // and 1000 operations at 2000/s
  {
    const StageScope scope(&row.profile, Stage::MlaAttention);
    row.profile.add({.bf16_operations = 60'000});
  }
  EXPECT_EQ(generation_bound_s(row), 2.5);  // and 2000 of bf16, at fp32's rate since there is no bf16 rate
  row.before.bf16_operations_per_s = 3000;
  row.after.bf16_operations_per_s = 5000;
  EXPECT_EQ(generation_bound_s(row), 2.0);
}

TEST(StageBound, IsTheLongerOfReadingAndComputing) {
  const MachinePeaks peaks = {.read_bytes_per_s = 10, .int8_operations_per_s = 100, .fp32_operations_per_s = 50};
  EXPECT_EQ(stage_bound_s({.weight_bytes = 10, .state_bytes = 5, .latent_bytes = 5}, peaks), 2);
  EXPECT_EQ(stage_bound_s({.weight_bytes = 10, .int8_operations = 200, .fp32_operations = 50}, peaks), 3);
  EXPECT_EQ(stage_bound_s({}, {}), 0);
}

TEST(ProductPeak, IsThatOfWhatMultipliesTheWeights) {
  const MachinePeaks peaks = {.int8_operations_per_s = 3, .fp32_operations_per_s = 1, .bf16_operations_per_s = 2};
  EXPECT_EQ(product_peak(peaks, ActivationType::int8, true).name, "int8");
  EXPECT_EQ(product_peak(peaks, ActivationType::int8, false).name, "fp32");  // weights without panels
  EXPECT_EQ(product_peak(peaks, ActivationType::bf16, true).operations_per_s, 2);
  EXPECT_EQ(product_peak({.fp32_operations_per_s = 1}, ActivationType::bf16, true).name, "fp32");
  EXPECT_EQ(product_peak(peaks, ActivationType::f32, true).name, "fp32");
}

TEST(BenchPlan, RowsThatDoNotFitAreRefusedByName) {
  const BenchPlan plan = {.prompts = {100}, .depths = {0, 5000}, .batches = {4}, .generate = 10, .repeat = 2};
  EXPECT_EQ(plan.max_sequences(), 4u);
  EXPECT_EQ(plan.pool_tokens(), 5000 + generated_tokens(plan));
  plan.require_length(6000);
  try {
    plan.require_length(5000);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
    EXPECT_NE(std::string(error.what()).find("a depth of 5000"), std::string::npos) << error.what();
  }
  const MemoryPlan memory = {.state_per_sequence = 1'000'000, .latents_per_token = 1000, .workspace = 100'000};
  plan.require_memory(memory, 1u << 30);
  try {
    plan.require_memory(memory, 5'500'000);  // four states, or 5,000 tokens
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::ResourceExhausted);
    EXPECT_NE(std::string(error.what()).find("a depth of 5000"), std::string::npos) << error.what();
  }
  EXPECT_EQ((BenchPlan{.prompts = {}, .depths = {}, .batches = {}}.max_sequences()), 1u);
}

TEST(SyntheticPast, IsAsLongAsAskedForAndFinite) {
  const BenchPlan plan = {.depths = {700}, .batches = {1}};
  Engine engine = tiny_engine(plan);
  GenerationParams params = {.max_new_tokens = 1, .keep_sequence = true};
  const auto first = engine.submit(testing::some_ids(3, 1), params);
  engine.follow(*first);
  Sequence sequence = first->take_sequence();
  lengthen_with_noise(sequence, 697, engine.config().vocab_size, 1);
  EXPECT_EQ(sequence.tokens(), 700u);
  const LatentKvPool& latents = engine.pools().latents;
  std::vector<float> rows(700 * latents.dimensions().width);
  for (size_t layer = 0; layer < latents.dimensions().layers; ++layer) {
    latents.read(layer, sequence.pages.pages(), 0, {rows.data(), 700, latents.dimensions().width});
    for (size_t i = 3 * latents.dimensions().width; i < rows.size(); ++i)
      ASSERT_TRUE(rows[i] >= -1 && rows[i] < 1 && rows[i] != 0) << layer << " " << i;
  }
  const auto next = engine.submit({5}, {.max_new_tokens = 3}, {.sequence = std::move(sequence)});
  EXPECT_EQ(engine.follow(*next).ids.size(), 3u);  // throws if a logit is no number
}

TEST(Bench, RowsHoldWhatWasDone) {
  const BenchPlan plan = {.prompts = {70},
                          .depths = {0, 80},
                          .batches = {3},
                          .generate = 2,
                          .repeat = 2,
                          .past = PastBy::Noise,
                          .times = BenchPlan::Times::Stages};
  Engine engine = tiny_engine(plan);
  size_t steps = 0;
  Bench bench(engine, plan, [&steps] { ++steps; });
  EXPECT_GT(bench.first_token_s(), 0);
  bench.prepare(1u << 20);
  EXPECT_GE(bench.probe_bytes(), 1u << 20);

  const BenchRow prompt = bench.prompt(70);
  EXPECT_EQ(prompt.seconds.size(), 2u);
  EXPECT_GT(prompt.before.read_bytes_per_s, 0);
  EXPECT_GT(prompt.after.fp32_operations_per_s, 0);
  // Products of 70 rows with most weights, each twice; lm_head for one row.
  EXPECT_EQ(prompt.per_step(prompt.profile[Stage::KdaOutput].cost.fp32_operations), 70.0 * 4 * 2 * 256 * 256);
  EXPECT_EQ(prompt.per_step(prompt.profile[Stage::LmHead].cost.fp32_operations), 2.0 * 4096 * 256);

  const BenchRow alone = bench.generation(0);
  EXPECT_EQ(alone.past, PastBy::Nothing);
  EXPECT_EQ(alone.per_step(alone.total_cost().experts), 5 * 2);
  const BenchRow deep = bench.generation(80);
  EXPECT_EQ(deep.past, PastBy::Noise);
  EXPECT_EQ(deep.tokens, 2u);
  // Four steps after 80 tokens, one to begin with, and two for warming up: 84 to 87 keys, and as many rows written.
  const double row_bytes = 2 * 160 * sizeof(float);
  EXPECT_EQ(deep.per_step(deep.total_cost().latent_bytes), (1 + (84 + 85 + 86 + 87) / 4.0) * row_bytes);

  const BenchRow batch = bench.batch(3);
  EXPECT_EQ(batch.tokens, 6u);
  EXPECT_EQ(batch.steps, 2u);
  EXPECT_EQ(batch.total_cost().state_bytes, 3 * alone.total_cost().state_bytes);
  EXPECT_GE(batch.total_cost().experts, alone.total_cost().experts);
  EXPECT_EQ(batch.profile[Stage::LmHead].cost.weight_bytes, alone.profile[Stage::LmHead].cost.weight_bytes);

  for (const BenchRow* row : {&prompt, &alone, &deep, &batch}) {  // stages are parts of the whole
    double all_s = 0;
    for (double seconds : row->seconds) all_s += seconds;
    EXPECT_GT(row->profile.sum().ns, 0u);
    EXPECT_LE(static_cast<double>(row->profile.sum().ns) * 1e-9, all_s);
    EXPECT_GT(row->profile[Stage::Sampling].ns, 0u);
  }
  EXPECT_GT(steps, 12u);
  EXPECT_EQ(engine.pools().states.free_slots(), engine.pools().states.slots());  // nothing is left behind
}

TEST(MachineProbe, TakesNoMoreThanAnEighthOfTheMemory) {
  EXPECT_EQ(MachineProbe::suitable_bytes_per_thread(uint64_t{64} << 30, 2), 256u << 20);
  EXPECT_EQ(MachineProbe::suitable_bytes_per_thread(uint64_t{1} << 30, 2), 64u << 20);
  EXPECT_EQ(MachineProbe::suitable_bytes_per_thread(0, 2), 1u << 20);
}

}  // namespace
}  // namespace kilin

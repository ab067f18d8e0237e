// What a step takes: nothing from the heap, and of the workspace no more than was planned (dry_run_test.cpp: exactly that).
#include <gtest/gtest.h>

#include "support/allocations.h"
#include "support/golden.h"
#include "support/ids.h"
#include "support/model_runner.h"

namespace kilin {
namespace {

using testing::ModelRunner;
using testing::Part;
using testing::RunnerOptions;
using testing::some_ids;
using testing::TestSequence;

using Setting = std::tuple<size_t, ActivationType>;

class StepMemory : public ::testing::TestWithParam<Setting> {
 protected:
  static size_t threads() { return std::get<0>(GetParam()); }
  static ActivationType type() { return std::get<1>(GetParam()); }
  static ModelRunner runner(size_t max_tokens) {
    RunnerOptions options = {.threads = threads(), .activations = type(), .max_tokens = max_tokens};
    if (type() == ActivationType::bf16) options.kv_type = KvType::bf16;
    if (type() == ActivationType::int8) {
      options.kv_type = KvType::q8;
      options.quantize = QuantType::q4_0;
    }
    return ModelRunner(testing::in_repository("models/tiny"), options);
  }
};

// What each step, prepared beforehand, took from the heap.
size_t allocations_of(ModelRunner& r, ModelRunner::Step& step) {
  const size_t before = testing::allocations();
  r.run(step);
  return testing::allocations() - before;
}

TEST_P(StepMemory, NoStepAllocates) {
  ModelRunner r = runner(130);
  TestSequence a = r.fresh(), b = r.fresh(), c = r.fresh(), empty = r.fresh();
  r.run({{&b, ForwardMode::Extend, some_ids(70, 1)}});
  StateSnapshot snapshot = r.pools().states.blank_snapshot();
  const std::pair<const char*, std::vector<Part>> batches[] = {
      {"a whole prompt", {{&a, ForwardMode::Extend, some_ids(130, 2)}}},
      {"a prompt that leaves a snapshot", {{&a, ForwardMode::Extend, some_ids(100, 3), {{64, &snapshot}}}}},
      {"one token", {{&b, ForwardMode::Decode, some_ids(1, 4)}}},
      {"several tokens", {{&b, ForwardMode::Decode, some_ids(5, 5)}}},
      {"two prompts and an answer",
       {{&a, ForwardMode::Extend, some_ids(65, 6)},
        {&b, ForwardMode::Decode, some_ids(2, 7)},
        {&empty, ForwardMode::Extend, {}},
        {&c, ForwardMode::Extend, some_ids(3, 8)},
        {&empty, ForwardMode::Idle, {}}}},
      {"nothing", {}},
  };
  for (const auto& [name, parts] : batches) {
    ModelRunner::Step step = r.prepare(parts);
    EXPECT_EQ(allocations_of(r, step), 0u) << name;
  }
  EXPECT_EQ(r.workspace().used(), 0u);
}

TEST_P(StepMemory, MixedBatchesStayWithinThePlan) {
  ModelRunner r = runner(140);  // whose workspace is the plan for 140 tokens: what needs more throws
  TestSequence a = r.fresh(), b = r.fresh(), c = r.fresh();
  r.run({{&a, ForwardMode::Extend, some_ids(64, 10)}});
  const std::vector<Part> parts = {{&a, ForwardMode::Decode, some_ids(3, 11)},
                                   {&b, ForwardMode::Extend, some_ids(100, 12)},
                                   {&c, ForwardMode::Extend, some_ids(37, 13)}};
  const size_t before = r.workspace().peak();
  EXPECT_NO_THROW(r.run(parts));
  EXPECT_GT(r.workspace().peak(), before);
  EXPECT_EQ(r.workspace().used(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Forward, StepMemory,
                         ::testing::Combine(::testing::Values(size_t{1}, size_t{4}),
                                            ::testing::Values(ActivationType::f32, ActivationType::bf16, ActivationType::int8)),
                         [](const auto& test) {
                           return std::string(to_string(std::get<1>(test.param))) + "_" +
                                  std::to_string(std::get<0>(test.param)) + "_threads";
                         });

}  // namespace
}  // namespace kilin

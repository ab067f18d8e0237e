// The promise of equal bytes: logits, states and latents depend on weights, instruction set, kv-type, token ids and modes, and
// on nothing else. Held by every instruction set, with f32 and with bf16 activations and latents.
#include <gtest/gtest.h>

#include <limits>

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

using Floats = std::vector<float>;
using Ids = std::vector<int32_t>;

Ids part_of(const Ids& ids, size_t begin, size_t end) {
  return {ids.begin() + static_cast<std::ptrdiff_t>(begin), ids.begin() + static_cast<std::ptrdiff_t>(end)};
}

void append(Floats& to, const Floats& from) { to.insert(to.end(), from.begin(), from.end()); }

// Rows [begin, end) of a batch's logits.
Floats rows_of(const Floats& logits, size_t begin, size_t end, size_t vocab) {
  return {logits.begin() + static_cast<std::ptrdiff_t>(begin * vocab),
          logits.begin() + static_cast<std::ptrdiff_t>(end * vocab)};
}

class SameBytes : public ::testing::TestWithParam<std::tuple<std::string, ActivationType>> {
 protected:
  void SetUp() override { ISA_OR_SKIP(isa()); }
  static std::string isa() { return std::get<0>(GetParam()); }
  static ActivationType type() { return std::get<1>(GetParam()); }

  static ModelRunner runner(RunnerOptions options) {
    options.kernels = testing::kernels_for(isa());
    options.activations = type();
    if (type() == ActivationType::bf16) options.kv_type = KvType::bf16;
    if (type() == ActivationType::int8) {
      options.kv_type = KvType::q8;
      options.quantize = QuantType::q4_k_m;
    }
    return ModelRunner(testing::in_repository("models/tiny"), options);
  }
};

INSTANTIATE_TEST_SUITE_P(Forward, SameBytes,
                         ::testing::Combine(::testing::ValuesIn(testing::isas()),
                                            ::testing::Values(ActivationType::f32, ActivationType::bf16, ActivationType::int8)),
                         [](const auto& test) {
                           return testing::name_in_tests(std::get<0>(test.param)) + "_" +
                                  std::string(to_string(std::get<1>(test.param)));
                         });

struct Way {
  size_t threads;
  std::vector<size_t> cuts;
};

// Many for what runs where nothing is asked for; one that has everything at once for the rest, which are slower.
std::vector<Way> ways(const std::string& isa, ActivationType type) {
  if (isa != testing::best_isa()) return {{3, {64, 448, 576}}};
  if (type != ActivationType::f32) return {{1, {512}}, {4, {64, 448, 576}}};
  return {{1, {64, 448, 576}}, {2, {64}}, {3, {512}}, {4, {128, 192}}, {4, {64, 448, 576}}};
}

TEST_P(SameBytes, CutsAtMultiplesOf64BatchesAndThreads) {
  const Ids ids = some_ids(600, 4);  // crosses a block of 512
  Floats logits, memory;
  {
    ModelRunner alone = runner({.threads = 1});
    TestSequence s = alone.fresh();
    logits = alone.run({{&s, ForwardMode::Extend, ids}});
    memory = alone.memory_of(s);
  }
  for (const auto& [threads, cuts] : ways(isa(), type())) {
    ModelRunner r = runner({.threads = threads});
    TestSequence s = r.fresh(), neighbour = r.fresh(), decoding = r.fresh();
    r.run({{&decoding, ForwardMode::Extend, some_ids(30, 5)}});
    Floats parts;
    std::vector<size_t> ends = cuts;
    ends.push_back(ids.size());
    for (size_t begin = 0; size_t end : ends) {  // between a sequence that decodes and one that extends
      const Floats all = r.run({{&decoding, ForwardMode::Decode, {7}},
                                {&s, ForwardMode::Extend, part_of(ids, begin, end)},
                                {&neighbour, ForwardMode::Extend, some_ids(17 + begin % 5, 6)}});
      append(parts, rows_of(all, 1, 1 + end - begin, r.config().vocab_size));
      begin = end;
    }
    EXPECT_BYTES_EQ(parts, logits) << threads << " threads, first cut at " << cuts[0];
    EXPECT_BYTES_EQ(r.memory_of(s), memory) << threads << " threads, first cut at " << cuts[0];
  }
}

TEST_P(SameBytes, DecodingAloneOrBesideOthers) {
  const Ids ids = some_ids(530, 7);  // the past has two blocks
  ModelRunner r = runner({.threads = 3});
  TestSequence prompt = r.fresh();
  r.run({{&prompt, ForwardMode::Extend, ids}});
  Floats logits[2], memory[2];
  for (size_t way : {0u, 1u}) {
    TestSequence s = r.copy_of(prompt), a = r.fresh(), b = r.fresh();
    r.run({{&a, ForwardMode::Extend, some_ids(3, 8)}});
    for (int32_t id : some_ids(4, 9)) {
      if (way == 0) {
        append(logits[way], r.run({{&s, ForwardMode::Decode, {id}}}));
      } else {
        const Floats all = r.run(
            {{&a, ForwardMode::Decode, {1}}, {&s, ForwardMode::Decode, {id}}, {&b, ForwardMode::Extend, some_ids(65, 10)}});
        append(logits[way], rows_of(all, 1, 2, r.config().vocab_size));
        b = r.fresh();
      }
    }
    memory[way] = r.memory_of(s);
  }
  EXPECT_BYTES_EQ(logits[1], logits[0]);
  EXPECT_BYTES_EQ(memory[1], memory[0]);
}

TEST_P(SameBytes, SeveralDecodeRowsInOneSpanOrOneByOne) {
  ModelRunner r = runner({.threads = 2});
  const Ids ids = some_ids(75, 2);
  Floats logits[2], memory[2];
  for (size_t way : {0u, 1u}) {
    TestSequence s = r.fresh();
    r.run({{&s, ForwardMode::Extend, part_of(ids, 0, 70)}});
    if (way == 0) logits[0] = r.run({{&s, ForwardMode::Decode, part_of(ids, 70, 75)}});
    if (way == 1)
      for (size_t t = 70; t < 75; ++t) append(logits[1], r.run({{&s, ForwardMode::Decode, {ids[t]}}}));
    memory[way] = r.memory_of(s);
  }
  EXPECT_BYTES_EQ(logits[1], logits[0]);
  EXPECT_BYTES_EQ(memory[1], memory[0]);
}

TEST_P(SameBytes, SnapshotsOnTheWayAreTheStatesOfTheirPrefixes) {
  ModelRunner r = runner({.threads = 2});
  const Ids ids = some_ids(140, 17);
  StateSnapshot at_64 = r.pools().states.blank_snapshot(), at_128 = r.pools().states.blank_snapshot();
  TestSequence s = r.fresh();
  const Floats whole = r.run({{&s, ForwardMode::Extend, ids, {{64, &at_64}, {128, &at_128}}}});
  const Floats memory = r.memory_of(s);
  for (const auto& [position, snapshot] : {std::pair{64u, &at_64}, std::pair{128u, &at_128}}) {
    TestSequence prefix = r.fresh();
    r.run({{&prefix, ForwardMode::Extend, part_of(ids, 0, position)}});
    EXPECT_BYTES_EQ(r.pools().states.snapshot(prefix.state.slot()).values, snapshot->values) << position;

    r.pools().states.restore(prefix.state.slot(), *snapshot);  // and one can go on from them
    const Floats rest = r.run({{&prefix, ForwardMode::Extend, part_of(ids, position, ids.size())}});
    EXPECT_BYTES_EQ(rest, rows_of(whole, position, ids.size(), r.config().vocab_size)) << position;
    EXPECT_BYTES_EQ(r.memory_of(prefix), memory) << position;
  }
}

TEST_P(SameBytes, APoisonedSlotAndItsPagesAreFreshAfterTheyWereFreed) {
  ModelRunner r = runner({.slots = 1});
  const Ids ids = some_ids(70, 16);
  TestSequence clean = r.fresh();
  const Floats logits = r.run({{&clean, ForwardMode::Extend, ids}}), memory = r.memory_of(clean);
  clean = {};
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  {
    TestSequence s = r.fresh();
    r.run({{&s, ForwardMode::Extend, ids}});
    std::fill_n(r.pools().states.state(s.state.slot(), 0), r.pools().states.bytes_per_slot() / sizeof(float), kNan);
    const auto& [layers, width, kv_type] = r.pools().latents.dimensions();
    const size_t positions = s.pages.pages().size() * LatentKvPool::kPageTokens;
    const Floats nans(positions * width, kNan);
    for (size_t layer = 0; layer < layers; ++layer)
      r.pools().latents.write(layer, s.pages.pages(), 0, {nans.data(), positions, width});
  }
  TestSequence again = r.fresh();
  EXPECT_BYTES_EQ(r.run({{&again, ForwardMode::Extend, ids}}), logits);
  EXPECT_BYTES_EQ(r.memory_of(again), memory);
}

TEST_P(SameBytes, AnEmptySequenceKeepsWhatItRemembers) {
  ModelRunner r = runner({.threads = 2});
  TestSequence empty = r.fresh(), other = r.fresh();
  r.run({{&empty, ForwardMode::Extend, some_ids(70, 12)}});
  const Floats before = r.memory_of(empty);
  for (ForwardMode mode : {ForwardMode::Extend, ForwardMode::Decode, ForwardMode::Idle}) {
    r.run({{&empty, mode, {}}, {&other, ForwardMode::Extend, some_ids(5, 13)}});
    EXPECT_BYTES_EQ(r.memory_of(empty), before) << to_string(mode);
  }
}

// What the comparisons above rest on: each part of the memory tells two sequences apart.
TEST_P(SameBytes, AnotherLastTokenIsRememberedInStatesAndInLatents) {
  ModelRunner r = runner({.threads = 2});
  TestSequence a = r.fresh(), b = r.fresh();
  r.run({{&a, ForwardMode::Extend, {5, 6, 7}}, {&b, ForwardMode::Extend, {5, 6, 8}}});
  const Floats first = r.memory_of(a), second = r.memory_of(b);
  const size_t states = r.pools().states.bytes_per_slot() / sizeof(float);
  const size_t layers = r.config().mla_layers(), width = r.config().mla_latent_width();
  ASSERT_EQ(first.size(), states + layers * 3 * width);
  EXPECT_FALSE(testing::same_bytes_of(std::span(first).first(states), std::span(second).first(states)));
  const auto last_row = [&](const Floats& memory) { return std::span(memory).subspan(states + 2 * width, width); };
  EXPECT_FALSE(testing::same_bytes_of(last_row(first), last_row(second)));
}

}  // namespace
}  // namespace kilin

// What the forward pass promises whatever the weights: the same bytes under batch, threads and cuts; states where they belong.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "core/error.h"
#include "core/random.h"
#include "model/kda_backend.h"
#include "support/allocations.h"
#include "support/compare.h"
#include "support/golden.h"
#include "support/model_runner.h"

namespace kilin {
namespace {

using testing::ModelRunner;
using testing::Part;
using testing::RunnerOptions;
using testing::TestSequence;

std::vector<int32_t> some_ids(size_t n, uint64_t seed, size_t vocab = 4096) {
  std::vector<int32_t> ids(n);
  for (size_t i = 0; i < n; ++i) ids[i] = static_cast<int32_t>(random_bits(seed, i) % vocab);
  return ids;
}

std::vector<int32_t> part_of(const std::vector<int32_t>& ids, size_t begin, size_t end) {
  return {ids.begin() + static_cast<std::ptrdiff_t>(begin), ids.begin() + static_cast<std::ptrdiff_t>(end)};
}

void append(std::vector<float>& to, const std::vector<float>& from) { to.insert(to.end(), from.begin(), from.end()); }

class Forward : public ::testing::Test {
 protected:
  static ModelRunner runner(const RunnerOptions& options = {}) {
    return ModelRunner(testing::in_repository("models/tiny"), options);
  }
  static std::vector<float> state_of(ModelRunner& r, const TestSequence& s) {
    return r.pools().states.snapshot(s.state.slot()).values;
  }

  // The logits of `ids` fed in parts that end at `cuts`.
  static std::vector<float> in_parts(ModelRunner& r, TestSequence& s, const std::vector<int32_t>& ids,
                                     std::vector<size_t> cuts) {
    cuts.push_back(ids.size());
    std::vector<float> logits;
    for (size_t begin = 0; size_t end : cuts) {
      append(logits, r.run({{&s, ForwardMode::Extend, part_of(ids, begin, end)}}));
      begin = end;
    }
    return logits;
  }
};

TEST_F(Forward, PrefillAndDecodeAgreeWithinRounding) {
  ModelRunner r = runner();
  const std::vector<int32_t> ids = some_ids(200, 1);
  const std::vector<float> whole = r.prefill(ids);
  for (size_t k : {1u, 8u, 63u, 64u}) {
    TestSequence s = r.fresh();
    std::vector<float> logits = r.run({{&s, ForwardMode::Extend, part_of(ids, 0, ids.size() - k)}});
    for (size_t t = ids.size() - k; t < ids.size(); ++t) append(logits, r.run({{&s, ForwardMode::Decode, {ids[t]}}}));
    EXPECT_CLOSE_TO_MAX(logits, whole, 1e-5) << k << " tokens decoded";
  }
}

TEST_F(Forward, SeveralDecodeRowsInOneSpanAreTheSameBytesAsOneByOne) {
  ModelRunner r = runner();
  const std::vector<int32_t> ids = some_ids(75, 2);
  std::vector<float> logits[2], states[2];
  for (size_t way = 0; way < 2; ++way) {
    TestSequence s = r.fresh();
    r.run({{&s, ForwardMode::Extend, part_of(ids, 0, 70)}});
    if (way == 0) logits[0] = r.run({{&s, ForwardMode::Decode, part_of(ids, 70, 75)}});
    if (way == 1)
      for (size_t t = 70; t < 75; ++t) append(logits[1], r.run({{&s, ForwardMode::Decode, {ids[t]}}}));
    states[way] = state_of(r, s);
  }
  EXPECT_BYTES_EQ(logits[0], logits[1]);
  EXPECT_BYTES_EQ(states[0], states[1]);
}

TEST_F(Forward, ChunksOfAnySizeAgreeWithinRounding) {
  ModelRunner r = runner();
  const std::vector<int32_t> ids = some_ids(150, 3);
  const std::vector<float> whole = r.prefill(ids);
  for (size_t chunk : {1u, 7u, 31u, 97u}) {
    std::vector<size_t> cuts;
    for (size_t at = chunk; at < ids.size(); at += chunk) cuts.push_back(at);
    TestSequence s = r.fresh();
    EXPECT_CLOSE_TO_MAX(in_parts(r, s, ids, cuts), whole, 1e-5) << "chunks of " << chunk;
  }
}

TEST_F(Forward, CutsAtMultiplesOf64BatchesAndThreadsChangeNoByte) {
  const std::vector<int32_t> ids = some_ids(600, 4);  // crosses a block of 512
  std::vector<float> logits, state;
  {
    ModelRunner alone = runner({.threads = 1});
    TestSequence s = alone.fresh();
    logits = in_parts(alone, s, ids, {});
    state = state_of(alone, s);
  }
  for (size_t threads : {1u, 2u, 3u, 4u}) {
    ModelRunner r = runner({.threads = threads});
    for (const std::vector<size_t>& cuts : std::vector<std::vector<size_t>>{{64}, {128, 192}, {512}, {64, 448, 576}}) {
      TestSequence s = r.fresh(), neighbour = r.fresh(), decoding = r.fresh();
      r.run({{&decoding, ForwardMode::Extend, some_ids(30, 5)}});
      std::vector<float> parts;
      std::vector<size_t> ends = cuts;
      ends.push_back(ids.size());
      for (size_t begin = 0; size_t end : ends) {  // between a sequence that decodes and one that extends
        const std::vector<int32_t> own = part_of(ids, begin, end);
        const std::vector<float> all = r.run({{&decoding, ForwardMode::Decode, {7}},
                                              {&s, ForwardMode::Extend, own},
                                              {&neighbour, ForwardMode::Extend, some_ids(17 + begin % 5, 6)}});
        const size_t vocab = r.config().vocab_size;
        parts.insert(parts.end(), all.begin() + static_cast<std::ptrdiff_t>(vocab),
                     all.begin() + static_cast<std::ptrdiff_t>((1 + own.size()) * vocab));
        begin = end;
      }
      EXPECT_BYTES_EQ(parts, logits) << threads << " threads, first cut at " << cuts[0];
      EXPECT_BYTES_EQ(state_of(r, s), state) << threads << " threads, first cut at " << cuts[0];
    }
  }
}

TEST_F(Forward, DecodingBesideOthersChangesNoByte) {
  const std::vector<int32_t> ids = some_ids(530, 7);  // the past has two blocks
  ModelRunner r = runner({.threads = 3});
  std::vector<float> alone, beside;
  for (std::vector<float>* out : {&alone, &beside}) {
    TestSequence s = r.fresh(), a = r.fresh(), b = r.fresh();
    r.run({{&s, ForwardMode::Extend, ids}});
    r.run({{&a, ForwardMode::Extend, some_ids(3, 8)}});
    for (int32_t id : some_ids(4, 9)) {
      if (out == &alone) {
        append(*out, r.run({{&s, ForwardMode::Decode, {id}}}));
      } else {
        const auto all = r.run(
            {{&a, ForwardMode::Decode, {1}}, {&s, ForwardMode::Decode, {id}}, {&b, ForwardMode::Extend, some_ids(65, 10)}});
        const auto vocab = static_cast<std::ptrdiff_t>(r.config().vocab_size);
        out->insert(out->end(), all.begin() + vocab, all.begin() + 2 * vocab);
        b = r.fresh();
      }
    }
  }
  EXPECT_BYTES_EQ(beside, alone);
}

TEST_F(Forward, LengthsAroundTheGridAgreeWithDecoding) {
  ModelRunner r = runner();
  for (size_t tokens : {1u, 15u, 16u, 17u, 63u, 64u, 65u, 79u, 80u, 81u, 127u, 128u}) {
    const std::vector<int32_t> ids = some_ids(tokens, 11 + tokens);
    TestSequence s = r.fresh();
    EXPECT_CLOSE_TO_MAX(r.prefill(ids), r.run({{&s, ForwardMode::Decode, ids}}), 1e-5) << tokens;
  }
}

TEST_F(Forward, AnEmptySequencePassesItsStateThroughBitForBit) {
  ModelRunner r = runner();
  TestSequence empty = r.fresh(), other = r.fresh();
  r.run({{&empty, ForwardMode::Extend, some_ids(70, 12)}});
  const std::vector<float> before = state_of(r, empty);
  for (ForwardMode mode : {ForwardMode::Extend, ForwardMode::Decode, ForwardMode::Idle}) {
    r.run({{&empty, mode, {}}, {&other, ForwardMode::Extend, some_ids(5, 13)}});
    EXPECT_BYTES_EQ(state_of(r, empty), before) << to_string(mode);
  }
}

TEST_F(Forward, AnIdleBatchTouchesNothing) {
  ModelRunner r = runner();
  TestSequence s = r.fresh();
  r.run({{&s, ForwardMode::Extend, some_ids(3, 14)}});
  const std::vector<float> before = state_of(r, s);
  EXPECT_TRUE(r.run({{&s, ForwardMode::Idle, {}}}).empty());
  EXPECT_TRUE(r.run({}).empty());
  EXPECT_BYTES_EQ(state_of(r, s), before);
}

TEST_F(Forward, SlotZeroNeverChanges) {
  ModelRunner r = runner();
  const std::vector<float> before = r.pools().states.snapshot(RecurrentStatePool::kDummySlot).values;
  TestSequence a = r.fresh(), b = r.fresh();
  r.run({{&a, ForwardMode::Extend, some_ids(70, 15)}, {&b, ForwardMode::Extend, {}}});
  r.run({{&a, ForwardMode::Decode, {1}}});
  EXPECT_BYTES_EQ(r.pools().states.snapshot(RecurrentStatePool::kDummySlot).values, before);
}

TEST_F(Forward, APoisonedSlotGivesTheFreshResultAfterItWasFreed) {
  ModelRunner r = runner({.slots = 1});
  const std::vector<int32_t> ids = some_ids(70, 16);
  const std::vector<float> clean = r.prefill(ids);
  {
    TestSequence s = r.fresh();
    r.run({{&s, ForwardMode::Extend, ids}});
    float* state = r.pools().states.state(s.state.slot(), 0);
    std::fill_n(state, r.pools().states.bytes_per_slot() / sizeof(float), std::numeric_limits<float>::quiet_NaN());
  }
  EXPECT_BYTES_EQ(r.prefill(ids), clean);
}

TEST_F(Forward, SnapshotsOnTheWayAreTheStatesOfTheirPrefixes) {
  ModelRunner r = runner();
  const std::vector<int32_t> ids = some_ids(300, 17);
  StateSnapshot at_64 = r.pools().states.blank_snapshot(), at_256 = r.pools().states.blank_snapshot();
  TestSequence s = r.fresh();
  const std::vector<float> whole = r.run({{&s, ForwardMode::Extend, ids, {{64, &at_64}, {256, &at_256}}}});
  for (const auto& [position, snapshot] : {std::pair{64u, &at_64}, std::pair{256u, &at_256}}) {
    TestSequence prefix = r.fresh();
    r.run({{&prefix, ForwardMode::Extend, part_of(ids, 0, position)}});
    EXPECT_BYTES_EQ(state_of(r, prefix), snapshot->values) << position;

    r.pools().states.restore(prefix.state.slot(), *snapshot);  // and one can go on from them
    const std::vector<float> rest = r.run({{&prefix, ForwardMode::Extend, part_of(ids, position, ids.size())}});
    EXPECT_BYTES_EQ(rest, std::vector<float>(whole.end() - static_cast<std::ptrdiff_t>(rest.size()), whole.end())) << position;
  }
}

TEST_F(Forward, ModesOfSpeculativeDecodingAreTypedErrorsAndNothingMoves) {
  ModelRunner r = runner();
  TestSequence s = r.fresh();
  r.run({{&s, ForwardMode::Extend, {1, 2, 3}}});
  const std::vector<float> before = state_of(r, s);
  for (ForwardMode mode : {ForwardMode::TargetVerify, ForwardMode::DraftExtend}) {
    try {
      r.run({{&s, mode, {4}}});
      FAIL() << to_string(mode);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::NotImplemented);
    }
  }
  EXPECT_BYTES_EQ(state_of(r, s), before);
}

TEST_F(Forward, IdsOutsideOfTheVocabularyAreRefused) {
  ModelRunner r = runner();
  for (int32_t id : {-1, 4096, std::numeric_limits<int32_t>::max()}) {
    TestSequence s = r.fresh();
    EXPECT_THROW(r.run({{&s, ForwardMode::Extend, {1, id}}}), Error) << id;
  }
}

TEST_F(Forward, AStepDoesNotAllocateAndStaysWithinItsPlan) {
  ModelRunner r = runner({.threads = 2, .max_tokens = 130});
  TestSequence s = r.fresh();
  s.pages.grow(140);
  const std::vector<int32_t> ids = some_ids(130, 18);
  std::vector<float> hidden(r.config().hidden_size), logits(r.config().vocab_size);
  const auto step = [&](ForwardMode mode, std::span<const int32_t> part) {
    const size_t cu_seqlens[] = {0, part.size()};
    const SequenceSpan span = {mode, s.tokens, s.state.slot(), s.pages.pages()};
    const uint32_t row = static_cast<uint32_t>(part.size() - 1);
    const ForwardBatch batch = {part, cu_seqlens, {&span, 1}, {&row, 1}, &r.pools()};
    ExecContext ctx = r.context();
    r.model().forward(ctx, batch, {hidden.data(), 1, hidden.size()});
    r.model().logits(ctx, {hidden.data(), 1, hidden.size()}, {logits.data(), 1, logits.size()});
    s.tokens += part.size();
  };
  const size_t before = testing::allocations();
  step(ForwardMode::Extend, ids);
  step(ForwardMode::Decode, std::span(ids).first(1));
  EXPECT_EQ(testing::allocations(), before);
  EXPECT_LE(r.workspace().peak(), r.workspace().capacity());
  EXPECT_EQ(r.workspace().used(), 0u);
}

// A second backend: everything token by token, and a count of what it was asked for.
class RecurrentOnly final : public LinearRecurrentBackend {
 public:
  std::string_view name() const override { return "recurrent only"; }
  void forward(ExecContext& ctx, const ForwardBatch& batch, int layer, size_t state_layer, const KdaParameters& parameters,
               const KdaInputs& inputs, MatView<float> heads) const override {
    std::vector<SequenceSpan> spans(batch.sequences.begin(), batch.sequences.end());
    for (SequenceSpan& span : spans) span.mode = ForwardMode::Decode;
    ForwardBatch changed = batch;
    changed.sequences = spans;
    product_.forward(ctx, changed, layer, state_layer, parameters, inputs, heads);
    ++calls;
  }
  size_t workspace_bytes(const KdaParameters& parameters, size_t tokens, size_t threads) const override {
    return product_.workspace_bytes(parameters, tokens, threads);
  }
  mutable size_t calls = 0;

 private:
  KdaBackend product_;
};

TEST_F(Forward, AnotherBackendTakesTheLinearLayersOver) {
  ModelRunner r = runner();
  const std::vector<int32_t> ids = some_ids(100, 19);
  const std::vector<float> product = r.prefill(ids);
  const auto backend = std::make_shared<RecurrentOnly>();
  r.model().set_recurrent_backend(backend);
  const std::vector<float> other = r.prefill(ids);
  EXPECT_EQ(backend->calls, r.config().kda_layers());
  EXPECT_CLOSE_TO_MAX(other, product, 1e-5);
  EXPECT_FALSE(testing::same_bytes_of(other, product));  // it did run in the other form
  r.model().set_recurrent_backend(nullptr);
  EXPECT_BYTES_EQ(r.prefill(ids), product);
}

TEST_F(Forward, Bf16LatentsCostARoundingInEveryMode) {
  ModelRunner exact = runner(), rounded = runner({.kv_type = KvType::bf16});
  const std::vector<int32_t> ids = some_ids(40, 20);
  const std::vector<float> truth = exact.prefill(ids), logits = rounded.prefill(ids);
  EXPECT_FALSE(testing::same_bytes_of(truth, logits));
  TestSequence s = rounded.fresh();
  EXPECT_CLOSE_TO_MAX(rounded.run({{&s, ForwardMode::Decode, ids}}), logits, 1e-5);  // both read the same rounded latents
}

}  // namespace
}  // namespace kilin

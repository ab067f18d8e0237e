// What the forward pass promises whatever the weights: both modes and all cuts agree, states stay where they belong, bad
// batches move nothing. Equal bytes are forward_same_bytes_test.cpp's, memory is forward_memory_test.cpp's.
#include <gtest/gtest.h>

#include <limits>

#include "core/error.h"
#include "model/kda_backend.h"
#include "support/compare.h"
#include "support/golden.h"
#include "support/ids.h"
#include "support/model_runner.h"

namespace kilin {
namespace {

using testing::ModelRunner;
using testing::RunnerOptions;
using testing::some_ids;
using testing::TestSequence;

std::vector<int32_t> part_of(const std::vector<int32_t>& ids, size_t begin, size_t end) {
  return {ids.begin() + static_cast<std::ptrdiff_t>(begin), ids.begin() + static_cast<std::ptrdiff_t>(end)};
}

void append(std::vector<float>& to, const std::vector<float>& from) { to.insert(to.end(), from.begin(), from.end()); }

class Forward : public ::testing::Test {
 protected:
  static ModelRunner runner(const RunnerOptions& options = {}) {
    return ModelRunner(testing::in_repository("models/tiny"), options);
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

TEST_F(Forward, LengthsAroundTheGridAgreeWithDecoding) {
  ModelRunner r = runner();
  for (size_t tokens : {1u, 15u, 16u, 17u, 63u, 64u, 65u, 79u, 80u, 81u, 127u, 128u}) {
    const std::vector<int32_t> ids = some_ids(tokens, 11 + tokens);
    TestSequence s = r.fresh();
    EXPECT_CLOSE_TO_MAX(r.prefill(ids), r.run({{&s, ForwardMode::Decode, ids}}), 1e-5) << tokens;
  }
}

TEST_F(Forward, AnIdleBatchTouchesNothing) {
  ModelRunner r = runner();
  TestSequence s = r.fresh();
  r.run({{&s, ForwardMode::Extend, some_ids(3, 14)}});
  const std::vector<float> before = r.memory_of(s);
  EXPECT_TRUE(r.run({{&s, ForwardMode::Idle, {}}}).empty());
  EXPECT_TRUE(r.run({}).empty());
  EXPECT_BYTES_EQ(r.memory_of(s), before);
}

TEST_F(Forward, SlotZeroNeverChanges) {
  ModelRunner r = runner();
  const auto dummy = [&] { return r.pools().states.snapshot(RecurrentStatePool::kDummySlot).values; };
  const std::vector<float> before = dummy();
  TestSequence a = r.fresh(), b = r.fresh();
  r.run({{&a, ForwardMode::Extend, some_ids(70, 15)}, {&b, ForwardMode::Extend, {}}});
  r.run({{&a, ForwardMode::Decode, {1}}});
  EXPECT_BYTES_EQ(dummy(), before);

  TestSequence padding;  // no slot of its own: its spans carry slot 0
  ASSERT_EQ(padding.state.slot(), RecurrentStatePool::kDummySlot);
  for (ForwardMode mode : {ForwardMode::Extend, ForwardMode::Decode, ForwardMode::Idle}) {
    r.run({{&padding, mode, {}}, {&a, ForwardMode::Extend, some_ids(5, 16)}, {&padding, mode, {}}});
    r.run({{&a, ForwardMode::Decode, {2}}, {&padding, mode, {}}});
    EXPECT_BYTES_EQ(dummy(), before) << to_string(mode);
  }
}

TEST_F(Forward, ModesOfSpeculativeDecodingAreTypedErrorsAndNothingMoves) {
  ModelRunner r = runner();
  TestSequence s = r.fresh();
  r.run({{&s, ForwardMode::Extend, {1, 2, 3}}});
  const std::vector<float> before = r.memory_of(s);
  for (ForwardMode mode : {ForwardMode::TargetVerify, ForwardMode::DraftExtend}) {
    try {
      r.run({{&s, mode, {4}}});
      FAIL() << to_string(mode);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::NotImplemented);
    }
  }
  EXPECT_BYTES_EQ(r.memory_of(s), before);
}

TEST_F(Forward, IdsOutsideOfTheVocabularyAreRefused) {
  ModelRunner r = runner();
  for (int32_t id : {-1, 4096, std::numeric_limits<int32_t>::max()}) {
    TestSequence s = r.fresh();
    EXPECT_THROW(r.run({{&s, ForwardMode::Extend, {1, id}}}), Error) << id;
  }
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
  // Both read rounded latents, but for one that modes, 1e-6 apart, round to its two sides.
  EXPECT_CLOSE_TO_MAX(rounded.run({{&s, ForwardMode::Decode, ids}}), logits, 2e-4);
}

// The weights here stand in no panels, so that activations of int8 round nothing but these queries.
TEST_F(Forward, QueriesOfBf16LatentsAreRoundedInDecodeUnlessActivationsAreF32) {
  ModelRunner exact = runner({.kv_type = KvType::bf16});
  ModelRunner rounding = runner({.kv_type = KvType::bf16, .activations = ActivationType::int8});
  const std::vector<int32_t> ids = some_ids(40, 21);
  EXPECT_BYTES_EQ(rounding.prefill(ids), exact.prefill(ids));
  TestSequence a = exact.fresh(), b = rounding.fresh();
  const std::vector<float> truth = exact.run({{&a, ForwardMode::Decode, ids}}),
                           logits = rounding.run({{&b, ForwardMode::Decode, ids}});
  EXPECT_CLOSE_TO_MAX(logits, truth, 2e-3);
  const KernelTable kernels = select_kernels(CpuInfo::detect(), KernelChoice::from_environment());
  EXPECT_EQ(testing::same_bytes_of(logits, truth), kernels.mla_decode_block_bf16 == kernels.mla_decode_block);
}

}  // namespace
}  // namespace kilin

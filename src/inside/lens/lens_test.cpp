#include "inside/lens/lens.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "inside/lens/guesses.h"
#include "inside/trace/project_on_vocab.h"
#include "support/trace_fixture.h"

namespace kilin {
namespace {

using testing::floats;
using testing::some_ids;

class LensOfTiny : public testing::TraceTest {
 protected:
  static constexpr size_t kVocab = 4096;

  // The values that a trace of the same staged layers shows: the same bytes.
  static Saved run_staged(const std::vector<int32_t>& ids, std::vector<std::string> names) {
    for (int layer : {3, 5}) names.push_back(fmt::format("layers.{}.self_attn.attention_probabilities", layer));
    return run({{ids}}, names);
  }

  // Expects a cell of the logit lens to be what sorting the whole row of logits gives.
  static void expect_cell(const Lens& lens, size_t row, size_t token, const float* logits) {
    const LogitLens& l = lens.logit_lens;
    const size_t cell = row * lens.ids.size() + token;
    const double largest = *std::max_element(logits, logits + kVocab);
    double sum = 0;
    for (size_t i = 0; i < kVocab; ++i) sum += std::exp(logits[i] - largest);
    const auto probability = [&](int32_t id) { return std::exp(logits[id] - largest) / sum; };
    std::vector<int32_t> order(kVocab);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return logits[a] > logits[b]; });
    for (size_t g = 0; g < l.guesses; ++g) {
      EXPECT_EQ(l.best[cell * l.guesses + g].id, order[g]) << row << ", " << token << ", " << g;
      EXPECT_NEAR(l.best[cell * l.guesses + g].probability, probability(order[g]), 1e-5);
    }
    if (token + 1 == lens.ids.size()) {
      EXPECT_EQ(l.actual[cell].rank, 0u);
      return;
    }
    const int32_t actual = lens.ids[token + 1];
    EXPECT_EQ(l.actual[cell].rank, std::find(order.begin(), order.end(), actual) - order.begin() + 1) << row << ", " << token;
    EXPECT_NEAR(l.actual[cell].probability, probability(actual), 1e-5);
  }
};

TEST_F(LensOfTiny, LastRowOfTheLogitLensIsTheModelsOwnLogits) {
  const std::vector<int32_t> ids = some_ids(70, 1);  // more than one block of rows
  const Lens lens = look_inside(engine(), ids);
  EXPECT_EQ(lens.ids, ids);
  EXPECT_EQ(lens.logit_lens.rows, 7u);
  const Saved s = run_staged(ids, {"logits", "next_token_probs"});
  for (size_t token : {0, 1, 62, 63, 64, 65, 69})
    expect_cell(lens, 6, token, s.at("logits")->of(0).as<float>() + token * kVocab);
  const Guess& next = lens.logit_lens.best[(6 * ids.size() + 69) * lens.logit_lens.guesses];
  EXPECT_EQ(next.probability, s.at("next_token_probs")->of(0).as<float>()[next.id]);
}

TEST_F(LensOfTiny, OtherRowsAreProjectionsOfTheStream) {
  const std::vector<int32_t> ids = some_ids(4, 2);
  const Lens lens = look_inside(engine(), ids);
  std::vector<std::string> names = {"token_embeddings"};
  for (int layer = 0; layer < 3; ++layer) names.push_back(fmt::format("layers.{}.layer_output", layer));
  const Saved s = run_staged(ids, names);
  std::vector<float> logits(ids.size() * kVocab);
  for (size_t row = 0; row < names.size(); ++row) {
    project_on_vocab(engine(), s.at(names[row])->of(0).matrix(), {logits.data(), ids.size(), kVocab});
    for (size_t token = 0; token < ids.size(); ++token) expect_cell(lens, row, token, logits.data() + token * kVocab);
  }
}

TEST_F(LensOfTiny, PatternsAreTheLowerTriangleOfTheProbabilities) {
  const std::vector<int32_t> ids = some_ids(12, 3);
  const Lens lens = look_inside(engine(), ids);
  ASSERT_EQ(lens.attention.size(), 2u);
  EXPECT_EQ(lens.attention_block, 1u);
  const Saved s = run_staged(ids, {});
  for (const AttentionPatterns& patterns : lens.attention) {
    const Tensor& whole = s.at(fmt::format("layers.{}.self_attn.attention_probabilities", patterns.layer))->of(0);
    std::vector<float> triangle;
    for (size_t h = 0; h < 4; ++h)
      for (size_t q = 0; q < 12; ++q)
        for (size_t k = 0; k <= q; ++k) triangle.push_back(whole.as<float>()[(h * 12 + q) * 12 + k]);
    EXPECT_BYTES_EQ(patterns.probabilities, triangle) << patterns.layer;
  }
}

TEST_F(LensOfTiny, PatternsOfLongPromptsHoldTheLargestOfEachBlock) {
  const std::vector<int32_t> ids = some_ids(11, 4);
  const Lens fine = look_inside(engine(), ids);
  const Lens coarse = look_inside(engine(), ids, {.guesses = 1, .attention_cells = 2 * 4 * 10, .progress = {}});
  ASSERT_EQ(coarse.attention_block, 3u);  // 4 x 4 blocks, whose triangle is 10
  const std::vector<float>& p = fine.attention[1].probabilities;
  std::vector<float> largest(4 * 10);
  for (size_t h = 0, i = 0; h < 4; ++h)
    for (size_t q = 0; q < 11; ++q)
      for (size_t k = 0; k <= q; ++k, ++i) {
        float& cell = largest[h * 10 + (q / 3) * (q / 3 + 1) / 2 + k / 3];
        cell = std::max(cell, p[i]);
      }
  EXPECT_BYTES_EQ(coarse.attention[1].probabilities, largest);
}

TEST_F(LensOfTiny, HalfLivesAreThoseOfTheDecays) {
  constexpr size_t kTokens = 20, kHeads = 4, kChannels = 64;
  const std::vector<int32_t> ids = some_ids(kTokens, 5);
  const Lens lens = look_inside(engine(), ids);
  ASSERT_EQ(lens.kda.size(), 4u);
  std::vector<std::string> names;
  for (const MemoryPatterns& memory : lens.kda)
    for (const char* value : {"decays", "betas"}) names.push_back(fmt::format("layers.{}.linear_attn.{}", memory.layer, value));
  const Saved s = run_staged(ids, names);
  for (const MemoryPatterns& memory : lens.kda) {
    const std::string name = fmt::format("layers.{}.linear_attn.", memory.layer);
    const float* decays = s.at(name + "decays")->of(0).as<float>();
    std::vector<float> by_channel, by_token;
    for (size_t i = 0; i < kHeads * kChannels; ++i) {
      double sum = 0;
      for (size_t t = 0; t < kTokens; ++t) sum += decays[t * kHeads * kChannels + i];
      by_channel.push_back(static_cast<float>(std::log(2.0) / (-sum / kTokens)));
    }
    for (size_t i = 0; i < kTokens * kHeads; ++i) {
      double product = 0;
      for (size_t c = 0; c < kChannels; ++c) product += std::log(std::log(2.0) / -double{decays[i * kChannels + c]});
      by_token.push_back(static_cast<float>(std::exp(product / kChannels)));
    }
    ASSERT_EQ(memory.half_lives.size(), by_channel.size());
    ASSERT_EQ(memory.token_half_lives.size(), by_token.size());
    for (size_t i = 0; i < by_channel.size(); ++i) EXPECT_NEAR(memory.half_lives[i] / by_channel[i], 1, 1e-5) << i;
    for (size_t i = 0; i < by_token.size(); ++i) EXPECT_NEAR(memory.token_half_lives[i] / by_token[i], 1, 1e-5) << i;
    EXPECT_BYTES_EQ(memory.betas, floats(s.at(name + "betas")->of(0)));
  }
}

TEST_F(LensOfTiny, LoadCountsWhatWasChosen) {
  const std::vector<int32_t> ids = some_ids(33, 6);
  const Lens lens = look_inside(engine(), ids);
  ASSERT_EQ(lens.experts.size(), 5u);  // layer 0 is dense
  std::vector<std::string> names;
  for (int layer = 1; layer < 6; ++layer)
    for (const char* value : {"indices", "weights"}) names.push_back(fmt::format("layers.{}.mlp.expert_{}", layer, value));
  const Saved s = run_staged(ids, names);
  for (const ExpertChoices& choices : lens.experts) {
    const std::string name = fmt::format("layers.{}.mlp.", choices.layer);
    const Tensor& indices = s.at(name + "expert_indices")->of(0);
    EXPECT_BYTES_EQ(choices.indices, std::vector<int32_t>(indices.as<int32_t>(), indices.as<int32_t>() + indices.elements()));
    EXPECT_BYTES_EQ(choices.weights, floats(s.at(name + "expert_weights")->of(0)));
    ASSERT_EQ(choices.load.size(), 8u);
    EXPECT_EQ(std::accumulate(choices.load.begin(), choices.load.end(), size_t{0}), ids.size() * choices.chosen);
    for (int32_t expert = 0; expert < 8; ++expert)
      EXPECT_EQ(choices.load[static_cast<size_t>(expert)], std::ranges::count(choices.indices, expert));
  }
}

TEST_F(LensOfTiny, OneTokenHasAllOfIt) {
  const Lens lens = look_inside(engine(), std::vector<int32_t>{7});
  EXPECT_EQ(lens.logit_lens.best.size(), 7u * 5);
  for (const TrueToken& actual : lens.logit_lens.actual) EXPECT_EQ(actual.rank, 0u);
  EXPECT_EQ(lens.attention[0].probabilities, std::vector<float>(4, 1.0f));
  EXPECT_EQ(lens.kda[0].token_half_lives.size(), 4u);
  EXPECT_EQ(lens.experts[0].indices.size(), 2u);
}

TEST_F(LensOfTiny, PromptsThatNoPageCanShowAreRefused) {
  EXPECT_NE(message_of(ErrorCode::InvalidArgument, [] { look_inside(engine(), std::vector<int32_t>(4097, 1)); })
                .find("4097 tokens; a lens shows at most 4096"),
            std::string::npos);
  message_of(ErrorCode::InvalidArgument, [] { look_inside(engine(), {}); });
  message_of(ErrorCode::InvalidArgument, [] { look_inside(engine(), std::vector<int32_t>{4096}); });
}

TEST_F(LensOfTiny, ProgressEndsWhereItSaidAndCanEndThePass) {
  size_t last = 0, total = 0;
  look_inside(engine(), some_ids(6, 7), {.guesses = 5, .attention_cells = 1000, .progress = [&](size_t done, size_t all) {
                                           EXPECT_LT(last, done);
                                           last = done;
                                           total = all;
                                         }});
  EXPECT_EQ(last, total);
  struct Enough {};
  EXPECT_THROW(look_inside(engine(), some_ids(5, 8),
                           {.guesses = 5, .attention_cells = 1, .progress = [](size_t, size_t) { throw Enough(); }}),
               Enough);
  EXPECT_EQ(look_inside(engine(), some_ids(5, 8)).ids.size(), 5u);
}

class Guesses : public ::testing::Test {
 protected:
  static std::optional<TrueToken> read(const std::vector<float>& logits, std::optional<int32_t> actual,
                                       std::vector<Guess>& best) {
    std::vector<float> probabilities(logits.size());
    return read_guesses(select_kernels(CpuInfo::detect(), KernelChoice::from_environment()), logits, probabilities, actual,
                        best);
  }
};

TEST_F(Guesses, OfEqualLogitsTheLowerIdComesFirst) {
  std::vector<Guess> best(3);
  const auto actual = read({0, 2, 1, 2, 2}, 3, best);
  ASSERT_TRUE(actual);
  EXPECT_EQ(actual->rank, 2u);
  EXPECT_EQ(best[0].id, 1);
  EXPECT_EQ(best[1].id, 3);
  EXPECT_EQ(best[2].id, 4);
  EXPECT_NEAR(best[0].probability, std::exp(2) / (1 + std::exp(1) + 3 * std::exp(2)), 1e-5);
  EXPECT_EQ(best[0].probability, actual->probability);
}

TEST_F(Guesses, OfLogitsWithoutNumbersThereAreNone) {
  std::vector<Guess> best(1);
  EXPECT_FALSE(read({NAN, NAN}, 0, best));
  EXPECT_FALSE(read({-INFINITY, -INFINITY}, 0, best));
  EXPECT_EQ(read({0, 1}, std::nullopt, best)->rank, 0u);
}

}  // namespace
}  // namespace kilin

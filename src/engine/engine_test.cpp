#include "engine/engine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "checkpoint/npy.h"
#include "core/error.h"
#include "core/file.h"
#include "core/json.h"
#include "support/compare.h"
#include "support/golden.h"
#include "support/ids.h"
#include "support/isas.h"

namespace kilin {
namespace {

using testing::some_ids;

class TinyEngine : public ::testing::Test {
 protected:
  static std::filesystem::path folder() { return testing::in_repository("models/tiny"); }
  static std::unique_ptr<Engine> engine(EngineOptions options = {}) {
    return std::make_unique<Engine>(LoadedModel::load(folder()), options);
  }
  static std::vector<int32_t> output(const Request& r) { return {r.output_ids().begin(), r.output_ids().end()}; }
  static ErrorCode code_of(const std::function<void()>& f) {
    try {
      f();
    } catch (const Error& error) {
      return error.code();
    }
    ADD_FAILURE() << "nothing was thrown";
    return ErrorCode::Io;
  }
};

class TinyEngineOfAnIsa : public TinyEngine, public ::testing::WithParamInterface<std::string> {};
INSTANTIATE_TEST_SUITE_P(Isa, TinyEngineOfAnIsa, ::testing::ValuesIn(testing::isas()),
                         [](const auto& test) { return testing::name_in_tests(test.param); });

TEST_P(TinyEngineOfAnIsa, GreedyTextsAreTheReferences) {
  ISA_OR_SKIP(GetParam());
  const auto e = engine({.max_sequences = 6, .kernels = testing::kernels_for(GetParam())});
  const Json expected = read_json(folder() / "expected.json");
  std::vector<std::shared_ptr<Request>> requests;
  std::vector<std::string> streamed(expected.at("greedy").size());
  for (size_t i = 0; i < streamed.size(); ++i) {  // all six in one batch
    const Json& c = expected.at("greedy")[i];
    requests.push_back(e->submit(e->loaded().require_tokenizer().encode_with_specials(c.at("prompt").get<std::string>()),
                                 {.max_new_tokens = c.at("ids").size()},
                                 [&streamed, i](const TokenEvent& event) { streamed[i] += event.text; }));
  }
  while (e->step() == StepResult::Ran) {
  }
  for (size_t i = 0; i < streamed.size(); ++i) {
    const Json& c = expected.at("greedy")[i];
    EXPECT_EQ(output(*requests[i]), c.at("ids").get<std::vector<int32_t>>()) << c.at("prompt");
    EXPECT_EQ(requests[i]->text(), c.at("text").get<std::string>());
    EXPECT_EQ(streamed[i], requests[i]->text());
    EXPECT_EQ(requests[i]->finish_reason(), FinishReason::Length);
  }
}

TEST_P(TinyEngineOfAnIsa, LogitsOfTheEvaluationTextAreTheReferences) {
  ISA_OR_SKIP(GetParam());
  const auto e = engine({.prefill_chunk = 100, .kernels = testing::kernels_for(GetParam())});
  std::vector<int32_t> text = e->loaded().require_tokenizer().encode(read_file(folder() / "eval.txt"));
  text.resize(256);
  const Tensor truth = read_npy(folder() / "expected_logits.npy");
  std::vector<float> logits;
  e->logits(text, [&](size_t position, MatView<const float> rows) {
    EXPECT_EQ(position * e->config().vocab_size, logits.size());
    logits.insert(logits.end(), rows.data(), rows.data() + rows.rows() * rows.cols());
  });
  EXPECT_CLOSE_TO_MAX(logits, std::span(truth.as<const float>(), truth.elements()), 1e-5);
}

TEST_F(TinyEngine, PerplexityOfTheEvaluationTextIsTheReferencesToFourDigits) {
  const auto e = engine();
  const Json expected = read_json(folder() / "expected.json");
  const std::vector<int32_t> text = e->loaded().require_tokenizer().encode(read_file(folder() / "eval.txt"));
  const size_t window = expected.at("eval_window");
  double loss = 0;
  size_t predictions = 0;
  for (size_t begin = 0; begin + 1 < text.size(); begin += window) {
    const size_t end = std::min(begin + window, text.size() - 1);
    e->logits(std::span(text).subspan(begin, end - begin), [&](size_t position, MatView<const float> rows) {
      for (size_t r = 0; r < rows.rows(); ++r) {
        const auto row = rows[r];
        double sum = 0;
        for (float x : row) sum += std::exp(double{x});
        loss += std::log(sum) - double{row[static_cast<size_t>(text[begin + position + r + 1])]};
        ++predictions;
      }
    });
  }
  EXPECT_EQ(predictions, expected.at("eval_tokens").get<size_t>());
  const double perplexity = std::exp(loss / static_cast<double>(predictions));
  EXPECT_NEAR(perplexity, expected.at("eval_perplexity").get<double>(), 5e-5 * perplexity);
}

TEST_F(TinyEngine, BatchesThreadsAndChunksFrom64OnChangeNoToken) {
  GenerationParams params = {.sampling = {.temperature = 1.0, .seed = 3}, .max_new_tokens = 12};
  const auto alone = [&](size_t which, EngineOptions options) {
    const auto e = engine(options);
    const auto r = e->submit(some_ids(150 + which, which), params);
    e->run(*r);
    return output(*r);
  };
  std::vector<std::vector<int32_t>> truth;
  for (size_t i = 0; i < 5; ++i) truth.push_back(alone(i, {.threads = 1}));
  for (const EngineOptions& options : {EngineOptions{.threads = 2, .prefill_chunk = 64, .max_sequences = 5},
                                       EngineOptions{.threads = 3, .prefill_chunk = 200, .max_sequences = 3},
                                       EngineOptions{.threads = 4, .prefill_chunk = 2048, .max_sequences = 2}}) {
    const auto e = engine(options);
    std::vector<std::shared_ptr<Request>> requests;
    for (size_t i = 0; i < 5; ++i) requests.push_back(e->submit(some_ids(150 + i, i), params));
    while (e->step() == StepResult::Ran) {
    }
    for (size_t i = 0; i < 5; ++i)
      EXPECT_EQ(output(*requests[i]), truth[i]) << "chunk " << options.prefill_chunk << " request " << i;
  }
}

TEST_F(TinyEngine, ChunksBelow64GiveTheSameTokensWhateverElseRuns) {
  const auto run = [&](size_t others) {
    const auto e = engine({.prefill_chunk = 7, .max_sequences = 4});
    for (size_t i = 0; i < others; ++i) e->submit(some_ids(9 + i, i), {.max_new_tokens = 5});
    const auto r = e->submit(some_ids(40, 9), {.sampling = {.temperature = 1, .seed = 1}, .max_new_tokens = 20});
    e->run(*r);
    return output(*r);
  };
  EXPECT_EQ(run(0), run(3));
}

TEST_F(TinyEngine, ContinuingASequenceIsOneConversation) {
  const auto e = engine();
  const std::vector<int32_t> first = some_ids(64, 1), second = some_ids(20, 2);
  const auto a = e->submit(first, {.max_new_tokens = 1, .keep_sequence = true});
  e->run(*a);
  Sequence sequence = a->take_sequence();
  EXPECT_EQ(sequence.ids, first);  // the sampled token was not fed
  const auto b = e->submit(second, {.max_new_tokens = 10}, {}, std::move(sequence));
  e->run(*b);
  std::vector<int32_t> both = first;
  both.insert(both.end(), second.begin(), second.end());
  const auto whole = engine();
  const auto c = whole->submit(both, {.max_new_tokens = 10});
  whole->run(*c);
  EXPECT_EQ(output(*b), output(*c));
  EXPECT_EQ(b->prompt_ids().size(), second.size());
}

TEST_F(TinyEngine, StopIdsStopStringsAndCancelEndAnAnswer) {
  const auto e = engine();
  const auto prompt = e->loaded().require_tokenizer().encode("Blessed is the man");
  const auto by_id = e->submit(prompt, {.max_new_tokens = 48, .stop_ids = {431}});
  e->run(*by_id);
  EXPECT_EQ(by_id->finish_reason(), FinishReason::Stop);
  EXPECT_EQ(by_id->output_ids().back(), 431);
  EXPECT_EQ(by_id->text(), " that is in the house of the");

  std::string streamed;
  const auto by_text = e->submit(prompt, {.max_new_tokens = 48, .stop_strings = {"LORD. And"}},
                                 [&](const TokenEvent& event) { streamed += event.text; });
  e->run(*by_text);
  EXPECT_EQ(by_text->finish_reason(), FinishReason::Stop);
  EXPECT_EQ(by_text->text(), " that is in the house of the ");
  EXPECT_EQ(streamed, by_text->text());

  const auto cancelled = e->submit(prompt, {.max_new_tokens = 48});
  e->run(*cancelled, [&] { cancelled->cancel(); });
  EXPECT_EQ(cancelled->finish_reason(), FinishReason::Cancelled);
  EXPECT_EQ(cancelled->output_ids().size(), 1u);
  const auto before_start = e->submit(prompt, {});
  before_start->cancel();
  e->run(*before_start);
  EXPECT_TRUE(before_start->output_ids().empty());
  EXPECT_EQ(e->step(), StepResult::Idle);
}

TEST_F(TinyEngine, AnAnswerEndsWhereTheContextDoes) {
  const auto e = engine({.context_tokens = 70});
  const auto r = e->submit(some_ids(64, 1), {.max_new_tokens = 1000});
  e->run(*r);
  EXPECT_EQ(r->finish_reason(), FinishReason::Length);
  EXPECT_EQ(r->output_ids().size(), 7u);  // six were fed after the 64, the seventh was not
  EXPECT_EQ(e->context_tokens(), 70u);
}

TEST_F(TinyEngine, MoreRequestsThanPlacesWaitTheirTurn) {
  const auto e = engine({.max_sequences = 2, .context_tokens = 256});
  std::vector<std::shared_ptr<Request>> requests;
  for (size_t i = 0; i < 7; ++i) requests.push_back(e->submit(some_ids(100, i), {.max_new_tokens = 20}));
  while (e->step() == StepResult::Ran) {
  }
  for (const auto& r : requests) EXPECT_EQ(r->output_ids().size(), 20u);
  requests.clear();
  EXPECT_EQ(e->pools().states.free_slots(), 2u);
}

TEST_F(TinyEngine, AListenerThatThrowsSpoilsNoOtherRequest) {
  const auto alone = [&](uint64_t which) {
    const auto e = engine();
    const auto r = e->submit(some_ids(20, which), {.max_new_tokens = 8});
    e->run(*r);
    return output(*r);
  };
  const auto e = engine({.max_sequences = 3});
  const auto bad =
      e->submit(some_ids(20, 0), {.max_new_tokens = 8}, [](const TokenEvent&) { throw std::runtime_error("full"); });
  size_t heard = 0;
  const auto a = e->submit(some_ids(20, 1), {.max_new_tokens = 8}, [&](const TokenEvent&) { ++heard; });
  const auto b = e->submit(some_ids(20, 2), {.max_new_tokens = 8});
  for (StepResult result = StepResult::Ran; result == StepResult::Ran;) {
    try {
      result = e->step();
    } catch (const std::runtime_error&) {
    }
  }
  EXPECT_EQ(output(*bad), alone(0));
  EXPECT_EQ(output(*a), alone(1));
  EXPECT_EQ(output(*b), alone(2));
  EXPECT_EQ(heard, 8u);
}

class ThrowingTaps final : public Taps {
 public:
  void at(const Site& site, TensorView /*values*/) override {
    if (site.value == Value::LayerOutput && site.layer == 2) throw std::runtime_error("a tap");
  }
};

TEST_F(TinyEngine, ATapThatThrowsEndsItsBatchAndTheEngineStaysUsable) {
  const auto e = engine({.max_sequences = 2});
  const auto r = e->submit(some_ids(20, 1), {.max_new_tokens = 8, .keep_sequence = true});
  EXPECT_EQ(e->step(), StepResult::Ran);
  ThrowingTaps taps;
  e->set_taps(&taps);
  EXPECT_THROW(e->step(), std::runtime_error);
  EXPECT_EQ(r->finish_reason(), FinishReason::Error);
  EXPECT_EQ(e->pools().states.free_slots(), 2u);
  e->set_taps(nullptr);
  EXPECT_EQ(e->step(), StepResult::Idle);
  const auto again = e->submit(some_ids(20, 1), {.max_new_tokens = 8});
  e->run(*again);
  EXPECT_EQ(output(*again).front(), output(*r).front());
}

TEST_F(TinyEngine, ARequestThatNobodyElseHoldsHearsItsLastToken) {
  const auto e = engine();
  size_t heard = 0;
  e->submit(some_ids(20, 1), {.max_new_tokens = 3}, [&](const TokenEvent&) { ++heard; });
  while (e->step() == StepResult::Ran) {
  }
  EXPECT_EQ(heard, 3u);
}

TEST_F(TinyEngine, WhatRunThrowsLeavesNothingQueued) {
  const auto e = engine();
  const auto r = e->submit(some_ids(20, 1), {.max_new_tokens = 8});
  EXPECT_THROW(e->run(*r, [] { throw std::runtime_error("stop"); }), std::runtime_error);
  EXPECT_EQ(r->finish_reason(), FinishReason::Cancelled);
  EXPECT_EQ(e->step(), StepResult::Idle);

  const auto kept = e->submit(some_ids(20, 1), {.max_new_tokens = 1, .keep_sequence = true});
  e->run(*kept);
  const auto blocked = e->submit(some_ids(20, 2), {.max_new_tokens = 1});
  EXPECT_EQ(e->step(), StepResult::Blocked);
  EXPECT_EQ(code_of([&] { e->run(*blocked); }), ErrorCode::ResourceExhausted);
  EXPECT_TRUE(blocked->finished());
  EXPECT_EQ(e->step(), StepResult::Idle);
}

TEST_F(TinyEngine, ACancelledRequestNeedNotReachTheFrontToEnd) {
  const auto e = engine();
  const auto kept = e->submit(some_ids(20, 1), {.max_new_tokens = 1, .keep_sequence = true});
  e->run(*kept);
  const auto front = e->submit(some_ids(20, 2), {.max_new_tokens = 3});  // waits for the only slot
  const auto second = e->submit(some_ids(5, 3), {.max_new_tokens = 1}, {}, kept->take_sequence());
  EXPECT_EQ(e->step(), StepResult::Blocked);
  second->cancel();
  e->run(*front);
  EXPECT_EQ(second->finish_reason(), FinishReason::Cancelled);
  EXPECT_EQ(front->output_ids().size(), 3u);
}

TEST_F(TinyEngine, ASequenceMayOutliveItsEngineAndGoesOnInNoOther) {
  std::optional<Sequence> sequence;
  std::shared_ptr<Request> unfinished;
  {
    const auto e = engine();
    const auto r = e->submit(some_ids(20, 1), {.max_new_tokens = 1, .keep_sequence = true});
    e->run(*r);
    sequence = r->take_sequence();
  }
  {
    const auto e = engine();
    unfinished = e->submit(some_ids(20, 1), {.max_new_tokens = 8});
    e->step();
  }
  const auto other = engine();
  EXPECT_EQ(code_of([&] { other->submit({1}, {}, {}, std::move(sequence)); }), ErrorCode::InvalidArgument);
}

TEST_F(TinyEngine, AHugeContextCostsNothingUntilItIsUsed) {
  const auto e = engine({.context_tokens = size_t{1} << 40});
  EXPECT_EQ(e->context_tokens(), e->config().model_max_length);
  EXPECT_LE(e->plan().latent_pages, LatentKvPool::pages_for(e->config().model_max_length));
}

TEST_F(TinyEngine, BadRequestsAreRefusedAndLeaveNothingBehind) {
  const auto e = engine({.context_tokens = 100});
  EXPECT_EQ(code_of([&] { e->submit({}, {}); }), ErrorCode::InvalidArgument);
  EXPECT_EQ(code_of([&] { e->submit({4096}, {}); }), ErrorCode::InvalidArgument);
  EXPECT_EQ(code_of([&] { e->submit({-1}, {}); }), ErrorCode::InvalidArgument);
  EXPECT_EQ(code_of([&] { e->submit(some_ids(101, 1), {}); }), ErrorCode::InvalidArgument);
  EXPECT_EQ(code_of([&] { e->submit({1}, {.max_new_tokens = 0}); }), ErrorCode::InvalidArgument);
  EXPECT_EQ(code_of([&] { e->submit({1}, {.stop_strings = {""}}); }), ErrorCode::InvalidArgument);
  EXPECT_EQ(code_of([&] { e->submit({1}, {.sampling = {.temperature = -1}}); }), ErrorCode::InvalidArgument);
  EXPECT_EQ(e->step(), StepResult::Idle);
  EXPECT_EQ(code_of([&] { engine({.prefill_chunk = 0}); }), ErrorCode::InvalidArgument);
  EXPECT_EQ(code_of([&] { engine({.max_sequences = 0}); }), ErrorCode::InvalidArgument);
  const EngineOptions unknown_kernels = {.kernels = {.isa = "avx1024", .naive = ""}};
  EXPECT_EQ(code_of([&] { engine(unknown_kernels); }), ErrorCode::InvalidArgument);
  EXPECT_EQ(code_of([&] { unknown_kernels.validate(); }), ErrorCode::InvalidArgument);
}

TEST(LoadedModelTest, AFolderWithoutATokenizerRunsOnIds) {
  GOLDEN_OR_SKIP(folder, "tiny-kimi-linear");
  Engine e(LoadedModel::load(folder), {});
  EXPECT_EQ(e.loaded().tokenizer, nullptr);
  EXPECT_THROW(e.loaded().require_tokenizer(), Error);
  EXPECT_THROW(e.submit({1}, {.stop_strings = {"x"}}), Error);
  const auto r = e.submit({5, 17, 9}, {.max_new_tokens = 4});
  e.run(*r);
  EXPECT_EQ(r->output_ids().size(), 4u);
  EXPECT_EQ(r->text(), "");
}

TEST(LoadedModelTest, StopsOnTheIdsOfBothFilesAndOfTheChatFormat) {
  const LoadedModel m = LoadedModel::load(testing::in_repository("models/tiny"));
  EXPECT_EQ(m.stop_ids, (std::vector<int32_t>{3841, 3842, 3849}));
  EXPECT_THROW(LoadedModel::load("/no/such/folder"), Error);
}

}  // namespace
}  // namespace kilin

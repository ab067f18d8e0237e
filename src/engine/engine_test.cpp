#include "engine/engine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
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

const std::vector<int32_t> kNone;  // no stop ids

class TinyEngine : public ::testing::Test {
 protected:
  static std::filesystem::path folder() { return testing::in_repository("models/tiny"); }
  // Steps when a test says so.
  static std::unique_ptr<Engine> engine(EngineOptions options = {}) {
    options.drive = EngineOptions::Drive::ByCaller;
    return std::make_unique<Engine>(LoadedModel::load(folder()), options);
  }
  static void run_all(Engine& engine) {
    while (engine.step() == StepResult::Ran) {
    }
  }
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
  for (size_t i = 0; i < expected.at("greedy").size(); ++i) {  // all six in one batch
    const Json& c = expected.at("greedy")[i];
    requests.push_back(e->submit(e->loaded().require_tokenizer().encode_with_specials(c.at("prompt").get<std::string>()),
                                 {.max_new_tokens = c.at("ids").size(), .stop_ids = kNone}));
  }
  run_all(*e);
  for (size_t i = 0; i < requests.size(); ++i) {
    const Json& c = expected.at("greedy")[i];
    std::string streamed;
    while (const auto token = requests[i]->next_token()) streamed += token->text;
    const Answer& answer = requests[i]->answer();
    EXPECT_EQ(answer.ids, c.at("ids").get<std::vector<int32_t>>()) << c.at("prompt");
    EXPECT_EQ(answer.text, c.at("text").get<std::string>());
    EXPECT_EQ(streamed + answer.finish.text, answer.text);
    EXPECT_EQ(answer.finish.reason, FinishReason::Length);
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
    e->follow(*r);
    return r->answer().ids;
  };
  std::vector<std::vector<int32_t>> truth;
  for (size_t i = 0; i < 5; ++i) truth.push_back(alone(i, {.threads = 1}));
  for (const EngineOptions& options : {EngineOptions{.threads = 2, .prefill_chunk = 64, .max_sequences = 5},
                                       EngineOptions{.threads = 3, .prefill_chunk = 200, .max_sequences = 3},
                                       EngineOptions{.threads = 4, .prefill_chunk = 2048, .max_sequences = 2}}) {
    const auto e = engine(options);
    std::vector<std::shared_ptr<Request>> requests;
    for (size_t i = 0; i < 5; ++i) requests.push_back(e->submit(some_ids(150 + i, i), params));
    run_all(*e);
    for (size_t i = 0; i < 5; ++i)
      EXPECT_EQ(requests[i]->answer().ids, truth[i]) << "chunk " << options.prefill_chunk << " request " << i;
  }
}

TEST_F(TinyEngine, ChunksBelow64GiveTheSameTokensWhateverElseRuns) {
  const auto run = [&](size_t others) {
    const auto e = engine({.prefill_chunk = 7, .max_sequences = 4});
    std::vector<std::shared_ptr<Request>> beside;
    for (size_t i = 0; i < others; ++i) beside.push_back(e->submit(some_ids(9 + i, i), {.max_new_tokens = 5}));
    const auto r = e->submit(some_ids(40, 9), {.sampling = {.temperature = 1, .seed = 1}, .max_new_tokens = 20});
    e->follow(*r);
    return r->answer().ids;
  };
  EXPECT_EQ(run(0), run(3));
}

TEST_F(TinyEngine, ContinuingASequenceIsOneConversation) {
  const auto e = engine();
  const std::vector<int32_t> first = some_ids(64, 1), second = some_ids(20, 2);
  const auto a = e->submit(first, {.max_new_tokens = 1, .keep_sequence = true});
  e->follow(*a);
  Sequence sequence = a->take_sequence();
  EXPECT_EQ(sequence.ids, first);  // the drawn token was not fed
  EXPECT_EQ(code_of([&] { a->take_sequence(); }), ErrorCode::OutOfOrder);
  const auto b = e->submit(second, {.max_new_tokens = 10}, {.sequence = std::move(sequence)});
  e->follow(*b);
  std::vector<int32_t> both = first;
  both.insert(both.end(), second.begin(), second.end());
  const auto whole = engine();
  const auto c = whole->submit(both, {.max_new_tokens = 10});
  whole->follow(*c);
  EXPECT_EQ(b->answer().ids, c->answer().ids);
  EXPECT_EQ(b->prompt_tokens(), second.size());
}

TEST_F(TinyEngine, AnAnswerEndsByAStopIdOrStringAndSaysWhich) {
  const auto e = engine();
  const auto prompt = e->loaded().require_tokenizer().encode("Blessed is the man");
  const Answer by_id = e->follow(*e->submit(prompt, {.max_new_tokens = 48, .stop_ids = std::vector<int32_t>{431}}));
  EXPECT_EQ(by_id.finish.reason, FinishReason::Stop);
  EXPECT_EQ(by_id.finish.cause, "token id 431");
  EXPECT_EQ(by_id.ids.back(), 431);
  EXPECT_EQ(by_id.text, " that is in the house of the");

  std::string streamed;
  const auto by_text = e->submit(prompt, {.max_new_tokens = 48, .stop_strings = {"LORD. And"}});
  e->follow(*by_text, {.on_token = [&](const TokenEvent& event) { streamed += event.text; }});
  EXPECT_EQ(by_text->answer().finish.reason, FinishReason::Stop);
  EXPECT_EQ(by_text->answer().text, " that is in the house of the ");
  EXPECT_EQ(streamed, by_text->answer().text);
}

TEST_F(TinyEngine, TheModelsOwnStopIdsEndAnAnswerUnlessOthersAreNamed) {
  LoadedModel model = LoadedModel::load(folder());
  model.stop_ids = {431};
  Engine e(std::move(model), {});
  const auto prompt = e.loaded().require_tokenizer().encode("Blessed is the man");
  EXPECT_EQ(e.follow(*e.submit(prompt, {.max_new_tokens = 20})).ids.back(), 431);
  EXPECT_EQ(e.follow(*e.submit(prompt, {.max_new_tokens = 20, .stop_ids = kNone})).ids.size(), 20u);
}

TEST_F(TinyEngine, ACancelledRequestEndsBeforeTheNextStepWhetherItRanOrWaited) {
  const auto e = engine();
  const auto prompt = e->loaded().require_tokenizer().encode("Blessed is the man");
  const auto running = e->submit(prompt, {.max_new_tokens = 48});
  EXPECT_EQ(e->step(), StepResult::Ran);
  running->cancel();
  const auto waiting = e->submit(prompt, {});
  waiting->cancel();
  EXPECT_EQ(e->step(), StepResult::Idle);
  EXPECT_EQ(running->answer().finish.reason, FinishReason::Cancelled);
  EXPECT_EQ(running->answer().ids.size(), 1u);
  EXPECT_EQ(waiting->answer().finish.reason, FinishReason::Cancelled);
  EXPECT_TRUE(waiting->answer().ids.empty());
  EXPECT_EQ(e->pools().states.free_slots(), 1u);
}

TEST_F(TinyEngine, EveryRequestEndsWithExactlyOneEventThatIsItsLast) {
  const auto e = engine();
  const auto r = e->submit(some_ids(20, 1), {.max_new_tokens = 3, .stop_ids = kNone});
  EXPECT_EQ(code_of([&] { r->next(); }), ErrorCode::OutOfOrder);  // nobody has stepped
  EXPECT_FALSE(r->next_within(std::chrono::milliseconds(1)));
  run_all(*e);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(std::holds_alternative<TokenEvent>(r->next()));
  const Event end = r->next();
  ASSERT_TRUE(std::holds_alternative<Finish>(end));
  EXPECT_EQ(std::get<Finish>(end).cause, "3 tokens were asked for");
  EXPECT_EQ(code_of([&] { r->next(); }), ErrorCode::OutOfOrder);
  EXPECT_EQ(r->wait().ids.size(), 3u);
}

TEST_F(TinyEngine, AnAnswerEndsWhereTheContextDoes) {
  const auto e = engine({.pool_tokens = 70});
  const auto r = e->submit(some_ids(64, 1), {.max_new_tokens = 1000, .stop_ids = kNone});
  e->follow(*r);
  EXPECT_EQ(r->answer().finish.reason, FinishReason::Length);
  EXPECT_TRUE(r->answer().finish.context_is_full);
  EXPECT_EQ(r->answer().finish.cause, "the context of 70 tokens is full");
  EXPECT_EQ(r->answer().ids.size(), 7u);  // six were fed after the 64, the seventh was not
  EXPECT_EQ(e->max_sequence_tokens(), 70u);
}

TEST_F(TinyEngine, MoreRequestsThanPlacesWaitTheirTurn) {
  const auto e = engine({.max_sequences = 2, .pool_tokens = 256});
  std::vector<std::shared_ptr<Request>> requests;
  for (size_t i = 0; i < 7; ++i) requests.push_back(e->submit(some_ids(100, i), {.max_new_tokens = 20, .stop_ids = kNone}));
  run_all(*e);
  for (const auto& r : requests) EXPECT_EQ(r->answer().ids.size(), 20u);
  EXPECT_EQ(e->pools().states.free_slots(), 2u);
}

TEST_F(TinyEngine, AFollowerThatThrowsEndsItsRequestAndSpoilsNoOther) {
  const auto e = engine({.max_sequences = 2});
  const auto other = e->submit(some_ids(20, 1), {.max_new_tokens = 8});
  const auto r = e->submit(some_ids(20, 0), {.max_new_tokens = 8});
  EXPECT_THROW(e->follow(*r, {.on_token = [](const TokenEvent&) { throw std::runtime_error("full"); }}), std::runtime_error);
  EXPECT_EQ(r->answer().finish.reason, FinishReason::Cancelled);
  EXPECT_THROW(e->follow(*e->submit({1}, {}), {.between = [] { throw std::runtime_error("stop"); }}), std::runtime_error);
  run_all(*e);
  const auto alone = engine();
  EXPECT_EQ(other->answer().ids, alone->follow(*alone->submit(some_ids(20, 1), {.max_new_tokens = 8})).ids);
}

class ThrowingTaps final : public Taps {
 public:
  void at(const Site& site, TensorView /*values*/) override {
    if (site.value == Value::LayerOutput && site.layer == 2) throw std::runtime_error("a fault");
  }
};

TEST_F(TinyEngine, ATapThatThrowsEndsItsBatchNamingTheValueAndTheEngineStaysUsable) {
  const auto e = engine({.max_sequences = 2});
  const auto r = e->submit(some_ids(20, 1), {.max_new_tokens = 8, .keep_sequence = true});
  EXPECT_EQ(e->step(), StepResult::Ran);
  ThrowingTaps taps;
  e->set_taps(&taps);
  EXPECT_EQ(e->step(), StepResult::Ran);
  EXPECT_EQ(r->answer().finish.reason, FinishReason::Error);
  EXPECT_EQ(r->answer().finish.cause, "a tap at layers.2.layer_output: a fault");
  EXPECT_THROW(r->wait(), std::runtime_error);
  EXPECT_EQ(e->pools().states.free_slots(), 2u);
  e->set_taps(nullptr);
  EXPECT_EQ(e->step(), StepResult::Idle);
  // What is left of the sequence is an empty one of this engine.
  const auto again = e->submit(some_ids(20, 1), {.max_new_tokens = 8}, {.sequence = r->take_sequence()});
  e->follow(*again);
  EXPECT_EQ(again->answer().ids.front(), r->answer().ids.front());
}

// Spoils the logits of one row of a batch.
class NanTaps final : public Taps {
 public:
  void at(const Site& site, TensorView values) override {
    if (site.value == Value::Norm) values.as<float>()[0] = std::numeric_limits<float>::quiet_NaN();
  }
};

TEST_F(TinyEngine, LogitsWithoutANumberEndTheirRequestAlone) {
  const auto e = engine({.max_sequences = 2});
  const auto bad = e->submit(some_ids(20, 1), {.max_new_tokens = 8}), good = e->submit(some_ids(20, 2), {.max_new_tokens = 8});
  NanTaps taps;
  e->set_taps(&taps);
  EXPECT_EQ(e->step(), StepResult::Ran);
  e->set_taps(nullptr);
  EXPECT_EQ(bad->answer().finish.reason, FinishReason::Error);
  EXPECT_EQ(code_of([&] { bad->wait(); }), ErrorCode::Corrupt);
  EXPECT_NE(bad->answer().finish.cause.find("models/tiny: the model's logits hold no number"), std::string::npos);
  run_all(*e);
  const auto alone = engine();
  EXPECT_EQ(good->wait().ids, alone->follow(*alone->submit(some_ids(20, 2), {.max_new_tokens = 8})).ids);
}

TEST_F(TinyEngine, ARequestThatCannotStartEndsWithTheReasonAndKeepsItsSequence) {
  const auto e = engine();
  const auto kept = e->submit(some_ids(20, 1), {.max_new_tokens = 1, .keep_sequence = true});
  e->follow(*kept);
  const auto blocked = e->submit(some_ids(20, 2), {.max_new_tokens = 1});
  EXPECT_EQ(e->step(), StepResult::Idle);
  EXPECT_EQ(code_of([&] { blocked->wait(); }), ErrorCode::ResourceExhausted);
  EXPECT_NE(blocked->answer().finish.cause.find("hold 1 of 1 slots"), std::string::npos) << blocked->answer().finish.cause;

  // Nor one whose sequence would have to grow beyond the pool, which is still there for a shorter turn.
  const auto small = engine({.max_sequences = 2, .pool_tokens = 128});
  std::vector<std::shared_ptr<Request>> holders;
  for (size_t i = 0; i < 2; ++i)
    holders.push_back(small->submit(some_ids(60, i), {.max_new_tokens = 1, .keep_sequence = true}));
  run_all(*small);
  Sequence other = holders[1]->take_sequence();
  const auto long_turn =
      small->submit(some_ids(66, 7), {.max_new_tokens = 1, .keep_sequence = true}, {.sequence = holders[0]->take_sequence()});
  const auto beside = small->submit(some_ids(3, 8), {.max_new_tokens = 1}, {.sequence = std::move(other)});
  run_all(*small);
  EXPECT_EQ(beside->wait().ids.size(), 1u);
  EXPECT_EQ(long_turn->wait().ids.size(), 1u);  // it waited for the other's pages
}

TEST_F(TinyEngine, WhoHoldsItsMemoryIsNotBlockedBehindWhoWaitsForSome) {
  const auto e = engine();
  const auto kept = e->submit(some_ids(20, 1), {.max_new_tokens = 1, .keep_sequence = true});
  e->follow(*kept);
  Sequence sequence = kept->take_sequence();
  const auto front = e->submit(some_ids(20, 2), {.max_new_tokens = 3, .stop_ids = kNone});  // waits for the only slot
  const auto next_turn = e->submit(some_ids(5, 3), {.max_new_tokens = 2, .stop_ids = kNone}, {.sequence = std::move(sequence)});
  run_all(*e);
  EXPECT_EQ(next_turn->wait().ids.size(), 2u);
  EXPECT_EQ(front->wait().ids.size(), 3u);
}

TEST_F(TinyEngine, ARequestCancelledWhileItWaitedLeavesASequenceThatGoesOn) {
  const auto e = engine();
  const auto running = e->submit(some_ids(20, 1), {.max_new_tokens = 4, .stop_ids = kNone});
  const auto waiting = e->submit(some_ids(20, 2), {.max_new_tokens = 4, .stop_ids = kNone, .keep_sequence = true});
  EXPECT_EQ(e->step(), StepResult::Ran);
  waiting->cancel();
  run_all(*e);
  EXPECT_EQ(running->wait().ids.size(), 4u);
  Sequence sequence = waiting->take_sequence();
  EXPECT_EQ(sequence.tokens(), 0u);
  const auto again = e->submit(some_ids(20, 2), {.max_new_tokens = 4, .stop_ids = kNone}, {.sequence = std::move(sequence)});
  EXPECT_EQ(e->follow(*again).ids.size(), 4u);
}

TEST_F(TinyEngine, ASequenceMayOutliveItsEngineInEveryOrderAndGoesOnInNoOther) {
  const auto left_by = [&](EngineOptions options) {
    const auto e = engine(options);
    const auto r = e->submit(some_ids(20, 1), {.max_new_tokens = 1, .keep_sequence = true});
    e->follow(*r);
    return r->take_sequence();
  };
  Sequence a = left_by({}), b = left_by({}), c = left_by({});
  a = Sequence{};    // its engine has gone
  b = std::move(c);  // and so has the other's
  std::swap(a, b);
  const auto other = engine();
  EXPECT_EQ(code_of([&] { other->submit({1}, {}, {.sequence = std::move(a)}); }), ErrorCode::InvalidArgument);
}

TEST_F(TinyEngine, RequestsMayOutliveTheirEngineAndSayThatItHasGone) {
  std::shared_ptr<Request> unfinished, waiting;
  {
    const auto e = engine();
    unfinished = e->submit(some_ids(20, 1), {.max_new_tokens = 8, .keep_sequence = true});
    e->step();
    waiting = e->submit(some_ids(20, 1), {.max_new_tokens = 8});
  }
  for (const auto& request : {unfinished, waiting}) {
    EXPECT_EQ(request->wait().finish.reason, FinishReason::Cancelled);
    EXPECT_EQ(request->answer().finish.cause, "the engine has gone");
    request->cancel();
  }
  EXPECT_EQ(unfinished->take_sequence().tokens(), 20u);
}

TEST_F(TinyEngine, LogitsAreARequestAmongOthers) {
  const auto e = engine({.max_sequences = 2});
  const auto beside = e->submit(some_ids(30, 5), {.max_new_tokens = 6});
  const auto logits_of = [](Engine& of, const std::vector<int32_t>& ids) {
    std::vector<float> all;
    of.logits(ids, [&](size_t, MatView<const float> rows) {
      for (size_t r = 0; r < rows.rows(); ++r) all.insert(all.end(), rows[r].begin(), rows[r].end());
    });
    return all;
  };
  const std::vector<float> together = logits_of(*e, some_ids(150, 1));
  EXPECT_BYTES_EQ(together, logits_of(*engine(), some_ids(150, 1)));
  run_all(*e);
  const auto alone = engine();
  EXPECT_EQ(beside->wait().ids, alone->follow(*alone->submit(some_ids(30, 5), {.max_new_tokens = 6})).ids);
  EXPECT_THROW(e->logits(some_ids(5, 1), [](size_t, MatView<const float>) { throw std::runtime_error("disk is full"); }),
               std::runtime_error);
  EXPECT_EQ(e->pools().states.free_slots(), 2u);
}

TEST_F(TinyEngine, AHugeContextCostsNothingUntilItIsUsed) {
  const auto e = engine({.pool_tokens = size_t{1} << 40});
  EXPECT_EQ(e->max_sequence_tokens(), e->config().model_max_length);
  EXPECT_LE(e->plan().latent_pages, LatentKvPool::pages_for(e->config().model_max_length));
}

TEST_F(TinyEngine, BadRequestsAreRefusedAndLeaveNothingBehind) {
  const auto e = engine({.pool_tokens = 100});
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
  EXPECT_EQ(r->wait().ids.size(), 4u);
  EXPECT_EQ(r->wait().text, "");
}

TEST(LoadedModelTest, StopsOnTheIdsOfBothFilesAndOfTheChatFormat) {
  const LoadedModel m = LoadedModel::load(testing::in_repository("models/tiny"));
  EXPECT_EQ(m.stop_ids, (std::vector<int32_t>{3841, 3842, 3849}));
  EXPECT_THROW(LoadedModel::load("/no/such/folder"), Error);
}

}  // namespace
}  // namespace kilin

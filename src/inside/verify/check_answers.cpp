#include "inside/verify/check_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "inside/verify/check_tokenizer.h"
#include "weights/weight_map.h"

namespace kilin {

namespace {

constexpr uint64_t kPublishedParameters = 49'122'681'728;

// Whether the sizes are those of Kimi-Linear-48B-A3B; its Base model has the same ones.
bool has_published_sizes(const LoadedModel& model) {
  uint64_t parameters = 0;
  for (const ExpectedTensor& tensor : expected_tensors(model.config())) parameters += tensor.shape.elements();
  return parameters == kPublishedParameters && model.tokenizer && has_published_vocabulary(*model.tokenizer);
}

struct Prompt {
  std::vector<int32_t> ids;
  std::string words;  // the question in words, for the reader
};

// The chat that everybody knows, or some ids where the model can't be asked that, or has no room for it.
Prompt prompt_of(const Engine& engine) {
  const LoadedModel& model = engine.loaded();
  if (model.tokenizer && model.tokenizer->special("<|im_user|>") && model.tokenizer->special("<|im_middle|>") &&
      model.tokenizer->special("<|im_assistant|>")) {
    Prompt chat = {chat_prompt(*model.tokenizer, kAnchorQuestion), fmt::format("\"{}\"", kAnchorQuestion)};
    if (chat.ids.size() <= engine.max_sequence_tokens()) return chat;
  }
  Prompt prompt{{}, "some ids"};
  const size_t vocab_size = model.config().vocab_size;
  for (size_t i = 0; i < std::min({size_t{8}, vocab_size, engine.max_sequence_tokens()}); ++i)
    prompt.ids.push_back(static_cast<int32_t>((2 * i + 1) * vocab_size / 16 % vocab_size));
  return prompt;
}

// Counts the rows with a logit that is not finite, and the rows whose logits are all alike.
struct LogitRows {
  size_t rows = 0, not_finite = 0, constant = 0;
  size_t largest_of_last = 0;
  float min = 0, max = 0;
};

LogitRows look_at_logits(Engine& engine, std::span<const int32_t> ids) {
  LogitRows seen;
  engine.logits(ids, [&](size_t, MatView<const float> logits) {
    for (size_t r = 0; r < logits.rows(); ++r) {
      const auto row = logits[r];
      if (!std::ranges::all_of(row, [](float x) { return std::isfinite(x); })) ++seen.not_finite;
      const auto [min, max] = std::ranges::minmax_element(row);
      if (*min == *max && row.size() > 1) ++seen.constant;
      seen.min = seen.rows == 0 ? *min : std::min(seen.min, *min);
      seen.max = seen.rows == 0 ? *max : std::max(seen.max, *max);
      seen.largest_of_last = static_cast<size_t>(max - row.begin());
      ++seen.rows;
    }
  });
  return seen;
}

Check check_logits(Engine& engine, const Prompt& prompt, LogitRows& seen) {
  seen = look_at_logits(engine, prompt.ids);
  if (seen.not_finite > 0)
    return failed(fmt::format("{} of {} positions have logits that are not finite", seen.not_finite, seen.rows));
  if (seen.constant > 0) return failed(fmt::format("at {} of {} positions all logits are equal", seen.constant, seen.rows));
  return ok(fmt::format("{} positions, all finite, from {:.3g} to {:.3g}", seen.rows, seen.min, seen.max));
}

// One line, whole.
std::string in_one_line(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, ' ');
  return text;
}

Check check_greedy(Engine& engine, const Prompt& prompt, const LogitRows& seen, size_t tokens) {
  GenerationParams params;  // greedy
  params.max_new_tokens = tokens;
  const auto request = engine.submit(prompt.ids, params);
  const auto& [ids, text, finish, timings] = engine.follow(*request);
  const std::string shown =
      engine.loaded().tokenizer ? fmt::format("\"{}\"", in_one_line(text)) : fmt::format("ids {}", fmt::join(ids, " "));
  const std::string summary = fmt::format("{} -> {}", prompt.words, shown);
  if (static_cast<size_t>(ids.front()) != seen.largest_of_last)
    return failed(summary, {fmt::format("the first token is {}, and the largest logit is that of {}", ids.front(),
                                        seen.largest_of_last)});
  if (!has_published_sizes(engine.loaded())) return ok(summary);
  // A model of the published sizes can talk. Monotonous output is surely garbage; whether other output makes sense, only a
  // reader can tell.
  if (ids.size() >= 8 && std::set(ids.begin(), ids.end()).size() <= 2)
    return failed(summary, {"the answer repeats one or two tokens: weights are damaged, or this is no trained model"});
  return note(summary, {"judge for yourself: does this answer the question?"});
}

}  // namespace

void check_answer(CheckReporter& reporter, Engine& engine, size_t tokens) {
  const Prompt prompt = prompt_of(engine);
  LogitRows seen;
  if (reporter.run("logits", [&] { return check_logits(engine, prompt, seen); }))
    reporter.run("answer", [&] { return check_greedy(engine, prompt, seen, tokens); });
  else
    reporter.skip("answer", "the logits are wrong");
}

}  // namespace kilin

// Compares a model with the expected.json beside it; models/tiny/README.md describes the file.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "checkpoint/npy.h"
#include "config/config_reader.h"
#include "core/file.h"
#include "core/json.h"
#include "inside/perplexity/text_score.h"
#include "inside/verify/check_answers.h"
#include "text/utf8.h"

namespace kilin {

namespace {

namespace fs = std::filesystem;

constexpr double kLogitTolerance = 1e-5;       // relative to the largest logit
constexpr double kPerplexityTolerance = 1e-4;  // relative

// Whether a JSON value is of a C++ type. nlohmann's own conversions round, wrap and take booleans for numbers.
bool is_a(const Json& value, const std::string*) { return value.is_string(); }
bool is_a(const Json& value, const double*) { return value.is_number(); }
bool is_a(const Json& value, const size_t*) { return value.is_number_unsigned(); }
bool is_a(const Json& value, const std::vector<int32_t>*) {
  return value.is_array() && std::ranges::all_of(value, [](const Json& id) {
           return id.is_number_unsigned() && id.get<uint64_t>() <= std::numeric_limits<int32_t>::max();
         });
}

const char* name_of(const std::string*) { return "a text"; }
const char* name_of(const double*) { return "a number"; }
const char* name_of(const size_t*) { return "a whole number from 0 on"; }
const char* name_of(const std::vector<int32_t>*) { return "a list of token ids"; }

// The value of a key that a check needs.
template <typename T>
T require(const Json& json, const char* key, const std::string& source) {
  constexpr const T* type = nullptr;
  if (!json.is_object() || !json.contains(key))
    raise(ErrorCode::Corrupt, "{}: key '{}' is missing; expected {}", source, key, name_of(type));
  if (!is_a(json[key], type))
    raise(ErrorCode::Corrupt, "{}: key '{}' is {}; expected {}", source, key, shown(json[key]), name_of(type));
  return json[key].get<T>();
}

Check check_continuations(Engine& engine, const Json& cases, const std::string& source) {
  if (!cases.is_array())
    raise(ErrorCode::Corrupt, "{}: key 'greedy' is {}; expected a list of prompts with what follows them", source,
          shown(cases));
  std::vector<std::string> faults;
  size_t tokens = 0;
  for (const Json& c : cases) {
    const auto prompt = require<std::string>(c, "prompt", source);
    const auto prompt_ids = require<std::vector<int32_t>>(c, "prompt_ids", source);
    auto expected = require<std::vector<int32_t>>(c, "ids", source);
    if (engine.loaded().tokenizer && engine.loaded().tokenizer->encode_with_specials(prompt) != prompt_ids)
      faults.push_back(fmt::format("prompt '{}' has other ids than expected", printable(prompt)));
    if (prompt_ids.size() > engine.max_sequence_tokens()) continue;
    GenerationParams params;
    params.max_new_tokens = expected.size();
    params.stop_ids.emplace();
    const size_t room = engine.max_sequence_tokens() - prompt_ids.size() + 1;
    if (expected.size() > room) expected.resize(room);
    const auto request = engine.submit(prompt_ids, params);
    const std::vector<int32_t>& ids = engine.follow(*request).ids;
    const auto differs = std::ranges::mismatch(ids, expected);
    if (differs.in1 != ids.end() || differs.in2 != expected.end())
      faults.push_back(fmt::format("prompt '{}' goes on as expected for {} of {} tokens", printable(prompt),
                                   differs.in2 - expected.begin(), expected.size()));
    tokens += expected.size();
  }
  if (!faults.empty()) return failed(fmt::format("{} of {} continuations are wrong", faults.size(), cases.size()), faults);
  return ok(
      fmt::format("{} continuations, {} tokens, all as in {}", cases.size(), tokens, fs::path(source).filename().string()));
}

Check check_logits(Engine& engine, const std::vector<int32_t>& ids, const fs::path& file) {
  const Tensor expected = read_npy(file);
  const size_t vocab_size = engine.config().vocab_size;
  if (expected.dtype() != DType::f32 || expected.shape().rank() != 2 || expected.shape()[1] != vocab_size ||
      expected.shape()[0] < 1 || expected.shape()[0] > ids.size())
    raise(ErrorCode::Corrupt, "{}: is {} {}; expected f32 [n, {}] with n up to {}, the tokens of eval.txt", file.string(),
          to_string(expected.dtype()), to_string(expected.shape()), vocab_size, ids.size());
  const float* reference = expected.as<float>();
  const size_t rows = std::min(expected.shape()[0], engine.max_sequence_tokens());
  double error = 0, largest = 0;
  engine.logits(std::span(ids).first(rows), [&](size_t position, MatView<const float> logits) {
    for (size_t r = 0; r < logits.rows(); ++r)
      for (size_t i = 0; i < vocab_size; ++i) {
        const double want = static_cast<double>(reference[(position + r) * vocab_size + i]);
        const double difference = std::abs(static_cast<double>(logits[r][i]) - want);
        error = std::isnan(difference) ? INFINITY : std::max(error, difference);
        largest = std::max(largest, std::abs(want));
      }
  });
  const std::string summary = fmt::format("error of {} rows {:.1e} relative to the largest; at most {:.0e} is right", rows,
                                          error / largest, kLogitTolerance);
  return error <= kLogitTolerance * largest ? ok(summary) : failed(summary);
}

Check check_perplexity(CheckReporter& reporter, Engine& engine, const std::vector<int32_t>& ids, const Json& json,
                       const std::string& source) {
  const auto expected = require<double>(json, "eval_perplexity", source);
  const auto window = require<size_t>(json, "eval_window", source);
  if (window < 1 || ids.size() < 2) raise(ErrorCode::Corrupt, "{}: eval_window is {}; expected 1 or more", source, window);
  if (window > engine.max_sequence_tokens())
    return skipped(fmt::format("{} has windows of {} tokens, and the model {}", source, window, engine.max_sequence_tokens()));
  TextScore score;
  for_each_prediction(engine, ids, window, [&](size_t prediction, std::span<const float> logits, int32_t next) {
    score.add(Prediction(logits).surprise(next));
    reporter.progress("expected perplexity", prediction + 1, ids.size() - 1);
  });
  const double perplexity = score.perplexity();
  const std::string summary = fmt::format("{:.4f} over {} predictions; expected {:.4f}", perplexity, ids.size() - 1, expected);
  return std::abs(perplexity - expected) <= kPerplexityTolerance * expected ? ok(summary) : failed(summary);
}

std::vector<int32_t> eval_ids(Engine& engine, const Json& json, const std::string& source) {
  const fs::path text = engine.loaded().path() / "eval.txt";
  std::vector<int32_t> ids = engine.loaded().require_tokenizer().encode(read_utf8(text));
  const auto predictions = require<size_t>(json, "eval_tokens", source);
  if (ids.size() != predictions + 1)
    raise(ErrorCode::Corrupt, "{}: has {} tokens; expected {}, one more than eval_tokens of {}", text.string(), ids.size(),
          predictions + 1, source);
  return ids;
}

}  // namespace

void check_expected(CheckReporter& reporter, Engine& engine) {
  const fs::path file = engine.loaded().path() / "expected.json";
  const fs::path logits = engine.loaded().path() / "expected_logits.npy";
  if (!fs::exists(file)) return;
  const std::string source = file.string();
  Json json;
  bool has_answers = false, has_perplexity = false;
  if (!reporter.run("expected", [&] {
        json = read_json(file);
        if (!json.is_object()) raise(ErrorCode::Corrupt, "{}: is not a JSON object", source);
        has_answers = json.contains("greedy") && json["greedy"] != Json::array();
        has_perplexity = json.contains("eval_perplexity");
        if (!has_answers && !has_perplexity) return skipped(fmt::format("{}: holds no expectation", source));
        return ok(fmt::format("{} says what is right", source));
      }))
    return;
  if (has_answers) reporter.run("expected answers", [&] { return check_continuations(engine, json["greedy"], source); });
  if (!has_perplexity) return;
  std::vector<int32_t> ids;
  const bool has_ids = reporter.run("expected tokens", [&] {
    ids = eval_ids(engine, json, source);
    return ok(fmt::format("eval.txt is {} tokens", ids.size()));
  });
  if (!has_ids) return;
  if (fs::exists(logits)) reporter.run("expected logits", [&] { return check_logits(engine, ids, logits); });
  reporter.run("expected perplexity", [&] { return check_perplexity(reporter, engine, ids, json, source); });
}

}  // namespace kilin

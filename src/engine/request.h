// One thing to generate: what was asked for, and how far it has come.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/sampler.h"
#include "engine/sequence.h"
#include "engine/text_stream.h"

namespace kilin {

enum class FinishReason : uint8_t {
  None,    // still running
  Stop,    // a stop id or a stop string
  Length,  // as many tokens as were asked for, or no room left in the context
  Cancelled,
  Error,  // the model's logits held no number: its weights are broken
};

std::string_view to_string(FinishReason reason);  ///< "none", "stop", "length", "cancelled", "error"

struct GenerationParams {
  SamplingParams sampling = {};
  size_t max_new_tokens = 128;
  std::vector<int32_t> stop_ids = {};          ///< end the answer; the id is part of it, its text is not
  std::vector<std::string> stop_strings = {};  ///< end the answer before them; need a tokenizer
  bool keep_sequence = false;                  ///< keep its memory after it ended, for take_sequence(); else it is free at once
};

/// What a listener hears of, once a token.
struct TokenEvent {
  int32_t id;
  std::string_view text;  ///< what can be shown now: whole UTF-8 characters; often empty. Valid during the call
};

using TokenListener = std::function<void(const TokenEvent&)>;

/// Seconds and tokens of the two phases. Wall clock while the request was in the batch.
struct RequestTimings {
  size_t prompt_tokens = 0;
  double prompt_s = 0;
  size_t decode_tokens = 0;  ///< tokens made one by one: the first comes with the prompt
  double decode_s = 0;
};

/// Made by Engine::submit and moved on by Engine::step; read it between steps.
class Request {
 public:
  const GenerationParams& params() const { return params_; }
  std::span<const int32_t> prompt_ids() const { return std::span(ids_).subspan(prompt_begin_, prompt_tokens_); }
  /// Sampled ids, the stop id among them.
  std::span<const int32_t> output_ids() const { return std::span(ids_).subspan(prompt_begin_ + prompt_tokens_); }
  const std::string& text() const { return text_; }
  FinishReason finish_reason() const { return finish_reason_; }
  bool finished() const { return finish_reason_ != FinishReason::None; }
  const RequestTimings& timings() const { return timings_; }
  size_t prompt_tokens_done() const { return prompt_done_; }

  /// Ends it before the next step.
  void cancel() { cancelled_ = true; }

  /// The sequence as it stands; a next request may go on with it. Its ids lack the last sampled one, which was not fed.
  /// @pre finished(), and params().keep_sequence
  Sequence take_sequence() { return std::move(sequence_); }

  /// Use Engine::submit.
  Request(GenerationParams params, TokenListener listener, Sequence sequence, std::span<const int32_t> ids,
          std::optional<TextStream> stream);

 private:
  friend class Engine;

  bool in_prompt() const { return prompt_done_ < prompt_tokens_; }
  /// Tokens that were not fed yet: the rest of the prompt, or the last sampled one.
  std::span<const int32_t> unfed() const { return std::span(ids_).subspan(sequence_.tokens()); }
  /// The most tokens that it can come to feed: the last sampled one is not.
  size_t most_fed_tokens() const { return prompt_begin_ + prompt_tokens_ + params_.max_new_tokens - 1; }
  void feed(size_t tokens, double seconds);
  /// Takes a sampled id. @returns what can be shown now
  std::string accept(int32_t id);
  void end(FinishReason reason);  // frees its memory unless that is to be kept

  GenerationParams params_;
  TokenListener listener_;
  Sequence sequence_;
  std::optional<TextStream> stream_;  // none without a tokenizer
  std::vector<int32_t> ids_;          // fed before, prompt, output
  size_t prompt_begin_;
  size_t prompt_tokens_;
  size_t prompt_done_ = 0;
  std::string text_;
  FinishReason finish_reason_ = FinishReason::None;
  RequestTimings timings_;
  bool cancelled_ = false;
};

}  // namespace kilin

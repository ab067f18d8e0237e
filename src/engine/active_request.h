// A request as the engine's loop sees it: what was asked for, and how far it has come.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/generation_params.h"
#include "engine/request.h"
#include "engine/scheduler.h"
#include "engine/step_batch.h"
#include "engine/text_stream.h"

namespace kilin {

/// Belongs to one thread at a time: to the one that submits it, then to the loop's.
class ActiveRequest {
 public:
  struct Input {
    RequestId id;
    std::vector<int32_t> prompt;  ///< follows what the sequence holds
    GenerationParams params;      ///< stop_ids are set
    bool context_limits = false;  ///< max_new_tokens was lowered to what the context holds
    Sequence sequence;
    std::optional<TextStream> stream;  ///< none without a tokenizer
    LogitsSink prompt_logits;          ///< may be empty
    std::shared_ptr<RequestChannel> channel;
  };
  explicit ActiveRequest(Input input);

  RequestId id() const { return in_.id; }
  RequestSizes sizes() const;
  bool is_cancelled() const { return in_.channel->is_cancelled(); }

  /// Takes the memory that all of it needs. @throws ResourceExhausted, bad_alloc
  void start() { take_memory(in_.sequence, sizes().most_tokens()); }

  /// Its part of a step.
  StepSpan span_of(const PlannedSpan& planned) const;

  /// A step has fed so many tokens.
  void fed(size_t tokens, double seconds);
  /// A step has drawn a token, or found no number among the logits: `no_number` says whose.
  void drew(std::optional<int32_t> id, const std::string& no_number);
  /// Its prompt is read. Ends it if nothing shall be drawn.
  void read_prompt();

  bool has_ended() const { return ended_; }
  void cancel(const char* cause) { end({.reason = FinishReason::Cancelled, .cause = cause}, WhatStays::Sequence); }

  /// Whether its states may have moved beyond its ids, so that nobody can go on with them.
  enum class WhatStays : uint8_t { Sequence, Nothing };
  void fail(std::exception_ptr error, std::string cause, WhatStays stays);

 private:
  /// Tokens that were not fed yet: the rest of the prompt, or the last drawn one.
  std::span<const int32_t> unfed() const { return std::span(ids_).subspan(in_.sequence.tokens()); }
  size_t outputs() const { return ids_.size() - prompt_end_; }
  std::optional<Finish> finish_after(int32_t id) const;
  void end(Finish finish, WhatStays stays);

  Input in_;
  std::vector<int32_t> ids_;  // fed before, prompt, output
  size_t start_;              // tokens that were fed before
  size_t prompt_end_;         // in ids_
  RequestTimings timings_;
  bool ended_ = false;
};

}  // namespace kilin

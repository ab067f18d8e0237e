// What becomes of a request: tokens, then exactly one end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace kilin {

struct TokenEvent {
  int32_t id = 0;
  std::string text = {};  ///< what can be shown now: whole UTF-8 characters; often empty
};

enum class FinishReason : uint8_t {
  Stop,       ///< a stop id or a stop string
  Length,     ///< as many tokens as were asked for, or the context is full
  Cancelled,  ///< by its owner, or because the engine went away
  Error,
};

std::string_view to_string(FinishReason reason);  ///< "stop", "length", "cancelled", "error"

/// The last event of every request.
struct Finish {
  FinishReason reason = FinishReason::Cancelled;
  std::string cause = {};         ///< in words: which id, string, limit, or what went wrong
  std::exception_ptr error = {};  ///< of FinishReason::Error: what was thrown
  std::string text = {};          ///< what had been held back, because a stop string or a character might have come of it
  bool context_is_full = false;   ///< of FinishReason::Length: that is why
};

using Event = std::variant<TokenEvent, Finish>;

/// Seconds and tokens of the two phases. Wall clock of the steps that the request was in.
struct RequestTimings {
  size_t prompt_tokens = 0;
  double prompt_s = 0;
  size_t decode_tokens = 0;  ///< tokens made one by one: the first comes with the prompt
  double decode_s = 0;
};

/// All that came of a request.
struct Answer {
  std::vector<int32_t> ids = {};  ///< drawn, the stop id among them
  std::string text = {};          ///< that of all events together
  Finish finish = {};
  RequestTimings timings = {};
};

/// What `error` says, for Finish::cause.
std::string message_of(const std::exception_ptr& error);

}  // namespace kilin

#include "engine/active_request.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace kilin {

ActiveRequest::ActiveRequest(Input input)
    : in_(std::move(input)), ids_(in_.sequence.ids), start_(in_.sequence.tokens()), prompt_end_(start_ + in_.prompt.size()) {
  // No step allocates for these.
  ids_.reserve(prompt_end_ + in_.params.max_new_tokens);
  in_.sequence.ids.reserve(prompt_end_ + in_.params.max_new_tokens);
  ids_.insert(ids_.end(), in_.prompt.begin(), in_.prompt.end());
}

RequestSizes ActiveRequest::sizes() const {
  return {.start = start_,
          .prompt_tokens = prompt_end_ - start_,
          .new_tokens = in_.params.max_new_tokens,
          .holds_slot = in_.sequence.state.valid(),
          .held_pages = in_.sequence.pages.pages().size()};
}

StepSpan ActiveRequest::span_of(const PlannedSpan& planned) const {
  const bool draws = planned.mode == ForwardMode::Decode || (planned.ends_prompt && in_.params.max_new_tokens > 0);
  return {.sequence = in_.sequence,
          .mode = planned.mode,
          .ids = unfed().first(planned.tokens),
          .draw = draws ? &in_.params.sampling : nullptr,
          .history = ids_,
          .logits = planned.mode == ForwardMode::Extend && in_.prompt_logits ? &in_.prompt_logits : nullptr};
}

void ActiveRequest::fed(size_t tokens, double seconds) {
  const bool in_prompt = in_.sequence.tokens() < prompt_end_;
  const auto fed = unfed().first(tokens);
  in_.sequence.ids.insert(in_.sequence.ids.end(), fed.begin(), fed.end());
  (in_prompt ? timings_.prompt_tokens : timings_.decode_tokens) += tokens;
  (in_prompt ? timings_.prompt_s : timings_.decode_s) += seconds;
  if (in_prompt) in_.channel->tell_prompt_tokens_read(timings_.prompt_tokens);
}

// Why `id`, which was drawn and pushed to the text, is the last one; nothing if it is not.
std::optional<Finish> ActiveRequest::finish_after(int32_t id) const {
  if (std::ranges::find(*in_.params.stop_ids, id) != in_.params.stop_ids->end())
    return Finish{.reason = FinishReason::Stop, .cause = fmt::format("token id {}", id)};
  if (in_.stream && in_.stream->stopped()) return Finish{.reason = FinishReason::Stop, .cause = "a stop string"};
  if (outputs() < in_.params.max_new_tokens) return std::nullopt;
  Finish finish = {.reason = FinishReason::Length, .context_is_full = in_.context_limits};
  finish.cause = in_.context_limits ? fmt::format("the context of {} tokens is full", ids_.size() - 1)
                                    : fmt::format("{} tokens were asked for", in_.params.max_new_tokens);
  return finish;
}

void ActiveRequest::drew(std::optional<int32_t> id, const std::string& no_number) {
  if (!id) {
    fail(std::make_exception_ptr(Error(ErrorCode::Corrupt, no_number)), no_number, WhatStays::Nothing);
    return;
  }
  ids_.push_back(*id);
  const auto& stops = *in_.params.stop_ids;
  const bool is_stop_id = std::ranges::find(stops, *id) != stops.end();
  TokenEvent token = {.id = *id, .text = in_.stream && !is_stop_id ? in_.stream->push(*id) : std::string()};
  std::optional<Finish> finish = finish_after(*id);
  if (finish && in_.stream) token.text += in_.stream->finish();
  in_.channel->send(std::move(token));
  if (finish) end(*std::move(finish), WhatStays::Sequence);
}

void ActiveRequest::read_prompt() {
  if (in_.params.max_new_tokens == 0)
    end({.reason = FinishReason::Length, .cause = "no tokens were asked for"}, WhatStays::Sequence);
}

void ActiveRequest::fail(std::exception_ptr error, std::string cause, WhatStays stays) {
  end({.reason = FinishReason::Error, .cause = std::move(cause), .error = std::move(error)}, stays);
}

void ActiveRequest::end(Finish finish, WhatStays stays) {
  if (std::exchange(ended_, true)) return;
  if (in_.stream) finish.text = in_.stream->finish();  // empty but where it ends in the middle of something
  std::optional<Sequence> kept;
  if (in_.params.keep_sequence)
    kept = stays == WhatStays::Sequence ? std::move(in_.sequence) : Sequence{.pools = in_.sequence.pools};
  in_.sequence = {};  // its memory is free before anybody hears of the end
  in_.channel->end(std::move(finish), timings_, std::move(kept));
}

}  // namespace kilin

#include "engine/request.h"

#include <algorithm>
#include <utility>

namespace kilin {

std::string_view to_string(FinishReason reason) {
  switch (reason) {
    case FinishReason::None:
      return "none";
    case FinishReason::Stop:
      return "stop";
    case FinishReason::Length:
      return "length";
    case FinishReason::Cancelled:
      return "cancelled";
    case FinishReason::Error:
      return "error";
  }
  return "?";
}

Request::Request(GenerationParams params, TokenListener listener, Sequence sequence, std::span<const int32_t> ids,
                 std::optional<TextStream> stream)
    : params_(std::move(params)),
      listener_(std::move(listener)),
      sequence_(std::move(sequence)),
      stream_(std::move(stream)),
      ids_(sequence_.ids),
      prompt_begin_(sequence_.tokens()),
      prompt_tokens_(ids.size()) {
  const size_t most = prompt_begin_ + prompt_tokens_ + params_.max_new_tokens;
  ids_.reserve(most);
  sequence_.ids.reserve(most);
  ids_.insert(ids_.end(), ids.begin(), ids.end());
}

void Request::feed(size_t tokens, double seconds) {
  const auto fed = unfed().first(tokens);
  sequence_.ids.insert(sequence_.ids.end(), fed.begin(), fed.end());
  if (in_prompt()) {
    prompt_done_ += tokens;
    timings_.prompt_tokens += tokens;
    timings_.prompt_s += seconds;
  } else {
    timings_.decode_tokens += tokens;
    timings_.decode_s += seconds;
  }
}

std::string Request::accept(int32_t id) {
  ids_.push_back(id);
  const bool stop_id = std::ranges::find(params_.stop_ids, id) != params_.stop_ids.end();
  std::string shown = stream_ && !stop_id ? stream_->push(id) : std::string();
  const bool stops = stop_id || (stream_ && stream_->stopped());
  const bool ends = stops || output_ids().size() == params_.max_new_tokens;
  if (ends && stream_) shown += stream_->finish();
  text_ += shown;
  if (ends) end(stops ? FinishReason::Stop : FinishReason::Length);
  return shown;
}

void Request::end(FinishReason reason) {
  finish_reason_ = reason;
  if (stream_) text_ += stream_->finish();  // of a cancelled one: what was held back
  // After an error the states have moved beyond the ids: nobody can go on with them.
  if (!params_.keep_sequence || reason == FinishReason::Error) sequence_ = {};
}

}  // namespace kilin

#include "cli/chat/conversation.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/file.h"

namespace kilin::cli {

Conversation::Conversation(Engine& engine, GenerationParams params)
    : engine_(engine), params_(std::move(params)), format_(engine.loaded().require_tokenizer()) {
  params_.keep_sequence = true;
}

size_t Conversation::tokens() const {
  size_t tokens = 0;
  for (const Turn& turn : turns_) tokens += turn.ids.size();
  return tokens;
}

std::vector<int32_t> Conversation::ids() const {
  std::vector<int32_t> ids;
  for (const Turn& turn : turns_) ids.insert(ids.end(), turn.ids.begin(), turn.ids.end());
  return ids;
}

Conversation::Answer Conversation::ask(const std::string& text, const TokenListener& listener,
                                       const std::function<void(Request&)>& between) {
  std::vector<Turn> fresh;
  if (turns_.empty() && system_) fresh.push_back(*system_);
  fresh.push_back(format_.user(text));
  std::vector<int32_t> feed = ids();
  for (const Turn& turn : fresh) feed.insert(feed.end(), turn.ids.begin(), turn.ids.end());
  const std::vector<int32_t>& prompt = format_.generation_prompt();
  feed.insert(feed.end(), prompt.begin(), prompt.end());
  if (feed.size() > engine_.context_tokens())
    raise(ErrorCode::InvalidArgument, "the conversation would have {} tokens, and the context holds {}", feed.size(),
          engine_.context_tokens());
  const size_t room = engine_.context_tokens() - feed.size() + 1;
  if (sequence_) feed.erase(feed.begin(), feed.begin() + static_cast<std::ptrdiff_t>(sequence_->tokens()));

  const auto request = engine_.submit(std::move(feed), params_, listener, std::exchange(sequence_, std::nullopt));
  try {
    engine_.run(*request, [&] { between(*request); });
  } catch (...) {
    request->cancel();  // its memory comes back with the next step; the turns are all that is needed to go on
    throw;
  }
  sequence_ = request->take_sequence();

  std::span<const int32_t> sampled = request->output_ids();
  const bool ended_itself = !sampled.empty() && std::ranges::find(params_.stop_ids, sampled.back()) != params_.stop_ids.end();
  if (ended_itself) sampled = sampled.first(sampled.size() - 1);
  turns_.insert(turns_.end(), std::make_move_iterator(fresh.begin()), std::make_move_iterator(fresh.end()));
  turns_.push_back(format_.assistant(sampled));
  const bool full = request->finish_reason() == FinishReason::Length && room < params_.max_new_tokens;
  return {request->finish_reason(), full};
}

void Conversation::reset() {
  turns_.clear();
  sequence_.reset();
}

void Conversation::set_system(const std::string& text) {
  system_ = text.empty() ? std::nullopt : std::optional(format_.system(text));
  reset();
}

void Conversation::save(const std::string& path) const {
  AtomicFile file(path);
  file.write(format_.write(turns_.empty() && system_ ? std::vector{*system_} : turns_));
  file.commit();
}

void Conversation::load(const std::string& path) {
  std::vector<Turn> turns = format_.parse(read_file(path), path);
  for (const Turn& turn : turns)
    for (int32_t id : turn.ids)
      if (static_cast<size_t>(id) >= engine_.config().vocab_size)
        raise(ErrorCode::Corrupt, "{}: token id {} is outside of the vocabulary: 0 to {}", path, id,
              engine_.config().vocab_size - 1);
  reset();
  system_ = turns.empty() || turns[0].role != Role::System ? std::nullopt : std::optional(turns[0]);
  if (turns.size() > 1) turns_ = std::move(turns);
}

}  // namespace kilin::cli

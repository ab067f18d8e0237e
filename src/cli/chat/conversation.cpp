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
  for (const ChatTurn& turn : turns_) tokens += turn.ids.size();
  return tokens;
}

std::vector<int32_t> Conversation::ids() const {
  std::vector<int32_t> ids;
  for (const ChatTurn& turn : turns_) ids.insert(ids.end(), turn.ids.begin(), turn.ids.end());
  return ids;
}

Conversation::Reply Conversation::ask(const std::string& text, const std::function<void(const TokenEvent&)>& on_token,
                                      const std::function<void(Request&)>& between) {
  std::vector<ChatTurn> fresh;
  if (turns_.empty() && system_) fresh.push_back(*system_);
  fresh.push_back(format_.user(text));
  std::vector<int32_t> feed = ids();
  for (const ChatTurn& turn : fresh) feed.insert(feed.end(), turn.ids.begin(), turn.ids.end());
  const std::vector<int32_t>& prompt = format_.generation_prompt();
  feed.insert(feed.end(), prompt.begin(), prompt.end());
  if (feed.size() > engine_.max_sequence_tokens())
    raise(ErrorCode::InvalidArgument, "the conversation would have {} tokens, and the context holds {}", feed.size(),
          engine_.max_sequence_tokens());
  if (sequence_) feed.erase(feed.begin(), feed.begin() + static_cast<std::ptrdiff_t>(sequence_->tokens()));

  // What it throws takes the sequence along; the turns are all that is needed to go on.
  const auto request = engine_.submit(std::move(feed), params_, {.sequence = std::exchange(sequence_, std::nullopt)});
  const Answer& answer = engine_.follow(*request, {.on_token = on_token, .between = [&] { between(*request); }});
  sequence_ = request->take_sequence();

  std::span<const int32_t> sampled = answer.ids;
  const std::vector<int32_t>& stop_ids = params_.stop_ids ? *params_.stop_ids : engine_.loaded().stop_ids;
  const bool ended_itself = !sampled.empty() && std::ranges::find(stop_ids, sampled.back()) != stop_ids.end();
  if (ended_itself) sampled = sampled.first(sampled.size() - 1);
  turns_.insert(turns_.end(), std::make_move_iterator(fresh.begin()), std::make_move_iterator(fresh.end()));
  turns_.push_back(format_.assistant(sampled));
  return {answer.finish.reason, answer.finish.context_is_full};
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
  std::vector<ChatTurn> turns = format_.parse(read_file(path), path);
  for (const ChatTurn& turn : turns)
    for (int32_t id : turn.ids)
      if (static_cast<size_t>(id) >= engine_.config().vocab_size)
        raise(ErrorCode::Corrupt, "{}: token id {} is outside of the vocabulary: 0 to {}", path, id,
              engine_.config().vocab_size - 1);
  reset();
  system_ = turns.empty() || turns[0].role != Role::System ? std::nullopt : std::optional(turns[0]);
  if (turns.size() > 1) turns_ = std::move(turns);
}

}  // namespace kilin::cli

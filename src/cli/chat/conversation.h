// A chat with one model: its turns, and the sequence that has most of them in memory already.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "text/chat_turns.h"

namespace kilin::cli {

/// Token ids of earlier turns are kept as they were sampled; a turn feeds only what is new. `engine` outlives it.
class Conversation {
 public:
  /// @param params of every answer. @throws NotFound without a tokenizer; Unsupported if that lacks the
  /// chat format's tokens
  Conversation(Engine& engine, GenerationParams params);

  struct Reply {
    FinishReason finish_reason;
    bool context_is_full;  ///< that is why it ended
  };

  /// The next user's turn and its answer. @param on_token,between as Follower's; `between` may cancel the request: what was
  /// written until then is the answer
  /// @throws InvalidArgument for text that is not UTF-8 or does not fit into the context; the conversation is as before then
  Reply ask(const std::string& text, const std::function<void(const TokenEvent&)>& on_token,
            const std::function<void(Request&)>& between);

  /// Forgets all turns but keeps the system message.
  void reset();

  /// Forgets all turns; an empty text means no system message. @throws InvalidArgument if it is not UTF-8
  void set_system(const std::string& text);

  const std::vector<ChatTurn>& turns() const { return turns_; }
  size_t tokens() const;

  /// The file appears whole or not at all. @throws Io
  void save(const std::string& file) const;
  /// Replaces all turns and the system message. @throws NotFound, Io, and as ChatTurnFormat::parse; nothing has changed then
  void load(const std::string& file);

 private:
  std::vector<int32_t> ids() const;

  Engine& engine_;
  GenerationParams params_;
  ChatTurnFormat format_;
  std::optional<ChatTurn> system_;
  std::vector<ChatTurn> turns_;       // the system message first, once there is a turn after it
  std::optional<Sequence> sequence_;  // its ids are the first of ids()
};

}  // namespace kilin::cli

// What a model is given to read: text, token ids, or a user's turn of a chat.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/options/inputs.h"
#include "loading/loaded_model.h"

namespace CLI {
class App;
}

namespace kilin::cli {

struct PromptFlags {
  std::optional<std::string> text;
  std::optional<std::string> ids;
  std::optional<std::string> system;
  bool chat = false;
  bool special = false;

  void add_text_and_ids_to(CLI::App& app);
  void add_chat_to(CLI::App& app);

  bool given() const { return text || ids; }

  /// Ids need no tokenizer.
  Need need_of_tokenizer() const { return ids ? Need::Optional : Need::Required; }
  /// What resolve() reads. @pre it was not called yet
  void add_to(Inputs& inputs) const;

  /// Reads standard input if text or ids are "-", the file if ids are "@FILE", and checks what can be checked without a model.
  /// @throws InvalidArgument, Io
  void resolve();

  /// The prompt as token ids. @pre resolve() was called. @throws InvalidArgument; NotFound for text without a tokenizer
  std::vector<int32_t> encode(const LoadedModel& model) const;

 private:
  std::vector<int32_t> parsed_ids_;
};

}  // namespace kilin::cli

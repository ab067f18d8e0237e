#include "cli/options/prompt_options.h"

#include <unistd.h>

#include <CLI/App.hpp>

#include "cli/options/options.h"
#include "cli/terminal/input.h"
#include "core/error.h"
#include "text/chat_format.h"
#include "text/utf8.h"

namespace kilin::cli {

void PromptFlags::add_text_and_ids_to(CLI::App& app) {
  app.add_option("-p,--prompt", text, "The text to go on with; -: standard input, as it is")->type_name("TEXT");
  add_ids(app, ids, "The prompt as token ids: 5,17,9");
  app.add_flag("--special", special, "Names of special tokens in the text become these tokens");
}

void PromptFlags::add_chat_to(CLI::App& app) {
  app.add_flag("--chat", chat, "The text is a user's message, to be answered");
  add_text(app, "--system", "TEXT", "a message", system, "With --chat: the system message before it");
}

void PromptFlags::add_to(Inputs& inputs) const {
  if (text == "-" || ids == "-") inputs.add_standard_input();
  if (ids && ids->starts_with('@')) inputs.add(ids->substr(1));
}

void PromptFlags::resolve() {
  if (!given()) raise(ErrorCode::InvalidArgument, "there is no prompt; expected -p TEXT, -p - or --ids IDS");
  if (text && ids) raise(ErrorCode::InvalidArgument, "--prompt and --ids are two prompts; expected one");
  if (system && !chat) raise(ErrorCode::InvalidArgument, "--system belongs to a chat; expected --chat beside it");
  if (ids) {
    if (chat || special)
      raise(ErrorCode::InvalidArgument, "--ids is taken as it is; {} needs -p TEXT", chat ? "--chat" : "--special");
    parsed_ids_ = read_ids("--ids", *ids);
    return;
  }
  if (chat && special)
    raise(ErrorCode::InvalidArgument, "--chat writes special tokens itself, and those in a message stay text: no --special");
  const bool is_typed = *text != "-";
  if (!is_typed) text = read_all(STDIN_FILENO);
  require_utf8(*text, is_typed ? "--prompt" : "standard input");
  if (system) require_utf8(*system, "--system");
  if (text->empty()) raise(ErrorCode::InvalidArgument, "the prompt is empty; expected at least one character");
}

std::vector<int32_t> PromptFlags::encode(const LoadedModel& model) const {
  if (ids) return parsed_ids_;
  const Tokenizer& tokenizer = model.require_tokenizer();
  if (special) return tokenizer.encode_with_specials(*text);
  if (!chat) return tokenizer.encode(*text);
  std::vector<Message> messages;
  if (system) messages.push_back({.role = Role::System, .content = *system});
  messages.push_back({.role = Role::User, .content = *text});
  return ChatFormat(tokenizer).encode(messages);
}

}  // namespace kilin::cli

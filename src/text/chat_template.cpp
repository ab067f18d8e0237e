#include "text/chat_template.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/error.h"
#include "core/file.h"
#include "core/json.h"

namespace kilin {

namespace fs = std::filesystem;

namespace {

constexpr std::array<std::string_view, 5> kMarkers = {"<|im_system|>", "<|im_user|>", "<|im_assistant|>", "<|im_middle|>",
                                                      "<|im_end|>"};

// Other markers that a template in Kimi's format may hold: those of tool calls, and of pictures in related models.
constexpr std::array<std::string_view, 9> kMayHold = {"<|tool_calls_section_begin|>",
                                                      "<|tool_calls_section_end|>",
                                                      "<|tool_call_begin|>",
                                                      "<|tool_call_argument_begin|>",
                                                      "<|tool_call_end|>",
                                                      "<|media_start|>",
                                                      "<|media_content|>",
                                                      "<|media_pad|>",
                                                      "<|media_end|>"};

// Markers of other formats that are not written <|...|>.
constexpr std::array<std::string_view, 7> kForeign = {"[INST]",      "<<SYS>>",         "<start_of_turn>", "<think>",
                                                      "<tool_call>", "### Instruction", "<\xef\xbd\x9c"};

template <size_t N>
bool holds(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// tokenizer_config.json holds one template, or a list of named ones, of which "default" is the one for chats.
std::optional<ChatTemplate> template_in(const fs::path& file) {
  const Json config = read_json(file);
  const auto found = config.is_object() ? config.find("chat_template") : config.end();
  if (!config.is_object() || found == config.end() || found->is_null()) return std::nullopt;
  const std::string where = file.string() + ": chat_template";
  if (found->is_string()) return ChatTemplate{where, found->get<std::string>()};
  if (!found->is_array())
    raise(ErrorCode::Corrupt, "{} is a JSON {}; expected a string or an array", where, found->type_name());
  for (const Json& entry : *found) {
    if (!entry.is_object() || entry.value("name", Json()) != "default") continue;
    const Json text = entry.value("template", Json());
    if (text.is_string()) return ChatTemplate{where, text.get<std::string>()};
  }
  raise(ErrorCode::Corrupt, "{} is an array without a 'default' template", where);
}

// The first <|...|> in the template that Kimi's format does not have.
std::optional<std::string_view> foreign_marker(std::string_view text) {
  for (std::string_view marker : kForeign)
    if (text.find(marker) != std::string_view::npos) return marker;
  for (size_t begin = text.find("<|"); begin != std::string_view::npos; begin = text.find("<|", begin + 2)) {
    const size_t end = text.find("|>", begin + 2);
    if (end == std::string_view::npos) break;
    const std::string_view marker = text.substr(begin, end + 2 - begin);
    const bool is_name = marker.find_first_of(" \t\r\n'\"{}") == std::string_view::npos;
    if (is_name && !holds(kMarkers, marker) && !holds(kMayHold, marker)) return marker;
  }
  return std::nullopt;
}

// Whether the template holds the text of a system message itself.
bool has_own_system_message(std::string_view text) {
  constexpr std::string_view header = "<|im_system|>system<|im_middle|>";
  for (size_t at = text.find(header); at != std::string_view::npos; at = text.find(header, at + 1)) {
    const size_t next = text.find_first_not_of(" \t\r\n", at + header.size());
    if (next != std::string_view::npos && std::string_view("{<'\"").find(text[next]) == std::string_view::npos) return true;
  }
  return false;
}

// eos_token_id of the first file that has one: an id or a list of them.
std::optional<std::vector<int32_t>> end_ids_of(const fs::path& folder) {
  for (const char* name : {"generation_config.json", "config.json"}) {
    std::error_code ignored;
    if (!fs::exists(folder / name, ignored)) continue;
    const Json config = read_json(folder / name);
    if (!config.is_object() || !config.contains("eos_token_id")) continue;
    const Json& value = config["eos_token_id"];
    if (!value.is_number_integer() && !value.is_array()) continue;
    std::vector<int32_t> ids;
    for (const Json& id : value.is_array() ? value : Json::array({value}))
      if (id.is_number_integer()) ids.push_back(id.get<int32_t>());
    return ids;
  }
  return std::nullopt;
}

std::optional<std::string> judge(const ChatTemplate& own) {
  constexpr const char* kConsequence = "Kilin writes Kimi's chat format, so answers may be poor";
  for (std::string_view marker : kMarkers)
    if (own.text.find(marker) == std::string::npos)
      return fmt::format("{}: this checkpoint's own chat template has no {}; {}.", own.where, marker, kConsequence);
  if (const auto marker = foreign_marker(own.text))
    return fmt::format("{}: this checkpoint's own chat template uses {}, which Kimi's format does not have; {}.", own.where,
                       *marker, kConsequence);
  if (has_own_system_message(own.text))
    return fmt::format(
        "{}: this checkpoint's own chat template writes a system message of its own, which Kilin does not add; "
        "give it as a system message if it is wanted.",
        own.where);
  return std::nullopt;
}

}  // namespace

std::optional<ChatTemplate> find_chat_template(const fs::path& folder) {
  std::error_code ignored;
  const fs::path jinja = folder / "chat_template.jinja", config = folder / "tokenizer_config.json";
  if (fs::exists(jinja, ignored)) return ChatTemplate{jinja.string(), read_file(jinja)};
  if (fs::exists(config, ignored)) return template_in(config);
  return std::nullopt;
}

std::optional<std::string> foreign_chat_format(const std::string& source, const std::optional<ChatTemplate>& own,
                                               const std::optional<std::vector<int32_t>>& end_ids, const Tokenizer& tokenizer) {
  for (std::string_view marker : kMarkers)
    if (!tokenizer.special(marker))
      return fmt::format(
          "{}: the tokeniser has no token {}, so this is a base model or one of another chat format; it can continue "
          "text, but not chat.",
          source, marker);
  if (own) return judge(*own);
  const int32_t im_end = *tokenizer.special("<|im_end|>");
  if (end_ids && std::find(end_ids->begin(), end_ids->end(), im_end) == end_ids->end())
    return fmt::format(
        "{}: there is no chat template, and eos_token_id is not <|im_end|> ({}): this looks like a base model, which "
        "continues text but was not trained to chat.",
        source, im_end);
  return std::nullopt;
}

std::optional<std::string> foreign_chat_format(const fs::path& folder, const Tokenizer& tokenizer) {
  const auto own = find_chat_template(folder);
  return foreign_chat_format(folder.string(), own, own ? std::nullopt : end_ids_of(folder), tokenizer);
}

}  // namespace kilin

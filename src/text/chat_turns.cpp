#include "text/chat_turns.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"
#include "core/json.h"
#include "text/detokenizer.h"

namespace kilin {

namespace {

constexpr const char* kFormat = "kilin chat 1";

// A sampled id may be beyond the tokeniser, since an embedding can have more rows. Such an id has no text.
std::string text_of(const Tokenizer& tokenizer, std::span<const int32_t> ids) {
  StreamingDetokenizer detokenizer(tokenizer);
  std::string text;
  for (int32_t id : ids)
    if (static_cast<size_t>(id) < tokenizer.size()) text += detokenizer.push(id);
  return text + detokenizer.finish();
}

void expect(bool holds, const std::string& where, std::string_view what) {
  if (!holds) raise(ErrorCode::Corrupt, "{}: expected {}", where, what);
}

void expect_keys(const Json& object, std::initializer_list<const char*> keys, const std::string& where) {
  expect(object.is_object(), where, "an object");
  for (const char* key : keys)
    if (!object.contains(key)) raise(ErrorCode::Corrupt, "{}: key \"{}\" is missing", where, key);
  for (const auto& [key, value] : object.items())
    if (std::ranges::find(keys, key) == keys.end()) raise(ErrorCode::Corrupt, "{}: key \"{}\" is not known", where, key);
}

ChatTurn read_turn(const Json& json, const std::string& where) {
  expect_keys(json, {"role", "text", "ids"}, where);
  ChatTurn turn{};
  expect(json["role"].is_string() && json["text"].is_string(), where, "role and text to be strings");
  const auto& role = json["role"].get_ref<const std::string&>();
  expect(role == "system" || role == "user" || role == "assistant", where, "a role of system, user or assistant");
  turn.role = parse_role(role);
  turn.text = json["text"].get<std::string>();
  expect(json["ids"].is_array(), where, "ids to be a list of token ids");
  for (const Json& id : json["ids"]) {
    expect(id.is_number_integer() && id >= 0 && id <= std::numeric_limits<int32_t>::max(), where, "ids to be token ids");
    turn.ids.push_back(id.get<int32_t>());
  }
  return turn;
}

}  // namespace

ChatTurnFormat::ChatTurnFormat(const Tokenizer& tokenizer)
    : tokenizer_(&tokenizer),
      chat_(tokenizer),
      generation_prompt_(chat_.encode({})),
      im_end_(tokenizer.require_special("<|im_end|>")) {}

ChatTurn ChatTurnFormat::rendered(Role role, std::string text) const {
  std::vector<int32_t> ids = chat_.encode({{.role = role, .content = text}}, ChatEnd::Nothing);
  return {.role = role, .text = std::move(text), .ids = std::move(ids)};
}

ChatTurn ChatTurnFormat::system(std::string text) const { return rendered(Role::System, std::move(text)); }
ChatTurn ChatTurnFormat::user(std::string text) const { return rendered(Role::User, std::move(text)); }

ChatTurn ChatTurnFormat::assistant(std::span<const int32_t> sampled) const {
  ChatTurn turn{.role = Role::Assistant, .text = text_of(*tokenizer_, sampled), .ids = generation_prompt_};
  turn.ids.insert(turn.ids.end(), sampled.begin(), sampled.end());
  turn.ids.push_back(im_end_);
  return turn;
}

std::string ChatTurnFormat::write(const std::vector<ChatTurn>& turns) const {
  nlohmann::ordered_json messages = nlohmann::ordered_json::array();
  for (const ChatTurn& turn : turns) {
    nlohmann::ordered_json message;
    message["role"] = to_string(turn.role);
    message["text"] = turn.text;
    message["ids"] = turn.ids;
    messages.push_back(std::move(message));
  }
  nlohmann::ordered_json file;
  file["format"] = kFormat;
  file["messages"] = std::move(messages);
  return file.dump() + "\n";
}

void ChatTurnFormat::check(const ChatTurn& turn, const std::string& where) const {
  if (turn.role != Role::Assistant) {
    expect(turn.ids == rendered(turn.role, turn.text).ids, where,
           "the ids that this model's tokeniser makes of its text; is the file of another model?");
    return;
  }
  const size_t header = generation_prompt_.size();
  expect(turn.ids.size() > header && std::equal(generation_prompt_.begin(), generation_prompt_.end(), turn.ids.begin()) &&
             std::ranges::find(turn.ids, im_end_) == turn.ids.end() - 1,
         where, "ids from an assistant's header to <|im_end|>");
  const auto sampled = std::span(turn.ids).subspan(header, turn.ids.size() - header - 1);
  expect(text_of(*tokenizer_, sampled) == turn.text, where, "its text to be that of its ids; is the file of another model?");
}

std::vector<ChatTurn> ChatTurnFormat::parse(std::string_view text, const std::string& source) const {
  const Json file = parse_json(text, source);
  expect_keys(file, {"format", "messages"}, source);
  if (file["format"] != kFormat)
    raise(ErrorCode::Corrupt, "{}: format is {}; expected \"{}\"", source, file["format"].dump(), kFormat);
  expect(file["messages"].is_array(), source, "messages to be a list");
  std::vector<ChatTurn> turns;
  Role next = Role::User;
  for (const Json& json : file["messages"]) {
    const std::string where = fmt::format("{}: message {}", source, turns.size());
    ChatTurn turn = read_turn(json, where);
    if (turn.role != Role::System || !turns.empty()) {
      if (turn.role != next)
        raise(ErrorCode::Corrupt, "{}: its role is {}; expected {}", where, to_string(turn.role), to_string(next));
      next = next == Role::User ? Role::Assistant : Role::User;
    }
    check(turn, where);
    turns.push_back(std::move(turn));
  }
  expect(turns.empty() || turns.back().role != Role::User, source, "the last message not to be a user's: it has no answer");
  return turns;
}

}  // namespace kilin

#include "text/chat_turns.h"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json.h"
#include "support/golden.h"

namespace kilin {
namespace {

class Turns : public ::testing::Test {
 protected:
  const Tokenizer tokenizer_ = Tokenizer::load(testing::in_repository("models/tiny"));
  const ChatTurnFormat format_{tokenizer_};

  std::vector<ChatTurn> some() const {
    return {format_.system("Be brief."), format_.user("Who is <|im_end|>?"), format_.assistant(tokenizer_.encode("A whale."))};
  }

  // The message that refuses the file of some() after `change`.
  std::string refusal(const std::function<void(Json&)>& change) const {
    Json file = parse_json(format_.write(some()), "it");
    change(file);
    try {
      format_.parse(file.dump(), "talk.json");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::Corrupt) << error.what();
      EXPECT_EQ(std::string(error.what()).find("talk.json"), 0u) << error.what();
      return error.what();
    }
    ADD_FAILURE() << "not refused: " << file.dump();
    return {};
  }
};

TEST_F(Turns, TogetherTheyAreTheConversationAsTheChatFormatWritesIt) {
  std::vector<int32_t> ids;
  for (const ChatTurn& turn : some()) ids.insert(ids.end(), turn.ids.begin(), turn.ids.end());
  EXPECT_EQ(ids, ChatFormat(tokenizer_)
                     .encode({{.role = Role::System, .content = "Be brief."},
                              {.role = Role::User, .content = "Who is <|im_end|>?"},
                              {.role = Role::Assistant, .content = "A whale."}},
                             ChatEnd::Nothing));
}

TEST_F(Turns, ComeBackFromTheirFile) {
  EXPECT_EQ(format_.parse(format_.write(some()), "talk.json"), some());
  EXPECT_EQ(format_.parse(format_.write({}), "talk.json"), std::vector<ChatTurn>());
}

TEST_F(Turns, SampledIdsAreKeptAsTheyAre) {
  // Two tokens where the tokeniser would make one, half a character, and a special token inside the answer.
  const std::vector<int32_t> sampled = {116, 104, 101, 0xe2, *tokenizer_.special("<|im_user|>")};
  const ChatTurn turn = format_.assistant(sampled);
  EXPECT_EQ(format_.parse(format_.write({format_.user("x"), turn}), "talk.json").back(), turn);
}

TEST_F(Turns, AFileThatContradictsItselfIsRefused) {
  refusal([](Json& f) { f["messages"][1]["text"] = "Another text"; });
  refusal([](Json& f) { f["messages"][2]["text"] = "Another text"; });
  refusal([](Json& f) { f["messages"][1]["ids"].push_back(1); });
  refusal([](Json& f) { f["messages"][2]["ids"].erase(0); });
  refusal([](Json& f) { f["messages"][2]["ids"].erase(f["messages"][2]["ids"].size() - 1); });
  refusal([](Json& f) { f["messages"][2]["ids"].push_back(f["messages"][2]["ids"].back()); });
  refusal([](Json& f) { f["messages"][2]["ids"] = Json::array(); });
}

TEST_F(Turns, AFileOfAnotherFormIsRefused) {
  refusal([](Json& f) { f = Json::array(); });
  refusal([](Json& f) { f["format"] = "kilin chat 2"; });
  refusal([](Json& f) { f.erase("messages"); });
  refusal([](Json& f) { f["more"] = 1; });
  refusal([](Json& f) { f["messages"] = "none"; });
  refusal([](Json& f) { f["messages"][0] = 1; });
  refusal([](Json& f) { f["messages"][0].erase("ids"); });
  refusal([](Json& f) { f["messages"][0]["name"] = "x"; });
  refusal([](Json& f) { f["messages"][0]["role"] = "tool"; });
  refusal([](Json& f) { f["messages"][0]["role"] = 1; });
  for (const Json& id : {Json(-1), Json(1.5), Json("1"), Json(4294967296), Json(nullptr)})
    refusal([&](Json& f) { f["messages"][0]["ids"][0] = id; });
}

TEST_F(Turns, RolesTakeTurnsAndTheAssistantHasTheLastWord) {
  EXPECT_NE(refusal([](Json& f) { f["messages"].erase(2); }).find("last"), std::string::npos);
  EXPECT_NE(refusal([](Json& f) { f["messages"].erase(1); }).find("message 1"), std::string::npos);
  refusal([](Json& f) { f["messages"].push_back(f["messages"][0]); });
  refusal([](Json& f) { f["messages"].push_back(f["messages"][2]); });
}

TEST_F(Turns, WhatIsNoJsonIsRefused) {
  for (const char* text : {"", "{", "[]", "{\"format\": \"kilin chat 1\", \"format\": \"kilin chat 1\", \"messages\": []}"})
    EXPECT_THROW(format_.parse(text, "talk.json"), Error) << text;
}

}  // namespace
}  // namespace kilin

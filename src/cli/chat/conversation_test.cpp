#include "cli/chat/conversation.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/file.h"
#include "support/golden.h"

namespace kilin::cli {
namespace {

class TinyChat : public ::testing::Test {
 protected:
  static constexpr size_t kContext = 256;

  static LoadedModel load() { return LoadedModel::load(testing::in_repository("models/tiny")); }
  static EngineOptions with_context(size_t tokens) {
    EngineOptions options;
    options.threads = 1;
    options.pool_tokens = tokens;
    options.drive = EngineOptions::Drive::ByCaller;  // so that an answer is stopped where a test says
    return options;
  }
  static GenerationParams greedy(size_t tokens) {
    GenerationParams params;
    params.max_new_tokens = tokens;
    return params;
  }

  // Asks, stopping after `most` tokens.
  static Conversation::Reply ask(Conversation& chat, const std::string& text, size_t most = SIZE_MAX) {
    size_t heard = 0;
    return chat.ask(
        text, [&heard](const TokenEvent&) { ++heard; },
        [&heard, most](Request& request) {
          if (heard >= most) request.cancel();
        });
  }

  Engine engine_{load(), with_context(kContext)};
};

TEST_F(TinyChat, WhatIsReusedGivesTheTextThatReadingItAgainGives) {
  testing::TemporaryFolder folder;
  Conversation chat(engine_, greedy(12));
  chat.set_system("You are a helpful assistant");
  ask(chat, "Tell me a verse.");
  const std::string file = (folder / "talk.json").string();
  chat.save(file);
  ask(chat, "Another one.");
  const std::vector<ChatTurn> reused = chat.turns();
  ASSERT_EQ(reused.size(), 5u);
  EXPECT_FALSE(reused[4].text.empty());

  chat.load(file);  // its sequence is gone: all is read again
  ASSERT_EQ(chat.turns().size(), 3u);
  ask(chat, "Another one.");
  EXPECT_EQ(chat.turns(), reused);
}

TEST_F(TinyChat, ATurnFeedsOnlyWhatIsNew) {
  Conversation chat(engine_, greedy(4));
  ask(chat, "Tell me a verse.");
  ask(chat, "Another one.", 2);
  const ChatTurnFormat format(engine_.loaded().require_tokenizer());
  const auto fed_by = [](Conversation& conversation, const std::string& text) {
    size_t tokens = 0;
    conversation.ask(text, {}, [&tokens](Request& request) { tokens = request.prompt_tokens(); });
    return tokens;
  };
  // The last sampled token and <|im_end|> were not fed yet.
  const size_t fresh = format.user("And so on.").ids.size() + format.generation_prompt().size();
  EXPECT_EQ(fed_by(chat, "And so on."), 2 + fresh);
  chat.reset();
  EXPECT_EQ(fed_by(chat, "And so on."), fresh);
}

TEST_F(TinyChat, AStoppedAnswerStaysAndTheNextOneFollowsIt) {
  Conversation chat(engine_, greedy(64));
  EXPECT_EQ(ask(chat, "Tell me a verse.", 5).finish_reason, FinishReason::Cancelled);
  ASSERT_EQ(chat.turns().size(), 2u);
  const ChatTurn stopped = chat.turns()[1];
  const ChatTurnFormat format(engine_.loaded().require_tokenizer());
  EXPECT_EQ(stopped.ids.size(), format.generation_prompt().size() + 5 + 1);
  EXPECT_EQ(stopped.ids.back(), engine_.loaded().require_tokenizer().special("<|im_end|>"));

  ask(chat, "Go on.", 8);
  EXPECT_EQ(chat.turns()[1], stopped);
  const std::vector<ChatTurn> reused = chat.turns();

  Conversation again(engine_, greedy(64));  // the same tokens, read at once
  testing::TemporaryFolder folder;
  AtomicFile file(folder / "talk.json");
  file.write(format.write({reused[0], reused[1]}));
  file.commit();
  chat.reset();
  again.load((folder / "talk.json").string());
  ask(again, "Go on.", 8);
  EXPECT_EQ(again.turns(), reused);
}

TEST_F(TinyChat, AFullContextIsSaidAndAResetMakesRoom) {
  Conversation chat(engine_, greedy(kContext));
  std::string long_text;
  for (int i = 0; i < 100; ++i) long_text += "whale ";
  ask(chat, long_text, 4);
  const size_t turns = chat.turns().size();
  try {
    ask(chat, long_text + long_text);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
    EXPECT_NE(std::string(error.what()).find("256"), std::string::npos) << error.what();
  }
  EXPECT_EQ(chat.turns().size(), turns);  // as before, and of use
  ask(chat, "Go on.", 2);
  EXPECT_EQ(chat.turns().size(), turns + 2);
  chat.reset();
  EXPECT_EQ(chat.tokens(), 0u);
  ask(chat, long_text, 2);
  EXPECT_EQ(chat.turns().size(), 2u);
}

TEST_F(TinyChat, AnAnswerThatFillsTheContextSaysSo) {
  Engine small(load(), with_context(24));
  Conversation chat(small, greedy(64));
  const Conversation::Reply answer = ask(chat, "Tell me a verse.");
  EXPECT_EQ(answer.finish_reason, FinishReason::Length);
  EXPECT_TRUE(answer.context_is_full);
  EXPECT_LE(chat.tokens(), 24u + 2u);  // the last token and <|im_end|> were not fed

  Conversation short_answers(engine_, greedy(3));
  EXPECT_FALSE(ask(short_answers, "Tell me a verse.").context_is_full);
}

TEST_F(TinyChat, TheSystemMessageOutlivesAReset) {
  Conversation chat(engine_, greedy(2));
  chat.set_system("Be brief.");
  ask(chat, "Hello");
  ASSERT_EQ(chat.turns().size(), 3u);
  chat.reset();
  ask(chat, "Hello");
  ASSERT_EQ(chat.turns().size(), 3u);
  EXPECT_EQ(chat.turns()[0].text, "Be brief.");
  chat.set_system("");
  ask(chat, "Hello");
  EXPECT_EQ(chat.turns().size(), 2u);
}

TEST_F(TinyChat, AFileThatIsRefusedChangesNothing) {
  testing::TemporaryFolder folder;
  Conversation chat(engine_, greedy(2));
  ask(chat, "Hello");
  const std::vector<ChatTurn> before = chat.turns();
  EXPECT_THROW(chat.load((folder / "nowhere.json").string()), Error);
  AtomicFile file(folder / "bad.json");
  file.write("{}");
  file.commit();
  EXPECT_THROW(chat.load((folder / "bad.json").string()), Error);
  EXPECT_EQ(chat.turns(), before);
  ask(chat, "Hello");
  EXPECT_EQ(chat.turns().size(), 4u);
}

}  // namespace
}  // namespace kilin::cli

#include "text/chat_template.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "support/golden.h"
#include "support/tokens.h"

namespace kilin {
namespace {

const Tokenizer& tiny() {
  static const Tokenizer tokenizer = Tokenizer::load(testing::in_repository("models/tiny"));
  return tokenizer;
}

// A template in Kimi's format, as one would write it.
constexpr const char* kKimi = R"({%- macro head(m) -%}
{%- if m.role == 'user' -%}<|im_user|>{%- elif m.role == 'assistant' -%}<|im_assistant|>{%- else -%}<|im_system|>{%- endif -%}
{{ m.name or m.role }}<|im_middle|>
{%- endmacro -%}
{%- if tools -%}<|im_system|>tool_declare<|im_middle|>{{ tools | tojson }}<|im_end|>{%- endif -%}
{%- for m in messages -%}{{ head(m) }}{{ m.content }}
{%- for c in m.tool_calls -%}<|tool_call_begin|>{{ c.id }}<|tool_call_argument_begin|>{{ c.arguments }}<|tool_call_end|>{%- endfor -%}
<|im_end|>{%- endfor -%}
{%- if add_generation_prompt -%}<|im_assistant|>assistant<|im_middle|>{%- endif -%})";

class ChatTemplate : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) { std::ofstream(folder_ / name) << text; }
  std::string verdict() { return foreign_chat_format(folder_.path(), tiny()).value_or("Kimi's"); }
  testing::TemporaryFolder folder_;
};

TEST_F(ChatTemplate, OfKimiIsFineWhereverItStands) {
  write("chat_template.jinja", kKimi);
  EXPECT_EQ(verdict(), "Kimi's");
  std::filesystem::remove(folder_ / "chat_template.jinja");
  write("tokenizer_config.json", nlohmann::json{{"chat_template", kKimi}}.dump());
  EXPECT_EQ(verdict(), "Kimi's");
  const nlohmann::json list = {{{"name", "rag"}, {"template", "x"}}, {{"name", "default"}, {"template", kKimi}}};
  write("tokenizer_config.json", nlohmann::json{{"chat_template", list}}.dump());
  EXPECT_EQ(verdict(), "Kimi's");
}

TEST_F(ChatTemplate, OfAnotherFormatIsNamedByAMarkerThatItLacks) {
  write("chat_template.jinja", "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>{% endfor %}");
  EXPECT_NE(verdict().find("chat_template.jinja: this checkpoint's own chat template has no <|im_system|>"), std::string::npos)
      << verdict();
  write("chat_template.jinja", "");
  EXPECT_NE(verdict(), "Kimi's");
}

TEST_F(ChatTemplate, WithMarkersOfItsOwnIsNamedByTheFirst) {
  write("chat_template.jinja", std::string(kKimi) + "<|thought|>");
  EXPECT_NE(verdict().find("uses <|thought|>"), std::string::npos) << verdict();
  write("chat_template.jinja", std::string(kKimi) + "<think></think>");
  EXPECT_NE(verdict().find("uses <think>"), std::string::npos) << verdict();
}

TEST_F(ChatTemplate, WithASystemMessageOfItsOwnIsNoticed) {
  write("chat_template.jinja", std::string(kKimi) + "<|im_system|>system<|im_middle|>You are a pirate.<|im_end|>");
  EXPECT_NE(verdict().find("writes a system message of its own"), std::string::npos) << verdict();
  write("chat_template.jinja", std::string(kKimi) + "<|im_system|>system<|im_middle|>\n {{ system }}<|im_end|>");
  EXPECT_EQ(verdict(), "Kimi's");
}

TEST_F(ChatTemplate, TheFileGoesBeforeTheKey) {
  write("chat_template.jinja", kKimi);
  write("tokenizer_config.json", R"({"chat_template": "other"})");
  EXPECT_EQ(verdict(), "Kimi's");
}

TEST_F(ChatTemplate, WithoutOneTheEndTokenTellsABaseModel) {
  EXPECT_EQ(verdict(), "Kimi's") << "nothing speaks against it";
  write("config.json", R"({"eos_token_id": 3841})");
  EXPECT_NE(verdict().find("eos_token_id is not <|im_end|> (3842)"), std::string::npos) << verdict();
  write("generation_config.json", R"({"eos_token_id": [3841, 3842]})");
  EXPECT_EQ(verdict(), "Kimi's");
  write("generation_config.json", R"({"eos_token_id": []})");
  EXPECT_NE(verdict(), "Kimi's");
  EXPECT_FALSE(foreign_chat_format(testing::in_repository("models/tiny"), tiny())) << "the tiny model chats";
}

TEST_F(ChatTemplate, ATokeniserWithoutTheMarkersIsABaseModelOrAnother) {
  const Tokenizer plain(testing::single_bytes_and(), {{256, "[EOS]"}}, "x");
  const auto notice = foreign_chat_format(folder_.path(), plain);
  ASSERT_TRUE(notice);
  EXPECT_NE(notice->find("has no token <|im_system|>"), std::string::npos) << *notice;
}

TEST_F(ChatTemplate, FilesThatMakeNoSenseAreErrors) {
  for (const char* config :
       {"{", R"({"chat_template": 3})", R"({"chat_template": []})", R"({"chat_template": [{"name": "default"}]})"}) {
    write("tokenizer_config.json", config);
    EXPECT_THROW(verdict(), Error) << config;
  }
}

}  // namespace
}  // namespace kilin

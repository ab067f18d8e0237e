#include "inside/verify/check_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "loading/tokenizer_fit.h"
#include "text/chat_format.h"

namespace kilin {

namespace {

constexpr size_t kPublishedTokens = 163840;

// The ids that the published tokenizer gives for a chat with kAnchorQuestion.
constexpr std::array<int32_t, 14> kAnchorIds = {163587, 2482,  163601, 69211,  1019,   1215,  276,
                                                64782,  25317, 13,     163586, 163588, 69702, 163601};

// Several scripts, white space of all kinds, digits, an emoji of several characters, and the name of a special token as text.
constexpr const char* kSample =
    "Hello, world!\n\n\tIt's 1234567 o'clock -- déjà vu, Привет, 你好世界, こんにちは, "
    "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x94\xac  <|im_end|>  end ";

Check check_loads(const ModelFiles& files, const ModelConfig& config, std::shared_ptr<const Tokenizer>& tokenizer) {
  auto loaded = files.tokenizer();
  if (!loaded) return skipped("there is no tokenizer: token ids go in and out, text does not");
  require_fit(*loaded, config);
  if (loaded->decode(loaded->encode(kSample)) != kSample)
    return failed("a text of several scripts is not the same after it was turned into ids and back");
  tokenizer = std::move(loaded);
  return ok(fmt::format("{} tokens for {} rows of the embedding", tokenizer->size(), config.vocab_size));
}

Check check_chat_format(const ModelFiles& files, const Tokenizer& tokenizer) {
  files.chat_template();  // throws if it can't be read
  if (const auto foreign = files.foreign_chat_format(tokenizer)) return note(*foreign);
  return ok("Kimi's");
}

std::string listed(std::span<const int32_t> ids) { return fmt::format("{}", fmt::join(ids, " ")); }

Check check_anchor(const Tokenizer& tokenizer) {
  if (!has_published_vocabulary(tokenizer)) return skipped("another vocabulary than the published models'");
  const std::vector<int32_t> ids = chat_prompt(tokenizer, kAnchorQuestion);
  if (std::ranges::equal(ids, kAnchorIds)) return ok(fmt::format("\"{}\" has the published ids", kAnchorQuestion));
  return failed(fmt::format("a chat with \"{}\" has other ids than the published ones", kAnchorQuestion),
                {"expected " + listed(kAnchorIds), "got " + listed(ids)});
}

}  // namespace

bool has_published_vocabulary(const Tokenizer& tokenizer) {
  return tokenizer.size() == kPublishedTokens && tokenizer.special("<|im_user|>") == 163587 &&
         tokenizer.special("<|im_middle|>") == 163601;
}

std::vector<int32_t> chat_prompt(const Tokenizer& tokenizer, std::string_view question) {
  return ChatFormat(tokenizer).encode({{.role = Role::User, .content = std::string(question)}});
}

std::shared_ptr<const Tokenizer> check_tokenizer(CheckReporter& reporter, const ModelFiles& files, const ModelConfig& config) {
  std::shared_ptr<const Tokenizer> tokenizer;
  reporter.run("tokenizer", [&] { return check_loads(files, config, tokenizer); });
  if (!tokenizer) {
    reporter.skip("chat format", "there is no tokenizer");
    reporter.skip("tokenizer anchor", "there is no tokenizer");
    return nullptr;
  }
  reporter.run("chat format", [&] { return check_chat_format(files, *tokenizer); });
  reporter.run("tokenizer anchor", [&] { return check_anchor(*tokenizer); });
  return tokenizer;
}

}  // namespace kilin

#include "loading/tokenizer_fit.h"

#include <gtest/gtest.h>

#include <fstream>

#include "core/error.h"
#include "core/file.h"
#include "support/golden.h"

namespace kilin {
namespace {

namespace fs = std::filesystem;

// models/tiny's tokenizer in a folder, the last `lines` of its tiktoken.model left out.
Tokenizer cut(size_t lines, bool with_config) {
  const testing::TemporaryFolder folder;
  const fs::path tiny = testing::in_repository("models/tiny");
  std::string text = read_file(tiny / "tiktoken.model");
  for (size_t i = 0; i < lines; ++i) text.resize(text.rfind('\n', text.size() - 2) + 1);
  std::ofstream(folder / "tiktoken.model", std::ios::binary) << text;
  if (with_config) fs::copy(tiny / "tokenizer_config.json", folder / "tokenizer_config.json");
  return Tokenizer::load(folder.path());
}

template <typename F>
std::string refusal(F call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Corrupt) << error.what();
    return error.what();
  }
  return "";
}

TEST(TokenizerFit, AVocabularyThatWasCutAtALineIsNoticed) {
  const ModelConfig config = ModelConfig::read(testing::in_repository("models/tiny"));
  require_fit(cut(0, false), config);
  require_fit(cut(0, true), config);
  for (const size_t lines : {size_t{1}, size_t{2}, size_t{255}, size_t{256}, size_t{257}, size_t{3000}}) {
    EXPECT_NE(refusal([&] { cut(lines, true); }).find("cut short"), std::string::npos) << lines;
    EXPECT_NE(refusal([&] { require_fit(cut(lines, false), config); }).find("cut short"), std::string::npos) << lines;
  }
}

TEST(TokenizerFit, WithoutPaddingTheBosTellsAloneWhereRowsHaveNoToken) {
  ModelConfig config = ModelConfig::read(testing::in_repository("models/tiny"));
  config.pad_token_id.reset();
  EXPECT_NE(refusal([&] { require_fit(cut(1, false), config); }).find("cut short by 1?"), std::string::npos);
  config.bos_token_id = 3842;  // another choice: the embedding has no rows for two more tokens
  require_fit(cut(0, false), config);
  config.bos_token_id.reset();
  require_fit(cut(1, false), config);  // nothing tells
}

}  // namespace
}  // namespace kilin

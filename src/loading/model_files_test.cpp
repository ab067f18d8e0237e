#include "loading/model_files.h"

#include <gtest/gtest.h>

#include <fstream>

#include "core/error.h"
#include "support/golden.h"
#include "support/mini_gguf.h"

namespace kilin {
namespace {

using testing::mini_gguf;
using testing::TemporaryFolder;

TEST(ModelFiles, OfAFolderAndOfAGgufFileAnswerAlike) {
  const TemporaryFolder folder;
  testing::GgufBuilder file = mini_gguf();
  testing::add_tokenizer(file);
  file.write(folder / "model");  // told by its first bytes
  for (const std::filesystem::path& path : {testing::in_repository("models/tiny"), folder / "model"}) {
    const auto files = ModelFiles::open(path);
    EXPECT_EQ(files->path(), path);
    EXPECT_TRUE(files->has_config());
    const ModelConfig config = files->config();
    files->generation(config);
    EXPECT_EQ(files->check_weight_files().count, 1u);
    EXPECT_TRUE(files->check_weight_files().faults.empty());
    EXPECT_EQ(files->weights(config)->names(), files->weights_on_demand(config)->names());
    EXPECT_TRUE(files->weights(config)->contains("model.norm.weight"));
    ASSERT_TRUE(files->tokenizer());
    EXPECT_TRUE(files->tokenizer()->special("<|im_end|>"));
  }
}

TEST(ModelFiles, WithoutATokenizerSaySo) {
  const TemporaryFolder folder;
  mini_gguf().write(folder / "m.gguf");
  const auto files = ModelFiles::open(folder / "m.gguf");
  EXPECT_FALSE(files->tokenizer());
  EXPECT_THROW(files->raise_no_tokenizer(), Error);
}

TEST(ModelFiles, NoticeTheTemplateOfAnotherChatFormat) {
  const TemporaryFolder folder;
  testing::GgufBuilder file = mini_gguf();
  testing::add_tokenizer(file);
  file.key("tokenizer.chat_template", "<|im_start|>user");
  file.write(folder / "m.gguf");
  const auto files = ModelFiles::open(folder / "m.gguf");
  const auto tiny = ModelFiles::open(testing::in_repository("models/tiny"))->tokenizer();  // it has all of Kimi's tokens
  const auto foreign = files->foreign_chat_format(*tiny);
  ASSERT_TRUE(foreign);
  EXPECT_NE(foreign->find("m.gguf: tokenizer.chat_template"), std::string::npos) << *foreign;
}

TEST(ModelFiles, OfAFolderOfGgufFilesNameOne) {
  const TemporaryFolder folder;
  const auto refusal = [&](const auto& open) {
    try {
      open();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::NotFound);
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  const auto open = [&] { ModelFiles::open(folder.path()); };
  mini_gguf().write(folder / "b.gguf");
  EXPECT_NE(refusal(open).find(": holds no config.json, but a GGUF file: give " + (folder / "b.gguf").string() + " itself"),
            std::string::npos);
  mini_gguf().write(folder / "a.gguf");
  EXPECT_NE(refusal(open).find("but 2 GGUF files: give one of them itself, such as " + (folder / "a.gguf").string()),
            std::string::npos);
  // Beside a configuration, the weights are what is missing.
  std::filesystem::copy(testing::in_repository("models/tiny/config.json"), folder / "config.json");
  const auto files = ModelFiles::open(folder.path());
  EXPECT_NE(refusal([&] { files->weights(files->config()); }).find("index.json, but 2 GGUF files: give one"),
            std::string::npos);
}

TEST(ModelFiles, OfAGitLfsPointerSaySo) {
  const TemporaryFolder folder;
  std::ofstream(folder / "m.gguf") << "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n";
  try {
    ModelFiles::open(folder / "m.gguf");
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("m.gguf: is a Git LFS pointer"), std::string::npos) << error.what();
  }
}

TEST(ModelFiles, OfWhatIsNeitherAreRefusedByWhatItIs) {
  const TemporaryFolder folder;
  std::ofstream(folder / "m.gguf") << "something else";
  const auto refusal = [&](const char* name) {
    try {
      ModelFiles::open(folder / name);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  EXPECT_NE(refusal("m.gguf").find("neither a folder nor a GGUF file"), std::string::npos) << refusal("m.gguf");
  EXPECT_NE(refusal("nothing").find("no such folder or file"), std::string::npos) << refusal("nothing");
  std::filesystem::create_symlink("/dev/null", folder / "device");
  EXPECT_NE(refusal("device").find("not a regular file"), std::string::npos) << refusal("device");
}

}  // namespace
}  // namespace kilin

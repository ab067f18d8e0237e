#include "loading/model_files.h"

#include <map>
#include <utility>

#include "checkpoint/checkpoint.h"
#include "checkpoint/gguf_file.h"
#include "core/error.h"
#include "core/file.h"
#include "gguf/config.h"
#include "gguf/names.h"
#include "gguf/tokenizer.h"
#include "weights/native_names.h"
#include "weights/tensor_inventory.h"

namespace kilin {

namespace fs = std::filesystem;

namespace {

class FolderFiles final : public ModelFiles {
 public:
  explicit FolderFiles(const fs::path& folder) : ModelFiles(folder) {}

  std::string config_name() const override { return "config.json"; }
  bool has_config() const override { return fs::exists(path() / "config.json"); }
  ModelConfig config() const override { return ModelConfig::read(path()); }
  GenerationConfig generation(const ModelConfig& config) const override {
    return GenerationConfig::read(path(), config.vocab_size);
  }
  fs::path generation_file() const override { return path() / "generation_config.json"; }

  std::shared_ptr<const Tokenizer> tokenizer() const override {
    if (!Tokenizer::exists(path())) return nullptr;
    return std::make_shared<Tokenizer>(Tokenizer::load(path()));
  }
  void raise_no_tokenizer() const override { Tokenizer::raise_missing(path()); }

  std::optional<ChatTemplate> chat_template() const override { return find_chat_template(path()); }
  std::optional<std::string> foreign_chat_format(const Tokenizer& tokenizer) const override {
    try {
      return kilin::foreign_chat_format(path(), tokenizer);
    } catch (const Error& error) {  // Kilin does not run the template, so that a broken one is no more than a warning
      return error.what();
    }
  }

  std::shared_ptr<const TensorStore> weights(const ModelConfig& config) const override {
    return with_published_names(Checkpoint::open(path()), config);
  }

  std::shared_ptr<const TensorStore> weights_on_demand(const ModelConfig& config) const override {
    return open_weights_on_demand(path(), config);
  }

  WeightFiles check_weight_files() const override {
    const auto checkpoint = Checkpoint::open(path(), Checkpoint::Shards::OnDemand);
    std::map<std::string, std::string> tensor_of;  // one of each shard, to open it by
    for (const std::string& name : checkpoint->names()) tensor_of.emplace(checkpoint->shard_of(name), name);
    WeightFiles files;
    for (const std::string& shard : checkpoint->shards()) {
      ++files.count;
      try {
        if (const auto at = tensor_of.find(shard); at != tensor_of.end()) checkpoint->require(at->second);
      } catch (const Error& error) {
        files.faults.emplace_back(error.what());
      }
    }
    return files;
  }
};

// A folder with GGUF files and nothing else of a model was meant as one of them, but which?
void require_other_than_gguf(const fs::path& folder) {
  std::error_code ignored;
  if (fs::exists(folder / "config.json", ignored) || Tokenizer::exists(folder)) return;
  if (const std::string hint = gguf_hint(folder); !hint.empty())
    raise(ErrorCode::NotFound, "{}: holds no config.json{}", folder.string(), hint);
}

class GgufFiles final : public ModelFiles {
 public:
  explicit GgufFiles(const fs::path& file) : ModelFiles(file), gguf_(GgufFile::open(file)) {}

  std::string config_name() const override { return "the file's keys"; }
  bool has_config() const override { return true; }
  ModelConfig config() const override { return read_gguf_config(gguf_->metadata(), *gguf_); }
  GenerationConfig generation(const ModelConfig&) const override { return {}; }  // the format has no keys for it
  fs::path generation_file() const override { return path(); }

  std::shared_ptr<const Tokenizer> tokenizer() const override {
    auto tokenizer = read_gguf_tokenizer(gguf_->metadata(), gguf_->source());
    return tokenizer ? std::make_shared<Tokenizer>(*std::move(tokenizer)) : nullptr;
  }
  void raise_no_tokenizer() const override {
    raise(ErrorCode::NotFound,
          "{}: holds no tokeniser (keys tokenizer.ggml.*), so text cannot be read or written; token ids can", path().string());
  }

  std::optional<ChatTemplate> chat_template() const override {
    constexpr std::string_view kKey = "tokenizer.chat_template";
    if (const GgufValue* value = gguf_->metadata().find(kKey))
      if (const auto* text = value->as<std::string_view>())
        return ChatTemplate{fmt::format("{}: {}", gguf_->source(), kKey), std::string(*text)};
    return std::nullopt;
  }
  // Converters put [EOS] in the place of <|im_end|>, so that the key for it tells no chat model from a base model.
  std::optional<std::string> foreign_chat_format(const Tokenizer& tokenizer) const override {
    return kilin::foreign_chat_format(gguf_->source(), chat_template(), std::nullopt, tokenizer);
  }

  std::shared_ptr<const TensorStore> weights(const ModelConfig& config) const override {
    return gguf_with_published_names(gguf_, config);
  }
  std::shared_ptr<const TensorStore> weights_on_demand(const ModelConfig& config) const override { return weights(config); }
  WeightFiles check_weight_files() const override { return {.count = gguf_->files().size(), .faults = {}}; }

 private:
  std::shared_ptr<const GgufFile> gguf_;
};

}  // namespace

std::shared_ptr<const ModelFiles> ModelFiles::open(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    require_other_than_gguf(path);
    return std::make_shared<FolderFiles>(path);
  }
  if (is_gguf(path)) return std::make_shared<GgufFiles>(path);
  if (!fs::exists(path, ignored))
    raise(ErrorCode::NotFound, "{}: there is no such folder or file; expected a model", printable(path.string()));
  MappedFile readable(path);  // says why a file can't be read, and what is no file
  raise(ErrorCode::NotFound, "{}: is neither a folder nor a GGUF file; expected a model: one of them",
        printable(path.string()));
}

}  // namespace kilin

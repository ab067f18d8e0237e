// A model as it lies on the disk: a folder in Hugging Face's layout, or a GGUF file (any part of a split one). Who loads, looks
// at or checks a model asks here, and need not know which it is.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/tensor_store.h"
#include "config/generation_config.h"
#include "config/model_config.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace kilin {

/// Each function reads what it gives, and throws for what is wrong with that alone. Immutable, so it may be used by several
/// threads at once.
class ModelFiles {
 public:
  /// A file is told by its first bytes, not by its name.
  /// @throws NotFound for what is neither a folder nor a GGUF file, and for a folder of GGUF files, naming one; for a GGUF file
  /// as GgufFile::open
  static std::shared_ptr<const ModelFiles> open(const std::filesystem::path& path);

  virtual ~ModelFiles() = default;
  ModelFiles(const ModelFiles&) = delete;
  ModelFiles& operator=(const ModelFiles&) = delete;

  const std::filesystem::path& path() const { return path_; }

  /// What the configuration stands in, in few words: "config.json".
  virtual std::string config_name() const = 0;
  virtual bool has_config() const = 0;  ///< a folder with a tokeniser alone has none
  virtual ModelConfig config() const = 0;
  virtual GenerationConfig generation(const ModelConfig& config) const = 0;
  /// Where generation() came from, whether it is there or not.
  virtual std::filesystem::path generation_file() const = 0;

  /// Null where there is none: ids go in and out. It fits a vocabulary of any size; see Tokenizer::require_vocabulary.
  virtual std::shared_ptr<const Tokenizer> tokenizer() const = 0;
  /// Why there is no tokenizer. @throws NotFound always
  [[noreturn]] virtual void raise_no_tokenizer() const = 0;

  /// How the checkpoint itself writes chats, if it says so. Kilin does not run it.
  virtual std::optional<ChatTemplate> chat_template() const = 0;
  /// As kilin::foreign_chat_format.
  virtual std::optional<std::string> foreign_chat_format(const Tokenizer& tokenizer) const = 0;

  /// All tensors under the published names; every file of them is there and was read as far as its header.
  virtual std::shared_ptr<const TensorStore> weights(const ModelConfig& config) const = 0;
  /// The same for a model that may not be whole: files are opened on demand. Null if there are no weights at all.
  virtual std::shared_ptr<const TensorStore> weights_on_demand(const ModelConfig& config) const = 0;

  /// Files of the weights, and a message for each that can't be read. @throws if it can't be told which they are
  struct WeightFiles {
    size_t count = 0;
    std::vector<std::string> faults;
  };
  virtual WeightFiles check_weight_files() const = 0;

 protected:
  explicit ModelFiles(std::filesystem::path path) : path_(std::move(path)) {}

 private:
  std::filesystem::path path_;
};

}  // namespace kilin

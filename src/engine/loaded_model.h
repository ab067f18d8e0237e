// A model, loaded: what one needs besides pools and threads to run it.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "checkpoint/tensor_store.h"
#include "model/generation_config.h"
#include "model/kimi_linear_for_causal_lm.h"
#include "model/model_files.h"
#include "text/tokenizer.h"

namespace kilin {

struct LoadedModel {
  std::shared_ptr<const ModelFiles> files;
  std::shared_ptr<const TensorStore> weights;  // the model's matrices are views into it
  KimiLinearForCausalLM model;
  std::shared_ptr<const Tokenizer> tokenizer;  // null where the files hold no tokenizer: ids go in and out
  GenerationConfig generation;
  std::vector<int32_t> stop_ids;  // an answer ends with one of these; ascending

  const std::filesystem::path& path() const { return files->path(); }
  const ModelConfig& config() const { return model.config(); }

  /// Bytes of all weights as they are stored.
  uint64_t weight_bytes() const;

  /// @param path a folder in Hugging Face's layout, or a GGUF file
  /// @throws Error for whatever is wrong with the files, their configuration, weights or tokenizer
  static LoadedModel load(const std::filesystem::path& path, const KimiLinearForCausalLM::Progress& progress = {});

  /// The tokenizer. @throws NotFound, saying that ids can be used instead
  const Tokenizer& require_tokenizer() const;
};

}  // namespace kilin

// A model, loaded: what one needs besides pools and threads to run it.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "checkpoint/tensor_store.h"
#include "config/generation_config.h"
#include "loading/model_files.h"
#include "model/kimi_linear_for_causal_lm.h"
#include "text/tokenizer.h"
#include "weights/pack_placement.h"

namespace kilin {

/// What takes long in a load, counted in layers or in bytes.
enum class LoadStage : uint8_t { Reading, Packing };

/// Called with what is done of what there is to do. What it throws ends the load.
using LoadProgress = std::function<void(LoadStage stage, uint64_t done, uint64_t total)>;

/// What a broken file of the model is: an error, or a warning because what is done will not use it.
enum class Need : uint8_t { Required, Optional };

struct LoadNeeds {
  Need tokenizer = Need::Required;
  Need generation = Need::Required;  ///< generation_config.json
};

struct LoadOptions {
  size_t threads = 0;                      ///< that pack weights; 0: as many as this process may use
  std::optional<QuantType> quantize = {};  ///< packs a model in f32, f16 or bf16 as this
  PackPlacement pack_cache = {};
  LoadProgress progress = {};
  LoadNeeds needs = {};
};

struct LoadedModel {
  std::shared_ptr<const ModelFiles> files;
  std::shared_ptr<const TensorStore> weights;         // the model's matrices are views into it, and into
  std::shared_ptr<const PackStore> packs;             // where blocks stand in panels; null where there are none
  std::shared_ptr<const std::vector<Tensor>> copies;  // of elements that a file has at odd addresses
  std::filesystem::path new_pack_file;                // that this load has made for the next one; empty if it has not
  KimiLinearForCausalLM model;
  std::shared_ptr<const Tokenizer> tokenizer;  // null where the files hold no tokenizer: ids go in and out
  GenerationConfig generation;
  std::vector<std::string> warnings;  // of optional files that are broken; their values are as if they were not there
  std::vector<int32_t> stop_ids;      // an answer ends with one of these; ascending

  const std::filesystem::path& path() const { return files->path(); }
  const ModelConfig& config() const { return model.config(); }

  bool has_panels() const { return packs != nullptr; }

  /// Bytes of all weights as they are used: as they are stored, or packed.
  uint64_t weight_bytes() const { return weight_bytes_; }

  /// @throws Error for whatever is wrong with the folder, its configuration, weights or tokenizer, or if the packed weights
  /// have no place
  static LoadedModel load(const std::filesystem::path& path, const LoadOptions& options = {});

  /// The tokenizer. @throws NotFound, saying that ids can be used instead; Corrupt if it was optional and is broken
  const Tokenizer& require_tokenizer() const;

 private:
  void load_weights(const ModelConfig& config, const LoadOptions& options);

  std::string tokenizer_fault_;
  uint64_t weight_bytes_ = 0;
};

}  // namespace kilin

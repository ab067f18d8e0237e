#include "engine/loaded_model.h"

#include <algorithm>

namespace kilin {

namespace {

// Answers end with what either configuration names, and with the chat format's own ends: converted checkpoints often name only
// one of them.
std::vector<int32_t> stop_ids_of(const ModelConfig& config, const GenerationConfig& generation, const Tokenizer* tokenizer) {
  std::vector<int32_t> ids = config.eos_token_ids;
  ids.insert(ids.end(), generation.eos_token_ids.begin(), generation.eos_token_ids.end());
  if (tokenizer != nullptr)
    for (const char* name : {"<|im_end|>", "[EOS]", "[EOT]"})
      if (const auto id = tokenizer->special(name)) ids.push_back(*id);
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

}  // namespace

LoadedModel LoadedModel::load(const std::filesystem::path& path, const KimiLinearForCausalLM::Progress& progress) {
  LoadedModel loaded;
  loaded.files = ModelFiles::open(path);
  const ModelConfig config = loaded.files->config();
  loaded.generation = loaded.files->generation(config);
  loaded.tokenizer = loaded.files->tokenizer();
  if (loaded.tokenizer) loaded.tokenizer->require_vocabulary(config.vocab_size);
  WeightSource source = WeightSource::open(loaded.files->weights(config), config);
  loaded.weights = source.store();
  loaded.model = KimiLinearForCausalLM::load(source, config, progress);
  loaded.stop_ids = stop_ids_of(config, loaded.generation, loaded.tokenizer.get());
  return loaded;
}

uint64_t LoadedModel::weight_bytes() const {
  uint64_t bytes = 0;
  for (const std::string& name : weights->names()) bytes += weights->require(name).bytes.size();
  return bytes;
}

const Tokenizer& LoadedModel::require_tokenizer() const {
  if (!tokenizer) files->raise_no_tokenizer();
  return *tokenizer;
}

}  // namespace kilin

#include "engine/loaded_model.h"

#include <algorithm>

#include "checkpoint/checkpoint.h"
#include "core/error.h"

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

LoadedModel LoadedModel::load(const std::filesystem::path& folder, const KimiLinearForCausalLM::Progress& progress) {
  if (!std::filesystem::is_directory(folder))
    raise(ErrorCode::NotFound, "{}: not a folder; expected that of a model", folder.string());
  LoadedModel loaded;
  loaded.folder = folder;
  const ModelConfig config = ModelConfig::read(folder);
  loaded.generation = GenerationConfig::read(folder, config.vocab_size);
  if (Tokenizer::exists(folder)) {
    auto tokenizer = std::make_shared<Tokenizer>(Tokenizer::load(folder));
    tokenizer->require_vocabulary(config.vocab_size);
    loaded.tokenizer = std::move(tokenizer);
  }
  WeightSource source = WeightSource::open(Checkpoint::open(folder), config);
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
  if (!tokenizer) Tokenizer::raise_missing(folder);
  return *tokenizer;
}

}  // namespace kilin

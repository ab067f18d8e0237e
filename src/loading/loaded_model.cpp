#include "loading/loaded_model.h"

#include <algorithm>

#include "core/cpu_info.h"
#include "core/error.h"
#include "loading/tokenizer_fit.h"

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

uint64_t bytes_in_use(const TensorStore& weights, const PackPlan* plan) {
  uint64_t bytes = 0;
  for (const std::string& name : weights.names()) bytes += weights.require(name).bytes.size();
  if (plan == nullptr) return bytes;
  for (const PlannedPack& pack : plan->packs())
    if (pack.name == pack.source) bytes -= weights.require(pack.source).bytes.size();  // a tied embedding stays beside its pack
  return bytes + plan->bytes();
}

}  // namespace

LoadedModel LoadedModel::load(const std::filesystem::path& path, const LoadOptions& options) {
  LoadedModel loaded;
  loaded.files = ModelFiles::open(path);
  const ModelConfig config = loaded.files->config();
  const auto read = [&loaded](Need need, const auto& file) {
    try {
      file();
      return std::string();
    } catch (const Error& error) {
      if (need == Need::Required) throw;
      loaded.warnings.emplace_back(error.what());
      return loaded.warnings.back();
    }
  };
  read(options.needs.generation, [&] { loaded.generation = loaded.files->generation(config); });
  loaded.tokenizer_fault_ = read(options.needs.tokenizer, [&] {
    auto its = loaded.files->tokenizer();
    if (its) require_fit(*its, config);
    loaded.tokenizer = std::move(its);
  });
  loaded.load_weights(config, options);
  loaded.stop_ids = stop_ids_of(config, loaded.generation, loaded.tokenizer.get());
  return loaded;
}

void LoadedModel::load_weights(const ModelConfig& config, const LoadOptions& options) {
  ThreadPool pool(options.threads == 0 ? usable_threads() : options.threads);
  const std::shared_ptr<const TensorStore> store = files->weights(config);
  const PackOrigin origin = {.weights = store, .quantize = options.quantize};
  PackOptions packing;
  packing.quantize = options.quantize;
  packing.pool = &pool;
  packing.place = [&](const PackPlan& plan) {
    return place_packs(options.pack_cache, path(), plan, origin, MemoryInfo::detect(), &pool);
  };
  packing.progress = [&](uint64_t done, uint64_t total) {
    if (options.progress) options.progress(LoadStage::Packing, done, total);
  };
  WeightSource source = WeightSource::open(store, config, packing);
  weights = source.store();
  packs = source.packs();
  copies = source.copies();
  weight_bytes_ = bytes_in_use(*weights, source.plan());
  const bool packed_before = !packs || packs->is_complete();
  model = KimiLinearForCausalLM::load(source, config, [&](size_t done, size_t total) {
    if (options.progress && packed_before) options.progress(LoadStage::Reading, done, total);
  });
  if (!packed_before) new_pack_file = packs->file();
}

const Tokenizer& LoadedModel::require_tokenizer() const {
  if (!tokenizer_fault_.empty()) raise(ErrorCode::Corrupt, "{}", tokenizer_fault_);
  if (!tokenizer) files->raise_no_tokenizer();
  return *tokenizer;
}

}  // namespace kilin

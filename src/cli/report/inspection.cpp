#include "cli/report/inspection.h"

#include <algorithm>
#include <memory>

#include "core/error.h"
#include "loading/model_files.h"

namespace kilin::cli {

namespace {

constexpr size_t kContexts[] = {4096, 32768, 131072, 1048576};

}  // namespace

std::string_view name_of(AttentionKind kind) { return kind == AttentionKind::Kda ? "KDA" : "MLA"; }
std::string_view name_of(FeedForwardKind kind) { return kind == FeedForwardKind::Dense ? "dense" : "experts"; }

Inspection Inspection::of(const std::filesystem::path& model, size_t threads) {
  const auto files = ModelFiles::open(model);
  Inspection inspection{.path = model,
                        .config = files->config(),
                        .inventory = {},
                        .machine = MemoryInfo::detect(),
                        .use = {.threads = threads},
                        .memory = {}};
  try {
    const auto store = files->weights_on_demand(inspection.config);
    inspection.inventory = take_inventory(store.get(), inspection.config);
  } catch (const Error& error) {  // the index, or the only file, is broken
    inspection.inventory = take_inventory(nullptr, inspection.config);
    for (InventoryTensor& tensor : inspection.inventory.tensors) tensor.presence = Presence::Unreadable;
    inspection.inventory.unreadable_files = {error.what()};
  }
  const uint64_t weights = inspection.inventory.bytes();
  MemoryUse use = inspection.use;
  for (size_t context : kContexts) {
    if (context > inspection.config.model_max_length) continue;
    for (KvType kv_type : {KvType::f32, KvType::bf16, KvType::q8}) {
      use.pool_tokens = context;
      use.kv_type = kv_type;
      const MemoryPlan plan = plan_memory(inspection.config, weights, use);
      inspection.memory.push_back({kv_type, context, plan, fit_of(plan, inspection.machine)});
    }
  }
  return inspection;
}

std::string Inspection::faults() const {
  const auto wrong = static_cast<size_t>(
      std::ranges::count_if(inventory.tensors, [](const InventoryTensor& tensor) { return !tensor.fault.empty(); }));
  std::string text;
  const auto add = [&](size_t count, std::string_view what) {
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, what);
  };
  add(inventory.count(Presence::Missing), "missing");
  add(inventory.count(Presence::Unreadable), "unreadable");
  add(wrong, "of another shape or type");
  add(inventory.surplus.size(), "surplus");
  return text;
}

LayerInspection LayerInspection::of(const std::filesystem::path& model, size_t layer, ThreadPool& pool) {
  const auto files = ModelFiles::open(model);
  const ModelConfig config = files->config();
  if (layer >= config.num_hidden_layers)
    raise(ErrorCode::InvalidArgument, "--layer is {}; expected 0 to {}, the layers of {}", layer, config.num_hidden_layers - 1,
          model.string());
  const auto store = files->weights_on_demand(config);
  if (!store) raise(ErrorCode::NotFound, "{}: holds no weights, so layer {} can't be read", model.string(), layer);

  LayerInspection inspection{model, layer, config.attention_kinds[layer], config.feed_forward_kinds[layer], {}, {}};
  const TensorInventory inventory = take_inventory_of_layer(store.get(), config, layer);
  inspection.faults = inventory.unreadable_files;
  for (const std::string& name : inventory.surplus)
    inspection.faults.push_back(fmt::format("surplus tensor '{}'", printable(name)));
  for (const InventoryTensor& tensor : inventory.tensors) {
    Tensor entry{tensor, {}};
    if (!tensor.fault.empty()) inspection.faults.push_back(fmt::format("tensor '{}' {}", tensor.name, tensor.fault));
    if (tensor.presence == Presence::Missing) inspection.faults.push_back(fmt::format("missing tensor '{}'", tensor.name));
    if (tensor.presence == Presence::Stored && tensor.fault.empty()) {
      const StoredTensor stored = store->require(tensor.name);
      entry.statistics = tensor_statistics(stored, pool);
      if (const FiniteScan& scan = entry.statistics.scan; !scan.finite())
        inspection.faults.push_back(fmt::format("tensor '{}' holds {} NaN and {} infinite values, the first at {}", tensor.name,
                                                scan.nans, scan.infinities, position_of(stored.shape, *scan.first)));
    }
    inspection.tensors.push_back(std::move(entry));
  }
  return inspection;
}

}  // namespace kilin::cli

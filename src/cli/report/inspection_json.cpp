// An inspection for programs. Sizes are in bytes; layers and experts count from 0.
#include <nlohmann/json.hpp>

#include "cli/report/inspection.h"

namespace kilin::cli {

namespace {

using Json = nlohmann::ordered_json;

Json array_of(const Shape& shape) { return std::vector<size_t>(shape.begin(), shape.end()); }

void describe(Json& json, const InventoryTensor& tensor) {
  json["dtype"] = to_string(tensor.format);
  json["shape"] = array_of(tensor.shape);
  json["presence"] = to_string(tensor.presence);
  if (!tensor.file.empty()) json["file"] = tensor.file;
  if (!tensor.fault.empty()) json["fault"] = tensor.fault;
}

Json tree(const ModuleNode& node) {
  Json json = {{"name", node.name}};
  if (!node.kind.empty()) json["kind"] = node.kind;
  if (node.count > 1) json["count"] = node.count;
  if (node.tensor != nullptr) describe(json, *node.tensor);
  json["tensors"] = node.tensors;
  json["parameters"] = node.parameters;
  json["bytes"] = node.bytes;
  if (node.children.empty()) return json;
  json["children"] = Json::array();
  for (const ModuleNode& child : node.children) json["children"].push_back(tree(child));
  return json;
}

Json kinds(const ModelConfig& config) {
  Json layers = Json::array();
  for (size_t layer = 0; layer < config.num_hidden_layers; ++layer)
    layers.push_back(
        {{"attention", config.is_kda(layer) ? "kda" : "mla"}, {"feed_forward", config.is_moe(layer) ? "moe" : "dense"}});
  return layers;
}

Json memory_rows(const Inspection& inspection) {
  Json rows = Json::array();
  for (const auto& row : inspection.memory)
    rows.push_back({{"context_tokens", row.context_tokens},
                    {"kv_type", to_string(row.kv_type)},
                    {"weight_bytes", row.plan.weights},
                    {"state_bytes", row.plan.states},
                    {"latent_bytes", row.plan.latents},
                    {"workspace_bytes", row.plan.workspace},
                    {"total_bytes", row.plan.total()},
                    {"latent_bytes_per_token", row.plan.latents_per_token},
                    {"fit", to_string(row.fit)}});
  return rows;
}

}  // namespace

Json Inspection::json(Alike alike) const {
  const ModuleNode root = module_tree(inventory, alike);
  Json modules = Json::array();
  for (const ModuleNode& child : root.children) modules.push_back(tree(child));
  return {{"model", path.string()},
          {"layers", kinds(config)},
          {"hidden_size", config.hidden_size},
          {"vocab_size", config.vocab_size},
          {"model_max_length", config.model_max_length},
          {"num_experts", config.num_experts},
          {"num_experts_per_token", config.num_experts_per_token},
          {"tensors", root.tensors},
          {"parameters", root.parameters},
          {"bytes", root.bytes},
          {"presence",
           {{"stored", inventory.count(Presence::Stored)},
            {"expected", inventory.count(Presence::Expected)},
            {"missing", inventory.count(Presence::Missing)},
            {"unreadable", inventory.count(Presence::Unreadable)}}},
          {"surplus", inventory.surplus},
          {"unreadable_files", inventory.unreadable_files},
          {"modules", modules},
          {"machine", {{"total_bytes", machine.total}, {"available_bytes", machine.available}}},
          {"prefill_chunk", use.prefill_chunk},
          {"threads", use.threads},
          {"memory", memory_rows(*this)}};
}

Json LayerInspection::json() const {
  Json list = Json::array();
  for (const auto& [tensor, statistics] : tensors) {
    Json entry = {{"name", tensor.name}};
    describe(entry, tensor);
    if (tensor.presence == Presence::Stored && tensor.fault.empty()) {
      entry["min"] = statistics.min;
      entry["max"] = statistics.max;
      entry["mean"] = statistics.mean;
      entry["rms"] = statistics.rms;
      entry["nans"] = statistics.scan.nans;
      entry["infinities"] = statistics.scan.infinities;
    }
    list.push_back(std::move(entry));
  }
  return {{"model", path.string()},
          {"layer", layer},
          {"attention", attention == AttentionKind::Kda ? "kda" : "mla"},
          {"feed_forward", feed_forward == FeedForwardKind::Moe ? "moe" : "dense"},
          {"tensors", list},
          {"faults", faults}};
}

}  // namespace kilin::cli

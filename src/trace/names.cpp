#include "trace/names.h"

namespace kilin {

namespace {

enum class Owner : uint8_t { Model, Layer, Attention, Mlp };

struct Entry {
  Owner owner;
  std::string_view name;
};

Entry entry(Value value) {
  switch (value) {
    case Value::TokenEmbeddings:
      return {Owner::Model, "token_embeddings"};
    case Value::LayerInput:
      return {Owner::Layer, "layer_input"};
    case Value::AttentionInput:
      return {Owner::Attention, "input"};
    case Value::AttentionQueries:
      return {Owner::Attention, "attention_queries"};
    case Value::AttentionKeys:
      return {Owner::Attention, "attention_keys"};
    case Value::AttentionValues:
      return {Owner::Attention, "attention_values"};
    case Value::Decays:
      return {Owner::Attention, "decays"};
    case Value::Betas:
      return {Owner::Attention, "betas"};
    case Value::AttentionHeadOutputs:
      return {Owner::Attention, "attention_head_outputs"};
    case Value::AttentionOutput:
      return {Owner::Layer, "attention_output"};
    case Value::MlpInput:
      return {Owner::Mlp, "input"};
    case Value::RouterLogits:
      return {Owner::Mlp, "router_logits"};
    case Value::ExpertIndices:
      return {Owner::Mlp, "expert_indices"};
    case Value::ExpertWeights:
      return {Owner::Mlp, "expert_weights"};
    case Value::RoutedOutput:
      return {Owner::Mlp, "routed_output"};
    case Value::SharedExpertOutput:
      return {Owner::Mlp, "shared_expert_output"};
    case Value::MlpOutput:
      return {Owner::Layer, "mlp_output"};
    case Value::LayerOutput:
      return {Owner::Layer, "layer_output"};
    case Value::Norm:
      return {Owner::Model, "norm"};
  }
  return {Owner::Model, "?"};
}

}  // namespace

std::string to_string(const Site& site, std::string_view attention) {
  const Entry e = entry(site.value);
  if (e.owner == Owner::Model) return std::string(e.name);
  std::string text = "layers." + std::to_string(site.layer) + ".";
  if (e.owner == Owner::Attention) text.append(attention).append(".");
  if (e.owner == Owner::Mlp) text += "mlp.";
  return text.append(e.name);
}

}  // namespace kilin

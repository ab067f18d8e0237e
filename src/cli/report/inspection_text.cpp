// An inspection for people.
#include <algorithm>

#include "cli/report/figures.h"
#include "cli/report/inspection.h"
#include "core/error.h"

namespace kilin::cli {

namespace {

constexpr size_t kLabelWidth = 46, kSurplusShown = 20;

void print_row(Page& out, std::string_view label, std::string_view dtype, std::string_view shape, uint64_t parameters,
               uint64_t bytes, std::string_view remark) {
  std::string row = fmt::format("{:<{}} {:<6} {:<16} {:>15} {:>10}", label, kLabelWidth, dtype, shape, with_commas(parameters),
                                human_bytes(bytes));
  if (!remark.empty()) row += fmt::format("  {}", remark);
  out.print("{}\n", row);
}

// Nothing where all tensors are stored, or all are expected: that is said once, above.
std::string remark_on(const InventoryTensor& tensor) {
  if (!tensor.fault.empty()) return tensor.fault;
  if (tensor.presence == Presence::Expected) return "";
  return tensor.presence == Presence::Stored ? "" : std::string(to_string(tensor.presence));
}

// A module whose only child is a tensor shares its line: "q_proj.weight".
void print_tree(Page& out, const ModuleNode& node, std::string label, size_t depth) {
  label += (label.empty() || label.back() == ' ' ? "" : ".") + node.name;
  if (node.children.size() == 1 && node.children.front().tensor != nullptr && node.count == 1)
    return print_tree(out, node.children.front(), std::move(label), depth);
  if (node.tensor != nullptr) {
    print_row(out, label, to_string(node.tensor->format), to_string(node.tensor->shape), node.parameters, node.bytes,
              remark_on(*node.tensor));
    return;
  }
  if (node.count > 1) label += fmt::format("  x{}", node.count);
  print_row(out, label, "", "", node.parameters, node.bytes, node.kind);
  for (const ModuleNode& child : node.children) print_tree(out, child, std::string(2 * (depth + 1), ' '), depth + 1);
}

// "1-3,5": the layers, from 0, of which `is` is true.
template <typename Is>
std::string layers_where(size_t layers, Is is) {
  std::string text;
  for (size_t layer = 0; layer < layers; ++layer) {
    if (!is(layer)) continue;
    size_t last = layer;
    while (last + 1 < layers && is(last + 1)) ++last;
    if (!text.empty()) text += ',';
    text += std::to_string(layer);
    if (last > layer) text += '-' + std::to_string(last);
    layer = last;
  }
  return text.empty() ? "none" : text;
}

void print_config(Page& out, const ModelConfig& c) {
  const size_t n = c.num_hidden_layers;
  out.print("layers      {}: KDA {}; MLA {}\n", n, layers_where(n, [&](size_t layer) { return c.is_kda(layer); }),
            layers_where(n, [&](size_t layer) { return c.is_mla(layer); }));
  out.print("            dense {}; experts {}\n", layers_where(n, [&](size_t layer) { return !c.is_moe(layer); }),
            layers_where(n, [&](size_t layer) { return c.is_moe(layer); }));
  out.print("experts     {} a layer, {} a token, {} shared\n", c.num_experts, c.num_experts_per_token, c.num_shared_experts);
  out.print("sizes       hidden {}, vocabulary {}, context {} tokens\n", c.hidden_size, c.vocab_size, c.model_max_length);
}

void print_presence(Page& out, const TensorInventory& inventory) {
  const size_t all = inventory.tensors.size();
  if (inventory.count(Presence::Expected) == all)
    out.print("weights     none here: what follows is expected, from the configuration\n");
  else if (inventory.count(Presence::Stored) == all)
    out.print("weights     all {} tensors are here\n", with_commas(all));
  else
    out.print("weights     {} of {} tensors are here; {} missing, {} unreadable\n",
              with_commas(inventory.count(Presence::Stored)), with_commas(all), with_commas(inventory.count(Presence::Missing)),
              with_commas(inventory.count(Presence::Unreadable)));
  for (const std::string& message : inventory.unreadable_files) out.print("            {}\n", message);
  for (size_t i = 0; i < std::min(inventory.surplus.size(), kSurplusShown); ++i)
    out.print("            surplus: {}\n", printable(inventory.surplus[i]));
  if (inventory.surplus.size() > kSurplusShown)
    out.print("            and {} more surplus tensors\n", inventory.surplus.size() - kSurplusShown);
}

void print_memory(Page& out, const Inspection& inspection) {
  out.print("memory for one sequence, prompts in steps of {} tokens, on {} {}; here are {}, {} of it free\n\n",
            inspection.use.prefill_chunk, inspection.use.threads, inspection.use.threads == 1 ? "thread" : "threads",
            human_bytes(inspection.machine.total), human_bytes(inspection.machine.available));
  out.print("{:>10}  {:<7} {:>10} {:>10} {:>10} {:>10} {:>10}  {}\n", "context", "kv-type", "weights", "state", "latents",
            "workspace", "total", "here");
  for (const auto& row : inspection.memory)
    out.print("{:>10}  {:<7} {:>10} {:>10} {:>10} {:>10} {:>10}  {}\n", with_commas(row.context_tokens), to_string(row.kv_type),
              human_bytes(row.plan.weights), human_bytes(row.plan.states), human_bytes(row.plan.latents),
              human_bytes(row.plan.workspace), human_bytes(row.plan.total()), to_string(row.fit));
  const auto has = [&](MemoryFit fit) { return std::ranges::count(inspection.memory, fit, &Inspection::MemoryRow::fit) > 0; };
  if (has(MemoryFit::WeightsFromDisk))
    out.print("\nweights from disk: more than the memory; it runs, and reads them from their files again and again\n");
}

// The last line, which is what stays in sight.
std::string in_short(const Inspection& inspection) {
  const Inspection::MemoryRow* best = nullptr;
  for (const auto& row : inspection.memory)
    if (row.fit == MemoryFit::Fits && (best == nullptr || row.context_tokens > best->context_tokens)) best = &row;
  if (inspection.memory.empty()) return "";
  if (best == nullptr)
    return fmt::format("with a context of {} tokens: {}\n", with_commas(inspection.memory.front().context_tokens),
                       to_string(inspection.memory.front().fit));
  return fmt::format("fits here with a context of {} tokens and kv-type {}: {} of memory\n", with_commas(best->context_tokens),
                     to_string(best->kv_type), human_bytes(best->plan.total()));
}

}  // namespace

std::string Inspection::text(Alike alike) const {
  Page out;
  out.print("model       {}\n", displayable(path.string()));
  print_config(out, config);
  print_presence(out, inventory);
  out.print("\n");
  print_memory(out, *this);
  out.print("\n{:<{}} {:<6} {:<16} {:>15} {:>10}\n", "module (xN: that many alike, counted together)", kLabelWidth, "dtype",
            "shape", "parameters", "bytes");
  const ModuleNode root = module_tree(inventory, alike);
  for (const ModuleNode& child : root.children) print_tree(out, child, "", 0);
  print_row(out, fmt::format("{} tensors", with_commas(root.tensors)), "", "", root.parameters, root.bytes, "");
  out.print("\n{}", in_short(*this));
  return out.text();
}

}  // namespace kilin::cli

#include "weights/module_tree.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "core/error.h"

namespace kilin {

namespace {

std::string_view first_component(std::string_view path) { return path.substr(0, path.find('.')); }

std::string_view after_first(std::string_view path) {
  const size_t dot = path.find('.');
  return dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
}

bool is_number(std::string_view name) {
  return !name.empty() && name.find_first_not_of("0123456789") == std::string_view::npos;
}

// "KimiDeltaAttention.q_proj" belongs to the first module on the way that has a child q_proj; `owner` is null once it is found.
void enter(ModuleNode& node, std::string_view path, const InventoryTensor& tensor, const WeightPattern* owner) {
  ++node.tensors;
  node.parameters += tensor.parameters();
  node.bytes += tensor.bytes();
  if (path.empty()) {
    node.tensor = &tensor;
    return;
  }
  const std::string_view name = first_component(path);
  if (owner != nullptr && first_component(after_first(owner->field)) == name) {
    node.kind = first_component(owner->field);
    owner = nullptr;
  }
  auto child = std::ranges::find(node.children, name, &ModuleNode::name);
  if (child == node.children.end()) {
    child = node.children.insert(child, ModuleNode());
    child->name = name;
  }
  enter(*child, after_first(path), tensor, owner);
}

// What must be equal for modules to look alike.
std::string looks(const ModuleNode& node) {
  if (node.tensor != nullptr)
    return fmt::format("{}{}{}{}", to_string(node.tensor->format), to_string(node.tensor->shape),
                       to_string(node.tensor->presence), node.tensor->fault);
  std::string text = node.kind + "(";
  for (const ModuleNode& child : node.children) text += fmt::format("{}x{}:{};", child.name, child.count, looks(child));
  return text + ")";
}

bool all_numbered(const std::vector<ModuleNode>& nodes) {
  return !nodes.empty() && std::ranges::all_of(nodes, [](const ModuleNode& node) { return is_number(node.name); });
}

// Ascending numbers as "0-2,5".
std::string ranges(const std::vector<size_t>& numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += std::to_string(numbers[i]);
    if (last > i) text += '-' + std::to_string(numbers[last]);
    i = last + 1;
  }
  return text;
}

void put_together(ModuleNode& node) {
  for (ModuleNode& child : node.children) put_together(child);
  if (!all_numbered(node.children)) return;
  std::vector<ModuleNode> groups;
  std::vector<std::vector<size_t>> numbers;  // of each group
  std::map<std::string, size_t> group_of;    // by looks
  for (ModuleNode& child : node.children) {
    const size_t number = std::stoul(child.name);
    const auto [at, is_new] = group_of.emplace(looks(child), groups.size());
    if (is_new) {
      groups.push_back(std::move(child));
      numbers.push_back({number});
      continue;
    }
    ModuleNode& group = groups[at->second];
    ++group.count;
    group.tensors += child.tensors;
    group.parameters += child.parameters;
    group.bytes += child.bytes;
    numbers[at->second].push_back(number);
  }
  for (size_t i = 0; i < groups.size(); ++i) groups[i].name = ranges(numbers[i]);
  node.children = std::move(groups);
}

void sort_numbered(ModuleNode& node) {
  for (ModuleNode& child : node.children) sort_numbered(child);
  if (all_numbered(node.children))
    std::ranges::sort(node.children, {}, [](const ModuleNode& child) { return std::stoul(child.name); });
}

// The router's bias is a member of KimiMoe and stands inside "gate": that makes no second KimiMoe.
void drop_repeated_kinds(ModuleNode& node, const std::string& above) {
  if (node.kind == above) node.kind.clear();
  for (ModuleNode& child : node.children) drop_repeated_kinds(child, node.kind.empty() ? above : node.kind);
}

}  // namespace

ModuleNode module_tree(const TensorInventory& inventory, Alike alike) {
  ModuleNode root;
  for (const InventoryTensor& tensor : inventory.tensors) enter(root, tensor.name, tensor, tensor.pattern);
  sort_numbered(root);
  root.kind.clear();  // lm_head's; "model" says the same
  for (ModuleNode& child : root.children) drop_repeated_kinds(child, "");
  if (alike == Alike::Together) put_together(root);
  return root;
}

}  // namespace kilin

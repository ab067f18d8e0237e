// A model's tensors as the tree of modules that their names spell. Modules that look alike are one node: 256 experts, say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "weights/tensor_inventory.h"

namespace kilin {

/// A module, several that look alike, or a tensor. It refers to the inventory that it was made from.
struct ModuleNode {
  std::string name;                         ///< "self_attn"; of numbered modules that look alike all numbers: "1-2,4-6"
  size_t count = 1;                         ///< modules that this node stands for
  std::string kind;                         ///< the class that the tensors below belong to: "KimiDeltaAttention"; may be empty
  const InventoryTensor* tensor = nullptr;  ///< of a leaf; of the first one, if there are several alike
  std::vector<ModuleNode> children;         ///< of one module
  size_t tensors = 0;                       ///< below this node, in all its modules together
  uint64_t parameters = 0;
  uint64_t bytes = 0;
};

enum class Alike : uint8_t {
  Together,  ///< numbered modules with equal names, dtypes, shapes and presence below them become one node
  Apart,
};

/// The root has no name. Siblings stand in the order of the weight map, numbered ones ascending.
ModuleNode module_tree(const TensorInventory& inventory, Alike alike);

}  // namespace kilin

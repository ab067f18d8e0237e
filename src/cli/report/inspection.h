// What kilin inspect finds out about a model's folder or GGUF file: its tensors, and the memory that running it takes.
#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/terminal/output.h"
#include "engine/memory_plan.h"
#include "weights/module_tree.h"
#include "weights/tensor_scan.h"

namespace kilin::cli {

struct Inspection {
  struct MemoryRow {
    KvType kv_type;
    size_t context_tokens;
    MemoryPlan plan;
    MemoryFit fit;
  };

  std::filesystem::path path;
  ModelConfig config;
  TensorInventory inventory;
  MemoryInfo machine;
  MemoryUse use;                  ///< what the rows have in common
  std::vector<MemoryRow> memory;  ///< by context length

  /// Reads the configuration and whatever is there of the weights; a folder without weights is told from its configuration.
  /// @throws as ModelFiles::open and its config()
  static Inspection of(const std::filesystem::path& model, size_t threads);

  std::string text(Alike alike) const;
  nlohmann::ordered_json json(Alike alike) const;

  /// What keeps the weights from being loaded, in a few words; empty where they are whole or not there at all.
  std::string faults() const;
};

/// One layer, every value of it read.
struct LayerInspection {
  struct Tensor {
    InventoryTensor tensor;
    TensorStatistics statistics;  ///< of a stored one
  };

  std::filesystem::path path;
  size_t layer;  ///< from 0
  AttentionKind attention;
  FeedForwardKind feed_forward;
  std::vector<Tensor> tensors;
  std::vector<std::string> faults;  ///< a line each; empty if the layer is whole and finite

  /// Opens the files that hold the layer and no others. @throws InvalidArgument for a layer that the model does not have;
  /// NotFound if there are no weights
  static LayerInspection of(const std::filesystem::path& model, size_t layer, ThreadPool& pool);

  /// @param alike Together: the experts' tensors share a line
  std::string text(Alike alike) const;
  nlohmann::ordered_json json() const;
};

/// "KDA", "MLA" and "dense", "experts"
std::string_view name_of(AttentionKind kind);
std::string_view name_of(FeedForwardKind kind);

}  // namespace kilin::cli

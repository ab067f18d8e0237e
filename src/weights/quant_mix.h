// Which format each matrix of a model gets when it is quantised: one rule, for weights that are packed at load and for files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/storage_format.h"
#include "weights/weight_map.h"

namespace kilin {

/// Named as the published files are.
enum class QuantType : uint8_t { q8_0, q6_k, q5_k_m, q4_k_m, q4_0 };

std::string_view to_string(QuantType type);

std::vector<std::string> quant_type_names();
/// "q8_0, q6_k, q5_k_m, q4_k_m or q4_0"
std::string known_quant_types();

/// @throws InvalidArgument naming the known ones
QuantType parse_quant_type(std::string_view name);

class QuantMix {
 public:
  /// @param layers of the model
  QuantMix(QuantType type, size_t layers) : type_(type), layers_(layers) {}

  QuantType type() const { return type_; }

  /// The format that a large product's matrix gets; nothing where it stays as it is.
  ///
  /// - The large products get the format that the type is named for.
  /// - lm_head gets q6_k, and q8_0 with q8_0.
  /// - q5_k_m and q4_k_m: values (v_proj) and the products that leave a feed-forward (down_proj, w2) get q6_k in the layers
  ///   of the first and of the last eighth, and in every third of those between: about half.
  /// - Rows that are no multiple of 256 get q8_0 in the place of a K format; those that are no multiple of 32 stay.
  /// - All else stays: norms, A_log, dt_bias, convolutions, the router, the narrow matrices of gates and beta, kv_b_proj, the
  ///   embedding.
  std::optional<BlockFormat> format_of(const ExpectedTensor& tensor) const;

  /// The embedding's, where a file is written: packed at load it stays, since only rows of it are read.
  std::optional<BlockFormat> format_of_table(size_t cols) const;

 private:
  QuantType type_;
  size_t layers_;
};

}  // namespace kilin

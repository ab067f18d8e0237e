// How numbers lie in memory: one element each, or several in a block that shares its scales. The block formats are those of
// GGUF files, bit for bit; what their bits mean stands in kernels/quant/blocks.h.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/dtype.h"

namespace kilin {

enum class BlockFormat : uint8_t { q4_0, q4_1, q5_0, q5_1, q8_0, q2_k, q3_k, q4_k, q5_k, q6_k, iq4_nl, iq4_xs, mxfp4 };

inline constexpr std::array kBlockFormats = {BlockFormat::q4_0, BlockFormat::q4_1, BlockFormat::q5_0,   BlockFormat::q5_1,
                                             BlockFormat::q8_0, BlockFormat::q2_k, BlockFormat::q3_k,   BlockFormat::q4_k,
                                             BlockFormat::q5_k, BlockFormat::q6_k, BlockFormat::iq4_nl, BlockFormat::iq4_xs,
                                             BlockFormat::mxfp4};

/// Elements and bytes of one block.
struct BlockSize {
  size_t elements;
  size_t bytes;
};
BlockSize block_size(BlockFormat format);

/// "q4_0", "q6_k", "iq4_xs", ...
std::string_view to_string(BlockFormat format);
std::optional<BlockFormat> find_block_format(std::string_view name);

/// Either a DType or a BlockFormat; both convert to it.
class StorageFormat {
 public:
  constexpr StorageFormat(DType dtype) : dtype_(dtype) {}                         // NOLINT(google-explicit-constructor)
  constexpr StorageFormat(BlockFormat block) : block_(block), is_block_(true) {}  // NOLINT(google-explicit-constructor)

  constexpr bool is_block() const { return is_block_; }
  /// @pre !is_block()
  constexpr DType dtype() const { return assert(!is_block_), dtype_; }
  /// @pre is_block()
  constexpr BlockFormat block() const { return assert(is_block_), block_; }

  /// Elements that can only be cut together: 1 without blocks. A row holds a multiple of them.
  size_t block_elements() const { return is_block_ ? block_size(block_).elements : 1; }
  /// Bytes of so many elements. @pre a multiple of block_elements()
  size_t bytes_of(size_t elements) const;

  friend constexpr bool operator==(const StorageFormat&, const StorageFormat&) = default;

 private:
  DType dtype_ = DType::f32;
  BlockFormat block_ = BlockFormat::q4_0;
  bool is_block_ = false;
};

std::string_view to_string(StorageFormat format);

}  // namespace kilin

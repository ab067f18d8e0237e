// Element types of plain tensors. Block-quantised weights are no dtype: see kernels/packed_matrix.h.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace kilin {

enum class DType : uint8_t { f32, f16, bf16, f64, i8, u8, i16, u16, i32, u32, i64, u64, boolean };

/// Bytes of one element.
size_t size_of(DType dtype);

/// "f32", "bf16", ...
std::string_view to_string(DType dtype);

/// IEEE half and bfloat16 as their bits: types of storage, not of arithmetic.
struct f16 {
  uint16_t bits;
};
struct bf16 {
  uint16_t bits;
};

inline float to_float(bf16 x) { return std::bit_cast<float>(uint32_t{x.bits} << 16); }

/// Rounds to nearest, ties to even; a NaN stays one.
inline bf16 to_bf16(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {static_cast<uint16_t>((bits >> 16) | 0x40u)};
  return {static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}

float to_float(f16 x);
f16 to_f16(float x);  ///< Rounds to nearest, ties to even.

}  // namespace kilin

#include "kernels/latent_row.h"

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/dtype.h"
#include "core/error.h"
#include "core/saturating.h"

namespace kilin {

namespace {

constexpr KvType kTypes[] = {KvType::f32, KvType::bf16, KvType::q8};

constexpr float kMostCode = 127;

size_t groups_of(size_t width) { return width / kLatentGroup + (width % kLatentGroup != 0); }

// Rounds up to 16 significant bits, so that 127 times the result is exact and /127 gives it back. The largest numbers are
// rounded down, so that they do not overflow.
float with_16_bits(float x) {
  constexpr uint32_t kDropped = 0xff;
  const auto without = [](uint32_t bits) { return std::bit_cast<float>(bits & ~kDropped); };
  return std::min(without(std::bit_cast<uint32_t>(x) + kDropped), without(std::bit_cast<uint32_t>(FLT_MAX / kMostCode)));
}

// 0 if all values are too small to tell from 0, NaN if one is not finite.
float scale_of(const float* x, size_t n) {
  float largest = 0, nan_if_not_finite = 0;
  for (size_t i = 0; i < n; ++i) {
    largest = std::max(largest, std::fabs(x[i]));
    nan_if_not_finite += x[i] * 0.0f;
  }
  const float scale = largest / kMostCode;
  if (std::isnan(nan_if_not_finite)) return std::numeric_limits<float>::quiet_NaN();
  return scale < FLT_MIN ? 0.0f : with_16_bits(scale);
}

// Adding 1.5 x 2^23 rounds to the nearest whole number, ties to even, and leaves it in the low bits: every compiler vectorises
// such a loop, but not one over lrint.
int8_t code_of(float x) { return static_cast<int8_t>(std::bit_cast<uint32_t>(x + 12582912.0f)); }

void store_q8(const float* from, size_t width, std::byte* to) {
  std::byte* scales = to;
  auto* codes = reinterpret_cast<int8_t*>(to + groups_of(width) * sizeof(float));
  for (size_t begin = 0; begin < width; begin += kLatentGroup, scales += sizeof(float)) {
    const size_t n = std::min(kLatentGroup, width - begin);
    const float scale = scale_of(from + begin, n);
    std::memcpy(scales, &scale, sizeof(float));
    if (!(scale > 0)) {
      std::fill_n(codes + begin, n, int8_t{1});  // NaN x 1, or 0 x 1
      continue;
    }
    for (size_t i = 0; i < n; ++i) codes[begin + i] = code_of(from[begin + i] / scale);
  }
}

void load_q8(const std::byte* from, size_t width, float* to) {
  const std::byte* scales = from;
  const auto* codes = reinterpret_cast<const int8_t*>(from + groups_of(width) * sizeof(float));
  for (size_t begin = 0; begin < width; begin += kLatentGroup, scales += sizeof(float)) {
    float scale;
    std::memcpy(&scale, scales, sizeof(float));
    const size_t end = std::min(begin + kLatentGroup, width);
    for (size_t i = begin; i < end; ++i) to[i] = scale * static_cast<float>(codes[i]);
  }
}

}  // namespace

std::string_view to_string(KvType type) {
  switch (type) {
    case KvType::f32:
      return "f32";
    case KvType::bf16:
      return "bf16";
    case KvType::q8:
      return "q8";
  }
  return "?";
}

KvType parse_kv_type(std::string_view name) {
  for (KvType type : kTypes)
    if (name == to_string(type)) return type;
  raise(ErrorCode::InvalidArgument, "kv-type '{}' is not known; f32, bf16 and q8 are", name);
}

size_t latent_row_bytes(KvType type, size_t width) {
  switch (type) {
    case KvType::f32:
      return saturating_product(width, sizeof(float));
    case KvType::bf16:
      return saturating_product(width, sizeof(bf16));
    case KvType::q8:
      return saturating_sum(width, saturating_product(groups_of(width), sizeof(float)));
  }
  return 0;
}

void store_latent_row(KvType type, const float* from, size_t width, std::byte* to) {
  switch (type) {
    case KvType::f32:
      if (width > 0) std::memcpy(to, from, width * sizeof(float));
      return;
    case KvType::bf16:
      std::transform(from, from + width, reinterpret_cast<bf16*>(to), to_bf16);
      return;
    case KvType::q8:
      return store_q8(from, width, to);
  }
}

void load_latent_row(KvType type, const std::byte* from, size_t width, float* to) {
  switch (type) {
    case KvType::f32:
      if (width > 0) std::memcpy(to, from, width * sizeof(float));
      return;
    case KvType::bf16: {
      const auto* halves = reinterpret_cast<const bf16*>(from);
      std::transform(halves, halves + width, to, [](bf16 x) { return to_float(x); });
      return;
    }
    case KvType::q8:
      return load_q8(from, width, to);
  }
}

}  // namespace kilin

#include "weights/encode_row.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/error.h"

namespace kilin {

namespace {

// Blocks count as fp16, which their scales are: a few formats hold more, and no trained model needs it.
float largest_magnitude(StorageFormat format) {
  if (format == DType::f32) return std::numeric_limits<float>::max();
  return format == DType::bf16 ? 0x1.fep127f : 65504.0f;
}

template <typename T, typename Convert>
void convert(std::span<const float> values, std::byte* out, Convert to) {
  for (size_t i = 0; i < values.size(); ++i) {
    const T value = to(values[i]);
    std::memcpy(out + i * sizeof value, &value, sizeof value);
  }
}

}  // namespace

void encode_row(const StoredTensor& from, size_t row, std::span<const float> values, StorageFormat to, Rounding rounding,
                std::byte* out) {
  const float most = largest_magnitude(to);
  const auto bad = std::ranges::find_if(values, [&](float x) { return !(std::fabs(x) <= most); });
  if (bad != values.end())
    raise(ErrorCode::Corrupt, "{}: tensor '{}' holds {} at [{}, {}]; expected numbers from -{} to {}, to be stored as {}",
          from.file, printable(from.name), *bad, row, bad - values.begin(), most, most, to_string(to));
  if (to.is_block()) return quantize_row(to.block(), rounding, values.data(), values.size(), out);
  if (to == DType::bf16) return convert<bf16>(values, out, [](float x) { return to_bf16(x); });
  if (to == DType::f16) return convert<f16>(values, out, [](float x) { return to_f16(x); });
  assert(to == DType::f32);
  std::memcpy(out, values.data(), values.size_bytes());
}

}  // namespace kilin

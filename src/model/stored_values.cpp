#include "model/stored_values.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/error.h"
#include "kernels/quant/blocks.h"

namespace kilin {

namespace {

// The bytes may stand at any address: a test's, or a file's of odd alignment.
template <typename T>
void convert(const std::byte* bytes, size_t n, float* out) {
  for (size_t i = 0; i < n; ++i) {
    T value;
    std::memcpy(&value, bytes + i * sizeof(T), sizeof(T));
    out[i] = to_float(value);
  }
}

float largest_in(StorageFormat format) {
  if (format == DType::f32) return std::numeric_limits<float>::max();
  if (format == DType::bf16) return to_float(bf16{0x7f7f});
  return to_float(f16{0x7bff});  // of f16 itself, and of the scales of blocks
}

}  // namespace

bool has_float_values(StorageFormat format) {
  return format.is_block() || format == DType::f32 || format == DType::f16 || format == DType::bf16;
}

void read_values(const StoredTensor& tensor, size_t begin, size_t end, float* out) {
  assert(has_float_values(tensor.format) && begin <= end && end <= tensor.elements());
  const std::byte* bytes = tensor.bytes.data() + tensor.format.bytes_of(begin);
  const size_t n = end - begin;
  if (tensor.format.is_block()) return dequantize_row(tensor.format.block(), bytes, n, out);
  if (tensor.format == DType::f32 && n > 0) std::memcpy(out, bytes, n * sizeof(float));
  if (tensor.format == DType::f16) convert<f16>(bytes, n, out);
  if (tensor.format == DType::bf16) convert<bf16>(bytes, n, out);
}

void require_representable(const StoredTensor& tensor, std::optional<size_t> row, std::span<const float> values,
                           StorageFormat format) {
  const float most = largest_in(format);
  const auto bad = std::ranges::find_if(values, [most](float x) { return !(std::fabs(x) <= most); });
  if (bad == values.end()) return;
  const std::string place = row ? fmt::format(" at [{}, {}]", *row, bad - values.begin()) : "";
  raise(ErrorCode::Corrupt, "{}: tensor '{}' holds {}{}; expected numbers from -{} to {} to make {} of it", tensor.file,
        printable(tensor.name), *bad, place, most, most, to_string(format));
}

}  // namespace kilin

#include "weights/stored_values.h"

#include <cassert>
#include <cstring>

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

}  // namespace kilin

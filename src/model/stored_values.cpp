#include "model/stored_values.h"

#include <cassert>
#include <cstring>

#include "core/error.h"
#include "kernels/quant/blocks.h"

namespace kilin {

namespace {

template <typename T>
void convert(const std::byte* from, size_t count, float* out) {
  for (size_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, from + i * sizeof(T), sizeof(T));
    out[i] = to_float(value);
  }
}

}  // namespace

bool has_float_values(StorageFormat format) {
  return format.is_block() || format == DType::f32 || format == DType::f16 || format == DType::bf16;
}

void require_float_values(const StoredTensor& tensor) {
  if (!has_float_values(tensor.format))
    raise(ErrorCode::Unsupported, "{}: tensor '{}' is stored as {}; expected f32, f16, bf16 or blocks", tensor.file,
          printable(tensor.name), to_string(tensor.format));
}

void values_as_f32(const StoredTensor& tensor, size_t begin, size_t count, float* out) {
  assert(has_float_values(tensor.format) && begin + count <= tensor.elements());
  if (count == 0) return;
  const std::byte* from = tensor.bytes.data() + tensor.format.bytes_of(begin);
  if (tensor.format.is_block())
    dequantize_row(tensor.format.block(), from, count, out);
  else if (tensor.format == DType::f32)
    std::memcpy(out, from, count * sizeof(float));
  else if (tensor.format == DType::f16)
    convert<f16>(from, count, out);
  else
    convert<bf16>(from, count, out);
}

}  // namespace kilin

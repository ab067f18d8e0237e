#include "weights/tensor_scan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "core/error.h"
#include "kernels/quant/blocks.h"
#include "weights/stored_values.h"

namespace kilin {

namespace {

constexpr size_t kBlock = size_t{1} << 18;  // values that one thread reads at a time
constexpr size_t kChunk = 4096;             // values that are dequantised at a time
static_assert(kBlock % kMostBlockElements == 0 && kChunk % kMostBlockElements == 0, "cuts go between a format's blocks");

// A floating-point format as its bits: sign, exponent, fraction.
template <typename Bits>
struct Format {
  Bits exponent;  // the mask; all ones mean NaN or infinity
  Bits fraction;
};
constexpr Format<uint16_t> kF16 = {0x7c00, 0x03ff};
constexpr Format<uint16_t> kBf16 = {0x7f80, 0x007f};
constexpr Format<uint32_t> kF32 = {0x7f800000u, 0x007fffffu};
constexpr Format<uint64_t> kF64 = {0x7ff0000000000000u, 0x000fffffffffffffu};

// Counts first, without a branch, so that compilers make vectors of it; looks for the place only where something is wrong.
template <typename Bits>
FiniteScan scan_block(const std::byte* data, size_t begin, size_t end, const Format<Bits>& format) {
  const auto value = [data](size_t i) {
    Bits bits;
    std::memcpy(&bits, data + i * sizeof bits, sizeof bits);  // a file need not align it
    return bits;
  };
  Bits any = 0;
  uint32_t odd = 0, infinities = 0;
  for (size_t i = begin; i < end; ++i) {
    const auto magnitude = static_cast<Bits>(value(i) & (format.exponent | format.fraction));
    any = static_cast<Bits>(any | magnitude);
    odd += magnitude >= format.exponent ? 1u : 0u;
    infinities += magnitude == format.exponent ? 1u : 0u;
  }
  FiniteScan scan{.nans = odd - infinities, .infinities = infinities, .first = {}, .all_zero = any == 0};
  for (size_t i = begin; odd != 0 && !scan.first; ++i)
    if ((value(i) & format.exponent) == format.exponent) scan.first = i;
  return scan;
}

void merge(FiniteScan& whole, const FiniteScan& part) {
  whole.nans += part.nans;
  whole.infinities += part.infinities;
  if (!whole.first) whole.first = part.first;
  whole.all_zero = whole.all_zero && part.all_zero;
}

// look(values, index of the first) for [begin, end) of a tensor of blocks, a chunk at a time.
template <typename Look>
void dequantize_by_chunks(const StoredTensor& tensor, size_t begin, size_t end, Look look) {
  std::array<float, kChunk> chunk;
  for (size_t at = begin; at < end; at += kChunk) {
    const size_t n = std::min(kChunk, end - at);
    read_values(tensor, at, at + n, chunk.data());
    look(std::span<const float>(chunk).first(n), at);
  }
}

FiniteScan scan_block(const StoredTensor& tensor, size_t begin, size_t end) {
  const std::byte* data = tensor.bytes.data();
  if (tensor.format.is_block()) {
    FiniteScan whole;
    dequantize_by_chunks(tensor, begin, end, [&](std::span<const float> values, size_t first) {
      FiniteScan part = scan_block(std::as_bytes(values).data(), 0, values.size(), kF32);
      if (part.first) *part.first += first;
      merge(whole, part);
    });
    return whole;
  }
  switch (tensor.format.dtype()) {
    case DType::f16:
      return scan_block(data, begin, end, kF16);
    case DType::bf16:
      return scan_block(data, begin, end, kBf16);
    case DType::f32:
      return scan_block(data, begin, end, kF32);
    case DType::f64:
      return scan_block(data, begin, end, kF64);
    default: {
      const auto bytes =
          tensor.bytes.subspan(begin * size_of(tensor.format.dtype()), (end - begin) * size_of(tensor.format.dtype()));
      FiniteScan scan;
      scan.all_zero = std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; });
      return scan;
    }
  }
}

// part(begin, end) of every block, in order.
template <typename Part>
auto block_by_block(const StoredTensor& tensor, ThreadPool& pool, Part part) {
  const size_t elements = tensor.elements(), blocks = (elements + kBlock - 1) / kBlock;
  std::vector<decltype(part(size_t{}, size_t{}))> parts(blocks);
  pool.parallel_for(blocks, 1, [&](const Slice& slice) {
    for (size_t b = slice.begin; b < slice.end; ++b) parts[b] = part(b * kBlock, std::min(elements, (b + 1) * kBlock));
  });
  return parts;
}

double value_at(const StoredTensor& tensor, size_t index) {
  const auto read = [&](auto value) {
    std::memcpy(&value, tensor.bytes.data() + index * sizeof(value), sizeof(value));
    return value;
  };
  switch (tensor.format.dtype()) {
    case DType::f16:
      return static_cast<double>(to_float(read(f16{})));
    case DType::bf16:
      return static_cast<double>(to_float(read(bf16{})));
    case DType::f32:
      return static_cast<double>(read(float{}));
    default:
      return read(double{});
  }
}

struct Sums {
  FiniteScan scan;
  double min = std::numeric_limits<double>::infinity(), max = -std::numeric_limits<double>::infinity();
  double sum = 0, squares = 0;

  void add(double x) {
    if (!std::isfinite(x)) return;
    min = std::min(min, x);
    max = std::max(max, x);
    sum += x;
    squares += x * x;
  }
};

}  // namespace

FiniteScan scan_finite(const StoredTensor& tensor, ThreadPool& pool) {
  FiniteScan whole;
  for (const FiniteScan& part :
       block_by_block(tensor, pool, [&](size_t begin, size_t end) { return scan_block(tensor, begin, end); }))
    merge(whole, part);
  return whole;
}

TensorStatistics tensor_statistics(const StoredTensor& tensor, ThreadPool& pool) {
  constexpr std::array kFloats = {DType::f32, DType::f16, DType::bf16, DType::f64};
  if (!tensor.format.is_block() && std::ranges::none_of(kFloats, [&](DType dtype) { return tensor.format == dtype; }))
    raise(ErrorCode::Unsupported, "{}: tensor '{}' is of {}; expected f32, f16, bf16, f64 or blocks", tensor.file,
          printable(tensor.name), to_string(tensor.format));
  Sums whole;
  for (const Sums& part : block_by_block(tensor, pool, [&](size_t begin, size_t end) {
         Sums sums;
         sums.scan = scan_block(tensor, begin, end);
         if (tensor.format.is_block())
           dequantize_by_chunks(tensor, begin, end, [&](std::span<const float> values, size_t) {
             for (const float x : values) sums.add(static_cast<double>(x));
           });
         else
           for (size_t i = begin; i < end; ++i) sums.add(value_at(tensor, i));
         return sums;
       })) {
    merge(whole.scan, part.scan);
    whole.min = std::min(whole.min, part.min);
    whole.max = std::max(whole.max, part.max);
    whole.sum += part.sum;
    whole.squares += part.squares;
  }
  const uint64_t finite = tensor.elements() - whole.scan.nans - whole.scan.infinities;
  if (finite == 0) return {.scan = whole.scan};
  const auto n = static_cast<double>(finite);
  return {.scan = whole.scan, .min = whole.min, .max = whole.max, .mean = whole.sum / n, .rms = std::sqrt(whole.squares / n)};
}

std::string position_of(const Shape& shape, size_t index) {
  std::array<size_t, Shape::kMaxRank> position{};
  for (size_t axis = shape.rank(); axis-- > 0; index /= shape[axis]) position[axis] = index % shape[axis];
  return to_string(Shape(std::span<const size_t>(position).first(shape.rank())));
}

}  // namespace kilin

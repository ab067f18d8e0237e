#include "kernels/quant/panels.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

#include "core/dtype.h"

namespace kilin {

namespace {

constexpr size_t kQuads = kSpanColumns / 4;

// The planes of a code, its lowest bits first; 0 ends them.
struct Planes {
  unsigned first, second;
};
constexpr Planes planes_of(unsigned bits) {
  if (bits == 8) return {8, 0};
  if (bits >= 4) return {4, bits - 4};
  return {2, bits - 2};
}

// 8 quads of 4 columns x 16 rows, one code a byte.
using SpanBytes = std::array<std::array<uint8_t, kPanelVector>, kQuads>;

// Puts bits [shift, shift + Bits) of every code into Bits vectors.
template <unsigned Bits>
void put_plane(const SpanBytes& codes, unsigned shift, uint8_t* out) {
  constexpr size_t kPerByte = 8 / Bits;
  constexpr unsigned kMask = (1u << Bits) - 1;
  for (size_t v = 0; v < Bits; ++v)
    for (size_t i = 0; i < kPanelVector; ++i) {
      unsigned byte = 0;
      for (size_t j = 0; j < kPerByte; ++j) byte |= ((unsigned{codes[v * kPerByte + j][i]} >> shift) & kMask) << (j * Bits);
      out[v * kPanelVector + i] = static_cast<uint8_t>(byte);
    }
}

void put_plane(unsigned bits, const SpanBytes& codes, unsigned shift, uint8_t* out) {
  switch (bits) {
    case 8:
      return put_plane<8>(codes, shift, out);
    case 4:
      return put_plane<4>(codes, shift, out);
    case 2:
      return put_plane<2>(codes, shift, out);
    case 1:
      return put_plane<1>(codes, shift, out);
  }
}

void put_halves(const std::array<BlockParts, kPanelRows>& parts, float BlockParts::*number, std::byte* out) {
  uint16_t halves[kPanelRows];
  for (size_t r = 0; r < kPanelRows; ++r) halves[r] = to_f16(parts[r].*number).bits;
  std::memcpy(out, halves, sizeof halves);
}

void put_bytes(const std::array<BlockParts, kPanelRows>& parts, std::array<int8_t, 16> BlockParts::*bytes, size_t groups,
               std::byte* out) {
  for (size_t s = 0; s < groups; ++s)
    for (size_t r = 0; r < kPanelRows; ++r) out[s * kPanelRows + r] = static_cast<std::byte>((parts[r].*bytes)[s]);
}

size_t groups_of(const BlockTraits& traits) { return traits.elements == 256 ? traits.elements / traits.group : 0; }

}  // namespace

size_t panel_bytes(BlockFormat format, size_t rows, size_t cols) {
  return (rows + kPanelRows - 1) / kPanelRows * PanelLayout(format).bytes(cols);
}

void pack_panel(BlockFormat format, size_t cols, const std::byte* rows, size_t count, std::byte* out) {
  assert(count <= kPanelRows);
  const BlockTraits& traits = block_traits(format);
  const BlockSize size = block_size(format);
  const PanelLayout layout(format);
  const Planes planes = planes_of(traits.bits);
  const size_t row_bytes = cols / size.elements * size.bytes;
  std::array<BlockParts, kPanelRows> parts{};  // those of missing rows stay zero
  SpanBytes codes;
  for (size_t section = 0; section < cols; section += kSectionColumns)
    std::fill_n(out + section / kSectionColumns * layout.section, layout.codes, std::byte{0});
  for (size_t b = 0; b < cols / size.elements; ++b) {
    for (size_t r = 0; r < count; ++r) take_apart(format, rows + r * row_bytes + b * size.bytes, parts[r]);
    std::byte* block = out + layout.block_at(b);
    if (format == BlockFormat::mxfp4)
      for (size_t r = 0; r < kPanelRows; ++r) block[r] = static_cast<std::byte>(mxfp4_exponent(parts[r].d));
    else
      put_halves(parts, &BlockParts::d, block);
    if (traits.has_offsets) {
      put_halves(parts, &BlockParts::dmin, block + layout.dmin);
      put_bytes(parts, &BlockParts::offsets, groups_of(traits), block + layout.offsets);
    }
    put_bytes(parts, &BlockParts::scales, groups_of(traits), block + layout.scales);
    for (size_t k = 0; k < size.elements; k += kSpanColumns) {
      auto* span = reinterpret_cast<uint8_t*>(out + layout.span_at((b * size.elements + k) / kSpanColumns));
      for (size_t r = 0; r < kPanelRows; ++r)
        for (size_t q = 0; q < kQuads; ++q) std::memcpy(&codes[q][4 * r], &parts[r].codes[k + 4 * q], 4);
      put_plane(planes.first, codes, 0, span);
      put_plane(planes.second, codes, planes.first, span + planes.first * kPanelVector);
    }
  }
}

void take_apart_panel(BlockFormat format, const std::byte* panel, size_t row, size_t block, BlockParts& parts) {
  const BlockTraits& traits = block_traits(format);
  const PanelLayout layout(format);
  const Planes planes = planes_of(traits.bits);
  const std::byte* scales = panel + layout.block_at(block);
  const auto half_at = [&](size_t at) {
    f16 half;
    std::memcpy(&half, scales + at + row * sizeof half, sizeof half);
    return to_float(half);
  };
  const auto byte_at = [&](size_t at, size_t s) { return static_cast<int8_t>(scales[at + s * kPanelRows + row]); };

  parts = BlockParts();
  parts.d = format == BlockFormat::mxfp4 ? mxfp4_scale(static_cast<uint8_t>(scales[row])) : half_at(0);
  if (traits.has_offsets) parts.dmin = half_at(layout.dmin);
  if (traits.elements == 256) {
    for (size_t s = 0; s < groups_of(traits); ++s) {
      parts.scales[s] = byte_at(layout.scales, s);
      if (traits.has_offsets) parts.offsets[s] = byte_at(layout.offsets, s);
    }
  } else {
    parts.scales[0] = 1;
    parts.offsets[0] = traits.has_offsets ? 1 : 0;
  }
  for (size_t k = 0; k < traits.elements; ++k) {
    const std::byte* span = panel + layout.span_at((block * traits.elements + k) / kSpanColumns);
    const size_t quad = k % kSpanColumns / 4;
    const auto bits_at = [&](const std::byte* plane, unsigned bits) {
      const size_t v = quad * bits / 8, j = quad % (8 / bits);
      return (static_cast<unsigned>(plane[v * kPanelVector + 4 * row + k % 4]) >> (j * bits)) & ((1u << bits) - 1);
    };
    unsigned code = bits_at(span, planes.first);
    if (planes.second > 0) code |= bits_at(span + planes.first * kPanelVector, planes.second) << planes.first;
    parts.codes[k] = static_cast<uint8_t>(code);
  }
}

}  // namespace kilin

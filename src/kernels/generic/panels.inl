// Panels of block-quantised weights, read in strips: kWidth of a panel's 16 rows, side by side in the lanes of a vector.

inline constexpr size_t kStripsOfPanel = kPanelRows / kWidth;
inline constexpr size_t kSpanQuads = kSpanColumns / 4;
static_assert(kStrips % kStripsOfPanel == 0, "runs of strips end where panels do");

// Bits [j Bits, (j + 1) Bits) of every byte, for quad Q of a span.
template <unsigned Bits, size_t Q>
inline Ints quad_of_plane(const uint8_t* plane) {
  if constexpr (Bits == 8) {
    return load_ints(plane + Q * kPanelVector);
  } else {
    constexpr int32_t kByteMask = ((1 << Bits) - 1) * 0x01010101;
    constexpr int kShift = Q % (8 / Bits) * Bits;
    const Ints vector = load_ints(plane + Q * Bits / 8 * kPanelVector);
    return both(shift_right<kShift>(vector), splat_int(kByteMask));
  }
}

// One strip of a panel. Its operand bytes, code_value + kBias, are what dot4 or dot4_wide multiplies.
template <BlockFormat kFormat>
struct PanelStrip {
  static constexpr BlockTraits kTraits = block_layout(kFormat).traits;
  static constexpr bool kWide = kTraits.codebook || kTraits.bits == 8;
  static constexpr int kBias = kWide ? kWideBias : kTraits.bias;
  static constexpr size_t kGroups = kTraits.elements / kTraits.group;  // of a block
  static constexpr PanelLayout kLayout = PanelLayout(kFormat);

  PanelStrip() = default;
  PanelStrip(const PackedMatrix& w, size_t strip) {
    const auto* panel = reinterpret_cast<const uint8_t*>(w.panel(strip / kStripsOfPanel));
    const size_t part = strip % kStripsOfPanel;
    codes = panel + part * sizeof(Ints);
    blocks = panel;
    row = part * kWidth;
  }

  const uint8_t* codes;   // the panel, its codes at this strip's bytes
  const uint8_t* blocks;  // the panel, its scales from its first row on
  size_t row;             // the strip's first row in the panel

  // The codebook's operand bytes; zeros for formats without one.
  static Ints table() {
    alignas(Ints) uint8_t bytes[sizeof(Ints)] = {};
    if constexpr (kTraits.codebook)
      for (size_t i = 0; i < sizeof bytes; ++i)
        bytes[i] = static_cast<uint8_t>(code_value(kFormat, static_cast<uint8_t>(i % 16)) + kBias);
    return load_ints(bytes);
  }

  template <size_t Q>
  Ints quad(const uint8_t* span, Ints codebook) const {
    constexpr unsigned kFirst = kTraits.bits == 8 ? 8 : kTraits.bits >= 4 ? 4 : 2;
    Ints bytes = quad_of_plane<kFirst, Q>(span);
    if constexpr (kTraits.bits > kFirst)
      bytes = plus(bytes, shift_left<kFirst>(quad_of_plane<kTraits.bits - kFirst, Q>(span + kFirst * kPanelVector)));
    if constexpr (kTraits.codebook) bytes = look_up(codebook, bytes);
    if constexpr (kTraits.bits == 8 && kBias == 0) bytes = flip(bytes, splat_int(static_cast<int32_t>(0x80808080u)));
    return bytes;
  }

  template <size_t... Q>
  void read_quads(size_t span, Ints codebook, Ints* quads, size_t stride, std::index_sequence<Q...>) const {
    const uint8_t* from = codes + kLayout.span_at(span);
    ((quads[Q * stride] = quad<Q>(from, codebook)), ...);
  }
  // Reads the 8 quads of a span to places `stride` apart.
  void read_quads(size_t span, Ints codebook, Ints* quads, size_t stride) const {
    read_quads(span, codebook, quads, stride, std::make_index_sequence<kSpanQuads>());
  }

  // Prefetches what comes kAhead bytes after a span's codes, or after a section's scales, into the second-level cache: the
  // first-level cache has too few slots for outstanding misses. Past the matrix it does nothing.
  template <size_t kAhead>
  KILIN_INLINE void prefetch_span(size_t span) const {
    prefetch<kAhead>(codes + kLayout.span_at(span), kLayout.span);
  }
  template <size_t kAhead>
  KILIN_INLINE void prefetch_scales(size_t section) const {
    prefetch<kAhead>(blocks + section * kLayout.section, kLayout.codes);
  }
  template <size_t kAhead>
  KILIN_INLINE static void prefetch(const uint8_t* from, size_t bytes) {
    KILIN_UNROLL
    for (size_t at = 0; at < bytes; at += kPanelVector) __builtin_prefetch(from + kAhead + at, 0, 2);
  }

  const uint8_t* block(size_t b) const { return blocks + kLayout.block_at(b); }
  Vec half(size_t b, size_t at) const { return load(reinterpret_cast<const f16*>(block(b) + at) + row); }
  Ints bytes(size_t b, size_t at, size_t s) const {
    return load_bytes(reinterpret_cast<const int8_t*>(block(b) + at) + s * kPanelRows + row);
  }

  Vec d(size_t b) const {
    if constexpr (kFormat == BlockFormat::mxfp4) {
      const Ints exponent = load_bytes(block(b) + row);                       // mxfp4_scale: only 0 and 1 are subnormal
      const Ints subnormal = shift_right<31>(minus(exponent, splat_int(2)));  // 0 or -1
      const Ints normal_bits = shift_left<23>(minus(exponent, splat_int(1)));
      const Ints subnormal_bits = plus(splat_int(0x200000), shift_left<21>(exponent));
      return from_bits(flip(normal_bits, both(subnormal, flip(normal_bits, subnormal_bits))));
    } else {
      return half(b, 0);
    }
  }
  Vec dmin(size_t b) const { return half(b, kLayout.dmin); }
  // The scale of group s of a block; the product is exact.
  Vec scale(size_t b, size_t s, Vec d_of_block) const {
    return kTraits.elements == 256 ? d_of_block * to_floats(bytes(b, kLayout.scales, s)) : d_of_block;
  }
  Ints offset(size_t b, size_t s) const { return kTraits.elements == 256 ? bytes(b, kLayout.offsets, s) : splat_int(1); }
};

// The columns of y that a product may write. Strips may overlap them at either end.
struct StripColumns {
  size_t begin, end;  // of y

  // Calls f(out, stride) for outputs [n, n + kColumns) of rows [row, row + R). `out` is y itself if all of these columns may be
  // written, else a copy whose allowed columns are copied back.
  template <size_t R, size_t kColumns, typename F>
  void apply(MatView<float> y, size_t row, size_t n, const F& f) const {
    assert(n < end);
    if (begin <= n && n + kColumns <= end) return f(y.row(row) + n, y.stride());
    float copy[R * kColumns] = {};
    for_each_wanted(n, R, kColumns, [&](size_t r, size_t i) { copy[r * kColumns + i] = y.row(row + r)[n + i]; });
    f(static_cast<float*>(copy), kColumns);
    for_each_wanted(n, R, kColumns, [&](size_t r, size_t i) { y.row(row + r)[n + i] = copy[r * kColumns + i]; });
  }

 private:
  template <typename F>
  KILIN_NOINLINE void for_each_wanted(size_t n, size_t rows, size_t columns, const F& f) const {
    const size_t first = begin > n ? begin - n : 0, last = std::min(columns, end - n);
    for (size_t r = 0; r < rows; ++r)
      for (size_t i = first; i < last; ++i) f(r, i);
  }
};

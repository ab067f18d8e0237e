// Exact products with panels: a few columns of weights at a time are converted to fp32, then multiplied by register tiles. A
// lane is an output, so that its chain over k is the same for any rows, any cut and any tile; between chunks of columns the sum
// is kept in y.

inline constexpr size_t kFloatChunk = 2 * kSpanColumns;

// Writes the span's columns, `stride` apart.
template <BlockFormat kFormat>
KILIN_NOINLINE void dequantize_span(const PanelStrip<kFormat>& strip, size_t span, Ints codebook, Vec* out, size_t stride) {
  using Strip = PanelStrip<kFormat>;
  Ints quads[kSpanQuads];
  strip.read_quads(span, codebook, quads, 1);
  const size_t b = span * kSpanColumns / Strip::kTraits.elements;
  const Vec d = strip.d(b);
  for (size_t q = 0; q < kSpanQuads; ++q) {
    const size_t s = (span * kSpanColumns + 4 * q) % Strip::kTraits.elements / Strip::kTraits.group;
    const Vec scale = strip.scale(b, s, d);
    Vec offset = zero();
    if constexpr (Strip::kTraits.has_offsets) offset = strip.dmin(b) * to_floats(strip.offset(b, s));
    const Ints columns[4] = {shift_left<24>(quads[q]), shift_left<16>(quads[q]), shift_left<8>(quads[q]), quads[q]};
    KILIN_UNROLL
    for (size_t i = 0; i < 4; ++i) {
      Ints value = shift_right<24>(columns[i]);
      if constexpr (!Strip::kWide || Strip::kBias != 0) value = minus(both(value, splat_int(255)), splat_int(Strip::kBias));
      out[(4 * q + i) * stride] = fma(scale, to_floats(value), offset);
    }
  }
}

template <size_t S>
struct FloatTile {
  const float* weights;  // [columns][S] vectors
  size_t columns;
  MatView<const float> x;
  size_t k;
  MatView<float> y;
  StripColumns written;
  size_t n;  // first output

  template <size_t R>
  KILIN_NOINLINE void run(size_t row) const {
    Vec acc[R][S];
    clear(acc);
    if (k != 0) {
      written.apply<R, S * kWidth>(y, row, n, [&](const float* out, size_t stride) {
        KILIN_UNROLL
        for (size_t r = 0; r < R; ++r) {
          KILIN_UNROLL
          for (size_t s = 0; s < S; ++s) acc[r][s] = load(out + r * stride + s * kWidth);
        }
      });
    }
    add_products(x.row(row) + k, x.stride(), 1, weights, S * kWidth, columns, acc);
    written.apply<R, S * kWidth>(y, row, n, [&](float* out, size_t stride) {
      KILIN_UNROLL
      for (size_t r = 0; r < R; ++r) {
        KILIN_UNROLL
        for (size_t s = 0; s < S; ++s) store(out + r * stride + s * kWidth, acc[r][s]);
      }
    });
  }
};

struct FloatProduct {
  const PackedMatrix& w;
  MatView<const float> x;
  MatView<float> y;
  StripColumns written;

  // Multiplies S strips from `strip` on.
  template <BlockFormat kFormat, size_t S>
  void run_strips(size_t strip) const {
    const Ints codebook = PanelStrip<kFormat>::table();
    PanelStrip<kFormat> strips[S];
    for (size_t s = 0; s < S; ++s) strips[s] = PanelStrip<kFormat>(w, strip + s);
    Vec weights[kFloatChunk * S];
    for (size_t k = 0; k < w.cols(); k += kFloatChunk) {
      const size_t columns = std::min(kFloatChunk, w.cols() - k);
      for (size_t s = 0; s < S; ++s)
        for (size_t c = 0; c < columns; c += kSpanColumns)
          dequantize_span(strips[s], (k + c) / kSpanColumns, codebook, weights + c * S + s, S);
      const FloatTile<S> tile = {reinterpret_cast<const float*>(weights), columns, x, k, y, written, strip * kWidth};
      for_each_tile<kStripRows>(x.rows(), tile);
    }
  }

  template <BlockFormat kFormat>
  void operator()() const {
    size_t strip = written.begin / kPanelRows * kStripsOfPanel;
    for (; (strip + kStrips) * kWidth <= written.end; strip += kStrips) run_strips<kFormat, kStrips>(strip);
    for (; strip * kWidth < written.end; strip += kStripsOfPanel) run_strips<kFormat, kStripsOfPanel>(strip);
  }
};

inline void matmul_of_panels(const PackedMatrix& w, MatView<const float> x, size_t begin, size_t end, MatView<float> y) {
  if (begin < end) with_format(w.format().block(), FloatProduct{w, x, y, {begin, end}});
}

// Integer products of panels with int8 rows. One output is a lane: sums of a weight group by dot4, exact; then the chain that
// the table's door states. Weights are unpacked to bytes 256 columns at a time and used for all rows, or, where rows are few,
// go from the panel straight into the products.

inline constexpr size_t kChunkSpans = kInt8Group / kSpanColumns;

// What the arithmetic depends on: formats that share it share the tiles.
struct Int8Kind {
  size_t group;     // of weights: 16 or 32
  size_t elements;  // of a block: 32 or 256
  bool has_offsets;
  bool wide;  // bytes for dot4_wide
};
template <BlockFormat kFormat>
inline constexpr Int8Kind kKindOf = {PanelStrip<kFormat>::kTraits.group, PanelStrip<kFormat>::kTraits.elements,
                                     PanelStrip<kFormat>::kTraits.has_offsets, PanelStrip<kFormat>::kWide};

template <Int8Kind kKind>
inline Ints add_dots(Ints acc, Ints w, Ints x) {
  return kKind.wide ? dot4_wide(acc, w, x) : dot4(acc, w, x);
}

// 4 values, or 2 sums, in every lane.
template <typename T>
inline Ints splat_word(const T* p) {
  int32_t word;
  std::memcpy(&word, p, sizeof word);
  return splat_int(word);
}

// Scales of 256 columns of S strips.
template <Int8Kind kKind, size_t S>
struct ChunkScales {
  static constexpr size_t kGroups = kInt8Group / kKind.group, kBlocks = kInt8Group / kKind.elements;
  Vec scale[kGroups][S];
  Vec dmin[kKind.has_offsets ? kBlocks : 1][S];
  Ints offset[kKind.has_offsets ? kChunkSpans : 1][S];  // two int16 a lane, one for 16 columns each

  template <BlockFormat kFormat>
  void read(const PanelStrip<kFormat>& strip, size_t s, size_t chunk, size_t spans) {
    constexpr size_t kGroupsOfBlock = PanelStrip<kFormat>::kGroups;
    for (size_t b = 0; b < spans * kSpanColumns / kKind.elements; ++b) {
      const size_t block = chunk * kBlocks + b;
      const Vec d = strip.d(block);
      for (size_t g = 0; g < kGroupsOfBlock; ++g) scale[b * kGroupsOfBlock + g][s] = strip.scale(block, g, d);
      if constexpr (kKind.has_offsets) {
        dmin[b][s] = strip.dmin(block);
        constexpr size_t kSpansOfBlock = kKind.elements / kSpanColumns, kStep = kSpanColumns / kKind.group;
        for (size_t i = 0; i < kSpansOfBlock; ++i)
          offset[b * kSpansOfBlock + i][s] = plus(both(strip.offset(block, i * kStep), splat_int(0xffff)),
                                                  shift_left<16>(strip.offset(block, i * kStep + kStep - 1)));
      }
    }
  }
};

// Weight bytes that were unpacked before.
template <size_t S>
struct UnpackedCodes {
  const Ints (*quads)[S];  // [chunk's quads]
  const Ints (*span(size_t span, Ints (&)[kSpanQuads][S]) const)[S] { return quads + span * kSpanQuads; }
};

// Weight bytes that are unpacked where they are used.
template <BlockFormat kFormat, size_t S>
struct PackedCodes {
  const PanelStrip<kFormat>* strips;
  size_t first_span;
  Ints codebook;
  const Ints (*span(size_t span, Ints (&quads)[kSpanQuads][S]) const)[S] {
    for (size_t s = 0; s < S; ++s) strips[s].prefetch(first_span + span);
    KILIN_UNROLL
    for (size_t s = 0; s < S; ++s) strips[s].read_quads(first_span + span, codebook, &quads[0][s], S);
    return quads;
  }
};

// R rows of x times S strips over one chunk of 256 columns.
template <Int8Kind kKind, size_t S, typename Codes>
struct Int8Tile {
  Codes codes;
  const ChunkScales<kKind, S>& scales;
  size_t spans;
  int32_t bias;
  const Int8Rows& x;
  size_t chunk;
  MatView<float> y;
  StripColumns written;
  size_t n;  // first output

  template <size_t R>
  KILIN_NOINLINE void run(size_t row) const {
    constexpr size_t kHalves = kSpanColumns / kKind.group, kGroupQuads = kKind.group / 4;
    const int8_t* values = x.values.row(row) + chunk * kInt8Group;
    const int16_t* sums = x.sums.row(row) + chunk * kInt8Group / kInt8SumGroup;
    const size_t value_stride = x.values.stride(), sum_stride = x.sums.stride();
    Vec f[R][S];
    clear(f);
    for (size_t span = 0; span < spans; ++span) {
      Ints unpacked[kSpanQuads][S];
      const Ints(*quads)[S] = codes.span(span, unpacked);
      KILIN_UNROLL
      for (size_t half = 0; half < kHalves; ++half) {
        // The bytes are code_value + bias: the sums begin at -bias * sum(values).
        const int32_t minus_bias = kHalves == 1 ? (-bias & 0xffff) | (-bias * 65536)
                                   : half == 0  ? -bias & 0xffff
                                                : -bias * 65536;
        Ints acc[R][S];
        KILIN_UNROLL
        for (size_t r = 0; r < R; ++r) {
          const Ints start = dot2(splat_int(0), splat_int(minus_bias), splat_word(sums + r * sum_stride + 2 * span));
          KILIN_UNROLL
          for (size_t s = 0; s < S; ++s) acc[r][s] = start;
        }
        KILIN_UNROLL
        for (size_t q = half * kGroupQuads; q < (half + 1) * kGroupQuads; ++q) {
          Ints w[S];
          KILIN_UNROLL
          for (size_t s = 0; s < S; ++s) w[s] = quads[q][s];
          KILIN_UNROLL
          for (size_t r = 0; r < R; ++r) {
            const Ints xq = splat_word(values + r * value_stride + span * kSpanColumns + 4 * q);
            KILIN_UNROLL
            for (size_t s = 0; s < S; ++s) acc[r][s] = add_dots<kKind>(acc[r][s], w[s], xq);
          }
        }
        KILIN_UNROLL
        for (size_t s = 0; s < S; ++s) {
          const Vec scale = scales.scale[span * kHalves + half][s];
          KILIN_UNROLL
          for (size_t r = 0; r < R; ++r) f[r][s] = fma(scale, to_floats(acc[r][s]), f[r][s]);
        }
      }
    }
    if constexpr (kKind.has_offsets) add_offsets(sums, sum_stride, f);
    for (size_t r = 0; r < R; ++r) {
      const Vec scale = splat(x.scales.row(row + r)[chunk]);
      float* out = y.row(row + r);
      KILIN_UNROLL
      for (size_t s = 0; s < S; ++s) {
        const size_t column = n + s * kWidth;
        written.write(out, column, fma(scale, f[r][s], chunk == 0 ? zero() : written.read(out, column)));
      }
    }
  }

  template <size_t R>
  void add_offsets(const int16_t* sums, size_t sum_stride, Vec (&f)[R][S]) const {
    constexpr size_t kSpansOfBlock = kKind.elements / kSpanColumns;
    for (size_t b = 0; b < spans / kSpansOfBlock; ++b) {
      KILIN_UNROLL
      for (size_t r = 0; r < R; ++r) {
        KILIN_UNROLL
        for (size_t s = 0; s < S; ++s) {
          Ints sum = splat_int(0);
          for (size_t i = b * kSpansOfBlock; i < (b + 1) * kSpansOfBlock; ++i)
            sum = dot2(sum, scales.offset[i][s], splat_word(sums + r * sum_stride + 2 * i));
          f[r][s] = fma(scales.dmin[b][s], to_floats(sum), f[r][s]);
        }
      }
    }
  }
};

struct Int8Product {
  const PackedMatrix& w;
  const Int8Rows& x;
  MatView<float> y;
  StripColumns written;

  // Up to so many rows the weights of the formats that models are mostly of go straight from the panel.
  static constexpr size_t kFewRows = 4;
  static constexpr bool goes_straight(BlockFormat format) {
    return format == BlockFormat::q4_0 || format == BlockFormat::q8_0 || format == BlockFormat::q4_k ||
           format == BlockFormat::q6_k;
  }

  template <BlockFormat kFormat, size_t R>
  void run_few_rows(size_t strip) const {
    constexpr size_t S = 1;
    using Codes = PackedCodes<kFormat, S>;
    const PanelStrip<kFormat> strips[S] = {PanelStrip<kFormat>(w, strip)};
    const Ints codebook = PanelStrip<kFormat>::table();
    ChunkScales<kKindOf<kFormat>, S> scales;
    for (size_t k = 0, chunk = 0; k < w.cols(); k += kInt8Group, ++chunk) {
      const size_t spans = std::min(kInt8Group, w.cols() - k) / kSpanColumns;
      for (size_t s = 0; s < S; ++s) scales.read(strips[s], s, chunk, spans);
      const Codes codes = {strips, k / kSpanColumns, codebook};
      const Int8Tile<kKindOf<kFormat>, S, Codes> tile = {codes, scales,  spans,         PanelStrip<kFormat>::kBias, x, chunk,
                                                         y,     written, strip * kWidth};
      tile.template run<R>(0);
    }
  }

  template <BlockFormat kFormat, size_t S>
  void run_many_rows(size_t strip) const {
    using Codes = UnpackedCodes<S>;
    PanelStrip<kFormat> strips[S];
    for (size_t s = 0; s < S; ++s) strips[s] = PanelStrip<kFormat>(w, strip + s);
    const Ints codebook = PanelStrip<kFormat>::table();
    ChunkScales<kKindOf<kFormat>, S> scales;
    Ints quads[kChunkSpans * kSpanQuads][S];
    for (size_t k = 0, chunk = 0; k < w.cols(); k += kInt8Group, ++chunk) {
      const size_t spans = std::min(kInt8Group, w.cols() - k) / kSpanColumns;
      for (size_t s = 0; s < S; ++s) {
        scales.read(strips[s], s, chunk, spans);
        for (size_t i = 0; i < spans; ++i) strips[s].read_quads(k / kSpanColumns + i, codebook, &quads[i * kSpanQuads][s], S);
      }
      const Codes codes = {quads};
      const Int8Tile<kKindOf<kFormat>, S, Codes> tile = {codes, scales,  spans,         PanelStrip<kFormat>::kBias, x, chunk,
                                                         y,     written, strip * kWidth};
      for_each_tile<kStripRows>(x.rows(), tile);
    }
  }

  template <BlockFormat kFormat>
  void operator()() const {
    size_t strip = written.begin / kPanelRows * kStripsOfPanel;
    if constexpr (goes_straight(kFormat)) {
      for (; x.rows() <= kFewRows && strip * kWidth < written.end; ++strip) {
        switch (x.rows()) {
          case 1:
            run_few_rows<kFormat, 1>(strip);
            break;
          case 2:
            run_few_rows<kFormat, 2>(strip);
            break;
          case 3:
            run_few_rows<kFormat, 3>(strip);
            break;
          case 4:
            run_few_rows<kFormat, 4>(strip);
            break;
        }
      }
    }
    for (; (strip + kStrips) * kWidth <= written.end; strip += kStrips) run_many_rows<kFormat, kStrips>(strip);
    for (; strip * kWidth < written.end; strip += kStripsOfPanel) run_many_rows<kFormat, kStripsOfPanel>(strip);
  }
};

void matmul_int8(const PackedMatrix& w, const Int8Rows& x, size_t begin, size_t end, MatView<float> y) noexcept {
  assert(begin <= end && end <= w.rows() && x.cols() == w.cols() && x.rows() == y.rows() && w.has_panels());
  if (begin < end) with_format(w.format().block(), Int8Product{w, x, y, {begin, end}});
}

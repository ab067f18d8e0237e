// Integer products of panels with int8 rows. A lane is one output: dot4 forms the exact sum of each weight group, then the
// chain that kernel_table.h states adds them up. Weights are unpacked to bytes 256 columns at a time and used for all rows;
// with few rows they go from the panel straight into the products.

static_assert(kInt8Group == kSectionColumns);
inline constexpr size_t kChunkSpans = kSectionSpans;

// The properties of a format that the arithmetic depends on: formats with the same ones share the tiles.
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

// Loads 4 values, or 2 sums, into every lane.
template <typename T>
inline Ints splat_word(const T* p) {
  int32_t word;
  std::memcpy(&word, p, sizeof word);
  return splat_int(word);
}

// Scales of 256 columns of S strips.
template <Int8Kind kKind, size_t S>
struct ChunkScales {
  static constexpr size_t kGroups = kInt8Group / kKind.group, kGroupsOfBlock = kKind.elements / kKind.group;
  static constexpr size_t kBlocks = kInt8Group / kKind.elements, kPairsOfBlock = kGroupsOfBlock / 2;
  Vec scale[kGroups][S];
  Vec dmin[kKind.has_offsets ? kBlocks : 1][S];
  Ints offset[kKind.has_offsets && kPairsOfBlock != 0 ? kGroups / 2 : 1][S];  // two int16 a lane, of two groups

  template <BlockFormat kFormat>
  void read(const PanelStrip<kFormat>& strip, size_t s, size_t chunk, size_t spans) {
    for (size_t b = 0; b < spans * kSpanColumns / kKind.elements; ++b) {
      const size_t block = chunk * kBlocks + b;
      const Vec d = strip.d(block);
      for (size_t g = 0; g < kGroupsOfBlock; ++g) scale[b * kGroupsOfBlock + g][s] = strip.scale(block, g, d);
      if constexpr (kKind.has_offsets) {
        dmin[b][s] = strip.dmin(block);
        for (size_t i = 0; i < kPairsOfBlock; ++i)
          offset[b * kPairsOfBlock + i][s] =
              plus(both(strip.offset(block, 2 * i), splat_int(0xffff)), shift_left<16>(strip.offset(block, 2 * i + 1)));
      }
    }
  }
};

// The sums of R rows' values by weight group, for one chunk.
template <Int8Kind kKind, size_t R>
struct ChunkSums {
  static constexpr size_t kGroups = kInt8Group / kKind.group, kParts = kKind.group / kInt8SumGroup;
  int32_t start[R][kGroups];  // where integer sums begin: the weight bytes are code_value + bias
  int16_t sum[kKind.has_offsets ? R : 1][kGroups];

  ChunkSums(const Int8Rows& x, size_t row, size_t chunk, size_t groups, int32_t bias) {
    for (size_t r = 0; r < R; ++r) {
      const int16_t* parts = x.sums.row(row + r) + chunk * kInt8Group / kInt8SumGroup;
      int16_t padded[kInt8Group / kInt8SumGroup] = {};
      if (groups < kGroups) {
        std::copy_n(parts, groups * kParts, padded);
        parts = padded;
      }
      for (size_t g = 0; g < kGroups; ++g) {
        const int32_t of_group = kParts == 1 ? parts[g] : parts[kParts * g] + parts[kParts * g + 1];
        start[r][g] = -bias * of_group;
        if constexpr (kKind.has_offsets) sum[r][g] = static_cast<int16_t>(of_group);
      }
    }
  }
};

// Weight bytes that are already unpacked.
template <size_t S>
struct UnpackedCodes {
  const Ints (*quads)[S];  // [chunk's quads]
  const Ints (*span(size_t span, Ints (&)[kSpanQuads][S]) const)[S] { return quads + span * kSpanQuads; }
};

// A single panel is read in ascending addresses, which the CPU prefetches almost without help.
inline constexpr size_t kStreamAhead = 1024;  // bytes

// Weight bytes that are unpacked on use.
template <BlockFormat kFormat, size_t S>
struct PackedCodes {
  const PanelStrip<kFormat>* strips;
  size_t first_span;
  Ints codebook;
  const Ints (*span(size_t span, Ints (&quads)[kSpanQuads][S]) const)[S] {
    if constexpr (S == kStripsOfPanel) strips[0].template prefetch_span<kStreamAhead>(first_span + span);
    KILIN_UNROLL
    for (size_t s = 0; s < S; ++s) strips[s].read_quads(first_span + span, codebook, &quads[0][s], S);
    return quads;
  }
};

// Multiplies R rows of x with S strips over one chunk of 256 columns.
template <Int8Kind kKind, size_t S, typename Codes>
struct Int8Tile {
  Codes codes;
  const ChunkScales<kKind, S>& scales;
  size_t spans;
  int32_t bias;
  const Int8Rows& x;
  size_t chunk;
  LinesAhead& ahead;
  MatView<float> y;
  StripColumns written;
  size_t n;  // first output

  template <size_t R>
  KILIN_NOINLINE void run(size_t row) const {
    constexpr size_t kHalves = kSpanColumns / kKind.group, kGroupQuads = kKind.group / 4;
    const ChunkSums<kKind, R> sums(x, row, chunk, spans * kHalves, bias);
    const int8_t* values = x.values.row(row) + chunk * kInt8Group;
    const size_t stride = x.values.stride();
    Vec f[R][S];
    clear(f);
    for (size_t span = 0; span < spans; ++span) {
      if constexpr (R > 1) ahead.prefetch();
      Ints unpacked[kSpanQuads][S];
      const Ints(*quads)[S] = codes.span(span, unpacked);
      KILIN_UNROLL
      for (size_t half = 0; half < kHalves; ++half) {
        Ints acc[R][S];
        KILIN_UNROLL
        for (size_t r = 0; r < R; ++r) {
          const Ints start = splat_int(sums.start[r][span * kHalves + half]);
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
            const Ints xq = splat_word(values + r * stride + span * kSpanColumns + 4 * q);
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
    if constexpr (kKind.has_offsets) add_offsets(sums, f);
    written.apply<R, S * kWidth>(y, row, n, [&](float* out, size_t out_stride) {
      KILIN_UNROLL
      for (size_t r = 0; r < R; ++r) {
        const Vec scale = splat(x.scales.row(row + r)[chunk]);
        KILIN_UNROLL
        for (size_t s = 0; s < S; ++s) {
          float* at = out + r * out_stride + s * kWidth;
          store(at, fma(scale, f[r][s], chunk == 0 ? zero() : load(at)));
        }
      }
    });
  }

  template <size_t R>
  void add_offsets(const ChunkSums<kKind, R>& sums, Vec (&f)[R][S]) const {
    constexpr size_t kPairs = ChunkScales<kKind, S>::kPairsOfBlock;
    for (size_t b = 0; b < spans * kSpanColumns / kKind.elements; ++b) {
      KILIN_UNROLL
      for (size_t r = 0; r < R; ++r) {
        KILIN_UNROLL
        for (size_t s = 0; s < S; ++s) {
          Ints sum = splat_int(0);
          if constexpr (kPairs == 0) {  // a block is a group, and its offset 1
            sum = splat_int(sums.sum[r][b]);
          } else {
            for (size_t i = b * kPairs; i < (b + 1) * kPairs; ++i)
              sum = dot2(sum, scales.offset[i][s], splat_word(&sums.sum[r][2 * i]));
          }
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

  // Up to this many rows, the weights of the most common formats go straight from the panel into the products, once per tile:
  // that is faster than storing them as bytes first.
  static constexpr size_t few_rows(BlockFormat format) {
    switch (format) {
      case BlockFormat::q4_0:
      case BlockFormat::q8_0:
        return 128;
      case BlockFormat::q4_k:
      case BlockFormat::q6_k:
        return 8;
      default:
        return 0;
    }
  }

  static constexpr size_t kFewStrips = std::max<size_t>(2, kStripsOfPanel);

  // Prefetches what follows S strips while tiles of more than one row are multiplied with them. A single row spends more time
  // reading than computing, and prefetches would disturb its stream through single panels; more rows have enough work for
  // several panels side by side, with more sums in flight.
  template <BlockFormat kFormat, size_t S>
  LinesAhead lines_ahead(size_t strip) const {
    const size_t steps = (x.rows() + kStripRows - 2) / kStripRows * (w.cols() / kSpanColumns);
    if (steps == 0) return {nullptr, nullptr, 0};
    const size_t bytes = S / kStripsOfPanel * PanelStrip<kFormat>::kLayout.bytes(w.cols());
    const std::byte* next = w.panel(strip / kStripsOfPanel) + bytes;
    return {next, next + bytes, (bytes + 64 * steps - 1) / (64 * steps)};
  }

  template <BlockFormat kFormat, size_t S>
  void run_few_rows(size_t strip) const {
    using Codes = PackedCodes<kFormat, S>;
    PanelStrip<kFormat> strips[S];
    for (size_t s = 0; s < S; ++s) strips[s] = PanelStrip<kFormat>(w, strip + s);
    const Ints codebook = PanelStrip<kFormat>::table();
    LinesAhead ahead = lines_ahead<kFormat, S>(strip);
    ChunkScales<kKindOf<kFormat>, S> scales;
    for (size_t k = 0, chunk = 0; k < w.cols(); k += kInt8Group, ++chunk) {
      const size_t spans = std::min(kInt8Group, w.cols() - k) / kSpanColumns;
      if constexpr (S == kStripsOfPanel) strips[0].template prefetch_scales<kStreamAhead>(chunk);
      for (size_t s = 0; s < S; ++s) scales.read(strips[s], s, chunk, spans);
      const Codes codes = {strips, k / kSpanColumns, codebook};
      const Int8Tile<kKindOf<kFormat>, S, Codes> tile = {
          codes, scales, spans, PanelStrip<kFormat>::kBias, x, chunk, ahead, y, written, strip * kWidth};
      size_t row = 0;
      for (; row + kStripRows <= x.rows(); row += kStripRows) tile.template run<kStripRows>(row);
      run_last_rows<kStripRows - 1>(tile, row);
    }
  }

  // Runs fewer rows than a full tile in one tile: halves would unpack the weights again.
  template <size_t R, typename Tile>
  void run_last_rows(const Tile& tile, size_t row) const {
    if constexpr (R > 0) {
      if (row + R == x.rows()) return tile.template run<R>(row);
      run_last_rows<R - 1>(tile, row);
    }
  }

  template <BlockFormat kFormat, size_t S>
  void run_many_rows(size_t strip) const {
    using Codes = UnpackedCodes<S>;
    PanelStrip<kFormat> strips[S];
    for (size_t s = 0; s < S; ++s) strips[s] = PanelStrip<kFormat>(w, strip + s);
    const Ints codebook = PanelStrip<kFormat>::table();
    LinesAhead ahead = lines_ahead<kFormat, S>(strip);
    ChunkScales<kKindOf<kFormat>, S> scales;
    Ints quads[kChunkSpans * kSpanQuads][S];
    for (size_t k = 0, chunk = 0; k < w.cols(); k += kInt8Group, ++chunk) {
      const size_t spans = std::min(kInt8Group, w.cols() - k) / kSpanColumns;
      for (size_t s = 0; s < S; ++s) {
        scales.read(strips[s], s, chunk, spans);
        for (size_t i = 0; i < spans; ++i) strips[s].read_quads(k / kSpanColumns + i, codebook, &quads[i * kSpanQuads][s], S);
      }
      const Codes codes = {quads};
      const Int8Tile<kKindOf<kFormat>, S, Codes> tile = {
          codes, scales, spans, PanelStrip<kFormat>::kBias, x, chunk, ahead, y, written, strip * kWidth};
      for_each_tile<kStripRows>(x.rows(), tile);
    }
  }

  template <BlockFormat kFormat>
  void operator()() const {
    size_t strip = written.begin / kPanelRows * kStripsOfPanel;
    if constexpr (few_rows(kFormat) != 0) {
      if (x.rows() <= few_rows(kFormat)) {
        if (x.rows() > 1)
          for (; (strip + kFewStrips) * kWidth <= written.end; strip += kFewStrips) run_few_rows<kFormat, kFewStrips>(strip);
        for (; strip * kWidth < written.end; strip += kStripsOfPanel) run_few_rows<kFormat, kStripsOfPanel>(strip);
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

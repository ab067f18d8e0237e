// Products of rows of x with rows of w in the file's layout, by register tiles of dot products. A `Dot` defines the elements
// (Row, Weight), how many columns a vector takes (kColumns), how all or the first n of them are loaded, and how their products
// are added to a vector of sums.

// NR rows of w, `step` rows apart; their outputs are `step` columns of y apart.
template <typename Dot>
struct DotColumns {
  const typename Dot::Weight* w;
  size_t step;
};

// Computes y[m, n step] for MR rows of x and NR rows of w. Each output is one chain per lane over k, with the tail masked into
// the same chain, then one sum over the lanes, whatever MR and NR are.
template <typename Dot, size_t MR, size_t NR>
KILIN_NOINLINE void dot_tile(const DotColumns<Dot>& columns, const typename Dot::Row* x, size_t x_stride, size_t K,
                             LinesAhead& ahead, float* y, size_t y_stride) {
  const auto* w = columns.w;
  const size_t w_stride = columns.step * K;
  Vec acc[MR][NR];
  clear(acc);
  LinesAhead lines = ahead;
  size_t k = 0;
  for (; k + Dot::kColumns <= K; k += Dot::kColumns) {
    typename Dot::Vector wv[NR];
    KILIN_UNROLL
    for (size_t n = 0; n < NR; ++n) wv[n] = Dot::read(w + n * w_stride + k);
    KILIN_UNROLL
    for (size_t m = 0; m < MR; ++m) {
      const typename Dot::Vector xv = Dot::read(x + m * x_stride + k);
      KILIN_UNROLL
      for (size_t n = 0; n < NR; ++n) acc[m][n] = Dot::add(acc[m][n], xv, wv[n]);
    }
    lines.prefetch();
  }
  if (k < K) {
    typename Dot::Vector wv[NR];
    KILIN_UNROLL
    for (size_t n = 0; n < NR; ++n) wv[n] = Dot::read_first(w + n * w_stride + k, K - k);
    KILIN_UNROLL
    for (size_t m = 0; m < MR; ++m) {
      const typename Dot::Vector xv = Dot::read_first(x + m * x_stride + k, K - k);
      KILIN_UNROLL
      for (size_t n = 0; n < NR; ++n) acc[m][n] = Dot::add(acc[m][n], xv, wv[n]);
    }
  }
  ahead = lines;
  KILIN_UNROLL
  for (size_t m = 0; m < MR; ++m) store_sums(acc[m], y + m * y_stride, columns.step);
}

// Multiplies all rows of x with NR rows of w, in as few tiles of at most MR rows as possible, all of about the same size: eight
// rows are split into four and four, since six and two would read the weights again for only two rows.
template <typename Dot, size_t MR, size_t NR>
inline void dot_rows(const DotColumns<Dot>& columns, MatView<const typename Dot::Row> x, size_t K, LinesAhead& ahead, float* y,
                     size_t y_stride) {
  if constexpr (MR > 1) {
    const size_t tiles = (x.rows() + MR - 1) / MR;
    if (x.rows() <= tiles * (MR - 1)) return dot_rows<Dot, MR - 1, NR>(columns, x, K, ahead, y, y_stride);
  }
  size_t m = 0;
  for (; m + MR <= x.rows(); m += MR)
    dot_tile<Dot, MR, NR>(columns, x.row(m), x.stride(), K, ahead, y + m * y_stride, y_stride);
  if constexpr (MR > 1)
    if (m < x.rows()) dot_rows<Dot, MR - 1, NR>(columns, x.rows(m, x.rows()), K, ahead, y + m * y_stride, y_stride);
}

template <typename Dot>
inline void dot_products(const PackedMatrix& w, MatView<const typename Dot::Row> x, size_t begin, size_t end,
                         MatView<float> y) {
  const size_t K = w.cols();
  const auto* weights = reinterpret_cast<const typename Dot::Weight*>(w.data());
  const std::byte* last = w.row(w.rows());
  // As many rows of x as stay in the second-level cache while the weights pass by.
  const size_t block =
      std::max(kDotRows, (size_t{384} << 10) / (sizeof(typename Dot::Row) * std::max(K, size_t{1})) / kDotRows * kDotRows);
  for (size_t m = 0; m < x.rows(); m += block) {
    const MatView<const typename Dot::Row> rows = x.rows(m, std::min(m + block, x.rows()));
    const size_t tiles = (rows.rows() + kDotRows - 1) / kDotRows;
    const size_t lines_a_step = kDotColumns * Dot::kColumns * sizeof(typename Dot::Weight) / 64;
    LinesAhead nothing = {last, last, 0};
    size_t n = begin;
    // A single row is bound by reading the weights, which is fastest in address order. Two streams, since one stream's chain of
    // sums may take longer than reading its bytes.
    if (x.rows() == 1) {
      const size_t half = (end - begin) / 2;
      for (; n < begin + half; ++n) dot_rows<Dot, 1, 2>({weights + n * K, half}, rows, K, nothing, y.row(m) + n, y.stride());
      n += half;
    }
    for (; n + kDotColumns <= end; n += kDotColumns) {
      const auto* next = reinterpret_cast<const std::byte*>(weights + (n + kDotColumns) * K);
      const size_t bytes = kDotColumns * K * sizeof(typename Dot::Weight);
      LinesAhead ahead = {next, std::min(next + bytes, last), (lines_a_step + tiles - 1) / tiles};
      dot_rows<Dot, kDotRows, kDotColumns>({weights + n * K, 1}, rows, K, ahead, y.row(m) + n, y.stride());
    }
    for (; n < end; ++n) dot_rows<Dot, 1, 1>({weights + n * K, 1}, rows, K, nothing, y.row(m) + n, y.stride());
  }
}

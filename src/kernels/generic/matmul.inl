// Products with a weight matrix whose rows are used as the file has them.

// y[m, n] for MR rows of x and NR rows of w. One output: one fused chain a lane over k, the tail masked into the same chain,
// then one sum over the lanes; whatever MR and NR are.
template <size_t MR, size_t NR, typename T>
inline void dot_tile(const T* w, const float* x, size_t x_stride, size_t K, float* y, size_t y_stride) {
  Vec acc[MR][NR];
  clear(acc);
  size_t k = 0;
  for (; k + kWidth <= K; k += kWidth) {
    Vec wv[NR];
    KILIN_UNROLL
    for (size_t n = 0; n < NR; ++n) wv[n] = load(w + n * K + k);
    KILIN_UNROLL
    for (size_t m = 0; m < MR; ++m) {
      const Vec xv = load(x + m * x_stride + k);
      KILIN_UNROLL
      for (size_t n = 0; n < NR; ++n) acc[m][n] = fma(xv, wv[n], acc[m][n]);
    }
  }
  if (k < K) {
    Vec wv[NR];
    KILIN_UNROLL
    for (size_t n = 0; n < NR; ++n) wv[n] = load_first(w + n * K + k, K - k);
    KILIN_UNROLL
    for (size_t m = 0; m < MR; ++m) {
      const Vec xv = load_first(x + m * x_stride + k, K - k);
      KILIN_UNROLL
      for (size_t n = 0; n < NR; ++n) acc[m][n] = fma(xv, wv[n], acc[m][n]);
    }
  }
  KILIN_UNROLL
  for (size_t m = 0; m < MR; ++m) {
    KILIN_UNROLL
    for (size_t n = 0; n < NR; ++n) y[m * y_stride + n] = sum_lanes(acc[m][n]);
  }
}

// All rows of x against NR rows of w.
template <size_t NR, typename T>
inline void dot_rows(const T* w, MatView<const float> x, size_t K, float* y, size_t y_stride) {
  size_t m = 0;
  for (; m + kDotRows <= x.rows(); m += kDotRows)
    dot_tile<kDotRows, NR>(w, x.row(m), x.stride(), K, y + m * y_stride, y_stride);
  for (; m + 2 <= x.rows(); m += 2) dot_tile<2, NR>(w, x.row(m), x.stride(), K, y + m * y_stride, y_stride);
  if (m < x.rows()) dot_tile<1, NR>(w, x.row(m), x.stride(), K, y + m * y_stride, y_stride);
}

template <typename T>
inline void matmul_of(const PackedMatrix& w, MatView<const float> x, size_t begin, size_t end, MatView<float> y) {
  const size_t K = w.cols();
  const T* weights = reinterpret_cast<const T*>(w.data());
  // As many rows of x as stay in the second-level cache while the weights pass by.
  const size_t block = std::max(kDotRows, (size_t{384} << 10) / (sizeof(float) * std::max(K, size_t{1})) / kDotRows * kDotRows);
  for (size_t m = 0; m < x.rows(); m += block) {
    const MatView<const float> rows = x.rows(m, std::min(m + block, x.rows()));
    size_t n = begin;
    for (; n + kDotColumns <= end; n += kDotColumns) dot_rows<kDotColumns>(weights + n * K, rows, K, y.row(m) + n, y.stride());
    for (; n < end; ++n) dot_rows<1>(weights + n * K, rows, K, y.row(m) + n, y.stride());
  }
}

void matmul(const PackedMatrix& w, MatView<const float> x, size_t begin, size_t end, MatView<float> y) noexcept {
  assert(begin <= end && end <= w.rows() && x.cols() == w.cols() && x.rows() == y.rows());
  if (w.has_panels()) return matmul_of_panels(w, x, begin, end, y);
  switch (w.format().dtype()) {
    case DType::f32:
      return matmul_of<float>(w, x, begin, end, y);
    case DType::f16:
      return matmul_of<f16>(w, x, begin, end, y);
    case DType::bf16:
      return matmul_of<bf16>(w, x, begin, end, y);
    default:
      return assert(false);
  }
}

// y[m, k ...] for R rows of x and P vectors (or the first lanes of one) of w's columns: one fused chain over n an output.
template <typename T, size_t P>
struct TransposedTile {
  const T* w;
  size_t N, K;
  MatView<const float> x;
  MatView<float> y;
  size_t k;
  size_t lanes;  // of the last vector

  template <size_t R>
  void run(size_t row) const {
    Vec acc[R][P];
    clear(acc);
    const float* xr = x.row(row);
    for (size_t n = 0; n < N; ++n) {
      Vec wv[P];
      KILIN_UNROLL
      for (size_t p = 0; p < P; ++p)
        wv[p] = P > 1 || lanes == kWidth ? load(w + n * K + k + p * kWidth) : load_first(w + n * K + k, lanes);
      KILIN_UNROLL
      for (size_t r = 0; r < R; ++r) {
        const Vec c = splat(xr[r * x.stride() + n]);
        KILIN_UNROLL
        for (size_t p = 0; p < P; ++p) acc[r][p] = fma(c, wv[p], acc[r][p]);
      }
    }
    for (size_t r = 0; r < R; ++r)
      for (size_t p = 0; p < P; ++p) store_up_to(y.row(row + r) + k + p * kWidth, acc[r][p], P > 1 ? kWidth : lanes);
  }
};

template <typename T>
inline void matmul_transposed_of(const PackedMatrix& w, MatView<const float> x, MatView<float> y) {
  const size_t N = w.rows(), K = w.cols();
  const T* weights = reinterpret_cast<const T*>(w.data());
  size_t k = 0;
  for (; k + 4 * kWidth <= K; k += 4 * kWidth) for_each_tile<2>(x.rows(), TransposedTile<T, 4>{weights, N, K, x, y, k, kWidth});
  for (; k < K; k += kWidth) for_each_tile<4>(x.rows(), TransposedTile<T, 1>{weights, N, K, x, y, k, std::min(kWidth, K - k)});
}

void matmul_transposed(const PackedMatrix& w, MatView<const float> x, MatView<float> y) noexcept {
  assert(x.cols() == w.rows() && y.cols() == w.cols() && x.rows() == y.rows());
  switch (w.format().dtype()) {
    case DType::f32:
      return matmul_transposed_of<float>(w, x, y);
    case DType::f16:
      return matmul_transposed_of<f16>(w, x, y);
    case DType::bf16:
      return matmul_transposed_of<bf16>(w, x, y);
    default:
      return assert(false);
  }
}

template <typename T>
inline void gather_rows_of(const PackedMatrix& table, std::span<const int32_t> ids, MatView<float> out) {
  const size_t K = table.cols();
  const T* rows = reinterpret_cast<const T*>(table.data());
  for (size_t i = 0; i < ids.size(); ++i) {
    const T* from = rows + static_cast<size_t>(ids[i]) * K;
    size_t k = 0;
    for (; k + kWidth <= K; k += kWidth) store(out.row(i) + k, load(from + k));
    if (k < K) store_first(out.row(i) + k, load_first(from + k, K - k), K - k);
  }
}

inline void gather_rows_of_blocks(const PackedMatrix& table, std::span<const int32_t> ids, MatView<float> out) {
  for (size_t i = 0; i < ids.size(); ++i)
    dequantize_row(table.format().block(), table.row(static_cast<size_t>(ids[i])), table.cols(), out.row(i));
}

void gather_rows(const PackedMatrix& table, std::span<const int32_t> ids, MatView<float> out) noexcept {
  if (table.format().is_block()) return gather_rows_of_blocks(table, ids, out);
  switch (table.format().dtype()) {
    case DType::f32:
      return gather_rows_of<float>(table, ids, out);
    case DType::f16:
      return gather_rows_of<f16>(table, ids, out);
    case DType::bf16:
      return gather_rows_of<bf16>(table, ids, out);
    default:
      return assert(false);
  }
}

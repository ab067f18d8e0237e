// Products with a weight matrix in the file's row layout.

template <typename T>
struct FloatDot {
  using Row = float;
  using Weight = T;
  using Vector = Vec;
  static constexpr size_t kColumns = kWidth;

  template <typename E>
  static Vec read(const E* p) {
    return load(p);
  }
  template <typename E>
  static Vec read_first(const E* p, size_t n) {
    return load_first(p, n);
  }
  static Vec add(Vec sum, Vec x, Vec w) { return fma(x, w, sum); }
};

void matmul(const PackedMatrix& w, MatView<const float> x, size_t begin, size_t end, MatView<float> y) noexcept {
  assert(begin <= end && end <= w.rows() && x.cols() == w.cols() && x.rows() == y.rows());
  if (w.has_panels()) return matmul_of_panels(w, x, begin, end, y);
  switch (w.format().dtype()) {
    case DType::f32:
      return dot_products<FloatDot<float>>(w, x, begin, end, y);
    case DType::f16:
      return dot_products<FloatDot<f16>>(w, x, begin, end, y);
    case DType::bf16:
      return dot_products<FloatDot<bf16>>(w, x, begin, end, y);
    default:
      return assert(false);
  }
}

// Adds to y[m, k ...] the products of R rows of x with P vectors (or the first lanes of one) of w's columns, over some of w's
// rows: one fused chain over n per output.
template <typename T, size_t P>
struct TransposedTile {
  const T* w;
  size_t n, end;  // of w's rows
  size_t K;
  MatView<const float> x;
  MatView<float> y;
  size_t k;
  size_t lanes;  // of the last vector

  template <size_t R>
  void run(size_t row) const {
    Vec acc[R][P];
    KILIN_UNROLL
    for (size_t r = 0; r < R; ++r) {
      KILIN_UNROLL
      for (size_t p = 0; p < P; ++p)
        acc[r][p] = n > 0 ? load_up_to(y.row(row + r) + k + p * kWidth, P > 1 ? kWidth : lanes) : zero();
    }
    const float* xr = x.row(row);
    for (size_t i = n; i < end; ++i) {
      Vec wv[P];
      KILIN_UNROLL
      for (size_t p = 0; p < P; ++p)
        wv[p] = P > 1 || lanes == kWidth ? load(w + i * K + k + p * kWidth) : load_first(w + i * K + k, lanes);
      KILIN_UNROLL
      for (size_t r = 0; r < R; ++r) {
        const Vec c = splat(xr[r * x.stride() + i]);
        KILIN_UNROLL
        for (size_t p = 0; p < P; ++p) acc[r][p] = fma(c, wv[p], acc[r][p]);
      }
    }
    KILIN_UNROLL
    for (size_t r = 0; r < R; ++r) {
      KILIN_UNROLL
      for (size_t p = 0; p < P; ++p) store_up_to(y.row(row + r) + k + p * kWidth, acc[r][p], P > 1 ? kWidth : lanes);
    }
  }
};

// Reads the weights once, from first to last, `step` rows at a time; the sums stay in y, which fits the caches. A tile is R
// rows of x and P vectors.
template <typename T, size_t R, size_t P>
inline void matmul_transposed_by(const PackedMatrix& w, MatView<const float> x, MatView<float> y, size_t step) {
  const size_t N = w.rows(), K = w.cols();
  const T* weights = reinterpret_cast<const T*>(w.data());
  size_t n = 0;
  do {
    const size_t end = std::min(n + step, N);
    size_t k = 0;
    for (; k + P * kWidth <= K; k += P * kWidth)
      for_each_tile<R>(x.rows(), TransposedTile<T, P>{weights, n, end, K, x, y, k, kWidth});
    for (; k < K; k += kWidth)
      for_each_tile<4>(x.rows(), TransposedTile<T, 1>{weights, n, end, K, x, y, k, std::min(kWidth, K - k)});
    n = end;
  } while (n < N);
}

template <typename T>
inline void matmul_transposed_of(const PackedMatrix& w, MatView<const float> x, MatView<float> y) {
  // A single row is bound by reading the weights, which is fastest in address order.
  if (x.rows() == 1) return matmul_transposed_by<T, 1, std::min<size_t>(8, 256 / (kWidth * sizeof(T)))>(w, x, y, 1);
  matmul_transposed_by<T, 2, 4>(w, x, y, 16);
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

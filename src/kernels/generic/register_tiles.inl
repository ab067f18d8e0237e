// The register tile that KDA and MLA are built on: a few rows of outputs, a few vectors wide.

// acc[r][p] += sum_{m < n} coefficient[r * row_stride + m * step] * source[m * source_stride + p * vector_stride ...]:
// one fused chain per output, m ascending.
template <size_t R, size_t P>
inline void add_products(const float* coefficient, size_t row_stride, size_t step, const float* source, size_t source_stride,
                         size_t n, Vec (&acc)[R][P], size_t vector_stride = kWidth) {
  for (size_t m = 0; m < n; ++m) {
    Vec s[P];
    KILIN_UNROLL
    for (size_t p = 0; p < P; ++p) s[p] = load(source + m * source_stride + p * vector_stride);
    KILIN_UNROLL
    for (size_t r = 0; r < R; ++r) {
      const Vec c = splat(coefficient[r * row_stride + m * step]);
      KILIN_UNROLL
      for (size_t p = 0; p < P; ++p) acc[r][p] = fma(c, s[p], acc[r][p]);
    }
  }
}

// The same for the first `lanes` of one vector.
template <size_t R>
inline void add_products_masked(const float* coefficient, size_t row_stride, size_t step, const float* source,
                                size_t source_stride, size_t n, size_t lanes, Vec (&acc)[R][1]) {
  for (size_t m = 0; m < n; ++m) {
    const Vec s = load_first(source + m * source_stride, lanes);
    KILIN_UNROLL
    for (size_t r = 0; r < R; ++r) acc[r][0] = fma(splat(coefficient[r * row_stride + m * step]), s, acc[r][0]);
  }
}

template <size_t R, size_t P>
inline void clear(Vec (&acc)[R][P]) {
  KILIN_UNROLL
  for (size_t r = 0; r < R; ++r) {
    KILIN_UNROLL
    for (size_t p = 0; p < P; ++p) acc[r][p] = zero();
  }
}

// Calls tile.run<R>(row) for the rows [0, rows): R rows at a time, then the rest with R halved again and again. No output may
// depend on the R that it is computed with.
template <size_t R, typename Tile>
inline void for_each_tile(size_t rows, const Tile& tile, size_t row = 0) {
  for (; row + R <= rows; row += R) tile.template run<R>(row);
  if constexpr (R > 1) {
    if (row < rows) for_each_tile<R / 2>(rows, tile, row);
  }
}

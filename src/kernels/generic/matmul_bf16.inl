// Products of rows and weights in bf16.

// Both are read as pairs of neighbouring columns, in 32 bits.
struct PairDot {
  using Row = bf16;
  using Weight = bf16;
  using Vector = Ints;
  static constexpr size_t kColumns = 2 * kWidth;

  static Ints read(const bf16* p) { return load_ints(p); }
  static Ints read_first(const bf16* p, size_t n) {
    Ints pairs = splat_int(0);
    std::memcpy(&pairs, p, n * sizeof(bf16));
    return pairs;
  }
  static Vec add(Vec sum, Ints x, Ints w) { return dot_pairs(sum, x, w); }
};

void matmul_bf16(const PackedMatrix& w, MatView<const bf16> x, size_t begin, size_t end, MatView<float> y) noexcept {
  assert(begin <= end && end <= w.rows() && x.cols() == w.cols() && x.rows() == y.rows());
  assert(!w.has_panels() && w.format() == StorageFormat(DType::bf16));
  dot_products<PairDot>(w, x, begin, end, y);
}

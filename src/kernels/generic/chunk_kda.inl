// The gated delta rule of one head, a chunk of up to 64 tokens at a time (golden/README.md, section 1, chunk form), with decays
// as running products of exp(g) <= 1: no exponential of a difference of sums, so nothing overflows or cancels.
//
// Tokens are read in sub-blocks of 16. The lanes hold a sub-block's keys: `rest[d][j]` = k_j[d] decayed from j to the token
// being read. Multiplying by exp(g) keeps all of them up to date, and products with them need no sum over lanes:
//   a[i][j] = -beta_i k_i . (k_j decayed from j to i), j < i
//   p[i][j] =         q_i . (k_j decayed from j to i), j <= i
// After a sub-block is read, each later one decays its keys by its own total, so that at the end of the chunk `rest` holds what
// the state update needs. Value channels are then computed in panels of 16, two at once where a panel is one vector:
//   v'_i = beta_i (v_i - (k_i decayed from the start to i)^T S) + sum_{j<i} a[i][j] v'_j      (I + A) V' = ..., by substitution
//   o_i  = (q_i decayed from the start to i)^T S + sum_{j<=i} p[i][j] v'_j
//   S    = diag(total decay) S + sum_j rest_j v'_j^T

inline constexpr size_t kPanelVectors = kKdaPanel / kWidth;

struct Chunk {
  const KdaHead& head;
  size_t first;  // row of its first token
  size_t rows;   // tokens, <= 64
  size_t K, V;
  size_t v_stride;  // V in whole panels
  float *q, *k, *v, *rest, *a, *p, *corrected, *decay, *prefix, *total;

  Chunk(const KdaHead& of, size_t first_row, size_t n, float* scratch)
      : head(of), first(first_row), rows(n), K(of.k.cols()), V(of.v.cols()), v_stride(in_panels(V)) {
    const ChunkScratch at(K, V);
    q = scratch + at.q, k = scratch + at.k, v = scratch + at.v, rest = scratch + at.rest;
    a = scratch + at.a, p = scratch + at.p, corrected = scratch + at.corrected;
    decay = scratch + at.decay, prefix = scratch + at.prefix, total = scratch + at.total;
  }

  float beta(size_t i) const { return head.beta[(first + i) * head.beta_stride]; }
  float* keys_of(size_t sub_block) const { return rest + sub_block * kKdaSubBlock * K; }  // [K][16]
};

inline void fill(float* x, size_t n, float value) {
  for (size_t i = 0; i < n; ++i) x[i] = value;
}

// Computes the decays of token i, and its q and k times the decay since the sub-block's start.
struct DecayToken {
  const float *g, *q, *k;
  float *decay, *prefix, *q_out, *k_out;
  void operator()(size_t d, size_t n) const {
    const Vec now = exp(load_up_to(g + d, n));
    const Vec since = load_up_to(prefix + d, n) * now;
    store_up_to(decay + d, now, n);
    store_up_to(prefix + d, since, n);
    store_up_to(q_out + d, load_up_to(q + d, n) * since, n);
    store_up_to(k_out + d, load_up_to(k + d, n) * since, n);
  }
};

struct MultiplyBy {
  const float* factor;
  float* x;
  void operator()(size_t d, size_t n) const { store_up_to(x + d, load_up_to(x + d, n) * load_up_to(factor + d, n), n); }
};

// Adds R tokens from `lane` on to their sub-block, one after the other: decays the older keys, adds the token's own key, and
// forms its products with all of them, one chain over d each. R tokens at once keep each key in its register meanwhile.
struct JoinTile {
  const Chunk& chunk;
  size_t first;  // row of the sub-block's first token

  template <size_t R>
  void run(size_t lane) const {
    const size_t K = chunk.K, row = first + lane, t = chunk.first + row;
    const MatView<const float>&q = chunk.head.q, &k = chunk.head.k;
    const float *query = q.row(t), *key = k.row(t), *decay = chunk.decay + lane % kKdaJoinedTokens * K;
    float* keys = chunk.keys_of(first / kKdaSubBlock);
    for (size_t part = 0; part <= lane / kWidth; ++part) {  // R divides kWidth and lane: the last part holds the new tokens
      Mask own[R];
      for (size_t r = 0; r < R; ++r) own[r] = only_lane(lane + r - part * kWidth);  // none in the parts before the last
      Vec a[R], p[R];
      for (size_t r = 0; r < R; ++r) a[r] = p[r] = zero();
      float* cell = keys + part * kWidth;
      for (size_t d = 0; d < K; ++d, cell += kKdaSubBlock) {
        Vec all = load(cell);
        KILIN_UNROLL
        for (size_t r = 0; r < R; ++r) {
          const Vec k_d = splat(key[r * k.stride() + d]);
          all = select(own[r], k_d, all * splat(decay[r * K + d]));
          a[r] = fma(k_d, all, a[r]);
          p[r] = fma(splat(query[r * q.stride() + d]), all, p[r]);
        }
        store(cell, all);
      }
      for (size_t r = 0; r < R; ++r) {
        const size_t at = (row + r) * kKdaChunk + first + part * kWidth;
        store(chunk.a + at, splat(-chunk.beta(row + r)) * a[r]);
        store(chunk.p + at, p[r]);
      }
    }
  }
};

// Multiplies rows of a sub-block with the keys of an earlier one.
struct CrossTile {
  const Chunk& chunk;
  size_t first;      // row of the sub-block's first token
  size_t sub_block;  // the earlier one

  template <size_t R>
  void run(size_t row) const {
    const size_t K = chunk.K, i = first + row, at = i * kKdaChunk + sub_block * kKdaSubBlock;
    Vec acc[R][kPanelVectors];
    clear(acc);
    add_products(chunk.k + i * K, K, 1, chunk.keys_of(sub_block), kKdaSubBlock, K, acc);
    for (size_t r = 0; r < R; ++r)
      for (size_t p = 0; p < kPanelVectors; ++p)
        store(chunk.a + at + r * kKdaChunk + p * kWidth, splat(-chunk.beta(i + r)) * acc[r][p]);
    clear(acc);
    add_products(chunk.q + i * K, K, 1, chunk.keys_of(sub_block), kKdaSubBlock, K, acc);
    for (size_t r = 0; r < R; ++r)
      for (size_t p = 0; p < kPanelVectors; ++p) store(chunk.p + at + r * kKdaChunk + p * kWidth, acc[r][p]);
  }
};

// Copies a row's n channels and fills its last panel with zeros.
inline void copy_in_panels(const float* from, size_t n, float* to) {
  for (size_t i = 0; i < in_panels(n); i += kWidth)
    store(to + i, i + kWidth <= n ? load(from + i) : load_first(from + i, n > i ? n - i : 0));
}

// Fills all of the chunk's scratch but `corrected`.
inline void read_tokens(const Chunk& c) {
  const size_t K = c.K;
  fill(c.total, K, 1);
  for (size_t s = 0; s < c.rows; s += kKdaSubBlock) {
    const size_t n = std::min(kKdaSubBlock, c.rows - s), sub_block = s / kKdaSubBlock;
    fill(c.keys_of(sub_block), kKdaSubBlock * K, 0);
    fill(c.prefix, K, 1);
    for (size_t joined = 0; joined < n; joined += kKdaJoinedTokens) {
      const size_t end = std::min(joined + kKdaJoinedTokens, n);
      for (size_t i = joined; i < end; ++i) {
        const size_t row = s + i, t = c.first + row;
        copy_in_panels(c.head.v.row(t), c.V, c.v + row * c.v_stride);
        for_each_vector(K, DecayToken{c.head.g.row(t), c.head.q.row(t), c.head.k.row(t), c.decay + (i - joined) * K, c.prefix,
                                      c.q + row * K, c.k + row * K});
      }
      for_each_tile<kKdaJoinedTokens>(end, JoinTile{c, s}, joined);
    }
    for (size_t earlier = 0; earlier < sub_block; ++earlier) {
      for_each_tile<kKdaTileRows>(n, CrossTile{c, s, earlier});
      float* keys = c.keys_of(earlier);
      for (size_t d = 0; d < K; ++d)
        for (size_t p = 0; p < kPanelVectors; ++p, keys += kWidth) store(keys, load(keys) * splat(c.prefix[d]));
    }
    for (size_t row = s; row < s + n; ++row) {
      for_each_vector(K, MultiplyBy{c.total, c.q + row * K});
      for_each_vector(K, MultiplyBy{c.total, c.k + row * K});
    }
    for_each_vector(K, MultiplyBy{c.prefix, c.total});
  }
}

// The panels of the state that are computed at once: P vectors, either one panel of P vectors or P panels of one vector each.
template <size_t P>
struct Panels {
  static constexpr size_t kFloats = P * kWidth;  // channels
  static_assert(kFloats == kKdaPanel || kWidth == kKdaPanel);
  const Chunk& chunk;
  float* S;        // [K][16] a panel
  size_t column;   // the first value channel
  size_t columns;  // how many there are, <= kFloats

  size_t lanes(size_t p) const { return columns > p * kWidth ? std::min(kWidth, columns - p * kWidth) : 0; }
  size_t vector_stride() const { return kWidth == kKdaPanel ? chunk.K * kKdaPanel : kWidth; }
};

// Computes v' of R tokens. @pre v' of all tokens before them is computed
template <size_t P>
struct CorrectionTile {
  const Panels<P>& panels;

  template <size_t R>
  void run(size_t i) const {
    constexpr size_t kFloats = Panels<P>::kFloats;
    const Chunk& c = panels.chunk;
    Vec acc[R][P];
    clear(acc);
    add_products(c.k + i * c.K, c.K, 1, panels.S, kKdaPanel, c.K, acc, panels.vector_stride());
    KILIN_UNROLL
    for (size_t r = 0; r < R; ++r) {
      const float* v = c.v + (i + r) * c.v_stride + panels.column;
      KILIN_UNROLL
      for (size_t p = 0; p < P; ++p) acc[r][p] = splat(c.beta(i + r)) * (load(v + p * kWidth) - acc[r][p]);
    }
    add_products(c.a + i * kKdaChunk, kKdaChunk, 1, c.corrected, kFloats, i, acc);
    KILIN_UNROLL
    for (size_t j = 0; j < R; ++j) {
      KILIN_UNROLL
      for (size_t p = 0; p < P; ++p) store(c.corrected + (i + j) * kFloats + p * kWidth, acc[j][p]);
      KILIN_UNROLL
      for (size_t r = j + 1; r < R; ++r) {
        const Vec a = splat(c.a[(i + r) * kKdaChunk + i + j]);
        KILIN_UNROLL
        for (size_t p = 0; p < P; ++p) acc[r][p] = fma(a, acc[j][p], acc[r][p]);
      }
    }
  }
};

template <size_t P>
struct OutputTile {
  const Panels<P>& panels;

  template <size_t R>
  void run(size_t i) const {
    constexpr size_t kFloats = Panels<P>::kFloats;
    const Chunk& c = panels.chunk;
    Vec acc[R][P];
    clear(acc);
    add_products(c.q + i * c.K, c.K, 1, panels.S, kKdaPanel, c.K, acc, panels.vector_stride());
    add_products(c.p + i * kKdaChunk, kKdaChunk, 1, c.corrected, kFloats, i, acc);
    KILIN_UNROLL
    for (size_t j = 0; j < R; ++j) {  // never multiply a later v' by 0 instead of skipping it: a NaN would survive
      KILIN_UNROLL
      for (size_t r = j; r < R; ++r) {
        const Vec weight = splat(c.p[(i + r) * kKdaChunk + i + j]);
        KILIN_UNROLL
        for (size_t p = 0; p < P; ++p) acc[r][p] = fma(weight, load(c.corrected + (i + j) * kFloats + p * kWidth), acc[r][p]);
      }
    }
    for (size_t r = 0; r < R; ++r) {
      float* out = c.head.out.row(c.first + i + r) + panels.column;
      for (size_t p = 0; p < P; ++p) store_first(out + p * kWidth, acc[r][p], panels.lanes(p));
    }
  }
};

template <size_t P>
struct StateTile {
  const Panels<P>& panels;

  template <size_t R>
  void run(size_t d) const {
    constexpr size_t kFloats = Panels<P>::kFloats;
    const Chunk& c = panels.chunk;
    const size_t vector_stride = panels.vector_stride();
    float* S = panels.S + d * kKdaPanel;
    Vec acc[R][P];
    KILIN_UNROLL
    for (size_t r = 0; r < R; ++r) {
      KILIN_UNROLL
      for (size_t p = 0; p < P; ++p) acc[r][p] = load(S + r * kKdaPanel + p * vector_stride) * splat(c.total[d + r]);
    }
    for (size_t s = 0; s < c.rows; s += kKdaSubBlock)
      add_products(c.keys_of(s / kKdaSubBlock) + d * kKdaSubBlock, kKdaSubBlock, 1, c.corrected + s * kFloats, kFloats,
                   std::min(kKdaSubBlock, c.rows - s), acc);
    KILIN_UNROLL
    for (size_t r = 0; r < R; ++r) {
      KILIN_UNROLL
      for (size_t p = 0; p < P; ++p) store(S + r * kKdaPanel + p * vector_stride, acc[r][p]);
    }
  }
};

// Computes value channels from `column` on, P vectors of panels at once, while that many are left. Returns where it stopped.
template <size_t P>
inline size_t apply_to_panels(const Chunk& chunk, size_t column) {
  const size_t V = chunk.V;
  for (; column < V && V - column > (P * kWidth - kKdaPanel); column += P * kWidth) {
    const Panels<P> panels{chunk, chunk.head.state + column * chunk.K, column, std::min(P * kWidth, V - column)};
    for_each_tile<kKdaTileRows>(chunk.rows, CorrectionTile<P>{panels});
    for_each_tile<kKdaTileRows>(chunk.rows, OutputTile<P>{panels});
    for_each_tile<kKdaTileRows>(chunk.K, StateTile<P>{panels});
  }
  return column;
}

void chunk_kda(const KdaHead& head, std::span<float> scratch) noexcept {
  const size_t tokens = head.q.rows(), K = head.k.cols(), V = head.v.cols();
  assert(scratch.size() >= ChunkScratch(K, V).floats);
  size_t next_snapshot = 0;
  for (size_t t = 0; t < tokens;) {
    const size_t position = head.start + t;
    const Chunk chunk(head, t, std::min(tokens - t, kKdaChunk - position % kKdaChunk), scratch.data());
    read_tokens(chunk);
    size_t column = 0;
    if constexpr (kWidth == kKdaPanel) column = apply_to_panels<2>(chunk, column);
    apply_to_panels<kPanelVectors>(chunk, column);
    t += chunk.rows;
    if (next_snapshot < head.snapshots.size() && head.snapshots[next_snapshot].position == head.start + t)
      std::memcpy(head.snapshots[next_snapshot++].state, head.state, kda_state_floats(K, V) * sizeof(float));
  }
}

// The gated delta rule of one head, a chunk of up to 64 tokens at a time (golden/README.md, section 1, chunk form), with decays
// as running products of exp(g) <= 1: no exponential of a difference of sums, so nothing overflows or cancels.
//
// Tokens are read in sub-blocks of 16. A sub-block's keys stand in lanes, `rest[d][j]` = k_j[d] decayed from j to the token
// that is read now; multiplying by exp(g) keeps all of them up to date, and products with them need no sum over lanes:
//   a[i][j] = -beta_i k_i . (k_j decayed from j to i), j < i
//   p[i][j] =         q_i . (k_j decayed from j to i), j <= i
// Once a sub-block is read, later ones decay its keys by their own total, so that after the chunk `rest` holds what the state
// update needs. Value channels then go by panels of 16:
//   v'_i = beta_i (v_i - (k_i decayed from the start to i)^T S) + sum_{j<i} a[i][j] v'_j      (I + A) V' = ..., by substitution
//   o_i  = (q_i decayed from the start to i)^T S + sum_{j<=i} p[i][j] v'_j
//   S    = diag(total decay) S + sum_j rest_j v'_j^T

inline constexpr size_t kPanelVectors = kKdaPanel / kWidth;

struct Chunk {
  const KdaHead& head;
  size_t first;  // row of its first token
  size_t rows;   // tokens, <= 64
  size_t K;
  float *q, *k, *rest, *a, *p, *v, *decay, *prefix, *total;

  Chunk(const KdaHead& of, size_t first_row, size_t n, float* scratch) : head(of), first(first_row), rows(n), K(of.k.cols()) {
    const ChunkScratch at(K);
    q = scratch + at.q, k = scratch + at.k, rest = scratch + at.rest;
    a = scratch + at.a, p = scratch + at.p, v = scratch + at.v;
    decay = scratch + at.decay, prefix = scratch + at.prefix, total = scratch + at.total;
  }

  float beta(size_t i) const { return head.beta[(first + i) * head.beta_stride]; }
  float* keys_of(size_t sub_block) const { return rest + sub_block * kKdaSubBlock * K; }  // [K][16]
};

inline void fill(float* x, size_t n, float value) {
  for (size_t i = 0; i < n; ++i) x[i] = value;
}

// Decays of token i, and its q and k times the decay since the sub-block's start.
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

// Token `lane` joins its sub-block: older keys decay, its own comes in, its products with all of them come out. Four chains
// over d, because one alone would wait for itself.
inline void join_sub_block(const float* q, const float* k, const float* decay, size_t K, size_t lane, float minus_beta,
                           float* keys, float* a_row, float* p_row) {
  constexpr size_t kChains = 4;
  for (size_t part = 0; part <= lane / kWidth; ++part) {
    const Mask own = only_lane(lane - part * kWidth);  // none in the parts before the last
    const bool has_own = part == lane / kWidth;
    Vec a[kChains], p[kChains];
    for (size_t c = 0; c < kChains; ++c) a[c] = p[c] = zero();
    float* cell = keys + part * kWidth;
    size_t d = 0;
    for (; d + kChains <= K; d += kChains) {
      KILIN_UNROLL
      for (size_t c = 0; c < kChains; ++c, cell += kKdaSubBlock) {
        const Vec key = splat(k[d + c]);
        const Vec older = load(cell) * splat(decay[d + c]);
        const Vec all = has_own ? select(own, key, older) : older;
        store(cell, all);
        a[c] = fma(key, all, a[c]);
        p[c] = fma(splat(q[d + c]), all, p[c]);
      }
    }
    for (size_t c = 0; d < K; ++d, ++c, cell += kKdaSubBlock) {
      const Vec key = splat(k[d]);
      const Vec older = load(cell) * splat(decay[d]);
      const Vec all = has_own ? select(own, key, older) : older;
      store(cell, all);
      a[c] = fma(key, all, a[c]);
      p[c] = fma(splat(q[d]), all, p[c]);
    }
    store(a_row + part * kWidth, splat(minus_beta) * ((a[0] + a[1]) + (a[2] + a[3])));
    store(p_row + part * kWidth, (p[0] + p[1]) + (p[2] + p[3]));
  }
}

// Rows of a sub-block against the keys of an earlier one.
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

// Fills all of the chunk's scratch but v.
inline void read_tokens(const Chunk& c) {
  const size_t K = c.K;
  fill(c.total, K, 1);
  for (size_t s = 0; s < c.rows; s += kKdaSubBlock) {
    const size_t n = std::min(kKdaSubBlock, c.rows - s), sub_block = s / kKdaSubBlock;
    fill(c.keys_of(sub_block), kKdaSubBlock * K, 0);
    fill(c.prefix, K, 1);
    for (size_t i = 0; i < n; ++i) {
      const size_t t = c.first + s + i, row = s + i;
      const float *q = c.head.q.row(t), *k = c.head.k.row(t);
      for_each_vector(K, DecayToken{c.head.g.row(t), q, k, c.decay, c.prefix, c.q + row * K, c.k + row * K});
      join_sub_block(q, k, c.decay, K, i, -c.beta(row), c.keys_of(sub_block), c.a + row * kKdaChunk + s,
                     c.p + row * kKdaChunk + s);
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

struct Panel {
  const Chunk& chunk;
  float* S;        // [K][16]
  size_t column;   // its first value channel
  size_t columns;  // how many it has, <= 16

  size_t lanes(size_t p) const { return columns > p * kWidth ? std::min(kWidth, columns - p * kWidth) : 0; }
};

// v' of R tokens; all tokens before them have theirs.
struct CorrectionTile {
  const Panel& panel;

  template <size_t R>
  void run(size_t i) const {
    const Chunk& c = panel.chunk;
    Vec acc[R][kPanelVectors];
    clear(acc);
    add_products(c.k + i * c.K, c.K, 1, panel.S, kKdaPanel, c.K, acc);
    KILIN_UNROLL
    for (size_t r = 0; r < R; ++r) {
      const float* v = c.head.v.row(c.first + i + r) + panel.column;
      KILIN_UNROLL
      for (size_t p = 0; p < kPanelVectors; ++p)
        acc[r][p] = splat(c.beta(i + r)) * (load_first(v + p * kWidth, panel.lanes(p)) - acc[r][p]);
    }
    add_products(c.a + i * kKdaChunk, kKdaChunk, 1, c.v, kKdaPanel, i, acc);
    KILIN_UNROLL
    for (size_t j = 0; j < R; ++j) {
      KILIN_UNROLL
      for (size_t p = 0; p < kPanelVectors; ++p) store(c.v + (i + j) * kKdaPanel + p * kWidth, acc[j][p]);
      KILIN_UNROLL
      for (size_t r = j + 1; r < R; ++r) {
        const Vec a = splat(c.a[(i + r) * kKdaChunk + i + j]);
        KILIN_UNROLL
        for (size_t p = 0; p < kPanelVectors; ++p) acc[r][p] = fma(a, acc[j][p], acc[r][p]);
      }
    }
  }
};

struct OutputTile {
  const Panel& panel;

  template <size_t R>
  void run(size_t i) const {
    const Chunk& c = panel.chunk;
    Vec acc[R][kPanelVectors];
    clear(acc);
    add_products(c.q + i * c.K, c.K, 1, panel.S, kKdaPanel, c.K, acc);
    add_products(c.p + i * kKdaChunk, kKdaChunk, 1, c.v, kKdaPanel, i, acc);
    KILIN_UNROLL
    for (size_t j = 0; j < R; ++j) {  // a row reads no v' after its own: not even times 0, which a NaN would survive
      KILIN_UNROLL
      for (size_t r = j; r < R; ++r) {
        const Vec weight = splat(c.p[(i + r) * kKdaChunk + i + j]);
        KILIN_UNROLL
        for (size_t p = 0; p < kPanelVectors; ++p)
          acc[r][p] = fma(weight, load(c.v + (i + j) * kKdaPanel + p * kWidth), acc[r][p]);
      }
    }
    for (size_t r = 0; r < R; ++r) {
      float* out = c.head.out.row(c.first + i + r) + panel.column;
      for (size_t p = 0; p < kPanelVectors; ++p) store_first(out + p * kWidth, acc[r][p], panel.lanes(p));
    }
  }
};

struct StateTile {
  const Panel& panel;

  template <size_t R>
  void run(size_t d) const {
    const Chunk& c = panel.chunk;
    float* S = panel.S + d * kKdaPanel;
    Vec acc[R][kPanelVectors];
    KILIN_UNROLL
    for (size_t r = 0; r < R; ++r) {
      KILIN_UNROLL
      for (size_t p = 0; p < kPanelVectors; ++p) acc[r][p] = load(S + r * kKdaPanel + p * kWidth) * splat(c.total[d + r]);
    }
    for (size_t s = 0; s < c.rows; s += kKdaSubBlock)
      add_products(c.keys_of(s / kKdaSubBlock) + d * kKdaSubBlock, kKdaSubBlock, 1, c.v + s * kKdaPanel, kKdaPanel,
                   std::min(kKdaSubBlock, c.rows - s), acc);
    for (size_t r = 0; r < R; ++r)
      for (size_t p = 0; p < kPanelVectors; ++p) store(S + r * kKdaPanel + p * kWidth, acc[r][p]);
  }
};

void chunk_kda(const KdaHead& head, std::span<float> scratch) noexcept {
  const size_t tokens = head.q.rows(), K = head.k.cols(), V = head.v.cols();
  assert(scratch.size() >= ChunkScratch(K).floats);
  size_t next_snapshot = 0;
  for (size_t t = 0; t < tokens;) {
    const size_t position = head.start + t;
    const Chunk chunk(head, t, std::min(tokens - t, kKdaChunk - position % kKdaChunk), scratch.data());
    read_tokens(chunk);
    for (size_t column = 0; column < V; column += kKdaPanel) {
      const Panel panel{chunk, head.state + column * K, column, std::min(kKdaPanel, V - column)};
      for_each_tile<kKdaTileRows>(chunk.rows, CorrectionTile{panel});
      for_each_tile<kKdaTileRows>(chunk.rows, OutputTile{panel});
      for_each_tile<kKdaTileRows>(K, StateTile{panel});
    }
    t += chunk.rows;
    if (next_snapshot < head.snapshots.size() && head.snapshots[next_snapshot].position == head.start + t)
      std::memcpy(head.snapshots[next_snapshot++].state, head.state, kda_state_floats(K, V) * sizeof(float));
  }
}

// Attention over one block of keys (Extend). Each lane holds one query row: scores, their maxima and their sums then need no
// sum over lanes, and keys are read in their own layout. All chains run over keys, or over a key's channels, in order.

// Some rows that read the same keys; row r sees the keys [0, visible(r)), and later rows see no fewer.
struct KeyBlock {
  const float* k_first;  // [S, first_dim]
  size_t k_first_stride, first_dim;
  const float* k_second;  // [S, second_dim]: further channels of the same keys
  size_t k_second_stride, second_dim;
  const float* v;  // [S, value_dim]
  size_t v_stride, value_dim;
  size_t keys;
  float scale;
  size_t hidden;  // keys that row 0 does not see yet: key s is seen by row r if s < keys and s + hidden < keys + r

  size_t visible(size_t row) const { return row >= hidden ? keys : keys + row > hidden ? keys + row - hidden : 0; }
};

// Computes scores[s][lane] for R keys.
template <size_t P>
struct ScoreTile {
  const KeyBlock& block;
  const float* queries;  // [first_dim + second_dim][P * kWidth]
  float* scores;         // [S][P * kWidth]

  template <size_t R>
  void run(size_t s) const {
    constexpr size_t kLaneCount = P * kWidth;
    Vec acc[R][P];
    clear(acc);
    add_products(block.k_first + s * block.k_first_stride, block.k_first_stride, 1, queries, kLaneCount, block.first_dim, acc);
    add_products(block.k_second + s * block.k_second_stride, block.k_second_stride, 1, queries + block.first_dim * kLaneCount,
                 kLaneCount, block.second_dim, acc);
    for (size_t r = 0; r < R; ++r) {
      // The first row that sees key s + r; lanes below it get -inf.
      const size_t needed = s + r + block.hidden + 1;
      const size_t blind = needed > block.keys ? needed - block.keys : 0;
      for (size_t p = 0; p < P; ++p) {
        Vec score = acc[r][p] * splat(block.scale);
        if (blind > p * kWidth) score = select(lanes_below(std::min(kWidth, blind - p * kWidth)), splat(kMinusInfinity), score);
        store(scores + (s + r) * kLaneCount + p * kWidth, score);
      }
    }
  }
};

// Turns scores into e^(score - max), keys in order.
template <size_t P>
inline void exponentiate(float* scores, size_t keys, float* max_out, float* sum_out) {
  for (size_t p = 0; p < P; ++p) {
    float* column = scores + p * kWidth;
    Vec most = splat(kMinusInfinity), sum = zero();
    for (size_t s = 0; s < keys; ++s) most = max(most, load(column + s * P * kWidth));
    for (size_t s = 0; s < keys; ++s) {
      const Vec e = exp(load(column + s * P * kWidth) - most);
      store(column + s * P * kWidth, e);
      sum = sum + e;
    }
    store(max_out + p * kWidth, most);
    store(sum_out + p * kWidth, sum);
  }
}

// The weights of a row's running partial and of the block's when they are merged.
struct MergeWeights {
  float keep, take;
};

inline MergeWeights merge_scalars(float& max_into, float& sum_into, float max_from, float sum_from) {
  const float most = max_from > max_into ? max_from : max_into;
  const MergeWeights weights = {exp(max_into - most), exp(max_from - most)};
  max_into = most;
  sum_into = sum_into * weights.keep + sum_from * weights.take;
  return weights;
}

// Merges the block's sums into out[row][column ...], for R rows and P vectors (or the first lanes of one).
template <size_t P>
struct ValueTile {
  const KeyBlock& block;
  const float* scores;  // [S][lane_count]
  size_t lane_count;
  const MergeWeights* weights;
  MatView<float> out;
  size_t column, lanes;

  template <size_t R>
  void run(size_t row) const {
    const float* v = block.v + column;
    const size_t common = block.visible(row);
    Vec acc[R][P];
    clear(acc);
    if constexpr (P == 1)
      add_products_masked(scores + row, 1, lane_count, v, block.v_stride, common, lanes, acc);
    else
      add_products(scores + row, 1, lane_count, v, block.v_stride, common, acc);
    for (size_t r = 0; r < R; ++r) {
      const size_t visible = block.visible(row + r);
      if (visible == 0) continue;
      for (size_t s = common; s < visible; ++s)
        for (size_t p = 0; p < P; ++p)
          acc[r][p] =
              fma(splat(scores[s * lane_count + row + r]), load_first(v + s * block.v_stride + p * kWidth, lanes), acc[r][p]);
      for (size_t p = 0; p < P; ++p) {
        float* to = out.row(row + r) + column + p * kWidth;
        const Vec kept = load_first(to, lanes) * splat(weights[row + r].keep);
        store_first(to, fma(acc[r][p], splat(weights[row + r].take), kept), lanes);
      }
    }
  }
};

// Some rows' running partials.
struct Partials {
  float* max;
  float* sum;
  size_t stride;
  MatView<float> out;
};

// Attends with up to P * kWidth rows. Scratch holds their queries as [dim][P * kWidth], followed by the scores.
template <size_t P>
inline void attend(const KeyBlock& block, size_t rows, float* scratch, const Partials& into) {
  static_assert(P * kWidth <= kLanes, "mla_extend_scratch plans for kLanes");
  constexpr size_t kLaneCount = P * kWidth, kValueVectors = 2;
  const size_t keys = block.visible(rows - 1);
  const ExtendScratch at(block.first_dim + block.second_dim, kLaneCount);
  float* scores = scratch + at.scores;
  for_each_tile<kScoreRows>(keys, ScoreTile<P>{block, scratch + at.queries, scores});

  float max_of[kLaneCount], sum_of[kLaneCount];
  MergeWeights weights[kLaneCount];
  exponentiate<P>(scores, keys, max_of, sum_of);
  for (size_t r = 0; r < rows; ++r)
    if (block.visible(r) > 0)
      weights[r] = merge_scalars(into.max[r * into.stride], into.sum[r * into.stride], max_of[r], sum_of[r]);

  size_t c = 0;
  for (; c + kValueVectors * kWidth <= block.value_dim; c += kValueVectors * kWidth)
    for_each_tile<kScoreRows>(rows, ValueTile<kValueVectors>{block, scores, kLaneCount, weights, into.out, c, kWidth});
  for (; c < block.value_dim; c += kWidth)
    for_each_tile<kScoreRows>(
        rows, ValueTile<1>{block, scores, kLaneCount, weights, into.out, c, std::min(kWidth, block.value_dim - c)});
}

// Transposes the rows of `from` into columns of a [dim][lane_count] matrix; lanes without a row become 0. Copies one cache line
// of a row at a time, because the rows of a wide matrix evict each other from the cache.
inline void put_in_lanes(MatView<const float> from, size_t lane_count, float* to) {
  constexpr size_t kCacheLine = 16;  // floats
  for (size_t begin = 0; begin < from.cols(); begin += kCacheLine) {
    const size_t end = std::min(begin + kCacheLine, from.cols());
    for (size_t lane = 0; lane < from.rows(); ++lane) {
      const float* row = from.row(lane);
      for (size_t d = begin; d < end; ++d) to[d * lane_count + lane] = row[d];
    }
    for (size_t d = begin; d < end; ++d) fill(to + d * lane_count + from.rows(), lane_count - from.rows(), 0);
  }
}

template <size_t P>
inline void extend_rows(const MlaExtendBlock& b, KeyBlock block, size_t row, size_t rows, float* scratch) {
  const size_t position = b.query_start + row;  // of the first row, which sees keys up to its own position
  const size_t last_key = b.key_start + block.keys - 1;
  block.hidden = last_key > position ? last_key - position : 0;
  if (block.visible(rows - 1) == 0) return;
  put_in_lanes(b.q.rows(row, row + rows), P * kWidth, scratch + ExtendScratch(b.q.cols(), P * kWidth).queries);
  attend<P>(block, rows, scratch,
            {b.max + row * b.partial_stride, b.sum + row * b.partial_stride, b.partial_stride, b.out.rows(row, row + rows)});
}

void mla_extend_block(const MlaExtendBlock& b, std::span<float> scratch) noexcept {
  assert(b.k_nope.rows() <= kMlaBlock && scratch.size() >= mla_extend_scratch(b.q.rows(), b.q.cols()));
  if (b.k_nope.rows() == 0) return;
  const KeyBlock block = {b.k_nope.data(),   b.k_nope.stride(), b.k_nope.cols(), b.k_rope.data(),
                          b.k_rope.stride(), b.k_rope.cols(),   b.v.data(),      b.v.stride(),
                          b.v.cols(),        b.k_nope.rows(),   b.scale,         0};
  for (size_t row = 0; row < b.q.rows();) {
    const size_t left = b.q.rows() - row;
    if (left > kWidth)
      extend_rows<2>(b, block, row, std::min(left, 2 * kWidth), scratch.data());
    else
      extend_rows<1>(b, block, row, left, scratch.data());
    row += std::min(left, 2 * kWidth);
  }
}

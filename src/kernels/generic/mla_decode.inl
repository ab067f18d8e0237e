// Absorbed attention of one query row over a block of latents, a page of 64 keys at a time: the page is widened to fp32 once
// and stays in the second-level cache while all heads read it, first for their scores, then for their sums. Each lane holds one
// head; all chains run over keys, or over a key's channels, in order.

// Scores are computed over this many channels at a time: their queries, which every key reads again, then stay in the
// first-level cache along with the same channels of a few keys.
inline constexpr size_t kScoreChannels = 96;

inline void widen_bf16_row(const std::byte* from, size_t width, float* to) {
  const auto* halves = reinterpret_cast<const bf16*>(from);
  size_t i = 0;
  for (; i + kWidth <= width; i += kWidth) store(to + i, load(halves + i));
  if (i < width) store_first(to + i, load_first(halves + i, width - i), width - i);
}

inline void widen_q8_row(const std::byte* from, size_t width, float* to) {
  const size_t groups = (width + kLatentGroup - 1) / kLatentGroup;
  const auto* codes = reinterpret_cast<const int8_t*>(from + groups * sizeof(float));
  for (size_t i = 0; i < width; i += kWidth) {  // a vector lies within a group: kLatentGroup is a multiple of its width
    float scale;
    std::memcpy(&scale, from + i / kLatentGroup * sizeof(float), sizeof scale);
    const size_t n = std::min(kWidth, width - i);
    int8_t last[kWidth] = {};
    if (n < kWidth) std::memcpy(last, codes + i, n);
    store_up_to(to + i, splat(scale) * to_floats(load_bytes(n < kWidth ? last : codes + i)), n);
  }
}

// Rows of a page as fp32: in place if they are fp32 already, else converted into `scratch`.
inline MatView<const float> widen_page(const LatentPages& latents, size_t page, size_t keys, size_t width, float* scratch) {
  const std::byte* rows = latents.pages[page];
  if (latents.type == KvType::f32) return {reinterpret_cast<const float*>(rows), keys, width};
  const size_t row_bytes = latent_row_bytes(latents.type, width);
  for (size_t s = 0; s < keys; ++s) {
    if (latents.type == KvType::bf16)
      widen_bf16_row(rows + s * row_bytes, width, scratch + s * width);
    else
      widen_q8_row(rows + s * row_bytes, width, scratch + s * width);
  }
  return {scratch, keys, width};
}

// Adds to scores[s][lane] of R keys the products over some of their channels.
template <size_t P>
struct LatentScoreTile {
  MatView<const float> latents;
  const float* queries;  // [channels][P * kWidth]
  size_t channel, channels;
  float* scores;  // [S][P * kWidth]

  template <size_t R>
  void run(size_t s) const {
    constexpr size_t kLaneCount = P * kWidth;
    float* at = scores + s * kLaneCount;
    Vec acc[R][P];
    KILIN_UNROLL
    for (size_t r = 0; r < R; ++r) {
      KILIN_UNROLL
      for (size_t p = 0; p < P; ++p) acc[r][p] = channel > 0 ? load(at + r * kLaneCount + p * kWidth) : zero();
    }
    add_products(latents.row(s) + channel, latents.stride(), 1, queries + channel * kLaneCount, kLaneCount, channels, acc);
    KILIN_UNROLL
    for (size_t r = 0; r < R; ++r) {
      KILIN_UNROLL
      for (size_t p = 0; p < P; ++p) store(at + r * kLaneCount + p * kWidth, acc[r][p]);
    }
  }
};

// The heads in a few vectors: their queries, and the softmax over the pages read so far.
struct HeadLanes {
  const float* queries;  // [rank + rope][lanes]
  float *max, *sum;      // [lanes]
  MatView<float> out;    // [heads, rank]
};

// Turns scores into e^(scale * score - the largest so far), keys in order; `keep` is the factor that rescales older
// exponentials.
template <size_t P>
inline void exponentiate_onto(float* scores, size_t keys, float scale, const HeadLanes& heads, float* keep) {
  for (size_t p = 0; p < P; ++p) {
    float* column = scores + p * kWidth;
    const Vec before = load(heads.max + p * kWidth);
    Vec most = before;
    for (size_t s = 0; s < keys; ++s) most = max(most, load(column + s * P * kWidth) * splat(scale));
    const Vec kept = exp(before - most);
    Vec sum = load(heads.sum + p * kWidth) * kept;
    for (size_t s = 0; s < keys; ++s) {
      const Vec e = exp(load(column + s * P * kWidth) * splat(scale) - most);
      store(column + s * P * kWidth, e);
      sum = sum + e;
    }
    store(keep + p * kWidth, kept);
    store(heads.max + p * kWidth, most);
    store(heads.sum + p * kWidth, sum);
  }
}

// Rescales out[head][column ...] of R heads and P vectors (or the first lanes of one) and adds the page's sums to it.
template <size_t P>
struct LatentValueTile {
  MatView<const float> latents;
  const float* scores;  // [S][lane_count]
  size_t lane_count;
  const float* keep;
  MatView<float> out;
  size_t column, lanes;

  template <size_t R>
  void run(size_t head) const {
    Vec acc[R][P];
    KILIN_UNROLL
    for (size_t r = 0; r < R; ++r) {
      KILIN_UNROLL
      for (size_t p = 0; p < P; ++p)
        acc[r][p] = load_up_to(out.row(head + r) + column + p * kWidth, P > 1 ? kWidth : lanes) * splat(keep[head + r]);
    }
    const float* v = latents.data() + column;
    if constexpr (P == 1)
      add_products_masked(scores + head, 1, lane_count, v, latents.stride(), latents.rows(), lanes, acc);
    else
      add_products(scores + head, 1, lane_count, v, latents.stride(), latents.rows(), acc);
    KILIN_UNROLL
    for (size_t r = 0; r < R; ++r) {
      KILIN_UNROLL
      for (size_t p = 0; p < P; ++p) store_up_to(out.row(head + r) + column + p * kWidth, acc[r][p], P > 1 ? kWidth : lanes);
    }
  }
};

// Attends to one page with up to P * kWidth heads; scratch holds their scores.
template <size_t P>
inline void read_page(MatView<const float> latents, float scale, const HeadLanes& heads, const Upcoming& upcoming,
                      float* scores) {
  constexpr size_t kLaneCount = P * kWidth, kValueVectors = 2;
  const size_t keys = latents.rows(), width = latents.cols(), rank = heads.out.cols();
  for (size_t d = 0; d < width; d += kScoreChannels)
    for_each_tile<kScoreRows>(keys, LatentScoreTile<P>{latents, heads.queries, d, std::min(kScoreChannels, width - d), scores});
  float keep[kLaneCount];
  exponentiate_onto<P>(scores, keys, scale, heads, keep);
  size_t c = 0;
  for (; c + kValueVectors * kWidth <= rank; c += kValueVectors * kWidth) {
    upcoming.fetch(c, c + kValueVectors * kWidth, rank);
    for_each_tile<kScoreRows>(heads.out.rows(),
                              LatentValueTile<kValueVectors>{latents, scores, kLaneCount, keep, heads.out, c, kWidth});
  }
  for (; c < rank; c += kWidth)
    for_each_tile<kScoreRows>(heads.out.rows(),
                              LatentValueTile<1>{latents, scores, kLaneCount, keep, heads.out, c, std::min(kWidth, rank - c)});
}

void mla_decode_block(const MlaDecodeBlock& b, std::span<float> scratch) noexcept {
  constexpr size_t kLaneCount = 2 * kWidth;
  const size_t heads = b.q_latent.rows(), rank = b.q_latent.cols(), width = rank + b.q_rope.cols(), keys = b.latents.keys;
  const DecodeScratch at(heads, width);
  assert(keys >= 1 && keys <= kMlaBlock && b.latents.pages.size() * kMlaPage >= keys && scratch.size() >= at.floats);
  float *queries = scratch.data() + at.queries, *max = scratch.data() + at.max, *sum = scratch.data() + at.sum;

  for (size_t h = 0; h < heads; h += kLaneCount) {
    const size_t end = std::min(h + kLaneCount, heads), lanes = end - h > kWidth ? kLaneCount : kWidth;
    put_in_lanes(b.q_latent.rows(h, end), lanes, queries + h * width);
    put_in_lanes(b.q_rope.rows(h, end), lanes, queries + h * width + rank * lanes);
    fill(max + h, lanes, kMinusInfinity);
    fill(sum + h, lanes, 0);
  }
  for (size_t h = 0; h < heads; ++h) fill(b.out.row(h), rank, 0);

  for (size_t s = 0; s < keys; s += kMlaPage) {
    const MatView<const float> page =
        widen_page(b.latents, s / kMlaPage, std::min(kMlaPage, keys - s), width, scratch.data() + at.latents);
    const size_t next = s + kMlaPage, left = next < keys ? std::min(kMlaPage, keys - next) : 0;
    for (size_t h = 0; h < heads; h += kLaneCount) {
      const size_t end = std::min(h + kLaneCount, heads);
      Upcoming upcoming;  // the first group's work is long enough to hide the prefetch
      const size_t row_bytes = latent_row_bytes(b.latents.type, width);
      if (h == 0 && left > 0) upcoming = {b.latents.pages[next / kMlaPage], left * row_bytes};
      if (h == 0 && left == 0 && b.upcoming != nullptr) upcoming = {b.upcoming, kMlaPage * row_bytes};
      const HeadLanes group = {queries + h * width, max + h, sum + h, b.out.rows(h, end)};
      if (end - h > kWidth)
        read_page<2>(page, b.scale, group, upcoming, scratch.data() + at.scores);
      else
        read_page<1>(page, b.scale, group, upcoming, scratch.data() + at.scores);
    }
  }
  std::memcpy(b.max, max, heads * sizeof(float));
  std::memcpy(b.sum, sum, heads * sizeof(float));
}

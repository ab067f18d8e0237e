// Absorbed attention of one query row over a block of bf16 latents, in products of bf16: pairs of channels for scores, pairs of
// keys for sums, both read straight from the pages. A lane is a head in scores and a channel in sums; all chains run over pairs
// in order. All scores of a block are computed before its exponentials, so no sum is ever rescaled.

// Scores are computed over this many pairs of channels at a time: their queries, which every key reads again, then stay in the
// first-level cache along with the same channels of a few keys.
inline constexpr size_t kScorePairs = 96;

inline Ints splat_pair(const void* p) {
  int32_t pair;
  std::memcpy(&pair, p, sizeof pair);
  return splat_int(pair);
}

// A pair of *p and 0 in every lane.
inline Ints splat_half_pair(const bf16* p) { return splat_int(p->bits); }

// Rounds each head's channels, first | second, to bf16 and writes them as columns of a [pairs][lanes] matrix of pairs; an odd
// last channel's partner and lanes without a head are 0. @param rows room for heads x pairs
inline void put_pairs_in_lanes(MatView<const float> first, MatView<const float> second, size_t lanes, int32_t* rows,
                               int32_t* to) {
  constexpr size_t kCacheLine = 16;  // pairs
  const size_t heads = first.rows(), width = first.cols() + second.cols(), pairs = (width + 1) / 2;
  for (size_t h = 0; h < heads; ++h) {
    auto* row = reinterpret_cast<bf16*>(rows + h * pairs);
    row[2 * pairs - 1] = {};
    for_each_vector(first.cols(), RoundToBf16{first.row(h), row});
    for_each_vector(second.cols(), RoundToBf16{second.row(h), row + first.cols()});
  }
  for (size_t begin = 0; begin < pairs; begin += kCacheLine) {
    const size_t end = std::min(begin + kCacheLine, pairs);
    for (size_t h = 0; h < lanes; ++h)
      for (size_t m = begin; m < end; ++m) {
        if (h < heads)
          std::memcpy(to + m * lanes + h, rows + h * pairs + m, sizeof(int32_t));
        else
          to[m * lanes + h] = 0;
      }
  }
}

// Adds to scores[s][lane] of R keys of a page the products over some of their pairs of channels.
template <size_t P>
struct PairScoreTile {
  const bf16* latents;
  size_t width;
  const int32_t* queries;  // [pairs][P * kWidth]
  size_t pair, end;        // of the queries; at an odd width the last one has only one channel
  float* scores;           // [S][P * kWidth]

  template <size_t R>
  void add(Vec (&acc)[R][P], const Ints (&latent)[R], size_t m) const {
    Ints q[P];
    KILIN_UNROLL
    for (size_t p = 0; p < P; ++p) q[p] = load_ints(queries + (m * P + p) * kWidth);
    KILIN_UNROLL
    for (size_t r = 0; r < R; ++r) {
      KILIN_UNROLL
      for (size_t p = 0; p < P; ++p) acc[r][p] = dot_pairs(acc[r][p], q[p], latent[r]);
    }
  }

  template <size_t R>
  void run(size_t s) const {
    const bf16* rows = latents + s * width;
    float* at = scores + s * P * kWidth;
    Vec acc[R][P];
    KILIN_UNROLL
    for (size_t r = 0; r < R; ++r) {
      KILIN_UNROLL
      for (size_t p = 0; p < P; ++p) acc[r][p] = pair > 0 ? load(at + (r * P + p) * kWidth) : zero();
    }
    const size_t whole = std::min(end, width / 2);
    Ints latent[R];
    for (size_t m = pair; m < whole; ++m) {
      KILIN_UNROLL
      for (size_t r = 0; r < R; ++r) latent[r] = splat_pair(rows + r * width + 2 * m);
      add(acc, latent, m);
    }
    if (whole < end) {
      KILIN_UNROLL
      for (size_t r = 0; r < R; ++r) latent[r] = splat_half_pair(rows + r * width + 2 * whole);
      add(acc, latent, whole);
    }
    KILIN_UNROLL
    for (size_t r = 0; r < R; ++r) {
      KILIN_UNROLL
      for (size_t p = 0; p < P; ++p) store(at + (r * P + p) * kWidth, acc[r][p]);
    }
  }
};

// e^x for x <= 0 within a relative error of 2^-14, for results that are rounded to bf16: 0 or nearly so below -87, NaN at NaN.
// Like exp, with fewer terms.
inline Vec coarse_exp(Vec x) {
  constexpr float kLog2e = 1.44269504f, kLn2 = 0.693147181f;
  constexpr float kRound = 12582912.f;
  const Vec bounded = max(splat(-87), x);  // NaN passes
  const Vec shifted = fma(bounded, splat(kLog2e), splat(kRound));
  const Vec r = fma(shifted - splat(kRound), splat(-kLn2), bounded);
  Vec p = fma(splat(1.f / 24), r, splat(1.f / 6));
  p = fma(p, r, splat(0.5f));
  p = fma(p, r, splat(1));
  p = fma(p, r, splat(1));
  const Ints exponent = minus(bits_of(shifted), bits_of(splat(kRound)));
  return p * from_bits(shift_left<23>(plus(exponent, splat_int(127))));
}

// Turns a block's scores into rounded e^(scale * score - the largest), in pairs of neighbouring keys and the same rows of
// lanes; an odd last key's partner is 0. It sums the rounded values, so that the weights of a head's keys add up to 1.
template <size_t P>
inline void exponentiate_pairs(float* scores, size_t keys, float scale, float* max_out, float* sum_out) {
  constexpr size_t kLaneCount = P * kWidth;
  for (size_t p = 0; p < P; ++p) {
    float* column = scores + p * kWidth;
    Vec most = splat(kMinusInfinity), sum = zero();
    for (size_t s = 0; s < keys; ++s) most = max(most, load(column + s * kLaneCount));
    most = most * splat(scale);
    for (size_t s = 0; s < keys; s += 2) {
      const Vec first = coarse_exp(fma(load(column + s * kLaneCount), splat(scale), zero() - most));
      const Vec second =
          s + 1 < keys ? coarse_exp(fma(load(column + (s + 1) * kLaneCount), splat(scale), zero() - most)) : zero();
      const Ints pairs = rounded_pairs(first, second);
      sum = sum + lower_of_pairs(pairs) + upper_of_pairs(pairs);
      store(column + s / 2 * kLaneCount, from_bits(pairs));
    }
    store(max_out + p * kWidth, most);
    store(sum_out + p * kWidth, sum);
  }
}

// Two vectors' worth of channels of latents: all of them, or the first few.
struct WholeStrip {
  static constexpr size_t kChannels = 2 * kWidth;
  Ints read(const bf16* p) const { return PairDot::read(p); }
  void write(float* to, Vec first, Vec second) const {
    store(to, first);
    store(to + kWidth, second);
  }
};
struct NarrowStrip {
  size_t channels;
  Ints read(const bf16* p) const { return PairDot::read_first(p, channels); }
  void write(float* to, Vec first, Vec second) const {
    store_up_to(to, first, std::min(channels, kWidth));
    if (channels > kWidth) store_up_to(to + kWidth, second, channels - kWidth);
  }
};

// Computes out[head][channel ...] of R heads and a strip of channels.
template <typename Strip>
struct PairValueTile {
  const LatentPages& latents;
  size_t width;
  const float* weights;  // pairs of exponentials, [pairs of keys][lane_count]
  size_t lane_count;
  MatView<float> out;
  size_t channel;
  Strip strip;

  template <size_t R>
  static void add(Vec (&acc)[R][2], const float* weight, Ints even_key, Ints odd_key) {
    const Ints first = first_pairs(even_key, odd_key), second = second_pairs(even_key, odd_key);
    KILIN_UNROLL
    for (size_t r = 0; r < R; ++r) {
      const Ints w = splat_pair(weight + r);
      acc[r][0] = dot_pairs(acc[r][0], first, w);
      acc[r][1] = dot_pairs(acc[r][1], second, w);
    }
  }

  template <size_t R>
  void run(size_t head) const {
    Vec acc[R][2];
    clear(acc);
    const float* weight = weights + head;
    for (size_t begin = 0; begin < latents.keys; begin += kMlaPage) {
      const size_t keys = std::min(kMlaPage, latents.keys - begin);
      const auto* row = reinterpret_cast<const bf16*>(latents.pages[begin / kMlaPage]) + channel;
      for (size_t s = 0; s + 2 <= keys; s += 2, row += 2 * width, weight += lane_count)
        add(acc, weight, strip.read(row), strip.read(row + width));
      if (keys % 2 != 0) add(acc, weight, strip.read(row), splat_int(0));
    }
    KILIN_UNROLL
    for (size_t r = 0; r < R; ++r) strip.write(out.row(head + r) + channel, acc[r][0], acc[r][1]);
  }
};

// Computes the scores of a page's keys.
template <size_t P>
inline void score_page(const bf16* page, size_t keys, size_t width, const int32_t* queries, const Upcoming& upcoming,
                       float* scores) {
  const size_t pairs = (width + 1) / 2, parts = (pairs + kScorePairs - 1) / kScorePairs;
  for (size_t part = 0; part < parts; ++part) {
    const PairScoreTile<P> tile = {page, width, queries, part * kScorePairs, std::min((part + 1) * kScorePairs, pairs), scores};
    for (size_t s = 0; s < keys; s += kScoreRows) {
      const size_t end = std::min(s + kScoreRows, keys);
      upcoming.fetch(part * keys + s, part * keys + end, parts * keys);
      for_each_tile<kScoreRows>(end, tile, s);
    }
  }
}

// Sums a block's latents, weighted by pairs of exponentials.
inline void sum_block(const LatentPages& latents, size_t width, const float* weights, size_t lane_count,
                      const Upcoming& upcoming, MatView<float> out) {
  const size_t heads = out.rows(), rank = out.cols(), strips = rank / WholeStrip::kChannels;
  for (size_t strip = 0; strip < strips; ++strip) {
    const size_t channel = strip * WholeStrip::kChannels;
    upcoming.fetch(strip, strip + 1, strips);
    for_each_tile<kScoreRows>(heads, PairValueTile<WholeStrip>{latents, width, weights, lane_count, out, channel, {}});
  }
  const size_t channel = strips * WholeStrip::kChannels;
  if (channel < rank)
    for_each_tile<kScoreRows>(heads,
                              PairValueTile<NarrowStrip>{latents, width, weights, lane_count, out, channel, {rank - channel}});
}

// Attends to a block with up to P * kWidth heads. The first group prefetches what comes next: its work is long enough to hide
// that.
template <size_t P>
inline void read_block(const MlaDecodeBlock& b, size_t head, size_t heads, const PairScratch& at, float* scratch) {
  constexpr size_t kLaneCount = P * kWidth;
  const size_t width = b.q_latent.cols() + b.q_rope.cols(), keys = b.latents.keys, row_bytes = width * sizeof(bf16);
  float* scores = scratch + at.scores;
  auto* queries = reinterpret_cast<int32_t*>(scratch + at.queries);
  put_pairs_in_lanes(b.q_latent.rows(head, head + heads), b.q_rope.rows(head, head + heads), kLaneCount,
                     reinterpret_cast<int32_t*>(scratch + at.rows), queries);

  for (size_t s = 0; s < keys; s += kMlaPage) {
    const size_t page = s / kMlaPage, rows = std::min(kMlaPage, keys - s), left = std::min(kMlaPage, keys - s - rows);
    Upcoming upcoming;
    if (head == 0 && left > 0) upcoming = {b.latents.pages[page + 1], left * row_bytes};
    score_page<P>(reinterpret_cast<const bf16*>(b.latents.pages[page]), rows, width, queries, upcoming,
                  scores + s * kLaneCount);
  }
  float max[kLaneCount], sum[kLaneCount];
  exponentiate_pairs<P>(scores, keys, b.scale, max, sum);
  std::memcpy(b.max + head, max, heads * sizeof(float));
  std::memcpy(b.sum + head, sum, heads * sizeof(float));

  Upcoming upcoming;
  if (head == 0 && b.upcoming != nullptr) upcoming = {b.upcoming, kMlaPage * row_bytes};
  sum_block(b.latents, width, scores, kLaneCount, upcoming, b.out.rows(head, head + heads));
}

void mla_decode_block_bf16(const MlaDecodeBlock& b, std::span<float> scratch) noexcept {
  const size_t heads = b.q_latent.rows(), width = b.q_latent.cols() + b.q_rope.cols();
  const PairScratch at(width);
  assert(b.latents.type == KvType::bf16 && b.latents.keys >= 1 && b.latents.keys <= kMlaBlock &&
         b.latents.pages.size() * kMlaPage >= b.latents.keys && scratch.size() >= at.floats);
  for (size_t h = 0; h < heads; h += 2 * kWidth) {
    const size_t group = std::min(2 * kWidth, heads - h);
    if (group > kWidth)
      read_block<2>(b, h, group, at, scratch.data());
    else
      read_block<1>(b, h, group, at, scratch.data());
  }
}

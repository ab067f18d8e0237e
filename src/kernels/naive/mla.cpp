// Attention over one block of keys, and softmaxes in parts.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/naive/naive.h"

namespace kilin::naive {

namespace {

float dot(const float* a, const float* b, size_t n) {
  float sum = 0;
  for (size_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

float rounded(float x) { return to_float(to_bf16(x)); }

// Calls add(i, sum) for all i < n in pairs, the second of each pair first.
template <typename Add>
float sum_of_pairs(size_t n, Add add) {
  float sum = 0;
  for (size_t i = 0; i < n; i += 2) {
    if (i + 1 < n) sum = add(i + 1, sum);
    sum = add(i, sum);
  }
  return sum;
}

}  // namespace

void softmax_merge(const SoftmaxPartial& from, const SoftmaxPartial& into, size_t n) noexcept {
  constexpr float kEmpty = -std::numeric_limits<float>::infinity();
  if (*from.max == kEmpty) return;
  const float max = *from.max > *into.max ? *from.max : *into.max;
  const float keep = std::exp(*into.max - max), take = std::exp(*from.max - max);
  *into.max = max;
  *into.sum = *into.sum * keep + *from.sum * take;
  for (size_t i = 0; i < n; ++i) into.out[i] = into.out[i] * keep + from.out[i] * take;
}

void softmax_finish(const SoftmaxPartial& partial, size_t n) noexcept {
  if (*partial.sum == 0) return;
  for (size_t i = 0; i < n; ++i) partial.out[i] /= *partial.sum;
}

void mla_extend_block(const MlaExtendBlock& b, std::span<float> scratch) noexcept {
  const size_t nope = b.k_nope.cols(), rope = b.k_rope.cols();
  for (size_t r = 0; r < b.q.rows(); ++r) {
    const size_t position = b.query_start + r;
    if (position < b.key_start) continue;
    const size_t keys = std::min(b.k_nope.rows(), position - b.key_start + 1);
    if (keys == 0) continue;

    float* score = scratch.data();
    for (size_t s = 0; s < keys; ++s)
      score[s] = b.scale * (dot(b.q.row(r), b.k_nope.row(s), nope) + dot(b.q.row(r) + nope, b.k_rope.row(s), rope));
    const float block_max = *std::max_element(score, score + keys);
    float block_sum = 0;
    for (size_t s = 0; s < keys; ++s) block_sum += score[s] = std::exp(score[s] - block_max);

    // Merged as in softmax_merge, one channel at a time.
    float& max = b.max[r * b.partial_stride];
    float& sum = b.sum[r * b.partial_stride];
    const float new_max = std::max(max, block_max);
    const float keep = std::exp(max - new_max), take = std::exp(block_max - new_max);
    max = new_max;
    sum = sum * keep + block_sum * take;
    for (size_t c = 0; c < b.v.cols(); ++c) {
      float value = 0;
      for (size_t s = 0; s < keys; ++s) value += score[s] * b.v.row(s)[c];
      b.out.row(r)[c] = b.out.row(r)[c] * keep + value * take;
    }
  }
}

void mla_decode_block(const MlaDecodeBlock& b, std::span<float> scratch) noexcept {
  const size_t keys = b.latents.keys, rank = b.q_latent.cols(), rope = b.q_rope.cols();
  float *score = scratch.data(), *latent = score + kMlaBlock;
  const auto read = [&](size_t s) {
    const std::byte* row = b.latents.pages[s / kMlaPage] + s % kMlaPage * latent_row_bytes(b.latents.type, rank + rope);
    load_latent_row(b.latents.type, row, rank + rope, latent);
  };
  for (size_t h = 0; h < b.q_latent.rows(); ++h) {
    for (size_t s = 0; s < keys; ++s) {
      read(s);
      score[s] = b.scale * (dot(b.q_latent.row(h), latent, rank) + dot(b.q_rope.row(h), latent + rank, rope));
    }
    b.max[h] = *std::max_element(score, score + keys);
    b.sum[h] = 0;
    for (size_t s = 0; s < keys; ++s) b.sum[h] += score[s] = std::exp(score[s] - b.max[h]);
    std::fill_n(b.out.row(h), rank, 0.0f);
    for (size_t s = 0; s < keys; ++s) {
      read(s);
      for (size_t c = 0; c < rank; ++c) b.out.row(h)[c] += score[s] * latent[c];
    }
  }
}

void mla_decode_block_bf16(const MlaDecodeBlock& b, std::span<float> scratch) noexcept {
  const size_t keys = b.latents.keys, rank = b.q_latent.cols(), width = rank + b.q_rope.cols();
  float *score = scratch.data(), *query = score + kMlaBlock;
  const auto latent = [&](size_t s, size_t c) {
    const std::byte* page = b.latents.pages[s / kMlaPage];
    return to_float(reinterpret_cast<const bf16*>(page)[s % kMlaPage * width + c]);
  };
  for (size_t h = 0; h < b.q_latent.rows(); ++h) {
    for (size_t c = 0; c < width; ++c) query[c] = rounded(c < rank ? b.q_latent.row(h)[c] : b.q_rope.row(h)[c - rank]);
    for (size_t s = 0; s < keys; ++s)
      score[s] = b.scale * sum_of_pairs(width, [&](size_t c, float f) { return std::fma(query[c], latent(s, c), f); });
    b.max[h] = *std::max_element(score, score + keys);
    b.sum[h] = 0;
    for (size_t s = 0; s < keys; ++s) b.sum[h] += score[s] = rounded(std::exp(score[s] - b.max[h]));
    for (size_t c = 0; c < rank; ++c)
      b.out.row(h)[c] = sum_of_pairs(keys, [&](size_t s, float f) { return std::fma(score[s], latent(s, c), f); });
  }
}

void max_and_exp_sum(const float* x, size_t n, float scale, float& max, double& sum) noexcept {
  max = *std::max_element(x, x + n);
  sum = 0;
  for (size_t i = 0; i < n; ++i) sum += std::exp((x[i] - max) * scale);
}

void exp_shifted(const float* x, size_t n, float max, float scale, float* p) noexcept {
  for (size_t i = 0; i < n; ++i) p[i] = std::exp((x[i] - max) * scale);
}

}  // namespace kilin::naive

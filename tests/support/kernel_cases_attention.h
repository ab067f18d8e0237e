// Cases of KDA and of latent attention; see kernel_cases.h.
#pragma once

#include <algorithm>
#include <limits>

#include "support/kernel_choices.h"

namespace kilin::testing {

inline double largest(std::span<const float> x) {
  double most = 0;
  for (float v : x) most = std::max(most, std::fabs(double{v}));
  return most;
}

// One head: keys and queries normed, decays between none and all at once, beta in [0, 1]: what layers give.
template <typename Kernel>
void kda_case(Choices& c, Kernel KernelTable::*kernel, bool takes_snapshots) {
  const size_t T = c.integer(0, 150), K = c.integer(1, 40), V = c.integer(1, 40), stride = c.integer(1, 4);
  Matrix q = c.matrix(T, K), k = c.matrix(T, K), g = c.matrix(T, K, c.one_of({1e-3f, 3.0f, 150.0f, 1e30f}));
  const Matrix v = c.matrix(T, V, c.one_of({1.0f, 1e8f}));
  naive_kernels().l2_norm(q.view(), K, 1 / std::sqrt(static_cast<float>(K)));
  naive_kernels().l2_norm(k.view(), K, 1);
  for (size_t t = 0; t < T; ++t)
    for (size_t i = 0; i < K; ++i) g.at(t, i) = -std::fabs(g.at(t, i));
  const std::vector<float> beta = c.between(T * stride + 1, 0, 1);
  std::vector<float> state(kda_state_floats(K, V), 0.f);
  const std::vector<float> initial = c.values(K * V, 1);
  for (size_t i = 0; i < initial.size(); ++i) state[kda_state_index(K, i / V, i % V)] = initial[i];
  const size_t start = c.integer(0, 200);
  std::vector<size_t> positions;
  for (size_t p = start / kKdaChunk * kKdaChunk + kKdaChunk; takes_snapshots && p <= start + T; p += kKdaChunk)
    if (c.chance()) positions.push_back(p);

  struct Result {
    std::vector<float> out, states;  // the last, then the snapshots
  };
  const size_t gap = c.integer(0, 5);
  const auto run = [&](const KernelTable& table, const std::string& name) {
    std::vector<std::vector<float>> memory(1 + positions.size(), std::vector<float>(state.size()));
    memory[0] = state;
    std::vector<KdaSnapshot> snapshots;
    for (size_t i = 0; i < positions.size(); ++i) snapshots.push_back({positions[i], memory[i + 1].data()});
    std::vector<float> scratch(std::max(chunk_kda_scratch(K, V), fused_recurrent_kda_scratch(K, V)), std::nanf(""));
    Matrix out(T, V, gap);
    (table.*kernel)({.q = q.view(),
                     .k = k.view(),
                     .v = v.view(),
                     .g = g.view(),
                     .beta = beta.data(),
                     .beta_stride = stride,
                     .start = start,
                     .state = memory[0].data(),
                     .out = out.view(),
                     .snapshots = snapshots},
                    scratch);
    expect_gaps(out, name);
    Result result = {out.values(), {}};
    for (const auto& each : memory) result.states.insert(result.states.end(), each.begin(), each.end());
    return result;
  };
  const Result naive = run(naive_kernels(), "naive");
  const double scale = std::max({largest(v.values()), largest(state), 1e-30});
  for (const Form& form : isa_forms()) {
    const Result ours = run(form.table, form.name);
    if (T == 0) expect_bytes(ours.states, state, form.name + ": a state without tokens");
    expect_near(
        ours.out, naive.out, [&](size_t) { return 2e-5 * scale; }, form.name + " out");
    expect_near(
        ours.states, naive.states, [&](size_t) { return 2e-5 * scale; }, form.name + " states");
  }
}

template <>
inline void kernel_case<&KernelTable::chunk_kda>(Choices& c) {
  kda_case(c, &KernelTable::chunk_kda, true);
}
template <>
inline void kernel_case<&KernelTable::fused_recurrent_kda>(Choices& c) {
  kda_case(c, &KernelTable::fused_recurrent_kda, false);
}

// What the sums of a score of `dims` products below `most` may differ by, between two orders of addition.
inline double score_error(size_t dims, double most, double scale) {
  return 2 * static_cast<double>(dims + 4) * kEps * static_cast<double>(dims) * most * scale;
}

struct Partials {
  std::vector<float> max, sum, out;  // [R], [R], [R, n]
};

// `relative` is of the exponentials; `value` the largest that they weigh.
inline void expect_partials(const Partials& ours, const Partials& naive, double score, double relative, double value,
                            const std::string& name) {
  const double scale = std::max(1.0, largest(naive.sum));
  expect_near(
      ours.max, naive.max, [&](size_t) { return score; }, name + " max");
  expect_near(
      ours.sum, naive.sum, [&](size_t) { return (relative + 4 * score) * scale; }, name + " sum");
  expect_near(
      ours.out, naive.out, [&](size_t) { return (relative + 4 * score) * scale * std::max(value, 1.0); }, name + " out");
}

template <>
inline void kernel_case<&KernelTable::mla_extend_block>(Choices& c) {
  const size_t R = c.integer(1, 40), S = c.one_of({c.integer(1, 80), c.integer(1, kMlaBlock)}), nope = c.integer(1, 48),
               rope = c.integer(1, 20), V = c.integer(1, 48), stride = c.integer(1, 4);
  const Matrix q = c.matrix(R, nope + rope, 3), k_nope = c.matrix(S, nope, 3), k_rope = c.matrix(S, rope, 3),
               v = c.matrix(S, V, 10);
  const size_t key_start = kMlaBlock * c.integer(0, 3),
               query_start = key_start + c.integer(0, 600) - std::min<size_t>(key_start, 20);
  const float scale = 1 / std::sqrt(static_cast<float>(nope + rope));
  const bool empty = c.chance();
  const std::vector<float> past_max =
                               empty ? std::vector<float>(R, -std::numeric_limits<float>::infinity()) : c.between(R, -9, 9),
                           past_sum = empty ? std::vector<float>(R, 0.f) : c.between(R, 1, 5);
  Matrix past = c.matrix(R, V, empty ? 0.0f : 10.0f);
  const auto run = [&](const KernelTable& table, const std::string& name) {
    std::vector<float> max(R * stride), sum(R * stride), scratch(mla_extend_scratch(R, nope + rope), std::nanf(""));
    for (size_t r = 0; r < R; ++r) max[r * stride] = past_max[r], sum[r * stride] = past_sum[r];
    Matrix out = past;
    table.mla_extend_block({.q = q.view(),
                            .k_nope = k_nope.view(),
                            .k_rope = k_rope.view(),
                            .v = v.view(),
                            .scale = scale,
                            .query_start = query_start,
                            .key_start = key_start,
                            .max = max.data(),
                            .sum = sum.data(),
                            .partial_stride = stride,
                            .out = out.view()},
                           scratch);
    expect_gaps(out, name);
    return Partials{max, sum, out.values()};
  };
  const Partials naive = run(naive_kernels(), "naive");
  for (const Form& form : isa_forms())
    expect_partials(run(form.table, form.name), naive, score_error(nope + rope, 9, double{scale}), 3e-5, 10, form.name);
}

template <typename Kernel>
void decode_case(Choices& c, Kernel KernelTable::*kernel, KvType type, double relative) {
  const size_t H = c.integer(1, 40), S = c.one_of({c.integer(1, 80), c.integer(1, kMlaBlock)}), rank = c.integer(1, 80),
               rope = c.integer(1, 20);
  const float scale = 1 / std::sqrt(static_cast<float>(rank + rope));
  Matrix q_latent = c.matrix(H, rank, 3), q_rope = c.matrix(H, rope, 3);
  for (Matrix* q : {&q_latent, &q_rope})  // so that nothing is lost where queries are rounded
    for (size_t h = 0; h < H; ++h)
      for (size_t i = 0; i < q->view().cols(); ++i) q->at(h, i) = to_float(to_bf16(q->at(h, i)));
  const Matrix rows = c.matrix(S, rank + rope, 3);
  const size_t row_bytes = latent_row_bytes(type, rank + rope);
  std::vector<std::vector<std::byte>> pages;  // each ends where its last row does: a sanitiser sees what is read beyond
  for (size_t s = 0; s < S; ++s) {
    if (s % kMlaPage == 0) pages.emplace_back(std::min(kMlaPage, S - s) * row_bytes);
    store_latent_row(type, rows.view().row(s), rank + rope, pages.back().data() + s % kMlaPage * row_bytes);
  }
  std::vector<const std::byte*> starts;
  for (const auto& page : pages) starts.push_back(page.data());
  const auto run = [&](const KernelTable& table, const std::string& name) {
    Partials p = {std::vector<float>(H, 7.f), std::vector<float>(H, 7.f), {}};
    Matrix out(H, rank);
    std::vector<float> scratch(mla_decode_scratch(H, rank + rope), std::nanf(""));
    (table.*kernel)({.q_latent = q_latent.view(),
                     .q_rope = q_rope.view(),
                     .latents = {type, starts, S},
                     .scale = scale,
                     .upcoming = nullptr,
                     .max = p.max.data(),
                     .sum = p.sum.data(),
                     .out = out.view()},
                    scratch);
    expect_gaps(out, name);
    p.out = out.values();
    return p;
  };
  const Partials naive = run(naive_kernels(), "naive");
  for (const Form& form : isa_forms())
    expect_partials(run(form.table, form.name), naive, score_error(rank + rope, 9.1, double{scale}), relative, 3.1, form.name);
}

template <>
inline void kernel_case<&KernelTable::mla_decode_block>(Choices& c) {
  decode_case(c, &KernelTable::mla_decode_block, c.one_of({KvType::f32, KvType::bf16, KvType::q8}), 3e-5);
}
// The naive form rounds exponentials to bf16; not every set does.
template <>
inline void kernel_case<&KernelTable::mla_decode_block_bf16>(Choices& c) {
  decode_case(c, &KernelTable::mla_decode_block_bf16, KvType::bf16, 1.0 / 128);
}

inline Partials partial(Choices& c, size_t n) {
  if (c.chance()) return {{-std::numeric_limits<float>::infinity()}, {0}, std::vector<float>(n, 0.f)};
  return {c.values(1, 80), c.between(1, 1, 500), c.values(n, 1e6f)};
}

template <>
inline void kernel_case<&KernelTable::softmax_merge>(Choices& c) {
  const size_t n = c.integer(1, 150);
  Partials from = partial(c, n);
  const Partials into = partial(c, n);
  const auto merged = [&](const KernelTable& table) {
    Partials result = into;
    table.softmax_merge({from.max.data(), from.sum.data(), from.out.data()},
                        {result.max.data(), result.sum.data(), result.out.data()}, n);
    return result;
  };
  const Partials naive = merged(naive_kernels());
  for (const Form& form : isa_forms()) {
    const Partials ours = merged(form.table);
    expect_bytes(ours.max, naive.max, form.name + " max");
    expect_near(
        ours.sum, naive.sum, [&](size_t) { return 1e-6 * double{naive.sum[0]}; }, form.name + " sum");
    const auto allowed = [&](size_t i) {
      return 1e-6 * (std::fabs(double{from.out[i]}) + std::fabs(double{into.out[i]})) + 1e-36;
    };
    expect_near(ours.out, naive.out, allowed, form.name + " out");
  }
}

template <>
inline void kernel_case<&KernelTable::softmax_finish>(Choices& c) {
  const size_t n = c.integer(1, 150);
  const Partials start = partial(c, n);
  const auto finished = [&](const KernelTable& table) {
    Partials p = start;
    table.softmax_finish({p.max.data(), p.sum.data(), p.out.data()}, n);
    return p.out;
  };
  const std::vector<float> naive = finished(naive_kernels());
  for (const Form& form : isa_forms())
    expect_near(
        finished(form.table), naive, [&](size_t i) { return 1e-6 * std::fabs(double{naive[i]}) + 1e-37; }, form.name);
}

}  // namespace kilin::testing

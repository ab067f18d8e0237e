// Cases of elementwise ops, norms, the convolution and the router; see kernel_cases.h.
#pragma once

#include <algorithm>
#include <bit>
#include <functional>
#include <set>

#include "support/kernel_choices.h"

namespace kilin::testing {

// `op(table, out)` from equal `out`s; an element may err by allowed(i, naive value).
template <typename Op, typename Allowed>
void expect_like_naive(const Matrix& out, Op&& op, Allowed&& allowed) {
  Matrix naive = out;
  op(naive_kernels(), naive);
  const std::vector<float> expected = naive.values();
  for (const Form& form : isa_forms()) {
    Matrix ours = out;
    op(form.table, ours);
    expect_gaps(ours, form.name);
    expect_near(
        ours.values(), expected, [&](size_t i) { return allowed(i, std::fabs(double{expected[i]})); }, form.name);
  }
}

template <>
inline void kernel_case<&KernelTable::round_to_bf16>(Choices& c) {
  const size_t rows = c.integer(0, 3), cols = c.integer(1, 150), gap = c.integer(0, 5);
  Matrix x = c.matrix(rows, cols, 3e38f);
  for (size_t few = rows > 0 ? c.integer(0, 4) : 0; few > 0; --few)  // any bits at all
    x.at(c.integer(0, rows - 1), c.integer(0, cols - 1)) =
        std::bit_cast<float>(static_cast<uint32_t>(c.integer(0, std::numeric_limits<uint32_t>::max())));
  const auto rounded = [&](const KernelTable& table) {
    std::vector<bf16> out(1 + rows * (cols + gap), bf16{0x1234});
    table.round_to_bf16(x.view(), {out.data() + 1, rows, cols, cols + gap});
    return out;
  };
  for (const Form& form : isa_forms()) expect_bytes(rounded(form.table), rounded(naive_kernels()), form.name);
}

template <>
inline void kernel_case<&KernelTable::add>(Choices& c) {
  const size_t rows = c.integer(0, 4), cols = c.integer(1, 150);
  const Matrix x = c.matrix(rows, cols, 1e30f);
  expect_like_naive(
      c.matrix(rows, cols, 1e30f), [&](const KernelTable& table, Matrix& out) { table.add(x.view(), out.view()); },
      [](size_t, double) { return 0.0; });
}

template <>
inline void kernel_case<&KernelTable::add_scaled>(Choices& c) {
  const size_t n = c.integer(1, 200);
  const std::vector<float> x = c.values(n, 1e15f);
  const float scale = c.values(1, 1e3f).front();
  const Matrix out = c.matrix(1, n, 1e15f);
  expect_like_naive(
      out, [&](const KernelTable& table, Matrix& o) { table.add_scaled(x.data(), scale, n, o.view().data()); },
      [&](size_t i, double) {
        return 4 * kEps * (std::fabs(double{scale} * double{x[i]}) + std::fabs(double{out.at(0, i)})) + 1e-37;
      });
}

// Sums of squares have no cancellation: a norm errs relatively.
inline double norm_error(size_t n, double expected) { return (static_cast<double>(n) + 30) * kEps * expected + 1e-35; }

template <>
inline void kernel_case<&KernelTable::rms_norm>(Choices& c) {
  const size_t rows = c.integer(0, 4), cols = c.integer(1, 300);
  const std::vector<float> weight = c.values(cols, 4);
  const float eps = c.one_of({1e-6f, 1e-5f, 0.5f});
  const Matrix x = c.matrix(rows, cols, 1e15f);
  const bool in_place = c.chance();
  expect_like_naive(
      x,
      [&](const KernelTable& table, Matrix& out) {
        table.rms_norm(in_place ? MatView<const float>(out.view()) : x.view(), weight.data(), eps, out.view());
      },
      [&](size_t, double expected) { return norm_error(cols, expected); });
}

template <>
inline void kernel_case<&KernelTable::gated_rms_norm>(Choices& c) {
  const size_t rows = c.integer(0, 4), heads = c.integer(1, 3), d = c.integer(1, 140);
  const std::vector<float> weight = c.values(d, 4);
  const Matrix gate = c.matrix(rows, heads * d, c.one_of({1.0f, 30.0f, 200.0f, 1e15f}));
  expect_like_naive(
      c.matrix(rows, heads * d, 1e15f),
      [&](const KernelTable& table, Matrix& x) { table.gated_rms_norm(x.view(), weight.data(), gate.view(), d, 1e-5f); },
      [&](size_t, double expected) { return norm_error(d, expected); });
}

template <>
inline void kernel_case<&KernelTable::l2_norm>(Choices& c) {
  const size_t rows = c.integer(0, 4), heads = c.integer(1, 3), d = c.integer(1, 140);
  const float scale = c.one_of({1.0f, 0.0883883f, 3.0f});
  expect_like_naive(
      c.matrix(rows, heads * d, 1e15f), [&](const KernelTable& table, Matrix& x) { table.l2_norm(x.view(), d, scale); },
      [&](size_t, double expected) { return norm_error(d, expected); });
}

template <>
inline void kernel_case<&KernelTable::silu_mul>(Choices& c) {
  const size_t rows = c.integer(0, 4), cols = c.integer(1, 150);
  const Matrix gate = c.matrix(rows, cols, c.one_of({1.0f, 30.0f, 200.0f, 1e15f})), up = c.matrix(rows, cols, 1e15f);
  expect_like_naive(
      up, [&](const KernelTable& table, Matrix& out) { table.silu_mul(gate.view(), out.view(), out.view()); },
      // A sigmoid below the normal numbers is flushed in one form, multiplied first in the other.
      [&](size_t i, double expected) { return 2e-6 * expected + 3e-36 * (1 + std::fabs(double{up.at(i / cols, i % cols)})); });
}

template <>
inline void kernel_case<&KernelTable::sigmoid>(Choices& c) {
  const size_t rows = c.integer(0, 4), cols = c.integer(1, 150);
  expect_like_naive(
      c.matrix(rows, cols, c.one_of({1.0f, 30.0f, 200.0f, 1e15f})),
      [&](const KernelTable& table, Matrix& x) { table.sigmoid(x.view(), x.view()); },
      [](size_t, double expected) { return 1e-6 * expected + 1e-37; });
}

template <>
inline void kernel_case<&KernelTable::causal_conv_silu>(Choices& c) {
  const size_t width = c.integer(1, kMaxConvWidth), tokens = c.integer(0, 24), channels = c.integer(1, 100);
  const Matrix x = c.matrix(tokens, channels, 1e12f), weight = c.matrix(width, channels, 1e6f);
  const Matrix tail = c.matrix(width - 1, channels, 1e12f);
  Matrix naive_tail = tail;
  bool is_naive = true;
  expect_like_naive(
      Matrix(tokens, channels),
      [&](const KernelTable& table, Matrix& out) {
        Matrix own = tail;
        table.causal_conv_silu(x.view(), weight.view(), own.view(), out.view());
        if (is_naive) naive_tail = own;
        is_naive = false;
        expect_gaps(own, "tail");
        expect_bytes(own.values(), naive_tail.values(), "tail");
      },
      [&](size_t i, double expected) {
        const size_t t = i / channels, ch = i % channels;
        double sum = 0;
        for (size_t j = 0; j < width; ++j) {
          const size_t at = t + j;  // over tail and rows together
          const float from = at < width - 1 ? tail.at(at, ch) : x.at(at - (width - 1), ch);
          sum += std::fabs(double{from} * double{weight.at(j, ch)});
        }
        return 3 * static_cast<double>(width + 2) * (kEps * sum + 1e-37) + 2e-6 * expected + 3e-36;
      });
}

template <>
inline void kernel_case<&KernelTable::kda_gate>(Choices& c) {
  const size_t rows = c.integer(0, 4), heads = c.integer(1, 3), d = c.integer(1, 140);
  const std::vector<float> A_log = c.values(heads, 8), dt_bias = c.values(heads * d, 8);
  expect_like_naive(
      c.matrix(rows, heads * d, c.one_of({1.0f, 30.0f, 200.0f, 1e15f})),
      [&](const KernelTable& table, Matrix& f) { table.kda_gate(f.view(), A_log.data(), dt_bias.data(), d, f.view()); },
      [](size_t, double expected) { return 2e-6 * expected + 1e-33; });
}

// Whether two experts or groups stand so close that forms may differ by their exponentials.
inline bool is_a_close_call(std::span<const float> logits, const std::vector<float>& bias, const RouteParams& p) {
  const size_t E = logits.size(), in_group = E / p.groups;
  std::vector<double> choice(E), groups(p.groups);
  for (size_t e = 0; e < E; ++e) choice[e] = 1 / (1 + std::exp(-double{logits[e]})) + double{bias[e]};
  for (size_t a = 0; a < E; ++a)
    for (size_t b = 0; b < a; ++b)
      if (std::fabs(choice[a] - choice[b]) < 1e-5 * (1 + std::fabs(choice[a])) &&
          !(logits[a] == logits[b] && bias[a] == bias[b]))
        return true;
  for (size_t g = 0; g < p.groups && p.groups > 1; ++g) {
    std::vector<double> own(choice.begin() + static_cast<ptrdiff_t>(g * in_group),
                            choice.begin() + static_cast<ptrdiff_t>((g + 1) * in_group));
    std::ranges::sort(own, std::greater{});
    groups[g] = own[0] + (in_group > 1 ? own[1] : 0);
    for (size_t other = 0; other < g; ++other)
      if (std::fabs(groups[g] - groups[other]) < 1e-5 * (1 + std::fabs(groups[g]))) return true;
  }
  return false;
}

template <>
inline void kernel_case<&KernelTable::route>(Choices& c) {
  const size_t groups = c.integer(1, 6), experts = groups * c.integer(1, 12), top_groups = c.integer(1, groups);
  const RouteParams p = {.top_k = c.integer(1, std::min<size_t>(16, experts / groups * top_groups)),
                         .groups = groups,
                         .top_groups = top_groups,
                         .renormalize = c.chance(),
                         .scale = 2.446f};
  const size_t rows = c.integer(0, 4);
  const Matrix logits = c.matrix(rows, experts, c.one_of({0.0f, 1.0f, 12.0f, 300.0f}));
  const std::vector<float> bias = c.values(experts, c.one_of({0.0f, 0.5f, 20.0f}));
  const auto routed = [&](const KernelTable& table) {
    std::pair<std::vector<int32_t>, std::vector<float>> out = {std::vector<int32_t>(rows * p.top_k, -1),
                                                               std::vector<float>(rows * p.top_k, -1)};
    table.route(logits.view(), bias.data(), p, {out.first.data(), rows, p.top_k}, {out.second.data(), rows, p.top_k});
    return out;
  };
  const auto [ids, weights] = routed(naive_kernels());
  for (const Form& form : isa_forms()) {
    const auto [our_ids, our_weights] = routed(form.table);
    for (size_t r = 0; r < rows; ++r) {
      const auto of_row = [&](auto& all) { return std::span(all).subspan(r * p.top_k, p.top_k); };
      const auto own = of_row(our_ids);
      const std::set<int32_t> distinct(own.begin(), own.end());
      if (distinct.size() != p.top_k || *distinct.begin() < 0 || *distinct.rbegin() >= static_cast<int32_t>(experts) ||
          !std::ranges::is_sorted(own))
        throw KernelDiffers(form.name + ": ids are not distinct experts in ascending order");
      if (is_a_close_call(logits.view()[r], bias, p)) continue;
      expect_bytes(own, of_row(ids), form.name + " ids");
      const auto expected = of_row(weights);
      expect_near(
          of_row(our_weights), expected, [&](size_t i) { return 1e-5 * double{expected[i]} + 1e-35; }, form.name);
    }
  }
}

template <>
inline void kernel_case<&KernelTable::max_and_exp_sum>(Choices& c) {
  const size_t n = c.integer(1, 3000);
  const std::vector<float> x = c.values(n, c.one_of({1.0f, 60.0f, 1e4f}));
  const float scale = c.one_of({1.0f, 0.1f, 20.0f, 0.0f});
  float max = 0;
  double sum = 0;
  naive_kernels().max_and_exp_sum(x.data(), n, scale, max, sum);
  for (const Form& form : isa_forms()) {
    float our_max = 0;
    double our_sum = 0;
    form.table.max_and_exp_sum(x.data(), n, scale, our_max, our_sum);
    if (our_max != max || !(std::fabs(our_sum - sum) <= 3e-5 * sum))
      throw KernelDiffers(fmt::format("{}: {} and {}; naive {} and {}", form.name, our_max, our_sum, max, sum));
  }
}

template <>
inline void kernel_case<&KernelTable::exp_shifted>(Choices& c) {
  const size_t n = c.integer(1, 200);
  const Matrix x = c.matrix(1, n, c.one_of({1.0f, 60.0f, 1e4f}));
  const float max = std::ranges::max(x.values()), scale = c.one_of({1.0f, 0.1f, 20.0f, 0.0f});
  expect_like_naive(
      x, [&](const KernelTable& table, Matrix& p) { table.exp_shifted(p.view().data(), n, max, scale, p.view().data()); },
      [](size_t, double expected) { return 3e-5 * expected + 1e-37; });
}

}  // namespace kilin::testing

// Both KDA kernels against golden/kernel: Hugging Face's code in fp64.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "support/compare.h"
#include "support/golden.h"
#include "support/kernels.h"
#include "support/safetensors.h"

namespace kilin {
namespace {

using testing::Form;
using testing::GoldenTensor;

constexpr const char* kCases[] = {
    "K128_T1_h0", "K128_T64", "K128_T130_h0", "K128_varlen_5_17_1_41_64_h0", "K128_T130_strong_h0", "K128_T130_resets_h0",
    "K64_T1_h0",  "K64_T64",  "K64_T130_h0",  "K64_varlen_5_17_1_41_64_h0",  "K64_T130_resets_h0",  "K64_T130_nodecay_h0"};

struct Result {
  std::vector<float> out;    // [T, H, V]
  std::vector<float> state;  // [N, H, K, V]
};

using Kernel = void (*)(const KdaHead&, std::span<float>);

Result run(const Form& form, Kernel kernel, std::map<std::string, GoldenTensor>& golden, size_t shift) {
  const auto& shape = golden["q"].shape;
  const size_t T = shape[0], H = shape[1], K = shape[2], V = golden["v"].shape[2];
  std::vector<float> q = golden["q"].floats, k = golden["k"].floats;
  form.table.l2_norm({q.data(), T, H * K}, K, 1 / std::sqrt(static_cast<float>(K)));
  form.table.l2_norm({k.data(), T, H * K}, K, 1);

  std::vector<int32_t> cu_seqlens = golden["cu_seqlens"].ints;
  if (cu_seqlens.empty()) cu_seqlens = {0, static_cast<int32_t>(T)};
  const size_t N = cu_seqlens.size() - 1;
  const std::vector<float>& initial = golden["initial_state"].floats;
  Result result{std::vector<float>(T * H * V), std::vector<float>(N * H * K * V)};
  std::vector<float> scratch(std::max(chunk_kda_scratch(K, V), fused_recurrent_kda_scratch(K, V)), std::nanf(""));

  for (size_t n = 0; n < N; ++n)
    for (size_t h = 0; h < H; ++h) {
      const size_t first = static_cast<size_t>(cu_seqlens[n]), tokens = static_cast<size_t>(cu_seqlens[n + 1]) - first;
      std::vector<float> state(kda_state_floats(K, V), 0.f);
      const size_t base = (n * H + h) * K * V;
      for (size_t i = 0; i < K && !initial.empty(); ++i)
        for (size_t v = 0; v < V; ++v) state[kda_state_index(K, i, v)] = initial[base + i * V + v];
      const auto head_of = [&](const std::vector<float>& x, size_t width) {
        return MatView<const float>(x.data() + (first * H + h) * width, tokens, width, H * width);
      };
      kernel({.q = head_of(q, K),
              .k = head_of(k, K),
              .v = head_of(golden["v"].floats, V),
              .g = head_of(golden["g"].floats, K),
              .beta = golden["beta"].floats.data() + first * H + h,
              .beta_stride = H,
              .start = shift,
              .state = state.data(),
              .out = {result.out.data() + (first * H + h) * V, tokens, V, H * V}},
             scratch);
      for (size_t i = 0; i < K; ++i)
        for (size_t v = 0; v < V; ++v) result.state[base + i * V + v] = state[kda_state_index(K, i, v)];
    }
  return result;
}

class KdaGolden : public ::testing::TestWithParam<const char*> {};

TEST_P(KdaGolden, EveryFormOfBothKernelsAgreesWithTheReference) {
  GOLDEN_OR_SKIP(file, std::string("kernel/") + GetParam() + ".safetensors");
  auto golden = testing::read_safetensors(file);
  ASSERT_FALSE(golden["o"].floats.empty());
  // The required tolerance is 5e-6, and 5e-5 for resets; with decays as running products the error is at most 7e-7 in all
  // cases.
  constexpr double kTolerance = 1e-6;
  for (const Form& form : testing::all_forms())
    for (Kernel kernel : {form.table.chunk_kda, form.table.fused_recurrent_kda}) {
      const bool chunk = kernel == form.table.chunk_kda;
      const Result result = run(form, kernel, golden, 0);
      EXPECT_CLOSE_TO_MAX(result.out, golden["o"].floats, kTolerance) << form.name << (chunk ? " chunk" : " recurrent");
      EXPECT_CLOSE_TO_MAX(result.state, golden["final_state"].floats, kTolerance)
          << form.name << (chunk ? " chunk" : " recurrent");
    }
}

TEST_P(KdaGolden, StartShiftedByAMultipleOf64ChangesNoByteAndByAnythingElseNoMoreThanRounding) {
  GOLDEN_OR_SKIP(file, std::string("kernel/") + GetParam() + ".safetensors");
  auto golden = testing::read_safetensors(file);
  for (const Form& form : testing::isa_forms()) {
    const Result at_zero = run(form, form.table.chunk_kda, golden, 0);
    for (size_t shift : {size_t{64}, size_t{6400}, size_t{1} << 40}) {
      const Result shifted = run(form, form.table.chunk_kda, golden, shift);
      EXPECT_BYTES_EQ(shifted.out, at_zero.out) << form.name << " at " << shift;
      EXPECT_BYTES_EQ(shifted.state, at_zero.state) << form.name << " at " << shift;
    }
    for (size_t shift : {1, 15, 16, 33, 63, 1000003}) {
      const Result shifted = run(form, form.table.chunk_kda, golden, shift);
      EXPECT_CLOSE_TO_MAX(shifted.out, at_zero.out, 1e-6) << form.name << " at " << shift;
      EXPECT_CLOSE_TO_MAX(shifted.state, at_zero.state, 1e-6) << form.name << " at " << shift;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernel, KdaGolden, ::testing::ValuesIn(kCases), [](const auto& c) { return std::string(c.param); });

}  // namespace
}  // namespace kilin

// Properties of the KDA kernels, and their values against a loop in double for shapes that no golden case has.
#include "kernels/kda.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/compare.h"
#include "support/kernels.h"

namespace kilin {
namespace {

using testing::Form;
using testing::Matrix;
using testing::Random;
using Kernel = void (*)(const KdaHead&, std::span<float>);

// One head's inputs: q and k have norm 1 (q scaled), as the kernels expect them.
struct Inputs {
  Inputs(size_t tokens, size_t key_dim, size_t value_dim, uint64_t seed, float strongest_decay = -3)
      : T(tokens),
        K(key_dim),
        V(value_dim),
        random(seed),
        q(T, K, random),
        k(T, K, random),
        v(T, V, random, -2, 2),
        g(T, K, random, strongest_decay, 0),
        beta(random.vector(2 * T, 0, 1)),
        state(kda_state_floats(K, V), 0.f) {
    naive_kernels().l2_norm(q.view(), K, 1 / std::sqrt(static_cast<float>(K)));
    naive_kernels().l2_norm(k.view(), K, 1);
    for (size_t i = 0; i < K; ++i)
      for (size_t c = 0; c < V; ++c) state[kda_state_index(K, i, c)] = random();
  }
  size_t T, K, V;
  Random random;
  Matrix q, k, v, g;
  std::vector<float> beta;  // stride 2
  std::vector<float> state;
};

struct Result {
  std::vector<float> out;
  std::vector<float> state;
};

// Runs rows [begin, end) of the inputs on `state`; the first of them has position `start`.
std::vector<float> run_rows(Kernel kernel, const Inputs& in, size_t begin, size_t end, size_t start, std::vector<float>& state,
                            std::span<const KdaSnapshot> snapshots = {}) {
  Matrix out(end - begin, in.V);
  std::vector<float> scratch(std::max(chunk_kda_scratch(in.K, in.V), fused_recurrent_kda_scratch(in.K, in.V)), std::nanf(""));
  kernel({.q = in.q.view().rows(begin, end),
          .k = in.k.view().rows(begin, end),
          .v = in.v.view().rows(begin, end),
          .g = in.g.view().rows(begin, end),
          .beta = in.beta.data() + 2 * begin,
          .beta_stride = 2,
          .start = start,
          .state = state.data(),
          .out = out.view(),
          .snapshots = snapshots},
         scratch);
  EXPECT_TRUE(out.gaps_are_intact());
  return out.values();
}

Result run(Kernel kernel, const Inputs& in, size_t start = 0, std::span<const KdaSnapshot> snapshots = {}) {
  Result result{{}, in.state};
  result.out = run_rows(kernel, in, 0, in.T, start, result.state, snapshots);
  return result;
}

// The recurrence as the paper writes it, in double.
Result reference(const Inputs& in) {
  const size_t K = in.K, V = in.V;
  std::vector<double> S(K * V);
  for (size_t i = 0; i < K; ++i)
    for (size_t c = 0; c < V; ++c) S[i * V + c] = static_cast<double>(in.state[kda_state_index(K, i, c)]);
  Result result{{}, std::vector<float>(in.state.size(), 0.f)};
  for (size_t t = 0; t < in.T; ++t) {
    for (size_t i = 0; i < K; ++i)
      for (size_t c = 0; c < V; ++c) S[i * V + c] *= std::exp(static_cast<double>(in.g.at(t, i)));
    for (size_t c = 0; c < V; ++c) {
      double error = static_cast<double>(in.v.at(t, c)), out = 0;
      for (size_t i = 0; i < K; ++i) error -= S[i * V + c] * static_cast<double>(in.k.at(t, i));
      for (size_t i = 0; i < K; ++i) {
        S[i * V + c] += static_cast<double>(in.k.at(t, i)) * static_cast<double>(in.beta[2 * t]) * error;
        out += S[i * V + c] * static_cast<double>(in.q.at(t, i));
      }
      result.out.push_back(static_cast<float>(out));
    }
  }
  for (size_t i = 0; i < K; ++i)
    for (size_t c = 0; c < V; ++c) result.state[kda_state_index(K, i, c)] = static_cast<float>(S[i * V + c]);
  return result;
}

void expect_like_reference(const Inputs& in, double tolerance, const std::string& what) {
  const Result expected = reference(in);
  for (const Form& form : testing::all_forms())
    for (Kernel kernel : {form.table.chunk_kda, form.table.fused_recurrent_kda}) {
      const Result result = run(kernel, in);
      const std::string name = form.name + (kernel == form.table.chunk_kda ? " chunk, " : " recurrent, ") + what;
      EXPECT_CLOSE_TO_MAX(result.out, expected.out, tolerance) << name;
      EXPECT_CLOSE_TO_MAX(result.state, expected.state, tolerance) << name;
    }
}

TEST(Kda, AgreesWithDoubleForAnyKeyAndValueDim) {
  for (auto [K, V] : {std::pair<size_t, size_t>{1, 1},
                      {17, 17},
                      {20, 20},
                      {48, 48},
                      {64, 64},
                      {128, 128},
                      {17, 40},
                      {48, 5},
                      {5, 48},
                      {33, 130},
                      {130, 33},
                      {31, 16}})
    for (size_t T : {1, 40, 70}) {
      const Inputs in(T, K, V, K * 1000 + V);
      expect_like_reference(in, 2e-6, std::to_string(K) + " x " + std::to_string(V) + ", T " + std::to_string(T));
    }
}

TEST(Kda, AgreesWithDoubleForLengthsAroundSubBlocksAndChunks) {
  for (size_t T : {1, 2, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65, 79, 80, 81, 127, 128, 129, 191, 192})
    expect_like_reference(Inputs(T, 32, 24, T), 2e-6, "T " + std::to_string(T));
}

TEST(Kda, SurvivesDecaysOfAThousandWithinASubBlock) {
  // models/tiny reaches a sum of -976 over 16 tokens.
  Inputs in(130, 32, 32, 9, -122);
  for (size_t t = 0; t < in.T; ++t)
    for (size_t i = 0; i < in.K; ++i)
      if ((t + i) % 3 == 0) in.g.at(t, i) = -1e-4f;  // beside channels that hardly decay at all
  for (size_t i = 0; i < in.K; ++i) in.g.at(50, i) = -1e30f, in.g.at(51, i) = -std::numeric_limits<float>::infinity();
  expect_like_reference(in, 1e-6, "strong decays");
}

TEST(Kda, EmptySequencesLeaveTheStateBytesAlone) {
  for (const Form& form : testing::all_forms())
    for (Kernel kernel : {form.table.chunk_kda, form.table.fused_recurrent_kda}) {
      Inputs in(0, 17, 20, 1);
      in.state[3] = std::nanf("0x123"), in.state[4] = -0.f, in.state[5] = 1e-42f;
      EXPECT_BYTES_EQ(run(kernel, in, 5).state, in.state) << form.name;
    }
}

TEST(Kda, ChannelsThatPadTheLastPanelStayZero) {
  for (const Form& form : testing::all_forms())
    for (Kernel kernel : {form.table.chunk_kda, form.table.fused_recurrent_kda}) {
      const Inputs in(70, 12, 21, 4);
      const Result result = run(kernel, in);
      for (size_t i = 0; i < in.K; ++i)
        for (size_t c = in.V; c < 32; ++c) EXPECT_EQ(result.state[kda_state_index(in.K, i, c)], 0) << form.name;
    }
}

TEST(ChunkKda, CutAtAMultipleOf64ChangesNoByte) {
  for (const Form& form : testing::all_forms())
    for (size_t start : {0, 1, 17, 63, 64, 1000})
      for (size_t T : {65, 130, 200}) {
        const Inputs in(T, 20, 36, T + start);
        const Result whole = run(form.table.chunk_kda, in, start);
        for (size_t cut = 64 - start % 64; cut < T; cut += 64) {
          std::vector<float> state = in.state;
          std::vector<float> out = run_rows(form.table.chunk_kda, in, 0, cut, start, state);
          const std::vector<float> rest = run_rows(form.table.chunk_kda, in, cut, T, start + cut, state);
          out.insert(out.end(), rest.begin(), rest.end());
          EXPECT_BYTES_EQ(out, whole.out) << form.name << " start " << start << " cut at " << cut;
          EXPECT_BYTES_EQ(state, whole.state) << form.name << " start " << start << " cut at " << cut;
        }
      }
}

TEST(ChunkKda, CutAnywhereElseChangesNoMoreThanRounding) {
  const Inputs in(100, 32, 32, 6);
  for (const Form& form : testing::isa_forms()) {
    const Result whole = run(form.table.chunk_kda, in);
    for (size_t cut : {1, 7, 31, 63, 97}) {
      std::vector<float> state = in.state, out = run_rows(form.table.chunk_kda, in, 0, cut, 0, state);
      const std::vector<float> rest = run_rows(form.table.chunk_kda, in, cut, in.T, cut, state);
      out.insert(out.end(), rest.begin(), rest.end());
      EXPECT_CLOSE_TO_MAX(out, whole.out, 1e-6) << form.name << " cut at " << cut;
      EXPECT_CLOSE_TO_MAX(state, whole.state, 1e-6) << form.name << " cut at " << cut;
    }
  }
}

TEST(ChunkKda, SnapshotsAreTheStatesOfShorterCallsAndChangeNothing) {
  for (const Form& form : testing::all_forms())
    for (size_t start : {0, 40, 64}) {
      const Inputs in(230, 18, 35, start);
      const Result plain = run(form.table.chunk_kda, in, start);
      // Not every boundary gets one, and the last may be at the end.
      std::vector<size_t> positions;
      for (size_t p = start / 64 * 64 + 64; p <= start + in.T; p += start == 40 ? 64 : 128) positions.push_back(p);
      std::vector<std::vector<float>> states(positions.size(), std::vector<float>(in.state.size()));
      std::vector<KdaSnapshot> snapshots;
      for (size_t i = 0; i < positions.size(); ++i) snapshots.push_back({positions[i], states[i].data()});

      const Result with = run(form.table.chunk_kda, in, start, snapshots);
      EXPECT_BYTES_EQ(with.out, plain.out) << form.name;
      EXPECT_BYTES_EQ(with.state, plain.state) << form.name;
      ASSERT_FALSE(positions.empty());
      for (size_t i = 0; i < positions.size(); ++i) {
        std::vector<float> state = in.state;
        run_rows(form.table.chunk_kda, in, 0, positions[i] - start, start, state);
        EXPECT_BYTES_EQ(states[i], state) << form.name << " snapshot at " << positions[i];
      }
    }
}

TEST(ChunkKda, ASnapshotAtTheEndIsTheFinalState) {
  const Inputs in(128, 16, 16, 8);
  for (const Form& form : testing::all_forms()) {
    std::vector<float> snapshot(in.state.size());
    const KdaSnapshot at_end{128, snapshot.data()};
    EXPECT_BYTES_EQ(run(form.table.chunk_kda, in, 0, {&at_end, 1}).state, snapshot) << form.name;
  }
}

TEST(ChunkKda, ATokenThatIsNotANumberSpoilsNoneBeforeIt) {
  Inputs in(90, 24, 24, 12);
  Inputs poisoned = in;
  constexpr size_t kToken = 70;
  poisoned.v.at(kToken, 3) = std::nanf("");
  poisoned.k.at(kToken, 1) = std::numeric_limits<float>::infinity();
  for (const Form& form : testing::all_forms()) {
    std::vector<float> clean = run(form.table.chunk_kda, in).out, spoilt = run(form.table.chunk_kda, poisoned).out;
    EXPECT_TRUE(std::isnan(spoilt[kToken * in.V + 3])) << form.name;
    clean.resize(kToken * in.V), spoilt.resize(kToken * in.V);
    EXPECT_BYTES_EQ(spoilt, clean) << form.name;
  }
}

TEST(FusedRecurrentKda, CutAnywhereChangesNoByte) {
  const Inputs in(50, 20, 36, 3);
  for (const Form& form : testing::all_forms()) {
    const Result whole = run(form.table.fused_recurrent_kda, in);
    for (size_t cut = 0; cut <= in.T; ++cut) {
      std::vector<float> state = in.state, out = run_rows(form.table.fused_recurrent_kda, in, 0, cut, 0, state);
      const std::vector<float> rest = run_rows(form.table.fused_recurrent_kda, in, cut, in.T, cut, state);
      out.insert(out.end(), rest.begin(), rest.end());
      EXPECT_BYTES_EQ(out, whole.out) << form.name << " cut at " << cut;
      EXPECT_BYTES_EQ(state, whole.state) << form.name << " cut at " << cut;
    }
  }
}

}  // namespace
}  // namespace kilin

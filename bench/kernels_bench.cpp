// The heavy kernels on one thread, for every instruction set of this machine, at the sizes of Kimi-Linear-48B-A3B. FLOP counts
// the operations of the formula, not those that a form really executes; bytes count weights, states and latents once.
// ns_per_token is given where the unit is a token; of_peak is the share of the speed of an FMA loop that runs in alternation.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <vector>

#include "beside_peak.h"
#include "core/cpu_info.h"
#include "core/random.h"
#include "core/reservation.h"
#include "core/tensor.h"
#include "kernels/isa.h"
#include "support/panels.h"

namespace kilin {
namespace {

using benchmark::Counter;

Tensor random_matrix(size_t rows, size_t cols, float low = -1, float high = 1) {
  Tensor tensor(DType::f32, {rows, cols});
  for (size_t i = 0; i < tensor.elements(); ++i)
    tensor.as<float>()[i] = low + (high - low) * static_cast<float>(random_uniform(1, i));
  return tensor;
}

Tensor random_bf16(size_t rows, size_t cols) {
  Tensor tensor(DType::bf16, {rows, cols});
  for (size_t i = 0; i < tensor.elements(); ++i)
    tensor.as<bf16>()[i] = to_bf16(static_cast<float>(random_uniform(2, i)) - 0.5f);
  return tensor;
}

MatView<float> view(const Tensor& tensor) { return {tensor.as<float>(), tensor.shape()[0], tensor.shape()[1]}; }

void report(benchmark::State& state, double flop, double bytes) {
  const auto rate = Counter::kIsIterationInvariantRate;
  state.counters["FLOP/s"] = Counter(flop, rate);
  if (bytes > 0) state.counters["B/s"] = Counter(bytes, rate, Counter::kIs1024);
}

// Compares with reading the weights if they exceed the caches, else with the peak of the arithmetic.
template <typename F>
void run_product(benchmark::State& state, const KernelTable& table, const ArithmeticPeak& peak, double operations,
                 const PackedMatrix& w, F&& product) {
  if (w.bytes() > size_t{64} << 20)
    bench::run_beside_read(state, *peaks_of(table.isa), {w.data(), w.bytes()}, product);
  else
    bench::run_beside_peak(state, peak, operations, product);
}

// bf16 weights [N, K] against M rows of fp32.
void matmul(benchmark::State& state, const KernelTable& table) {
  const auto M = static_cast<size_t>(state.range(0)), K = static_cast<size_t>(state.range(1)),
             N = static_cast<size_t>(state.range(2));
  const Tensor weights = random_bf16(N, K), x = random_matrix(M, K), y = random_matrix(M, N);
  const PackedMatrix w(DType::bf16, N, K, weights.data());
  run_product(state, table, peaks_of(table.isa)->fp32_fma, 2.0 * static_cast<double>(M * N * K), w,
              [&] { table.matmul(w, view(x), 0, N, view(y)); });
}

// The peak of bf16 products: by their own instruction, or by FMAs if there is none.
ArithmeticPeak bf16_peak(const KernelTable& table) {
  return table.isa == Isa::Avx512Bf16 ? bf16_dot_peak(CpuInfo::detect()) : peaks_of(table.isa)->fp32_fma;
}

// The same against M rows of bf16, an odd number of cache lines apart, as in the layers. Sets without a bf16 dot product are
// compared with FMAs.
void matmul_bf16(benchmark::State& state, const KernelTable& table) {
  const auto M = static_cast<size_t>(state.range(0)), K = static_cast<size_t>(state.range(1)),
             N = static_cast<size_t>(state.range(2));
  const size_t stride = ((K + 31) / 32 | 1) * 32;
  const Tensor weights = random_bf16(N, K), x = random_bf16(M, stride), y = random_matrix(M, N);
  const PackedMatrix w(DType::bf16, N, K, weights.data());
  run_product(state, table, bf16_peak(table), 2.0 * static_cast<double>(M * N * K), w, [&] {
    table.matmul_bf16(w, {x.as<const bf16>(), M, K, stride}, 0, N, view(y));
  });
}

// Block-quantised weights [N, K] in panels against M rows of int8.
void matmul_int8(benchmark::State& state, const KernelTable& table, BlockFormat format) {
  const auto M = static_cast<size_t>(state.range(0)), K = static_cast<size_t>(state.range(1)),
             N = static_cast<size_t>(state.range(2));
  const testing::Panels w(testing::Blocks(format, N, K, 1));
  const Tensor x = random_matrix(M, K), y = random_matrix(M, N), scales = random_matrix(M, (K + kInt8Group - 1) / kInt8Group);
  const Tensor values(DType::i8, {M, K}), sums(DType::i16, {M, K / kInt8SumGroup});
  const Int8Rows rows = {{values.as<int8_t>(), M, K}, view(scales), {sums.as<int16_t>(), M, K / kInt8SumGroup}};
  table.quantize_rows(view(x), rows);
  run_product(state, table, peaks_of(table.isa)->int8_dot, 2.0 * static_cast<double>(M * N * K), w.matrix(),
              [&] { table.matmul_int8(w.matrix(), rows, 0, N, view(y)); });
}

// The keys' half of an absorbed kv_b_proj, head by head, from memory.
template <typename T>
void matmul_transposed(benchmark::State& state, const KernelTable& table) {
  constexpr size_t kHeads = 256, N = 128, K = 512;
  constexpr DType type = sizeof(T) == sizeof(float) ? DType::f32 : DType::bf16;
  const auto M = static_cast<size_t>(state.range(0));
  Tensor w(type, {kHeads * N, K});
  std::fill_n(w.as<T>(), w.elements(), T{});
  const Tensor x = random_matrix(M, N), y = random_matrix(M, K);
  bench::run_beside_read(state, *peaks_of(table.isa), {static_cast<const std::byte*>(w.data()), w.bytes()}, [&] {
    for (size_t h = 0; h < kHeads; ++h) table.matmul_transposed({type, N, K, w.as<T>() + h * N * K}, view(x), view(y));
  });
}

void quantize_rows(benchmark::State& state, const KernelTable& table) {
  constexpr size_t M = 16, K = 2304;
  const Tensor x = random_matrix(M, K), scales = random_matrix(M, K / kInt8Group);
  const Tensor values(DType::i8, {M, K}), sums(DType::i16, {M, K / kInt8SumGroup});
  const Int8Rows rows = {{values.as<int8_t>(), M, K}, view(scales), {sums.as<int16_t>(), M, K / kInt8SumGroup}};
  for (auto _ : state) table.quantize_rows(view(x), rows);
  report(state, 0, static_cast<double>(x.bytes()));
}

// Packs row-major blocks into panels; bytes are those of the source.
void pack_panel(benchmark::State& state, BlockFormat format) {
  constexpr size_t N = 512, K = 2304;
  const testing::Blocks blocks(format, N, K, 1);
  Tensor panel(DType::u8, {panel_bytes(format, kPanelRows, K)});
  for (auto _ : state)
    for (size_t r = 0; r < N; r += kPanelRows)
      kilin::pack_panel(format, K, blocks.matrix().row(r), kPanelRows, static_cast<std::byte*>(panel.data()));
  report(state, 0, static_cast<double>(blocks.matrix().bytes()));
}

struct KdaInputs {
  KdaInputs(size_t tokens, size_t K, size_t V)
      : q(random_matrix(tokens, K, -0.1f, 0.1f)),
        k(random_matrix(tokens, K, -0.1f, 0.1f)),
        v(random_matrix(tokens, V)),
        g(random_matrix(tokens, K, -2, 0)),
        beta(random_matrix(1, tokens, 0, 1)),
        state(random_matrix(1, kda_state_floats(K, V))),
        out(random_matrix(tokens, V)),
        scratch(std::max(chunk_kda_scratch(K, V), fused_recurrent_kda_scratch(K, V))) {}
  KdaHead head() const {
    return {.q = view(q),
            .k = view(k),
            .v = view(v),
            .g = view(g),
            .beta = beta.as<float>(),
            .beta_stride = 1,
            .start = 0,
            .state = state.as<float>(),
            .out = view(out)};
  }
  Tensor q, k, v, g, beta, state, out;
  std::vector<float> scratch;
};

void count_tokens(benchmark::State& state, size_t tokens) {
  state.counters["s/token"] = Counter(static_cast<double>(tokens), Counter::kIsIterationInvariantRate | Counter::kInvert);
}

// The matrix products of the chunk form, triangles counted as such: (K S), (Q S), the state's update; A and P; A V' and P V'.
double chunk_flop(size_t tokens, size_t D) {
  const auto T = static_cast<double>(tokens), d = static_cast<double>(D), C = static_cast<double>(kKdaChunk);
  return 2 * T * (3 * d * d + 2 * d * (C + 1));
}

void chunk_kda(benchmark::State& state, const KernelTable& table) {
  const auto tokens = static_cast<size_t>(state.range(0)), D = static_cast<size_t>(state.range(1));
  KdaInputs in(tokens, D, D);
  bench::run_beside_peak(state, peaks_of(table.isa)->fp32_fma, chunk_flop(tokens, D),
                         [&] { table.chunk_kda(in.head(), in.scratch); });
  count_tokens(state, tokens);
}

// One state, which stays in the second-level cache.
void fused_recurrent_kda(benchmark::State& state, const KernelTable& table) {
  const auto tokens = static_cast<size_t>(state.range(0)), D = static_cast<size_t>(state.range(1));
  KdaInputs in(tokens, D, D);
  const double flop = 7.0 * static_cast<double>(tokens * D * D);  // decay 1, predict 2, correct 2, read 2
  bench::run_beside_peak(state, peaks_of(table.isa)->fp32_fma, flop, [&] { table.fused_recurrent_kda(in.head(), in.scratch); });
  count_tokens(state, tokens);
}

// One token on all states of a sequence, more than caches hold: 20 layers of 32 heads.
void fused_recurrent_kda_from_memory(benchmark::State& state, const KernelTable& table) {
  constexpr size_t kHeads = 640, kDim = 128, kFloats = kda_state_floats(kDim, kDim);
  KdaInputs in(1, kDim, kDim);
  std::vector<float> states(kHeads * kFloats, 0.5f);
  bench::run_beside_pass(state, states, [&] {
    KdaHead head = in.head();
    for (size_t h = 0; h < kHeads; ++h) {
      head.state = states.data() + h * kFloats;
      table.fused_recurrent_kda(head, in.scratch);
    }
  });
}

// One head's rows against a full block, with keys and values stored by head as in the model.
void mla_extend(benchmark::State& state, const KernelTable& table) {
  constexpr size_t kNope = 128, kRope = 64, kValue = 128;
  const auto rows = static_cast<size_t>(state.range(0));
  const Tensor q = random_matrix(rows, kNope + kRope), kv = random_matrix(kMlaBlock, kNope + kValue),
               k_rope = random_matrix(kMlaBlock, kRope), out = random_matrix(rows, kValue);
  std::vector<float> max(rows, 0.f), sum(rows, 1.f), scratch(mla_extend_scratch(rows, kNope + kRope));
  const MlaExtendBlock block = {.q = view(q),
                                .k_nope = view(kv).columns(0, kNope),
                                .k_rope = view(k_rope),
                                .v = view(kv).columns(kNope, kNope + kValue),
                                .scale = 0.07f,
                                .query_start = kMlaBlock,
                                .key_start = 0,
                                .max = max.data(),
                                .sum = sum.data(),
                                .partial_stride = 1,
                                .out = view(out)};
  bench::run_beside_peak(state, peaks_of(table.isa)->fp32_fma,
                         2.0 * static_cast<double>(rows * kMlaBlock * (kNope + kRope + kValue)),
                         [&] { table.mla_extend_block(block, scratch); });
}

using MlaDecode = void(const MlaDecodeBlock& block, std::span<float> scratch) noexcept;

// 32 heads over the blocks of 32k tokens one after another, or over one block again and again.
void mla_decode(benchmark::State& state, const ArithmeticPeak& peak, MlaDecode* kernel, KvType type) {
  constexpr size_t kHeads = 32, kRank = 512, kRope = 64;
  const auto blocks = static_cast<size_t>(state.range(0));
  const size_t row_bytes = latent_row_bytes(type, kRank + kRope);
  const Tensor q = random_matrix(kHeads, kRank), q_rope = random_matrix(kHeads, kRope), out = random_matrix(kHeads, kRank);
  const Tensor rows = random_matrix(kMlaBlock, kRank + kRope);
  Reservation latents(blocks * kMlaBlock * row_bytes, "latents");
  latents.ask_for_huge_pages();  // as the pool does
  for (size_t s = 0; s < blocks * kMlaBlock; ++s)
    store_latent_row(type, view(rows).row(s % kMlaBlock), kRank + kRope, latents.data() + s * row_bytes);
  std::vector<float> max(kHeads), sum(kHeads), scratch(mla_decode_scratch(kHeads, kRank + kRope));
  size_t next = 0;
  bench::run_beside_peak(state, peak, 2.0 * static_cast<double>(kHeads * kMlaBlock * (2 * kRank + kRope)), [&] {
    const std::byte* pages[kMlaBlock / kMlaPage];
    for (size_t p = 0; p < std::size(pages); ++p) pages[p] = latents.data() + (next * kMlaBlock + p * kMlaPage) * row_bytes;
    kernel({.q_latent = view(q),
            .q_rope = view(q_rope),
            .latents = {type, pages, kMlaBlock},
            .scale = 0.07f,
            .upcoming = latents.data() + (next + 1) % blocks * kMlaBlock * row_bytes,
            .max = max.data(),
            .sum = sum.data(),
            .out = view(out)},
           scratch);
    next = (next + 1) % blocks;
  });
}

void max_and_exp_sum(benchmark::State& state, const KernelTable& table) {
  const Tensor x = random_matrix(1, 163840, -20, 0);
  float max = 0;
  double sum = 0;
  for (auto _ : state) table.max_and_exp_sum(x.as<float>(), x.elements(), 1, max, sum);
  benchmark::DoNotOptimize(sum);
  report(state, 0, static_cast<double>(x.bytes()));
}

const bool kRegistered = [] {
  for (BlockFormat format : kBlockFormats)
    benchmark::RegisterBenchmark(("pack_panel/" + std::string(to_string(format))).c_str(),
                                 [=](auto& state) { pack_panel(state, format); });
  for (Isa isa : kIsas) {
    const KernelTable* table = kernels_of(isa);
    if (!table || !supports(CpuInfo::detect(), isa)) continue;
    const auto name = [&](const char* op) { return std::string(op) + "/" + std::string(to_string(isa)); };
    for (const auto& [op, product] : {std::pair("matmul", &matmul), std::pair("matmul_bf16", &matmul_bf16)})
      benchmark::RegisterBenchmark(name(op).c_str(), [=, product = product](auto& state) { product(state, *table); })
          ->ArgNames({"M", "K", "N"})
          ->Args({1, 2304, 128})
          ->Args({1, 2304, 4096})
          ->Args({1, 2304, 65536})
          ->Args({8, 2304, 65536})
          ->Args({16, 2304, 65536})
          ->Args({32, 2304, 1024})
          ->Args({512, 2304, 1024})
          ->Args({64, 4096, 512})
          ->Args({64, 9216, 256})
          ->Args({8, 128, 4096})
          ->Args({64, 128, 4096})
          ->UseManualTime();
    for (BlockFormat format : {BlockFormat::q4_0, BlockFormat::q8_0, BlockFormat::q4_k, BlockFormat::q6_k, BlockFormat::iq4_xs})
      benchmark::RegisterBenchmark((name("matmul_int8") + "/" + std::string(to_string(format))).c_str(),
                                   [=](auto& state) { matmul_int8(state, *table, format); })
          ->ArgNames({"M", "K", "N"})
          ->Args({1, 2304, 65536})
          ->Args({2, 2304, 65536})
          ->Args({4, 2304, 65536})
          ->Args({8, 2304, 65536})
          ->Args({16, 2304, 65536})
          ->Args({1, 2304, 1024})
          ->Args({4, 2304, 1024})
          ->Args({16, 2304, 1024})
          ->Args({64, 2304, 1024})
          ->Args({512, 2304, 1024})
          ->UseManualTime();
    for (const auto& [type, product] :
         {std::pair("f32", &matmul_transposed<float>), std::pair("bf16", &matmul_transposed<bf16>)})
      benchmark::RegisterBenchmark((name("matmul_transposed") + "/" + type).c_str(),
                                   [=, product = product](auto& state) { product(state, *table); })
          ->ArgName("M")
          ->Arg(1)
          ->Arg(8)
          ->UseManualTime();
    benchmark::RegisterBenchmark(name("quantize_rows").c_str(), [=](auto& state) { quantize_rows(state, *table); });
    benchmark::RegisterBenchmark(name("chunk_kda").c_str(), [=](auto& state) { chunk_kda(state, *table); })
        ->ArgNames({"T", "K"})
        ->Args({64, 128})
        ->Args({512, 128})
        ->Args({4096, 128})
        ->Args({32768, 128})
        ->Args({131072, 128})
        ->Args({64, 32})
        ->UseManualTime();
    benchmark::RegisterBenchmark(name("fused_recurrent_kda").c_str(), [=](auto& state) { fused_recurrent_kda(state, *table); })
        ->ArgNames({"T", "K"})
        ->Args({1, 128})
        ->Args({8, 128})
        ->UseManualTime();
    benchmark::RegisterBenchmark(name("fused_recurrent_kda_from_memory").c_str(), [=](auto& state) {
      fused_recurrent_kda_from_memory(state, *table);
    })->UseManualTime();
    benchmark::RegisterBenchmark(name("mla_extend_block").c_str(), [=](auto& state) { mla_extend(state, *table); })
        ->ArgName("rows")
        ->Arg(1)
        ->Arg(32)
        ->UseManualTime();
    for (KvType type : {KvType::f32, KvType::bf16, KvType::q8})
      benchmark::RegisterBenchmark(
          (name("mla_decode_block") + "/" + std::string(to_string(type))).c_str(),
          [=](auto& state) { mla_decode(state, peaks_of(isa)->fp32_fma, table->mla_decode_block, type); })
          ->ArgName("blocks")
          ->Arg(1)
          ->Arg(64)
          ->UseManualTime();
    benchmark::RegisterBenchmark(
        name("mla_decode_block_bf16").c_str(),
        [=](auto& state) { mla_decode(state, bf16_peak(*table), table->mla_decode_block_bf16, KvType::bf16); })
        ->ArgName("blocks")
        ->Arg(1)
        ->Arg(64)
        ->UseManualTime();
    benchmark::RegisterBenchmark(name("max_and_exp_sum").c_str(), [=](auto& state) { max_and_exp_sum(state, *table); });
  }
  return true;
}();

}  // namespace
}  // namespace kilin

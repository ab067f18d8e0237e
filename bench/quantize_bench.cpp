// Blocks to fp32 rows and back, one thread: elements a second.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "core/random.h"
#include "kernels/quant/blocks.h"
#include "kernels/quant/quantize.h"

namespace kilin {
namespace {

constexpr size_t kElements = 1 << 16;

// Sums of four uniform numbers: close enough to the distribution of weights.
std::vector<float> weights() {
  std::vector<float> x(kElements);
  for (size_t i = 0; i < x.size(); ++i)
    for (uint64_t part = 0; part < 4; ++part) x[i] += static_cast<float>(random_uniform(part, i) - 0.5);
  return x;
}

void dequantize(benchmark::State& state, BlockFormat format) {
  std::vector<std::byte> blocks(StorageFormat(format).bytes_of(kElements));
  for (size_t i = 0; i < blocks.size(); ++i) blocks[i] = static_cast<std::byte>(random_bits(1, i));
  std::vector<float> out(kElements);
  for (auto _ : state) {
    dequantize_row(format, blocks.data(), kElements, out.data());
    benchmark::DoNotOptimize(out.data());
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kElements));
}

void quantize(benchmark::State& state, BlockFormat format, Rounding rounding) {
  const std::vector<float> x = weights();
  std::vector<std::byte> blocks(StorageFormat(format).bytes_of(kElements));
  for (auto _ : state) {
    quantize_row(format, rounding, x.data(), kElements, blocks.data());
    benchmark::DoNotOptimize(blocks.data());
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kElements));
}

[[maybe_unused]] const bool kRegistered = [] {
  for (BlockFormat format : kBlockFormats) {
    const std::string name(to_string(format));
    benchmark::RegisterBenchmark(("dequantize/" + name).c_str(), dequantize, format);
    if (!can_quantize(format)) continue;
    benchmark::RegisterBenchmark(("quantize/" + name + "/searched").c_str(), quantize, format, Rounding::Searched);
    benchmark::RegisterBenchmark(("quantize/" + name + "/nearest").c_str(), quantize, format, Rounding::Nearest);
  }
  return true;
}();

}  // namespace
}  // namespace kilin

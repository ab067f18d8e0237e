// What drawing the next tokens costs after the logits are there: rows of the published vocabulary, all threads. Medians of the
// calls: `wall_ms`; `cpu_ms`, of all threads together, which a busy machine disturbs less; `of_read`, the time of a pass that
// only reads the same logits, over that of the sampler.
#include <benchmark/benchmark.h>

#include <cmath>
#include <ctime>
#include <numeric>
#include <string>
#include <vector>

#include "beside_peak.h"
#include "core/cpu_info.h"
#include "core/random.h"
#include "core/thread_pool.h"
#include "engine/sampler.h"
#include "kernels/peaks.h"

namespace kilin::bench {
namespace {

constexpr size_t kVocab = 163840;

enum class Shape { Text, Flat };

// Text: probabilities fall as rank^-1.5, ids in random order; 0.9 of the mass are 60 ids. Flat: a bell curve of deviation 1, as
// random weights give it; 0.9 of the mass are two thirds of all ids.
std::vector<float> some_logits(Shape shape, uint64_t seed) {
  std::vector<float> x(kVocab);
  if (shape == Shape::Flat) {
    for (size_t i = 0; i < kVocab; ++i) {
      double sum = -6;
      for (uint64_t part = 0; part < 12; ++part) sum += random_uniform(12 * seed + part, i);
      x[i] = static_cast<float>(sum);
    }
    return x;
  }
  std::vector<size_t> order(kVocab);
  std::iota(order.begin(), order.end(), size_t{0});
  for (size_t i = kVocab - 1; i > 0; --i) std::swap(order[i], order[random_bits(seed, i) % (i + 1)]);
  for (size_t rank = 0; rank < kVocab; ++rank)
    x[order[rank]] = static_cast<float>(20 - 1.5 * std::log(1 + static_cast<double>(rank)));
  return x;
}

struct Case {
  const char* name;
  SamplingParams params;
  size_t history = 0;
};

const Case kCases[] = {
    {"greedy", {}},
    {"temperature", {.temperature = 1}},
    {"top_k=50,top_p=0.95", {.temperature = 1, .top_k = 50, .top_p = 0.95}},
    {"top_p=0.9", {.temperature = 1, .top_p = 0.9}},
    {"min_p=0.05", {.temperature = 1, .min_p = 0.05}},
    {"penalty=1.1,history=4096", {.repetition_penalty = 1.1, .temperature = 1}, 4096},
};

void draw(benchmark::State& state, const Case& c, Shape shape, size_t rows) {
  ThreadPool pool(usable_threads());
  const KernelTable kernels = select_kernels(CpuInfo::detect(), {});
  std::vector<std::vector<float>> masters;
  for (size_t r = 0; r < std::min<size_t>(rows, 8); ++r) masters.push_back(some_logits(shape, r));
  std::vector<float> logits(rows * kVocab);
  std::vector<int32_t> history(c.history);
  for (size_t i = 0; i < history.size(); ++i)
    history[i] = static_cast<int32_t>(random_bits(1, i) % (i % 2 == 0 ? 500 : kVocab));
  Sampler sampler(kernels, kVocab, pool.size());
  std::vector<SampleRow> batch;
  const PeakTable& peaks = *peaks_of(kernels.isa);
  uint64_t position = 0;
  std::vector<double> shares, wall_ms, cpu_ms;
  for (auto _ : state) {
    for (size_t r = 0; r < rows; ++r)
      std::copy(masters[r % masters.size()].begin(), masters[r % masters.size()].end(), &logits[r * kVocab]);
    const double read = seconds_of([&] {
      pool.parallel_for(rows, 1, [&](const Slice& slice) {
        const auto* row = reinterpret_cast<const std::byte*>(&logits[slice.begin * kVocab]);
        const size_t half = kVocab * sizeof(float) / 2 / kReadStep * kReadStep;
        benchmark::DoNotOptimize(peaks.read(row, row + half, half));
      });
    });
    ++position;
    batch.clear();
    for (size_t r = 0; r < rows; ++r)
      batch.push_back({std::span(logits).subspan(r * kVocab, kVocab), &c.params, history, position * 64 + r});
    const std::clock_t cpu_begin = std::clock();
    const double seconds = seconds_of([&] { sampler.sample(pool, batch); });
    state.SetIterationTime(seconds);
    shares.push_back(read / seconds);
    wall_ms.push_back(1e3 * seconds);
    cpu_ms.push_back(1e3 * static_cast<double>(std::clock() - cpu_begin) / CLOCKS_PER_SEC);
  }
  state.counters["of_read"] = median(shares);
  state.counters["wall_ms"] = median(wall_ms);
  state.counters["cpu_ms"] = median(cpu_ms);
}

[[maybe_unused]] const bool kRegistered = [] {
  for (const Shape shape : {Shape::Text, Shape::Flat})
    for (const Case& c : kCases)
      for (const size_t rows : {size_t{1}, size_t{8}, size_t{64}}) {
        const std::string name =
            std::string(shape == Shape::Text ? "text/" : "flat/") + c.name + "/rows:" + std::to_string(rows);
        benchmark::RegisterBenchmark(name.c_str(), [&c, shape, rows](benchmark::State& state) { draw(state, c, shape, rows); })
            ->UseManualTime()
            ->Unit(benchmark::kMillisecond);
      }
  return true;
}();

}  // namespace
}  // namespace kilin::bench

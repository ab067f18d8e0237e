// The cost of sharing a loop among threads and waiting for them, which every stage of a layer pays.
#include <benchmark/benchmark.h>

#include "core/cpu_info.h"
#include "core/thread_pool.h"

namespace kilin {
namespace {

void BM_EmptyLoop(benchmark::State& state) {
  ThreadPool pool(static_cast<size_t>(state.range(0)));
  for (auto _ : state) pool.parallel_for(pool.size(), 1, [](const Slice& slice) { benchmark::DoNotOptimize(slice.begin); });
}
BENCHMARK(BM_EmptyLoop)->DenseRange(1, static_cast<int64_t>(usable_threads()))->UseRealTime();

}  // namespace
}  // namespace kilin

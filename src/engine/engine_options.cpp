#include "engine/engine_options.h"

#include "core/cpu_info.h"
#include "core/error.h"

namespace kilin {

void EngineOptions::validate() const {
  const auto require = [](size_t value, size_t most, const char* name) {
    if (value < 1 || value > most) raise(ErrorCode::InvalidArgument, "{} is {}; expected 1 to {}", name, value, most);
  };
  if (threads != 0) require(threads, kMostThreads, "threads");
  require(prefill_chunk, kMostPrefillChunk, "prefill chunk");
  require(max_sequences, 1u << 12, "max sequences");
  require(pool_tokens, size_t{1} << 40, "context");
  select_kernels(CpuInfo::detect(), kernels);
}

}  // namespace kilin

// Any text is refused with a kilin::Error, or gives a configuration whose layers are all known and whose tensors can be
// counted.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "config/model_config.h"
#include "core/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto config = kilin::ModelConfig::parse({reinterpret_cast<const char*>(data), size}, "config.json");
    if (config.kda_layers() + config.mla_layers() != config.num_hidden_layers || config.hidden_size == 0 ||
        config.feed_forward_kinds.size() != config.num_hidden_layers || config.eos_token_ids.empty())
      std::abort();
  } catch (const kilin::Error&) {
  }
  return 0;
}

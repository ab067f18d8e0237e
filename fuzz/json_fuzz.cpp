// Any bytes are JSON or give a Corrupt error, and JSON stays the same when it is written and read again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/error.h"
#include "core/json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const kilin::Json json = kilin::parse_json(text, "input");
    if (kilin::parse_json(json.dump(), "again") != json) std::abort();
  } catch (const kilin::Error& error) {
    if (error.code() != kilin::ErrorCode::Corrupt) std::abort();
  }
  return 0;
}

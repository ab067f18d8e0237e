// Any bytes are refused with a kilin::Error, or read into a tensor no larger than the file.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "checkpoint/npy.h"
#include "core/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    if (kilin::parse_npy(std::as_bytes(std::span(data, size)), "file").bytes() > size) std::abort();
  } catch (const kilin::Error&) {
  }
  return 0;
}

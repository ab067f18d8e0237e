#include "core/workspace.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "core/error.h"

namespace kilin {

namespace {
#ifdef NDEBUG
constexpr bool kPoison = false;
#else
constexpr bool kPoison = true;  // 0xff.. is a NaN in every float type: what is read before it is written shows
#endif

// No x86-64 CPU maps anything here: code that touches what it must not crashes at once, and overwrites nothing.
constexpr uintptr_t kNowhere = uintptr_t{1} << 62;
constexpr size_t kNoEnd = size_t{1} << 62;
}  // namespace

Workspace::Workspace(size_t bytes) : memory_(bytes, "workspace"), begin_(memory_.data()), capacity_(bytes) {}

Workspace::Workspace() : begin_(std::bit_cast<std::byte*>(kNowhere)), capacity_(kNoEnd) {}

Workspace::Frame::~Frame() {
  workspace_.poison(mark_, workspace_.used_);
  workspace_.used_ = mark_;
}

void Workspace::poison(size_t begin, size_t end) {
  if (kPoison && end > begin && memory_.bytes() > 0) std::memset(begin_ + begin, 0xff, end - begin);
}

void* Workspace::take(size_t bytes) {
  const size_t left = capacity() - used_;
  if (bytes > left || rounded(bytes) > left)
    raise(ErrorCode::ResourceExhausted, "workspace of {} bytes is too small: {} in use, {} more needed", capacity(), used_,
          bytes);
  const size_t begin = used_;
  used_ += rounded(bytes);
  peak_ = std::max(peak_, used_);
  poison(begin, used_);
  return begin_ + begin;
}

}  // namespace kilin

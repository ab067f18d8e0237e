#include "core/workspace.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"

namespace kilin {

namespace {
#ifdef NDEBUG
constexpr bool kPoison = false;
#else
constexpr bool kPoison = true;  // 0xff.. is a NaN in every float type: what is read before it is written shows
#endif
}  // namespace

Workspace::Frame::~Frame() {
  if (kPoison && workspace_.used_ > mark_) std::memset(workspace_.memory_.data() + mark_, 0xff, workspace_.used_ - mark_);
  workspace_.used_ = mark_;
}

void* Workspace::take(size_t bytes) {
  const size_t left = capacity() - used_;
  if (bytes > left || rounded(bytes) > left)
    raise(ErrorCode::ResourceExhausted, "workspace of {} bytes is too small: {} in use, {} more needed", capacity(), used_,
          bytes);
  std::byte* p = memory_.data() + used_;
  const size_t size = rounded(bytes);
  used_ += size;
  peak_ = std::max(peak_, used_);
  if (kPoison && size > 0) std::memset(p, 0xff, size);
  return p;
}

}  // namespace kilin

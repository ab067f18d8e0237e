// Data that is needed next, prefetched bit by bit while other work is done.
struct Upcoming {
  const std::byte* bytes = nullptr;
  size_t size = 0;

  // Prefetches the share that belongs to steps [from, to) of n.
  KILIN_INLINE void fetch(size_t from, size_t to, size_t n) const {
    constexpr size_t kCacheLine = 64;
    const size_t end = size * to / n;
    for (size_t i = (size * from / n + kCacheLine - 1) / kCacheLine * kCacheLine; i < end; i += kCacheLine)
      __builtin_prefetch(bytes + i, 0, 2);
  }
};

// The same for work that is a number of equal steps: `lines` cache lines per step.
struct LinesAhead {
  const std::byte* next;
  const std::byte* end;
  size_t lines;  // a step

  void prefetch() {
    for (size_t i = 0; i < lines && next < end; ++i, next += 64) __builtin_prefetch(next, 0, 2);  // into the second-level cache
  }
};

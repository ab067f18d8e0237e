#include "core/cpu_info.h"

#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <memory>
#include <thread>

#include "core/cgroup.h"

namespace kilin {

namespace {

// The number after `key` in a file of lines "key number ...", or 0.
uint64_t number_of(const std::filesystem::path& file, const std::string& key) {
  std::ifstream in(file);
  for (std::string name, rest; in >> name; std::getline(in, rest)) {
    uint64_t value = 0;
    if (name == key && in >> value) return value;
  }
  return 0;
}

// The CPUs of the affinity mask, or 0. The system refuses a mask with fewer bits than it counts CPUs, so it grows.
size_t affine_cpus() {
  for (size_t bits = 64; bits <= size_t{1} << 20; bits *= 2) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(CPU_ALLOC(bits), [](cpu_set_t* p) { CPU_FREE(p); });
    if (!set) break;
    const size_t bytes = CPU_ALLOC_SIZE(bits);
    if (::sched_getaffinity(0, bytes, set.get()) == 0) return static_cast<size_t>(CPU_COUNT_S(bytes, set.get()));
    if (errno != EINVAL) break;
  }
  return 0;
}

}  // namespace

CpuInfo CpuInfo::detect() {
  CpuInfo info;
  info.logical_cpus = std::max(1u, std::thread::hardware_concurrency());
  info.name = "unknown";
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) info.name = line.substr(colon + 2);
    break;
  }
#if defined(__x86_64__)
  __builtin_cpu_init();
  info.fma = __builtin_cpu_supports("fma");
  info.avx2 = __builtin_cpu_supports("avx2");
  info.avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
                __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  info.avx512_vnni = __builtin_cpu_supports("avx512vnni");
  // These two have no name that both compilers know. Leaf 1: ECX bit 29; leaf 7.1: EAX bits 4 and 5. The operating system's
  // support is that of AVX2 and AVX-512, which the calls above have checked.
  uint32_t a = 0, b = 0, c = 0, d = 0;
  asm volatile("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(1), "c"(0));
  info.f16c = info.avx2 && ((c >> 29) & 1u);
  asm volatile("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(7), "c"(0));
  if (a >= 1) {
    asm volatile("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(7), "c"(1));
    info.avx_vnni = info.avx2 && ((a >> 4) & 1u);
    info.avx512_bf16 = info.avx512 && ((a >> 5) & 1u);
  }
#endif
  return info;
}

size_t usable_threads(const std::filesystem::path& root) {
  size_t threads = affine_cpus();
  if (threads == 0) threads = std::max(1u, std::thread::hardware_concurrency());
  if (const auto quota = CgroupLimits::read(root).cpus)
    threads = static_cast<size_t>(std::min(static_cast<double>(threads), std::max(1.0, std::ceil(*quota))));
  return threads;
}

MemoryInfo MemoryInfo::detect(const std::filesystem::path& root) {
  const auto bytes = [file = root / "proc/meminfo"](const std::string& key) { return number_of(file, key + ":") * 1024; };
  MemoryInfo info{bytes("MemTotal"), bytes("MemAvailable")};
  const CgroupLimits limits = CgroupLimits::read(root);
  info.total = std::min(info.total, limits.memory.value_or(UINT64_MAX));
  info.available = std::min(info.available, limits.memory_headroom.value_or(UINT64_MAX));
  return info;
}

uint64_t peak_resident_bytes() {
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace kilin

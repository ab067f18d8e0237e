#include "core/cpu_info.h"

#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>

namespace kilin {

namespace {

std::string first_line(const std::string& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

std::optional<uint64_t> number_in(const std::string& file) {
  std::istringstream in(first_line(file));
  uint64_t value = 0;
  if (in >> value) return value;
  return std::nullopt;  // absent, or "max"
}

// The folder of this process's cgroup (version 2), or the root one.
std::string cgroup_folder() {
  const std::string line = first_line("/proc/self/cgroup");
  if (line.rfind("0::", 0) == 0) {
    std::string folder = "/sys/fs/cgroup" + line.substr(3);
    if (std::ifstream(folder + "/cgroup.procs")) return folder;
  }
  return "/sys/fs/cgroup";
}

std::optional<double> cgroup_cpus() {
  std::istringstream v2(first_line(cgroup_folder() + "/cpu.max"));
  double quota = 0, period = 0;
  if (v2 >> quota >> period && period > 0) return quota / period;
  const auto v1_quota = number_in("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  const auto v1_period = number_in("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  if (v1_quota && v1_period && *v1_period > 0 && *v1_quota < (uint64_t{1} << 62))
    return static_cast<double>(*v1_quota) / static_cast<double>(*v1_period);
  return std::nullopt;
}

// The number after `key` in a file of lines "key number ...", or 0.
uint64_t number_of(const std::string& file, const std::string& key) {
  std::ifstream in(file);
  for (std::string name, rest; in >> name; std::getline(in, rest)) {
    uint64_t value = 0;
    if (name == key && in >> value) return value;
  }
  return 0;
}

uint64_t meminfo(const std::string& key) { return number_of("/proc/meminfo", key + ":") * 1024; }

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

size_t usable_threads() {
  size_t threads = std::max(1u, std::thread::hardware_concurrency());
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) == 0) threads = std::max(1, CPU_COUNT(&set));
  if (const auto quota = cgroup_cpus()) threads = std::min(threads, static_cast<size_t>(std::max(1.0, *quota + 0.999)));
  return threads;
}

MemoryInfo MemoryInfo::detect() {
  MemoryInfo info{meminfo("MemTotal"), meminfo("MemAvailable")};
  std::string folder = cgroup_folder();
  auto limit = number_in(folder + "/memory.max");
  auto used = number_in(folder + "/memory.current");
  if (!limit) {  // version 1
    folder = "/sys/fs/cgroup/memory";
    limit = number_in(folder + "/memory.limit_in_bytes");
    used = number_in(folder + "/memory.usage_in_bytes");
  }
  if (limit && *limit < info.total) {
    // Cached files count as used, and go when memory is needed: mapped weights among them.
    const std::string stat = folder + "/memory.stat";
    const uint64_t cached = number_of(stat, "inactive_file") + number_of(stat, "active_file");
    const uint64_t held = used.value_or(0) - std::min(used.value_or(0), cached);
    info.total = *limit;
    info.available = std::min(info.available, *limit - std::min(*limit, held));
  }
  return info;
}

uint64_t peak_resident_bytes() {
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace kilin

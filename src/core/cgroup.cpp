#include "core/cgroup.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace kilin {

namespace {

namespace fs = std::filesystem;

// The positive number that a file starts with; nothing for "max" and -1, which mean that there is no bound.
std::optional<double> number_in(const fs::path& file) {
  std::ifstream in(file);
  double value = 0;
  if (in >> value && value > 0) return value;
  return std::nullopt;
}

std::optional<uint64_t> bytes_in(const fs::path& file) {
  std::ifstream in(file);
  std::string word;
  if (!(in >> word) || word.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
  std::istringstream digits(word);
  uint64_t value = 0;
  if (digits >> value) return value;
  return std::nullopt;
}

// The sum of the numbers after `keys` in a file of lines "key number".
uint64_t sum_of(const fs::path& file, const std::string& key, const std::string& other) {
  std::ifstream in(file);
  uint64_t sum = 0, value = 0;
  for (std::string name; in >> name >> value;)
    if (name == key || name == other) sum += value;
  return sum;
}

template <typename T>
void tighten(std::optional<T>& bound, T value) {
  bound = bound ? std::min(*bound, value) : value;
}

// A group's folder and those of the groups above it, up to `mount`. Where the process sees only a part of the tree, as in a
// container, `group` may name folders that are not there, or begin with ".." (it is outside of what is mounted): the mount
// itself is then all there is to read.
std::vector<fs::path> folders_up(const fs::path& mount, const fs::path& group) {
  std::vector<fs::path> folders{mount};
  for (const fs::path& part : group.relative_path()) {
    if (part == "..") return {mount};
    if (!part.empty()) folders.push_back(folders.back() / part);
  }
  return folders;
}

// One entry of /proc/self/cgroup, "hierarchy:controllers:group"; no controllers for version 2.
struct Membership {
  std::vector<std::string> controllers;
  fs::path group;
};

std::vector<Membership> memberships(const fs::path& file) {
  std::vector<Membership> all;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    Membership membership{{}, line.substr(second + 1)};
    std::istringstream names(line.substr(first + 1, second - first - 1));
    for (std::string name; std::getline(names, name, ',');) membership.controllers.push_back(name);
    all.push_back(std::move(membership));
  }
  return all;
}

void add_memory(CgroupLimits& limits, uint64_t limit, uint64_t used, uint64_t cached) {
  tighten(limits.memory, limit);
  // Cached files count as used, and go when memory is needed: mapped weights among them.
  tighten(limits.memory_headroom, limit - std::min(limit, used - std::min(used, cached)));
}

void add_version_2(CgroupLimits& limits, const fs::path& folder) {
  std::ifstream in(folder / "cpu.max");
  double quota = 0, period = 0;
  if (in >> quota >> period && quota > 0 && period > 0) tighten(limits.cpus, quota / period);
  if (const auto limit = bytes_in(folder / "memory.max"))
    add_memory(limits, *limit, bytes_in(folder / "memory.current").value_or(0),
               sum_of(folder / "memory.stat", "inactive_file", "active_file"));
}

void add_version_1_cpu(CgroupLimits& limits, const fs::path& folder) {
  const auto quota = number_in(folder / "cpu.cfs_quota_us");
  const auto period = number_in(folder / "cpu.cfs_period_us");
  if (quota && period) tighten(limits.cpus, *quota / *period);
}

void add_version_1_memory(CgroupLimits& limits, const fs::path& folder) {
  const auto limit = bytes_in(folder / "memory.limit_in_bytes");
  if (!limit || *limit >= uint64_t{1} << 62) return;  // the largest number of pages stands for no bound
  // total_: with the groups below, as usage_in_bytes is.
  add_memory(limits, *limit, bytes_in(folder / "memory.usage_in_bytes").value_or(0),
             sum_of(folder / "memory.stat", "total_inactive_file", "total_active_file"));
}

}  // namespace

CgroupLimits CgroupLimits::read(const fs::path& root) {
  CgroupLimits limits;
  const fs::path mounts = root / "sys/fs/cgroup";
  for (const auto& [controllers, group] : memberships(root / "proc/self/cgroup")) {
    if (controllers.empty()) {
      // The second is where systems put version 2 that use both.
      for (const fs::path& mount : {mounts, mounts / "unified"})
        for (const fs::path& folder : folders_up(mount, group)) add_version_2(limits, folder);
    }
    for (const std::string& controller : controllers) {
      if (controller == "cpu")
        for (const fs::path& folder : folders_up(mounts / "cpu", group)) add_version_1_cpu(limits, folder);
      if (controller == "memory")
        for (const fs::path& folder : folders_up(mounts / "memory", group)) add_version_1_memory(limits, folder);
    }
  }
  return limits;
}

}  // namespace kilin

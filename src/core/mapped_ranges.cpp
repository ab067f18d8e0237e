#include "core/mapped_ranges.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

namespace kilin {

namespace {

// Read by a signal handler, so that it takes no lock. A slot is taken by its name; only then does it get addresses.
struct Slot {
  std::atomic<char*> file{nullptr};  // null: free
  std::atomic<const std::byte*> begin{nullptr}, end{nullptr};
};
std::array<Slot, 4096> slots;
static_assert(std::atomic<char*>::is_always_lock_free);

struct sigaction before;

void write_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(STDERR_FILENO, text.data(), text.size());
    if (n <= 0) return;
    text.remove_prefix(static_cast<size_t>(n));
  }
}

void explain(int, siginfo_t* info, void*) {
  const char* file = file_mapped_at(info->si_addr);
  if (file == nullptr) {  // comes again as soon as this returns, and then the one before has it
    ::sigaction(SIGBUS, &before, nullptr);
    return;
  }
  write_all("kilin: ");
  write_all(file);
  write_all(": bytes of the file are gone that were there when it was opened; it was shortened, or can't be read any more\n");
  ::_exit(1);
}

}  // namespace

MappedRange::MappedRange(std::span<const std::byte> bytes, const std::filesystem::path& file) {
  if (bytes.empty()) return;
  char* name = ::strdup(file.c_str());
  for (size_t i = 0; name != nullptr && i < slots.size(); ++i) {
    char* free = nullptr;
    if (!slots[i].file.compare_exchange_strong(free, name)) continue;
    slots[i].end = bytes.data() + bytes.size();
    slots[i].begin = bytes.data();
    slot_ = i;
    return;
  }
  std::free(name);
}

MappedRange::~MappedRange() {
  if (slot_ == kNone) return;
  slots[slot_].begin = nullptr;
  slots[slot_].end = nullptr;
  std::free(slots[slot_].file.exchange(nullptr));
}

MappedRange::MappedRange(MappedRange&& other) noexcept : slot_(std::exchange(other.slot_, kNone)) {}

MappedRange& MappedRange::operator=(MappedRange&& other) noexcept {
  std::swap(slot_, other.slot_);
  return *this;
}

const char* file_mapped_at(const void* address) {
  const auto* byte = static_cast<const std::byte*>(address);
  for (const Slot& slot : slots) {
    const std::byte* begin = slot.begin;
    if (begin != nullptr && begin <= byte && byte < slot.end) return slot.file;
  }
  return nullptr;
}

void explain_lost_mapped_files() {
  static const bool installed = [] {
    struct sigaction action {};
    action.sa_sigaction = explain;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    ::sigemptyset(&action.sa_mask);
    return ::sigaction(SIGBUS, &action, &before) == 0;
  }();
  static_cast<void>(installed);
}

}  // namespace kilin

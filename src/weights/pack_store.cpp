#include "weights/pack_store.h"

#include <cstring>

namespace kilin {

namespace {

class MemoryPacks final : public PackStore {
 public:
  explicit MemoryPacks(uint64_t bytes) : memory_(bytes, "packed weights") { memory_.ask_for_huge_pages(); }

  const std::byte* data() const override { return memory_.data(); }
  bool is_complete() const override { return complete_; }
  void write(uint64_t offset, std::span<const std::byte> bytes) override {
    std::memcpy(memory_.data() + offset, bytes.data(), bytes.size());
  }
  void commit() override { complete_ = true; }

 private:
  Reservation memory_;
  bool complete_ = false;
};

}  // namespace

std::unique_ptr<PackStore> packs_in_memory(uint64_t bytes) { return std::make_unique<MemoryPacks>(bytes); }

}  // namespace kilin

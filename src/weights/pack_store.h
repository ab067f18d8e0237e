// Where packed weights live: in memory, or in a file that is mapped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "core/file.h"
#include "core/reservation.h"

namespace kilin {

/// The bytes of all packs, at the offsets of a PackPlan. Packing writes them once; products read them as long as the store
/// lives.
class PackStore {
 public:
  virtual ~PackStore() = default;

  /// The first byte; 64-byte aligned. Writes are visible here at once.
  virtual const std::byte* data() const = 0;

  /// Whether every pack is there already, so that nothing need be written.
  virtual bool is_complete() const = 0;

  /// Thread-safe for places that do not overlap. @throws Io (a full disk among others)
  virtual void write(uint64_t offset, std::span<const std::byte> bytes) = 0;

  /// Call when all bytes of a matrix are written: a store that keeps checksums takes one.
  virtual void seal(uint64_t /*offset*/, uint64_t /*bytes*/) {}

  /// Call when everything was written. @throws Io
  virtual void commit() = 0;

  /// The file that stays after this process; empty if none does.
  virtual std::filesystem::path file() const { return {}; }

 protected:
  PackStore() = default;
  PackStore(const PackStore&) = default;
  PackStore& operator=(const PackStore&) = default;
};

/// In memory, in huge pages where the system has them. @throws ResourceExhausted
std::unique_ptr<PackStore> packs_in_memory(uint64_t bytes);

}  // namespace kilin

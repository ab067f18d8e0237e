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

/// A stretch of bytes that packing fills once, at places that a PackPlan knows, and that products then read for as long as the
/// store lives.
class PackStore {
 public:
  virtual ~PackStore() = default;

  /// The first byte; 64-byte aligned. What was written shows here at once.
  virtual const std::byte* data() const = 0;

  /// Holds every pack already: nothing needs to be written.
  virtual bool is_complete() const = 0;

  /// Thread-safe for places that do not overlap. @throws Io (a full disk among others)
  virtual void write(uint64_t offset, std::span<const std::byte> bytes) = 0;

  /// These bytes were written for good, a matrix's all: a store that keeps checksums takes one.
  virtual void seal(uint64_t /*offset*/, uint64_t /*bytes*/) {}

  /// Everything was written. @throws Io
  virtual void commit() = 0;

  /// Where it stays after this process; empty if it does not.
  virtual std::filesystem::path file() const { return {}; }

 protected:
  PackStore() = default;
  PackStore(const PackStore&) = default;
  PackStore& operator=(const PackStore&) = default;
};

/// In memory, in huge pages where the system has them. @throws ResourceExhausted
std::unique_ptr<PackStore> packs_in_memory(uint64_t bytes);

}  // namespace kilin

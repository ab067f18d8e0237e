// A file of packed weights, kept for the next load. Its format:
//
//   file      = header table padding data checksums
//   header    = "kilinpak"          magic, 8 bytes
//               u32 version         of this format
//               u32 panel_version   kPanelVersion: a panel's bytes
//               u64 table_bytes     u64 data_offset, a multiple of 4096     u64 file_bytes
//               text quantisation   what --quantize asked for, or nothing
//   table     = u32 count, then for each source file:  text path, u64 bytes, u64 inode, i64 mtime and i64 ctime in ns, u64
//   sample
//               u32 count, then for each matrix:  text name, text format, u64 rows, u64 cols, u64 offset from the data, u64
//               bytes
//   text      = u32 bytes, then so many; all numbers are little-endian
//   data      = panels, each matrix at a multiple of 64
//   checksums = u64 XXH3 of each matrix's panels, in the order of the table
//
// Nothing in such a file is trusted. Whoever loads a model knows each byte of the header and the table that its own packing
// would write, and the length; a file in which any of them is another one is made anew. It gets its name when all of it is on
// disk.
//
// A source is known by what the system says of it (FileStamp): whatever is written to it or moved over it, with whatever times,
// has another ctime or inode. Some network file systems give out no more than the mtime there, so that a sample of the bytes is
// digested too: the file's head, and pages from all over it. All of it would cost what packing costs.
//
// The checksums take a read of the whole file to compare with, so that this is done where it is asked for.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/thread_pool.h"
#include "weights/pack_plan.h"
#include "weights/pack_store.h"

namespace kilin {

inline constexpr uint32_t kPackCacheVersion = 3;

/// What the packed bytes depend on: not the instruction set, for panels are the same for all.
struct PackOrigin {
  std::shared_ptr<const TensorStore> weights;
  std::optional<QuantType> quantize;
};

/// The bytes before the data, padding included.
std::vector<std::byte> pack_cache_head(const PackPlan& plan, const PackOrigin& origin);

/// How much of a file of packs is looked at before it is used.
enum class PackCheck : uint8_t {
  Head,       ///< that it was made for this load
  Checksums,  ///< that its data are what was written, too: all of it is read
};

/// Maps the packs of `file` if it holds just those, else makes it anew beside the old one, which it replaces when it is
/// committed. Several processes do not disturb each other: each has its own, and the last one's stays.
/// @param pool compares checksums; null: the calling thread. @throws Io if it can't be written
std::unique_ptr<PackStore> packs_in_file(const std::filesystem::path& file, const PackPlan& plan, const PackOrigin& origin,
                                         PackCheck check = PackCheck::Head, ThreadPool* pool = nullptr);

/// The names of matrices in `file` that differ from their checksums; nothing if it is no file that a load would use.
/// @param pool as for packs_in_file
std::optional<std::vector<std::string>> damaged_packs(const std::filesystem::path& file, const PackPlan& plan,
                                                      const PackOrigin& origin, ThreadPool* pool = nullptr);

}  // namespace kilin

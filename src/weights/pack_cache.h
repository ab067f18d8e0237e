// A file of packed weights, kept for the next load. Its format:
//
//   file    = header table padding data
//   header  = "kilinpak"          magic, 8 bytes
//             u32 version         of this format
//             u32 panel_version   kPanelVersion: a panel's bytes
//             u64 table_bytes     u64 data_offset, a multiple of 4096     u64 file_bytes
//             text quantisation   what --quantize asked for, or nothing
//   table   = u32 count, then for each source file:  text path, u64 bytes, i64 mtime in ns
//             u32 count, then for each matrix:  text name, text format, u64 rows, u64 cols, u64 offset from the data, u64 bytes
//   text    = u32 bytes, then so many; all numbers are little-endian
//   data    = panels, each matrix at a multiple of 64
//
// Nothing in such a file is trusted. Whoever loads a model knows each byte of the header and the table that its own packing
// would write, and the length; a file in which any of them is another one is made anew. It gets its name when all of it is on
// disk.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weights/pack_plan.h"
#include "weights/pack_store.h"

namespace kilin {

inline constexpr uint32_t kPackCacheVersion = 2;

/// What the packed bytes depend on: not the instruction set, for panels are the same for all.
struct PackOrigin {
  std::vector<std::filesystem::path> sources;
  std::optional<QuantType> quantize;
};

/// The bytes before the data, padding included. @throws NotFound, Io if a source can't be looked at
std::vector<std::byte> pack_cache_head(const PackPlan& plan, const PackOrigin& origin);

/// Maps the packs of `file` if it holds just those, else makes it anew beside the old one, which it replaces when it is
/// committed. Several processes do not disturb each other: each has its own, and the last one's stays.
/// @throws NotFound, Io if it can't be written
std::unique_ptr<PackStore> packs_in_file(const std::filesystem::path& file, const PackPlan& plan, const PackOrigin& origin);

}  // namespace kilin

// Where a model's packed weights go: memory, or a file that the next load maps.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include "core/cpu_info.h"
#include "weights/pack_cache.h"

namespace kilin {

/// What --pack-cache asks for.
struct PackPlacement {
  enum class Where : uint8_t {
    Auto,    ///< a file if the packs are more than half of the memory, so that they can be read from disk again and again
    Memory,  ///< never a file
    Folder,  ///< always a file, in `folder`
  };
  Where where = Where::Auto;
  std::filesystem::path folder = {};
  PackCheck check = PackCheck::Head;  ///< of a file that an earlier load left

  /// "auto", "off" or a folder. @throws InvalidArgument for an empty text
  static PackPlacement parse(std::string_view text);
};

/// What a model's packs are called: two that can stand in one folder have different names.
/// @param model its folder or file. @param in the folder that it is for; one that is not the model's own gets a mark of its
/// path
std::filesystem::path pack_file(const std::filesystem::path& model, const std::filesystem::path& in, const PackOrigin& origin);

/// Files that loads with this placement may have left, whether they are there or not.
std::vector<std::filesystem::path> possible_pack_files(const PackPlacement& placement, const std::filesystem::path& model,
                                                       const PackOrigin& origin);

/// Makes room, or finds what an earlier load left. With Auto, a file stands beside the model where that can be written to, else
/// in the user's cache ($XDG_CACHE_HOME or ~/.cache, kilin/).
/// @param pool compares checksums where placement.check wants it; null: the calling thread
/// @throws Io if a file can't be made, saying what --pack-cache can do about it; ResourceExhausted
std::unique_ptr<PackStore> place_packs(const PackPlacement& placement, const std::filesystem::path& model, const PackPlan& plan,
                                       const PackOrigin& origin, const MemoryInfo& memory, ThreadPool* pool = nullptr);

}  // namespace kilin

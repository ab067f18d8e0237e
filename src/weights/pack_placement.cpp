#include "weights/pack_placement.h"

#include <unistd.h>

#include <cstdlib>
#include <optional>

#include "core/error.h"

namespace kilin {

namespace fs = std::filesystem;

namespace {

// FNV-1a: tells models of one name apart, and protects nothing.
uint64_t mark_of(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

fs::path whole_path(const fs::path& model) {
  fs::path path = fs::absolute(model).lexically_normal();
  return path.has_filename() ? path : path.parent_path();  // "folder/" is "folder"
}

fs::path own_folder(const fs::path& model) {
  const fs::path path = whole_path(model);
  return fs::is_directory(path) ? path : path.parent_path();
}

std::optional<fs::path> user_cache() {
  const auto set = [](const char* name) -> std::optional<fs::path> {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') return std::nullopt;
    return fs::path(value);
  };
  if (const auto cache = set("XDG_CACHE_HOME")) return *cache / "kilin";
  if (const auto home = set("HOME")) return *home / ".cache" / "kilin";
  return std::nullopt;
}

fs::path folder_of(const PackPlacement& placement, const fs::path& model) {
  if (placement.target == PackPlacement::Target::Folder) return placement.folder;
  fs::path beside = own_folder(model);
  if (::access(beside.c_str(), W_OK | X_OK) == 0) return beside;
  if (const auto cache = user_cache()) return *cache;
  raise(ErrorCode::Io, "{}: can't be written to, and neither XDG_CACHE_HOME nor HOME is set; name a folder by --pack-cache",
        beside.string());
}

bool wants_file(const PackPlacement& placement, uint64_t bytes, const MemoryInfo& memory) {
  switch (placement.target) {
    case PackPlacement::Target::Auto:
      return bytes > memory.total / 2;
    case PackPlacement::Target::Memory:
      return false;
    case PackPlacement::Target::Folder:
      return true;
  }
  return false;
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) raise(ErrorCode::Io, "{}: {}", folder.string(), error.message());
}

}  // namespace

PackPlacement PackPlacement::parse(std::string_view text) {
  if (text.empty()) raise(ErrorCode::InvalidArgument, "the pack cache is empty; expected auto, off or a folder");
  if (text == "auto") return {};
  if (text == "off") return {.target = Target::Memory};
  return {.target = Target::Folder, .folder = text};
}

fs::path pack_file(const fs::path& model, const fs::path& in, const PackOrigin& origin) {
  const fs::path path = whole_path(model);
  std::string name = path.filename().string();
  if (whole_path(in) != own_folder(model)) name += fmt::format("-{:016x}", mark_of(path.string()));
  if (origin.quantize) name += fmt::format("-{}", to_string(*origin.quantize));
  return in / (name + ".kilin-pack");
}

std::vector<fs::path> possible_pack_files(const PackPlacement& placement, const fs::path& model, const PackOrigin& origin) {
  std::vector<fs::path> folders;
  if (placement.target == PackPlacement::Target::Folder) folders = {placement.folder};
  if (placement.target == PackPlacement::Target::Auto) {
    folders = {own_folder(model)};
    if (auto cache = user_cache()) folders.push_back(*std::move(cache));
  }
  std::vector<fs::path> files;
  files.reserve(folders.size());
  for (const fs::path& folder : folders) files.push_back(pack_file(model, folder, origin));
  return files;
}

std::unique_ptr<PackStore> place_packs(const PackPlacement& placement, const fs::path& model, const PackPlan& plan,
                                       const PackOrigin& origin, const MemoryInfo& memory, ThreadPool* pool) {
  if (!wants_file(placement, plan.bytes(), memory)) return packs_in_memory(plan.bytes());
  const fs::path folder = folder_of(placement, model);
  make_folder(folder);
  return packs_in_file(pack_file(model, folder, origin), plan, origin, placement.check, pool);
}

}  // namespace kilin

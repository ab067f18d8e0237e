#include "support/golden.h"

#include <stdlib.h>

#include <cstdlib>
#include <stdexcept>

namespace kilin::testing {

namespace fs = std::filesystem;

fs::path in_repository(const std::string& name) { return fs::path(KILIN_SOURCE_DIR) / name; }

std::optional<fs::path> golden(const std::string& name) {
  if (const char* chosen = std::getenv("KILIN_GOLDEN")) {
    const fs::path file = fs::path(chosen) / name;
    return fs::exists(file) ? std::optional(file) : std::nullopt;
  }
  for (const char* root : {"../shared/golden", "tests/golden"}) {
    const fs::path file = in_repository(root) / name;
    if (fs::exists(file)) return file;
  }
  return std::nullopt;
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (fs::temp_directory_path() / "kilin-test-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp " + name);
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace kilin::testing

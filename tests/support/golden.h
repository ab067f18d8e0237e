// Finds the golden data: the folder of the environment variable KILIN_GOLDEN, else ../shared/golden beside the checkout (all
// cases), else tests/golden (a part of them, at most 25 MB).
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace kilin::testing {

/// The path of `name` (such as "tiny/T065/ids.npy"), if it exists. If KILIN_GOLDEN is set, only that folder is searched.
std::optional<std::filesystem::path> golden(const std::string& name);

/// A file or folder of the repository, such as "models/tiny".
std::filesystem::path in_repository(const std::string& name);

/// A fresh folder for a test's files, removed with all that is in it when it goes out of scope.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace kilin::testing

/// Puts the path of golden data into `variable`, or visibly skips the test if it does not exist.
#define GOLDEN_OR_SKIP(variable, name)                                                 \
  const auto variable##_found = ::kilin::testing::golden(name);                        \
  if (!variable##_found) GTEST_SKIP() << "golden data '" << (name) << "' is not here"; \
  const std::filesystem::path variable = *variable##_found

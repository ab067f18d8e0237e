// What a command reads, so that nothing that it writes takes its place.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace kilin::cli {

class Inputs {
 public:
  void add(const std::filesystem::path& file);
  void add_standard_input();
  /// All files that a model may be made of, whether they are there or not: of a folder those that any command reads, of a GGUF
  /// file all its parts.
  void add_model(const std::filesystem::path& model);

  /// @param option names the output: "--out". @throws InvalidArgument if it is one of the inputs, by whatever name or link
  void require_other(std::string_view option, const std::filesystem::path& output) const;
  /// The same for every file that is in a folder already.
  void require_other_in(std::string_view option, const std::filesystem::path& folder) const;

 private:
  std::vector<std::filesystem::path> files_;
};

}  // namespace kilin::cli

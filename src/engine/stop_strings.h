// Ends a text at the first of some strings, and holds back what could be the beginning of one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kilin {

class StopStrings {
 public:
  /// @throws InvalidArgument for an empty stop string, which would end every text at once
  explicit StopStrings(std::vector<std::string> strings);

  /// Takes more text and returns what can be shown: all up to a stop string, or up to the longest ending that could still
  /// become one. Nothing after a stop string was found.
  std::string push(std::string_view text);

  /// What is still held back, if no stop string was found.
  std::string finish();

  bool stopped() const { return stopped_; }

 private:
  std::vector<std::string> strings_;
  std::string held_;  // shorter than the longest stop string
  bool stopped_ = false;
};

}  // namespace kilin

#include "support/published_tensors.h"

#include <charconv>
#include <fstream>
#include <stdexcept>

#include "support/golden.h"

namespace kilin::testing {

namespace {

std::invalid_argument no_range(std::string_view pattern) {
  return std::invalid_argument("no range of numbers in '" + std::string(pattern) + "'");
}

// Takes a number off the front of `text`.
size_t take_number(std::string_view& text, std::string_view pattern) {
  size_t number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc{}) throw no_range(pattern);
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

bool take(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

std::vector<std::string> expand_ranges(std::string_view pattern) {
  const size_t open = pattern.find('{');
  if (open == std::string_view::npos) return {std::string(pattern)};
  const std::string before(pattern.substr(0, open));
  std::string_view rest = pattern.substr(open + 1);
  std::vector<size_t> numbers;
  do {
    const size_t first = take_number(rest, pattern);
    const size_t last = take(rest, '-') ? take_number(rest, pattern) : first;
    for (size_t number = first; number <= last; ++number) numbers.push_back(number);
  } while (take(rest, ','));
  if (!take(rest, '}')) throw no_range(pattern);
  const std::vector<std::string> tails = expand_ranges(rest);
  std::vector<std::string> texts;
  for (size_t number : numbers)
    for (const std::string& tail : tails) texts.push_back(before + std::to_string(number) + tail);
  return texts;
}

std::set<std::string> published_tensors() {
  std::set<std::string> tensors;
  std::ifstream in(in_repository("tests/golden/real/tensor_ranges.tsv"));
  for (std::string line; std::getline(in, line);) {
    const std::vector<std::string> texts = expand_ranges(line);
    tensors.insert(texts.begin(), texts.end());
  }
  return tensors;
}

}  // namespace kilin::testing

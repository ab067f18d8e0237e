// Tokens for tests with readable ids: a byte's id is its value.
#pragma once

#include <string>
#include <vector>

namespace kilin::testing {

/// The 256 single bytes in order, then `more`.
inline std::vector<std::string> single_bytes_and(const std::vector<std::string>& more = {}) {
  std::vector<std::string> tokens(256);
  for (size_t byte = 0; byte < 256; ++byte) tokens[byte] = static_cast<char>(byte);
  tokens.insert(tokens.end(), more.begin(), more.end());
  return tokens;
}

}  // namespace kilin::testing

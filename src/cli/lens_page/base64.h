// Bytes as text that JSON can hold and a browser's atob reads.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace kilin::cli {

/// RFC 4648, with padding, without line breaks.
std::string base64(std::span<const std::byte> bytes);

}  // namespace kilin::cli

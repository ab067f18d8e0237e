// Which Kilin this is.
#pragma once

#include <string_view>

namespace kilin {

/// "0.1.0", the version of the project that CMake knows.
std::string_view version();

}  // namespace kilin

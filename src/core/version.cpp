#include "core/version.h"

namespace kilin {

std::string_view version() { return KILIN_VERSION; }

}  // namespace kilin

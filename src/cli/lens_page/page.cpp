#include "cli/lens_page/page.h"

#include <cassert>

namespace kilin::cli {

std::string lens_page(std::string_view data) {
  constexpr std::string_view kPlace = "{{data}}";
  const size_t at = kLensPage.find(kPlace);
  assert(at != std::string_view::npos);
  std::string page(kLensPage.substr(0, at));
  return page.append(data).append(kLensPage.substr(at + kPlace.size()));
}

}  // namespace kilin::cli

// The page of `kilin lens`: lens/page/ in one piece, which asks for nothing from anywhere else, with the data in it.
#pragma once

#include <string>
#include <string_view>

namespace kilin::cli {

/// The page without data, made from lens/page/ at build time.
extern const std::string_view kLensPage;

/// @param data as lens_page_data gives it
std::string lens_page(std::string_view data);

}  // namespace kilin::cli

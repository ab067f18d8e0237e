// What `kilin lens` found, as the JSON that its page reads: sizes and names as they are, large matrices packed.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "inside/lens/lens.h"

namespace kilin::cli {

/// @param model its name, in any bytes
/// @param text a token's bytes by its id, empty for an id that is no token; itself empty where ids are all there is
/// @returns ASCII in one line that can stand inside <script>: no '<' is in it. Matrices are little-endian numbers in base64,
/// row by row as in Lens:
///   probabilities  u16, of 65535
///   patterns       u8, 255 sqrt(p): small ones matter to the eye
///   half-lives     u16, 1000 (log2(tokens) + 16), cut at both ends; 65535: infinite
///   betas          u8, of 255
///   weights        u16, of the layer's largest, `largest_weight`
std::string lens_page_data(const Lens& lens, std::string_view model, const std::function<std::string_view(int32_t)>& text);

}  // namespace kilin::cli

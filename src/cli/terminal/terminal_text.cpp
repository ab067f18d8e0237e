#include "cli/terminal/terminal_text.h"

namespace kilin::cli {

std::string without_controls(std::string_view text) {
  constexpr std::string_view replacement = "\xef\xbf\xbd";
  std::string safe;
  safe.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    // U+0080 to U+009F are controls too; in UTF-8 they begin with C2.
    const bool c1 = byte == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0;
    if (c1 || (byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f) {
      safe += replacement;
      i += c1 ? 1 : 0;
    } else {
      safe += text[i];
    }
  }
  return safe;
}

}  // namespace kilin::cli

#include "text/unicode_classes.h"

namespace kilin {

namespace {
#include "text/unicode_classes_table.inc"
}

uint8_t classes_of(char32_t code_point) {
  if (code_point > 0x10ffff) return 0;
  return kBlocks[kBlockOf[code_point >> 8]][code_point & 0xff];
}

UnicodeVersion unicode_version() { return {kUnicodeMajor, kUnicodeMinor}; }

}  // namespace kilin

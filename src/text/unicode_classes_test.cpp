#include "text/unicode_classes.h"

#include <gtest/gtest.h>
#include <unicode/uchar.h>
#include <unicode/uscript.h>

namespace kilin {
namespace {

uint8_t classes_by_icu(char32_t code_point) {
  const auto c = static_cast<UChar32>(code_point);
  const uint32_t category = U_GET_GC_MASK(c);
  UErrorCode status = U_ZERO_ERROR;
  uint8_t classes = 0;
  if (uscript_getScript(c, &status) == USCRIPT_HAN) classes |= CharClass::kHan;
  if ((category & (U_GC_LU_MASK | U_GC_LT_MASK)) != 0) classes |= CharClass::kLuLt;
  if ((category & U_GC_LL_MASK) != 0) classes |= CharClass::kLl;
  if ((category & (U_GC_LM_MASK | U_GC_LO_MASK)) != 0) classes |= CharClass::kLmLo;
  if ((category & U_GC_M_MASK) != 0) classes |= CharClass::kM;
  if ((category & U_GC_N_MASK) != 0) classes |= CharClass::kN;
  if (u_hasBinaryProperty(c, UCHAR_WHITE_SPACE)) classes |= CharClass::kWhiteSpace;
  if (u_hasBinaryProperty(c, UCHAR_WHITE_SPACE) || (c >= 0x1c && c <= 0x1f)) classes |= CharClass::kStrIsSpace;
  return classes;
}

TEST(UnicodeClasses, AgreeWithIcuForEveryCodePoint) {
  UVersionInfo icu;
  u_getUnicodeVersion(icu);
  if (icu[0] != unicode_version().major || icu[1] != unicode_version().minor)
    GTEST_SKIP() << "ICU knows Unicode " << int{icu[0]} << "." << int{icu[1]} << ", the table " << unicode_version().major
                 << "." << unicode_version().minor;
  for (char32_t c = 0; c <= 0x10ffff; ++c) ASSERT_EQ(classes_of(c), classes_by_icu(c)) << "U+" << std::hex << uint32_t{c};
}

TEST(UnicodeClasses, AreWhatTheDatabaseSaysOfKnownCharacters) {
  EXPECT_EQ(classes_of('A'), CharClass::kLuLt);
  EXPECT_EQ(classes_of('a'), CharClass::kLl);
  EXPECT_EQ(classes_of(U'ǅ'), CharClass::kLuLt);
  EXPECT_EQ(classes_of(U'中'), CharClass::kHan | CharClass::kLmLo);
  EXPECT_EQ(classes_of(U'〇'), CharClass::kHan | CharClass::kN);
  EXPECT_EQ(classes_of(U'⺀'), CharClass::kHan);
  EXPECT_EQ(classes_of(U'か'), CharClass::kLmLo);
  EXPECT_EQ(classes_of(0x301), CharClass::kM);
  EXPECT_EQ(classes_of(U'½'), CharClass::kN);
  EXPECT_EQ(classes_of(U'!'), 0);
  EXPECT_EQ(classes_of(0xa0), CharClass::kWhiteSpace | CharClass::kStrIsSpace);
  EXPECT_EQ(classes_of(0x1c), CharClass::kStrIsSpace);
  EXPECT_EQ(classes_of(0x200b), 0) << "the zero width space is no white space";
}

TEST(UnicodeClasses, CoverRangesThatTheDatabaseGivesByTheirEnds) {
  for (char32_t c : {0x3400, 0x4dbf, 0x4e00, 0x9fff, 0x20000, 0x2a6df, 0x31350, 0x323af})
    EXPECT_EQ(classes_of(c), CharClass::kHan | CharClass::kLmLo) << std::hex << uint32_t{c};
  for (char32_t c : {0xac00, 0xb000, 0xd7a3}) EXPECT_EQ(classes_of(c), CharClass::kLmLo);
  for (char32_t c : {0xe000, 0xf8ff, 0x10fffd, 0x10ffff, 0x110000}) EXPECT_EQ(classes_of(c), 0);
}

}  // namespace
}  // namespace kilin

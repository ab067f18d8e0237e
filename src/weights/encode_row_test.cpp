#include "weights/encode_row.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/error.h"
#include "weights/stored_values.h"

namespace kilin {
namespace {

StoredTensor named(const char* name) {
  return {.name = name, .format = DType::f32, .shape = {1, 32}, .bytes = {}, .file = "f"};
}

std::vector<float> there_and_back(const std::vector<float>& values, StorageFormat format) {
  std::vector<std::byte> bytes(format.bytes_of(values.size()));
  encode_row(named("x"), 0, values, format, Rounding::Searched, bytes.data());
  std::vector<float> back(values.size());
  read_values({.name = "x", .format = format, .shape = {1, values.size()}, .bytes = bytes, .file = "f"}, 0, values.size(),
              back.data());
  return back;
}

TEST(EncodeRow, KeepsWhatTheFormatHolds) {
  std::vector<float> values;
  for (int i = 0; i < 32; ++i) values.push_back(static_cast<float>(i - 16) / 4);
  for (const StorageFormat format : {StorageFormat(DType::f32), StorageFormat(DType::f16), StorageFormat(DType::bf16)})
    EXPECT_EQ(there_and_back(values, format), values) << to_string(format);
  for (size_t i = 0; const float x : there_and_back(values, BlockFormat::q8_0)) EXPECT_NEAR(x, values[i++], 4.0 / 127);
}

TEST(EncodeRow, RefusesWhatTheFormatCannotHold) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kMost = std::numeric_limits<float>::max();
  struct Case {
    StorageFormat format;
    float value;
  };
  for (const Case& c : {Case{DType::f32, kInfinity}, Case{DType::f32, NAN}, Case{DType::bf16, kMost}, Case{DType::f16, 65536},
                        Case{BlockFormat::q8_0, -1e6f}, Case{BlockFormat::q4_0, NAN}}) {
    std::vector<float> values(32, 1);
    values[5] = c.value;
    std::vector<std::byte> bytes(c.format.bytes_of(values.size()));
    try {
      encode_row(named("model.norm.weight"), 7, values, c.format, Rounding::Nearest, bytes.data());
      ADD_FAILURE() << to_string(c.format) << " took " << c.value;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::Corrupt);
      const std::string message = error.what();
      EXPECT_NE(message.find("tensor 'model.norm.weight' holds"), std::string::npos) << message;
      EXPECT_NE(message.find("at [7, 5]; expected numbers from -"), std::string::npos) << message;
    }
  }
}

}  // namespace
}  // namespace kilin

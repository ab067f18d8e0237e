#include "core/reservation.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>

#include "core/cpu_info.h"
#include "core/error.h"

namespace kilin {
namespace {

TEST(Reservation, IsZeroedAndCostsOnlyWhatIsTouched) {
  const size_t bytes = size_t{1} << 36;  // 64 GiB
  const Reservation memory(bytes, "test");
  EXPECT_EQ(memory.bytes(), bytes);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.data()) % 4096, 0u);
  EXPECT_EQ(memory.data()[0], std::byte{0});
  EXPECT_EQ(memory.data()[bytes - 1], std::byte{0});
  memory.data()[bytes / 2] = std::byte{1};
  EXPECT_LT(peak_resident_bytes(), bytes / 8);
}

TEST(Reservation, OfHugePagesIsZeroedAllTheSame) {
  Reservation memory(size_t{8} << 20, "test");
  memory.ask_for_huge_pages();
  for (size_t i = 0; i < memory.bytes(); i += 4096) EXPECT_EQ(memory.data()[i], std::byte{0});
  Reservation().ask_for_huge_pages();
}

TEST(Reservation, OfNothingIsNull) {
  EXPECT_EQ(Reservation(0, "test").data(), nullptr);
  EXPECT_EQ(Reservation().bytes(), 0u);
}

TEST(Reservation, ThatCannotBeHadNamesItsPurposeAndSize) {
  try {
    const Reservation memory(SIZE_MAX - 4095, "latent pool");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::ResourceExhausted);
    EXPECT_NE(std::string(error.what()).find("latent pool"), std::string::npos) << error.what();
  }
}

TEST(Reservation, HasOneOwnerWhenMoved) {
  Reservation a(4096, "test");
  std::byte* data = a.data();
  Reservation b = std::move(a);
  EXPECT_EQ(a.data(), nullptr);  // moved from: nothing is left
  EXPECT_EQ(b.data(), data);
  Reservation c(8192, "test");
  c = std::move(b);
  EXPECT_EQ(c.data(), data);
  EXPECT_EQ(c.bytes(), 4096u);
}

}  // namespace
}  // namespace kilin

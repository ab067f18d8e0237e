#include "core/workspace.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "core/error.h"

namespace kilin {
namespace {

TEST(Workspace, FramesNestAndGiveBackWhatTheyTook) {
  Workspace workspace(4096);
  const float* first = nullptr;
  {
    Workspace::Frame outer(workspace);
    first = outer.matrix(2, 16).data();
    EXPECT_EQ(workspace.used(), 128u);
    const float* inside = nullptr;
    for (int call = 0; call < 2; ++call) {
      Workspace::Frame inner(workspace);
      const float* p = inner.matrix(1, 100).data();
      EXPECT_GE(p, first + 32);
      if (call == 1) {
        EXPECT_EQ(p, inside) << "the second call reuses the memory of the first";
      }
      inside = p;
    }
    EXPECT_EQ(workspace.used(), 128u);
  }
  EXPECT_EQ(workspace.used(), 0u);
  EXPECT_EQ(workspace.peak(), 128u + Workspace::rounded(400));
  Workspace::Frame again(workspace);
  EXPECT_EQ(again.array<float>(1).data(), first);
}

TEST(Workspace, EverythingIsAlignedTo64Bytes) {
  Workspace workspace(1 << 16);
  Workspace::Frame frame(workspace);
  for (size_t n : {size_t{1}, size_t{63}, size_t{64}, size_t{65}, size_t{3}})
    EXPECT_EQ(reinterpret_cast<uintptr_t>(frame.array<uint8_t>(n).data()) % 64, 0u) << n;
  EXPECT_EQ(workspace.used(), 64u + 64 + 64 + 128 + 64);
}

TEST(Workspace, RefusesMoreThanItHoldsAndStaysUsable) {
  Workspace workspace(1024);
  Workspace::Frame frame(workspace);
  frame.array<float>(128);
  try {
    frame.array<float>(129);
    ADD_FAILURE() << "516 bytes do not fit beside 512";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::ResourceExhausted);
    EXPECT_STREQ(error.what(), "workspace of 1024 bytes is too small: 512 in use, 516 more needed");
  }
  EXPECT_EQ(workspace.used(), 512u);
  EXPECT_EQ(frame.array<float>(128).size(), 128u);
}

TEST(Workspace, ASizeThatOverflowsIsRefusedToo) {
  Workspace workspace(1024);
  Workspace::Frame frame(workspace);
  const size_t half = size_t{1} << 32;
  EXPECT_THROW(frame.matrix(half, half), Error);                   // rows x cols is 2^64
  EXPECT_THROW(frame.array<float>((size_t{1} << 62) + 1), Error);  // 2^64 + 4 bytes
  EXPECT_THROW(frame.array<uint8_t>(SIZE_MAX - 5), Error);         // rounds up to 2^64
  EXPECT_THROW(frame.matrix<uint8_t>(SIZE_MAX / 3, 3), Error);
  EXPECT_EQ(workspace.used(), 0u);
}

TEST(Workspace, NothingMayBeTakenFromAnEmptyOne) {
  Workspace workspace(0);
  Workspace::Frame frame(workspace);
  EXPECT_EQ(frame.array<float>(0).size(), 0u);
  EXPECT_THROW(frame.array<float>(1), Error);
}

#ifndef NDEBUG
TEST(Workspace, DebugBuildsFillItWithNansWhenTakenAndWhenGivenBack) {
  Workspace workspace(4096);
  float* memory = nullptr;
  {
    Workspace::Frame frame(workspace);
    memory = frame.array<float>(16).data();
    for (int i = 0; i < 16; ++i) EXPECT_TRUE(std::isnan(memory[i]));
    for (int i = 0; i < 16; ++i) memory[i] = 1.0f;
  }
  for (int i = 0; i < 16; ++i) EXPECT_TRUE(std::isnan(memory[i]));
}
#endif

TEST(Workspace, WithoutMemoryItCountsWhatItWouldHold) {
  Workspace counting = Workspace::without_memory(), holding(4096);
  for (Workspace* workspace : {&counting, &holding}) {
    Workspace::Frame outer(*workspace);
    const float* first = outer.matrix(2, 17).data();
    for (size_t n : {100u, 300u, 1u}) {
      Workspace::Frame inner(*workspace);
      EXPECT_EQ(inner.array<float>(n).data(), first + 48);
    }
  }
  EXPECT_EQ(counting.used(), 0u);
  EXPECT_EQ(counting.peak(), holding.peak());
}

TEST(Workspace, WithoutMemoryItHandsOutMoreThanAnyMachineHas) {
  Workspace workspace = Workspace::without_memory();
  Workspace::Frame frame(workspace);
  frame.matrix(size_t{1} << 25, size_t{1} << 25);
  EXPECT_EQ(workspace.peak(), size_t{1} << 52);
  EXPECT_THROW(frame.matrix(size_t{1} << 40, size_t{1} << 40), Error);
}

}  // namespace
}  // namespace kilin

// Comparisons for tests. Each reports by how much and where two arrays differ.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <span>

namespace kilin::testing {

/// max |a - b| / max |b|: the error that all golden tolerances refer to. Infinite if a holds a NaN or the sizes differ.
double error_relative_to_max(std::span<const float> a, std::span<const float> b);

/// Passes if error_relative_to_max(a, b) <= tolerance.
::testing::AssertionResult close_to_max(std::span<const float> a, std::span<const float> b, double tolerance);

/// Passes if |a - b| <= absolute + relative |b| for each element: what is small beside the largest value counts as well.
::testing::AssertionResult each_close(std::span<const float> a, std::span<const float> b, double absolute, double relative);

/// Passes if both hold the same bytes.
::testing::AssertionResult same_bytes(std::span<const std::byte> a, std::span<const std::byte> b);

template <typename A, typename B>
::testing::AssertionResult same_bytes_of(const A& a, const B& b) {
  return same_bytes(std::as_bytes(std::span(a)), std::as_bytes(std::span(b)));
}

}  // namespace kilin::testing

#define EXPECT_CLOSE_TO_MAX(a, b, tolerance) EXPECT_TRUE(::kilin::testing::close_to_max(a, b, tolerance))
#define EXPECT_EACH_CLOSE(a, b, absolute, relative) EXPECT_TRUE(::kilin::testing::each_close(a, b, absolute, relative))
#define EXPECT_BYTES_EQ(a, b) EXPECT_TRUE(::kilin::testing::same_bytes_of(a, b))

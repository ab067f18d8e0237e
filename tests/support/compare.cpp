#include "support/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace kilin::testing {

double error_relative_to_max(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double error = 0, scale = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = std::fabs(double{a[i]} - double{b[i]});
    if (std::isnan(difference)) return std::numeric_limits<double>::infinity();
    error = std::max(error, difference);
    scale = std::max(scale, std::fabs(double{b[i]}));
  }
  if (error == 0) return 0;
  return scale == 0 ? std::numeric_limits<double>::infinity() : error / scale;
}

::testing::AssertionResult close_to_max(std::span<const float> a, std::span<const float> b, double tolerance) {
  if (a.size() != b.size()) return ::testing::AssertionFailure() << a.size() << " values against " << b.size();
  const double error = error_relative_to_max(a, b);
  if (error <= tolerance) return ::testing::AssertionSuccess();
  size_t worst = 0;
  double most = -1;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = std::fabs(double{a[i]} - double{b[i]});
    if (!(difference <= most)) worst = i, most = difference;
    if (std::isnan(difference)) break;
  }
  return ::testing::AssertionFailure() << "error relative to max is " << error << ", allowed " << tolerance << "; worst at "
                                       << worst << " of " << a.size() << ": " << a[worst] << " against " << b[worst];
}

::testing::AssertionResult each_close(std::span<const float> a, std::span<const float> b, double absolute, double relative) {
  if (a.size() != b.size()) return ::testing::AssertionFailure() << a.size() << " values against " << b.size();
  size_t worst = 0;
  double most = 0;  // of what is allowed
  for (size_t i = 0; i < a.size(); ++i) {
    const double share = std::fabs(double{a[i]} - double{b[i]}) / (absolute + relative * std::fabs(double{b[i]}));
    if (!(share <= most)) worst = i, most = share;
    if (std::isnan(share)) break;
  }
  if (most <= 1) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "errs by " << most << " times of what is allowed at " << worst << " of " << a.size()
                                       << ": " << a[worst] << " against " << b[worst];
}

::testing::AssertionResult same_bytes(std::span<const std::byte> a, std::span<const std::byte> b) {
  if (a.size() != b.size()) return ::testing::AssertionFailure() << a.size() << " bytes against " << b.size();
  const auto at = std::mismatch(a.begin(), a.end(), b.begin()).first;
  if (at == a.end()) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "first difference at byte " << at - a.begin() << " of " << a.size();
}

}  // namespace kilin::testing

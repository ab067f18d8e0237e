#include "cli/report/figures.h"

#include <array>
#include <cmath>
#include <utility>

#include "cli/options/options.h"
#include "core/error.h"

namespace kilin::cli {

std::string with_commas(uint64_t number) {
  std::string text = std::to_string(number);
  for (size_t at = text.size(); at > 3;) {
    at -= 3;
    text.insert(at, 1, ',');
  }
  return text;
}

std::string human_bytes(uint64_t bytes) {
  constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1000 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return fmt::format("{:.{}f} {}", value, unit == 0 ? 0 : value < 10 ? 2 : 1, kUnits[unit]);
}

double rounded(double value) { return std::round(value * 1e6) / 1e6; }

uint64_t parse_bytes(std::string_view option, std::string_view text) {
  uint64_t factor = 1;
  std::string_view digits = text;
  for (const auto& [unit, bytes] :
       {std::pair<std::string_view, uint64_t>{"KB", 1'000}, {"MB", 1'000'000}, {"GB", 1'000'000'000}})
    if (text.ends_with(unit)) {
      factor = bytes;
      digits.remove_suffix(unit.size());
    }
  uint64_t bytes = 0;
  const bool number = !digits.empty() && digits.find_first_not_of("0123456789") == std::string_view::npos;
  if (!number || __builtin_mul_overflow(parse_unsigned(option, digits), factor, &bytes) || bytes == 0)
    raise(ErrorCode::InvalidArgument, "{} is '{}'; expected bytes, as in 5GB, 500MB or 1000000", option, text);
  return bytes;
}

}  // namespace kilin::cli

// Large numbers as people read and write them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kilin::cli {

/// "49,122,681,728"
std::string with_commas(uint64_t number);

/// "91.5 GiB", "44.9 MiB", "512 B": three digits or so
std::string human_bytes(uint64_t bytes);

/// To six decimals, as seconds and rates are told to programs.
double rounded(double value);

/// "5GB", "500MB" (of 1000, as disks and Hugging Face count) or bytes. @throws InvalidArgument naming `option`
uint64_t parse_bytes(std::string_view option, std::string_view text);

}  // namespace kilin::cli

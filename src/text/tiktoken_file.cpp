#include "text/tiktoken_file.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>

#include "core/error.h"
#include "core/file.h"

namespace kilin {

namespace {

constexpr size_t kMaxFileBytes = size_t{256} << 20;
constexpr uint8_t kNoDigit = 64;

constexpr std::array<uint8_t, 256> base64_digits() {
  std::array<uint8_t, 256> values{};
  values.fill(kNoDigit);
  constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (size_t i = 0; i < alphabet.size(); ++i) values[static_cast<unsigned char>(alphabet[i])] = static_cast<uint8_t>(i);
  return values;
}

// The bytes, or nothing if `text` is not base64 in the form that encoders write: padded, with the unused bits zero.
std::optional<std::string> decode_base64(std::string_view text) {
  static constexpr std::array<uint8_t, 256> digits = base64_digits();
  if (text.size() % 4 != 0) return std::nullopt;
  size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  uint32_t bits = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_padding = i >= text.size() - padding;
    const uint8_t digit = is_padding ? uint8_t{0} : digits[static_cast<unsigned char>(text[i])];
    if (digit == kNoDigit) return std::nullopt;
    bits = bits << 6 | digit;
    if (i % 4 != 3) continue;
    for (int shift : {16, 8, 0}) bytes += static_cast<char>(bits >> shift & 0xff);
    bits = 0;
  }
  for (size_t i = 0; i < padding; ++i) {  // these bytes hold the bits that stay unused
    if (bytes.back() != '\0') return std::nullopt;
    bytes.pop_back();
  }
  return bytes;
}

// A decimal number with nothing around it.
std::optional<uint32_t> parse_rank(std::string_view text) {
  uint32_t rank = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return rank;
}

// Text for messages: a line of the file may be long and hold anything.
std::string shown(std::string_view text) {
  std::string out;
  for (char c : text.substr(0, 40)) out += c >= ' ' && c <= '~' ? c : '?';
  return text.size() > 40 ? out + "..." : out;
}

struct Line {
  std::string token;
  uint32_t rank;
};

Line parse_line(std::string_view line, std::string_view source, size_t number) {
  const size_t space = line.find(' ');
  if (space == std::string_view::npos)
    raise(ErrorCode::Corrupt, "{}:{}: '{}' is not a token in base64, a space and a rank", source, number, shown(line));
  auto token = decode_base64(line.substr(0, space));
  if (!token || token->empty())
    raise(ErrorCode::Corrupt, "{}:{}: '{}' is not the base64 of at least one byte", source, number,
          shown(line.substr(0, space)));
  const auto rank = parse_rank(line.substr(space + 1));
  if (!rank) raise(ErrorCode::Corrupt, "{}:{}: rank '{}' is not a number", source, number, shown(line.substr(space + 1)));
  return {std::move(*token), *rank};
}

}  // namespace

std::vector<std::string> parse_tiktoken(std::string_view text, std::string_view source) {
  std::vector<Line> lines;
  std::vector<size_t> numbers;  // of each line, for messages
  size_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    lines.push_back(parse_line(line, source, number));
    numbers.push_back(number);
  }
  if (lines.empty()) raise(ErrorCode::Corrupt, "{}: holds no tokens", source);

  // If n lines have n different ranks below n, none is missing.
  std::vector<std::string> tokens(lines.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    const uint32_t rank = lines[i].rank;
    if (rank >= tokens.size())
      raise(ErrorCode::Corrupt, "{}:{}: rank {} in a file of {} tokens; the ranks must be 0 to {}, each once", source,
            numbers[i], rank, tokens.size(), tokens.size() - 1);
    if (!tokens[rank].empty()) raise(ErrorCode::Corrupt, "{}:{}: rank {} stands twice", source, numbers[i], rank);
    tokens[rank] = std::move(lines[i].token);
  }
  return tokens;
}

std::vector<std::string> read_tiktoken(const std::filesystem::path& file) {
  const MappedFile mapped(file);
  if (mapped.bytes().size() > kMaxFileBytes)
    raise(ErrorCode::Unsupported, "{}: has {} bytes; a file of ranks may have {}", file.string(), mapped.bytes().size(),
          kMaxFileBytes);
  const auto bytes = mapped.bytes();
  return parse_tiktoken({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, file.string());
}

}  // namespace kilin

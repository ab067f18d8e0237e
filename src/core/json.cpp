#include "core/json.h"

#include <locale.h>  // NOLINT: newlocale and uselocale are POSIX

#include <algorithm>
#include <array>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/file.h"

namespace kilin {

namespace {

constexpr int kMaxDepth = 64;

// Watches the parser's events: nlohmann itself keeps the last of two equal keys and sets no bound to the depth.
class Watcher {
 public:
  explicit Watcher(std::string_view source) : source_(source) {}

  bool operator()(int depth, Json::parse_event_t event, Json& value) {
    switch (event) {
      case Json::parse_event_t::object_start:
        keys_.emplace_back();
        check(depth);
        break;
      case Json::parse_event_t::array_start:
        check(depth);
        break;
      case Json::parse_event_t::object_end:
        keys_.pop_back();
        break;
      case Json::parse_event_t::key: {
        const auto& key = value.get_ref<const std::string&>();
        if (!keys_.back().insert(key).second)
          raise(ErrorCode::Corrupt, "{}: key '{}' stands twice in one object", source_, printable(key));
        break;
      }
      default:
        break;
    }
    return true;
  }

 private:
  void check(int depth) const {
    if (depth >= kMaxDepth) raise(ErrorCode::Corrupt, "{}: JSON is nested more than {} levels deep", source_, kMaxDepth);
  }

  std::string_view source_;
  std::vector<std::set<std::string>> keys_;  // of the objects that are open
};

// Goes through a text again to find where it is no JSON: of a number that is too large nlohmann tells no place otherwise.
class FaultFinder : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(size_t) override { return true; }
  bool key(string_t&) override { return true; }
  bool end_object() override { return true; }
  bool start_array(size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(size_t position, const std::string& last_token, const Json::exception& error) override {
    byte = position;
    number = dynamic_cast<const Json::out_of_range*>(&error) != nullptr ? last_token : "";
    const std::string_view message = error.what();
    const size_t at = message.rfind(kExpected);
    expected = at == message.npos ? "" : message.substr(at + kExpected.size());
    return false;
  }

  size_t byte = 0;       // from 1; one behind the end if the text breaks off
  std::string number;    // that is too large
  std::string expected;  // in nlohmann's words

 private:
  static constexpr std::string_view kExpected = "; expected ";
};

// While it lives, this thread reads numbers as in the "C" locale. nlohmann reads them by strtod after putting the locale's
// decimal point in, of which it knows a single byte; some have two. And a program that we are a library of may change its
// locale at any time.
class PlainNumbers {
 public:
  PlainNumbers() : before_(::uselocale(plain())) {}
  ~PlainNumbers() { ::uselocale(before_); }
  PlainNumbers(const PlainNumbers&) = delete;
  PlainNumbers& operator=(const PlainNumbers&) = delete;

 private:
  static locale_t plain() {
    static const locale_t locale = ::newlocale(LC_ALL_MASK, "C", nullptr);
    return locale;
  }
  locale_t before_;
};

// What the parser waited for, in words of the format.
std::string_view expectation(std::string_view of_parser) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kWords = {{
      {"end of input", "nothing after the end"},
      {"string literal", "a key in double quotes"},
      {"':'", "a colon after the key"},
      {"',' or ']'", "a comma or ']'"},
      {"']'", "a comma or ']'"},
      {"'}'", "a comma or '}'"},
  }};
  for (const auto& [theirs, ours] : kWords)
    if (of_parser == theirs) return ours;
  return "a value: an object, a list, a text in double quotes, a number, true, false or null";
}

// "line 3, column 5 (byte 42)", all from 1; columns are bytes.
std::string place(std::string_view text, size_t byte) {
  const std::string_view before = text.substr(0, byte - 1);
  const size_t newline = before.rfind('\n');
  return fmt::format("line {}, column {} (byte {})", std::ranges::count(before, '\n') + 1,
                     before.size() - (newline == before.npos ? 0 : newline + 1) + 1, byte);
}

[[noreturn]] void raise_fault(std::string_view text, std::string_view source) {
  FaultFinder fault;
  Json::sax_parse(text.begin(), text.end(), &fault);
  const size_t byte = std::clamp<size_t>(fault.byte, 1, text.size() + 1);
  if (!fault.number.empty())
    raise(ErrorCode::Corrupt, "{}: at {} stands the number {}; expected one that a 64-bit float can hold", source,
          place(text, byte), printable(fault.number));
  raise(ErrorCode::Corrupt, "{}: not valid JSON at {}{}; expected {}", source, place(text, byte),
        byte > text.size() ? ", where it breaks off" : "", expectation(fault.expected));
}

}  // namespace

Json parse_json(std::string_view text, std::string_view source) {
  const PlainNumbers numbers;
  // nlohmann takes a NUL for the end of its input and would not look at what follows.
  const size_t nul = text.find('\0');
  if (nul != std::string_view::npos)
    raise(ErrorCode::Corrupt, "{}: not valid JSON at {}, a NUL byte", source, place(text, nul + 1));
  Watcher watcher(source);
  try {
    return Json::parse(text.begin(), text.end(), std::ref(watcher));
  } catch (const Json::exception&) {
    raise_fault(text, source);
  }
}

Json read_json(const std::filesystem::path& file) { return parse_json(read_file(file), file.string()); }

}  // namespace kilin

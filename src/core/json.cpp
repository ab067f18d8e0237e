#include "core/json.h"

#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
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

}  // namespace

Json parse_json(std::string_view text, std::string_view source) {
  // nlohmann takes a NUL for the end of its input and would not look at what follows.
  const size_t nul = text.find('\0');
  if (nul != std::string_view::npos) raise(ErrorCode::Corrupt, "{}: not valid JSON at byte {}", source, nul + 1);
  Watcher watcher(source);
  try {
    return Json::parse(text.begin(), text.end(), std::ref(watcher));
  } catch (const Json::parse_error& error) {
    raise(ErrorCode::Corrupt, "{}: not valid JSON at byte {}", source, error.byte);
  } catch (const Json::exception& error) {
    raise(ErrorCode::Corrupt, "{}: not valid JSON: {}", source, printable(error.what()));
  }
}

Json read_json(const std::filesystem::path& file) { return parse_json(read_file(file), file.string()); }

}  // namespace kilin

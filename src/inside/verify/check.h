// One check and its outcome. Checks never stop at the first fault: whoever has fetched 98 GB wants to know everything that is
// wrong at once.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace kilin {

enum class Outcome : uint8_t {
  Ok,
  Note,     ///< not surely wrong, but worth a look
  Skipped,  ///< nothing to check, or a check that it depends on has failed
  Failed,
};

std::string_view to_string(Outcome outcome);  ///< "ok", "note", "skipped", "failed"

struct Check {
  std::string name;  ///< "values"
  Outcome outcome = Outcome::Ok;
  std::string summary;               ///< one line
  std::vector<std::string> details;  ///< a line each: every fault
};

/// Reports checks and their progress as they happen.
class CheckReporter {
 public:
  struct Listener {
    std::function<void(const Check&)> done;
    std::function<void(std::string_view name, uint64_t done, uint64_t total)> progress;
  };

  explicit CheckReporter(Listener listener) : listener_(std::move(listener)) {}

  /// Runs `body`, which returns the check; an Error that it throws is its failure. @returns whether it is Ok or a Note
  template <typename Body>
  bool run(const std::string& name, Body body) {
    Check check;
    try {
      check = body();
    } catch (const Error& error) {
      check = failure(error.what());
    }
    return add(name, std::move(check));
  }
  /// @returns false
  bool skip(const std::string& name, const std::string& why);

  void progress(std::string_view name, uint64_t done, uint64_t total) const {
    if (listener_.progress) listener_.progress(name, done, total);
  }

  const std::vector<Check>& checks() const { return checks_; }

 private:
  static Check failure(const std::string& message);
  bool add(const std::string& name, Check check);

  Listener listener_;
  std::vector<Check> checks_;
};

Check ok(const std::string& summary);
Check note(const std::string& summary, const std::vector<std::string>& details = {});
Check skipped(const std::string& summary);
Check failed(const std::string& summary, const std::vector<std::string>& details = {});

}  // namespace kilin

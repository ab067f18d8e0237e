#include "inside/verify/check.h"

#include <sstream>
#include <utility>

namespace kilin {

namespace {

Check with(Outcome outcome, const std::string& summary, const std::vector<std::string>& details) {
  return {.name = "", .outcome = outcome, .summary = summary, .details = details};
}

}  // namespace

std::string_view to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::Ok:
      return "ok";
    case Outcome::Note:
      return "note";
    case Outcome::Skipped:
      return "skipped";
    case Outcome::Failed:
      return "failed";
  }
  return "?";
}

Check ok(const std::string& summary) { return with(Outcome::Ok, summary, {}); }
Check note(const std::string& summary, const std::vector<std::string>& details) {
  return with(Outcome::Note, summary, details);
}
Check skipped(const std::string& summary) { return with(Outcome::Skipped, summary, {}); }
Check failed(const std::string& summary, const std::vector<std::string>& details) {
  return with(Outcome::Failed, summary, details);
}

// A message of several lines: the first is the summary, the others are indented.
Check CheckReporter::failure(const std::string& message) {
  Check check = failed("");
  std::istringstream lines(message);
  std::getline(lines, check.summary);
  for (std::string line; std::getline(lines, line);) {
    line.erase(0, line.find_first_not_of(' '));
    check.details.push_back(std::move(line));
  }
  return check;
}

bool CheckReporter::skip(const std::string& name, const std::string& why) { return add(name, skipped(why)); }

bool CheckReporter::add(const std::string& name, Check check) {
  check.name = name;
  checks_.push_back(std::move(check));
  const Check& added = checks_.back();
  if (listener_.done) listener_.done(added);
  return added.outcome == Outcome::Ok || added.outcome == Outcome::Note;
}

}  // namespace kilin

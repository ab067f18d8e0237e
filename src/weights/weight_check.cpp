// Holds a checkpoint's tensors against the weight map; the report names every tensor, many alike as ranges of their numbers.
#include <algorithm>
#include <map>
#include <utility>

#include "core/error.h"
#include "weights/weight_map.h"

namespace kilin {

namespace {

// So many names of one pattern are written out; more become ranges.
constexpr size_t kWrittenOut = 8;
// So many lines of one kind of fault: a hostile checkpoint can hold a million names.
constexpr size_t kMostLines = 100;

// A name whose components that are numbers were taken out: "model.layers.*.mlp" and {3}.
struct Split {
  std::string pattern;
  std::vector<size_t> numbers;
};

Split split(const std::string& name) {
  Split result;
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('.', begin), name.size());
    const std::string component = name.substr(begin, end - begin);
    const bool is_number = !component.empty() && component.size() <= 9 && (component == "0" || component[0] != '0') &&
                           component.find_first_not_of("0123456789") == std::string::npos;
    if (is_number) result.numbers.push_back(std::stoul(component));
    if (begin > 0) result.pattern += '.';
    result.pattern += is_number ? "*" : component;
    begin = end + 1;
  }
  return result;
}

// {0, 1, 2, 5} as "{0-2,5}"; one number stays bare.
std::string ranges(const std::vector<size_t>& sorted) {
  if (sorted.size() == 1) return std::to_string(sorted[0]);
  std::string text = "{";
  for (size_t i = 0; i < sorted.size();) {
    size_t last = i;
    while (last + 1 < sorted.size() && sorted[last + 1] == sorted[last] + 1) ++last;
    if (i > 0) text += ',';
    text += std::to_string(sorted[i]);
    if (last > i) text += fmt::format("-{}", sorted[last]);
    i = last + 1;
  }
  return text + "}";
}

std::string fill(std::string pattern, const std::vector<std::string>& numbers) {
  size_t at = 0;
  for (const std::string& number : numbers) {
    at = pattern.find('*', at);
    if (at == std::string::npos) break;
    pattern.replace(at, 1, number);
    at += number.size();
  }
  return pattern;
}

// The names, each once: a few written out, many as ranges over their first number and, for equal sets of it, their second.
std::vector<std::string> compressed(const std::vector<std::string>& names) {
  std::map<std::string, std::vector<std::vector<size_t>>> by_pattern;
  std::map<std::string, std::vector<std::string>> written;
  for (const std::string& name : names) {
    Split parts = split(name);
    written[parts.pattern].push_back(name);
    by_pattern[parts.pattern].push_back(std::move(parts.numbers));
  }
  std::vector<std::string> lines;
  for (const auto& [pattern, numbers] : by_pattern) {
    const size_t depth = numbers.front().size();
    if (numbers.size() <= kWrittenOut || depth == 0 || depth > 2) {
      for (const std::string& name : written[pattern]) lines.push_back(fmt::format("'{}'", printable(name)));
      continue;
    }
    std::map<size_t, std::vector<size_t>> seconds_of;  // by first number
    for (const auto& tuple : numbers) {
      auto& seconds = seconds_of[tuple[0]];
      if (depth == 2) seconds.push_back(tuple[1]);
    }
    std::map<std::vector<size_t>, std::vector<size_t>> firsts_of;
    for (auto& [first, seconds] : seconds_of) {
      std::sort(seconds.begin(), seconds.end());
      firsts_of[seconds].push_back(first);
    }
    for (const auto& [seconds, firsts] : firsts_of) {
      std::vector<std::string> filling = {ranges(firsts)};
      if (depth == 2) filling.push_back(ranges(seconds));
      lines.push_back(fmt::format("'{}' ({})", fill(pattern, filling), firsts.size() * std::max<size_t>(seconds.size(), 1)));
    }
  }
  return lines;
}

void append_lines(std::string& report, std::string_view fault, const std::vector<std::string>& lines) {
  for (size_t i = 0; i < std::min(lines.size(), kMostLines); ++i) report += fmt::format("\n  {} {}", fault, lines[i]);
  if (lines.size() > kMostLines) report += fmt::format("\n  {} and {} more lines", fault, lines.size() - kMostLines);
}

std::string words_of(const WeightPattern& pattern) {
  std::string words;
  for (const Extent& extent : pattern.shape) words += (words.empty() ? "" : ", ") + std::string(extent.words);
  return words;
}

std::string list_of(std::span<const DType> dtypes) {
  std::string text;
  for (const DType dtype : dtypes) text += (text.empty() ? "" : ", ") + std::string(to_string(dtype));
  return text;
}

// By the names that stand in the file, each once: many tensors may be cut out of one.
std::vector<std::string> stored_names(const TensorStore& store, const std::vector<std::string>& names) {
  std::vector<std::string> stored;
  stored.reserve(names.size());
  for (const std::string& name : names) stored.push_back(store.stored_name(name));
  std::sort(stored.begin(), stored.end());
  stored.erase(std::unique(stored.begin(), stored.end()), stored.end());
  return stored;
}

// `names` are the store's that count, ascending.
void check(const TensorStore& store, std::span<const std::string> names, std::vector<ExpectedTensor> expected,
           const ModelConfig& config) {
  std::sort(expected.begin(), expected.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  std::vector<std::string> missing, surplus, present;
  std::map<std::pair<const WeightPattern*, std::string>, std::vector<std::string>> wrong;  // (pattern, fault) -> names
  size_t wrong_tensors = 0;
  auto name = names.begin();
  for (const ExpectedTensor& tensor : expected) {
    while (name != names.end() && *name < tensor.name) surplus.push_back(*name++);
    if (name == names.end() || *name != tensor.name) {
      missing.push_back(tensor.name);
      continue;
    }
    ++name;
    std::string fault = fault_of(store.require(tensor.name), tensor);
    if (fault.empty()) continue;
    wrong[{tensor.pattern, std::move(fault)}].push_back(tensor.name);
    ++wrong_tensors;
  }
  surplus.insert(surplus.end(), name, names.end());
  if (missing.empty() && surplus.empty() && wrong.empty()) return;

  const bool tied_head = config.tie_word_embeddings && std::binary_search(surplus.begin(), surplus.end(), "lm_head.weight");
  missing = stored_names(store, missing);
  surplus = stored_names(store, surplus);
  std::string report =
      fmt::format("{}: the tensors are not those of its configuration: {} missing, {} surplus, {} of a wrong shape or dtype",
                  store.source(), missing.size(), surplus.size(), wrong_tensors);
  append_lines(report, "missing", compressed(missing));
  append_lines(report, "surplus", compressed(surplus));
  if (tied_head) report += "\n  (tie_word_embeddings is true: the embedding is lm_head's weight)";
  std::vector<std::string> lines;
  for (const auto& [key, tensors] : wrong)
    for (const std::string& line : compressed(stored_names(store, tensors))) lines.push_back(line + " " + key.second);
  append_lines(report, "wrong", lines);
  throw Error(ErrorCode::Corrupt, report);
}

}  // namespace

std::string fault_of(const StoredTensor& tensor, const ExpectedTensor& expected) {
  const WeightPattern& pattern = *expected.pattern;
  if (!pattern.allows(tensor.format))
    return fmt::format("has dtype {}; expected one of {}{}", to_string(tensor.format), list_of(pattern.dtypes),
                       pattern.allows_blocks() ? ", or blocks" : "");
  if (pattern.any_shape) {
    if (tensor.elements() == expected.shape.elements()) return "";
    return fmt::format("has shape {}; expected {} elements ({})", to_string(tensor.shape), expected.shape.elements(),
                       words_of(pattern));
  }
  if (tensor.shape == expected.shape) return "";
  return fmt::format("has shape {}; expected {} ({})", to_string(tensor.shape), to_string(expected.shape), words_of(pattern));
}

void check_tensors(const TensorStore& store, const ModelConfig& config) {
  check(store, store.names(), expected_tensors(config), config);
}

void check_tensors_of_layer(const TensorStore& store, const ModelConfig& config, size_t layer) {
  const std::string prefix = fmt::format("model.layers.{}.", layer);
  const auto& names = store.names();
  const auto begin = std::lower_bound(names.begin(), names.end(), prefix);
  const auto end = std::find_if(begin, names.end(), [&](const std::string& name) { return !name.starts_with(prefix); });
  check(store, std::span(begin, end), expected_tensors_of_layer(config, layer), config);
}

}  // namespace kilin

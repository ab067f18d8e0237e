// One layer's values for people.
#include <algorithm>
#include <cmath>
#include <map>

#include "cli/report/inspection.h"

namespace kilin::cli {

namespace {

// A line of the table: a tensor, or those of several experts together.
struct Line {
  std::string name;
  const InventoryTensor* tensor;
  double min = 0, max = 0, sum = 0, squares = 0;
  uint64_t elements = 0;
  size_t tensors = 0;
  bool finite = true;

  void add(const TensorStatistics& statistics, uint64_t n) {
    min = tensors == 0 ? statistics.min : std::min(min, statistics.min);
    max = tensors == 0 ? statistics.max : std::max(max, statistics.max);
    sum += statistics.mean * static_cast<double>(n);
    squares += statistics.rms * statistics.rms * static_cast<double>(n);
    elements += n;
    finite = finite && statistics.scan.finite();
    ++tensors;
  }
};

// "self_attn.q_proj.weight"; experts lose their number: "experts.*.w1.weight".
std::string line_name(const InventoryTensor& tensor, Alike alike) {
  constexpr std::string_view kExperts = ".experts.";
  std::string name = tensor.name;
  const size_t at = name.find(kExperts);
  if (alike == Alike::Together && at != std::string::npos && tensor.presence == Presence::Stored && tensor.fault.empty()) {
    const size_t number = at + kExperts.size();
    name = fmt::format("{}*{}", name.substr(0, number), name.substr(name.find('.', number)));
  }
  return name.substr(name.find('.', std::string_view("model.layers.").size()) + 1);
}

void print_line(Page& out, const Line& line) {
  std::string name = line.name;
  if (line.tensors > 1) name += fmt::format("  x{}", line.tensors);
  out.print("{:<58} {:<6} {:<16}", name, to_string(line.tensor->format), to_string(line.tensor->shape));
  if (line.tensors == 0) {
    out.print(" {}\n", line.tensor->fault.empty() ? to_string(line.tensor->presence) : line.tensor->fault);
    return;
  }
  const double n = std::max(1.0, static_cast<double>(line.elements));
  out.print(" {:>10.3g} {:>10.3g} {:>10.3g} {:>10.3g}{}\n", line.min, line.max, line.sum / n, std::sqrt(line.squares / n),
            line.finite ? "" : "  NOT FINITE");
}

}  // namespace

std::string LayerInspection::text(Alike alike) const {
  Page out;
  std::vector<Line> lines;
  std::map<std::string, size_t> line_of;
  for (const auto& [tensor, statistics] : tensors) {
    const std::string name = line_name(tensor, alike);
    const auto [at, is_new] = line_of.emplace(fmt::format("{} {}", name, to_string(tensor.format)), lines.size());
    if (is_new) lines.push_back({.name = name, .tensor = &tensor});
    if (tensor.presence == Presence::Stored && tensor.fault.empty()) lines[at->second].add(statistics, tensor.parameters());
  }
  out.print("layer {} of {}: {}, {}\n\n", layer, displayable(path.string()), name_of(attention), name_of(feed_forward));
  out.print("{:<58} {:<6} {:<16} {:>10} {:>10} {:>10} {:>10}\n", "tensor", "dtype", "shape", "min", "max", "mean", "rms");
  for (const Line& line : lines) print_line(out, line);
  out.print("\n");
  if (faults.empty()) out.print("all {} tensors are here and finite\n", tensors.size());
  for (const std::string& fault : faults) out.print("{}\n", fault);
  return out.text();
}

}  // namespace kilin::cli

#include "cli/report/bench_report.h"

#include "cli/terminal/output.h"
#include "core/cpu_info.h"

namespace kilin::cli {

namespace {

constexpr double kGiga = 1e9;

// Three digits or so: 0.000513, 9.81, 62.1, 1635
std::string digits(double value) {
  if (value < 1) return fmt::format("{:.3g}", value);
  return fmt::format("{:.{}f}", value, value < 10 ? 2 : value < 1000 ? 1 : 0);
}

std::string range(const Spread& spread) { return fmt::format("{} to {}", digits(spread.min), digits(spread.max)); }

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

}  // namespace

uint64_t BenchReport::peak_bytes() const {
  const uint64_t peak = peak_resident_bytes();
  return peak - std::min(peak, probe_bytes);
}

ProductPeak BenchReport::product_peak(const BenchRow& row) const {
  return kilin::product_peak(row.peaks(), engine.activations(), engine.loaded().has_panels());
}

double BenchReport::experts_per_layer(const BenchRow& row) const {
  size_t layers = 0;
  for (size_t layer = 0; layer < engine.config().num_hidden_layers; ++layer) layers += engine.config().is_moe(layer) ? 1 : 0;
  return layers == 0 ? 0 : row.per_step(row.total_cost().experts) / static_cast<double>(layers);
}

std::string BenchReport::opening() const {
  Page page;
  page.print("model       {}: {} layers, {} GB of weights{}\n", displayable(engine.loaded().path().string()),
             engine.config().num_hidden_layers, digits(static_cast<double>(engine.loaded().weight_bytes()) / kGiga),
             engine.loaded().has_panels() ? ", packed" : "");
  page.print("running     {} threads, {}, activations {}, latents {}; {} repeats, seed {}\n", engine.threads(),
             to_string(engine.kernels().isa), to_string(engine.activations()),
             to_string(engine.pools().latents.dimensions().type), plan.repeat, plan.seed);
  page.print("start       loaded in {:.2f} s, first token after {:.2f} s\n", load_s, first_token_s);
  return page.text();
}

std::string BenchReport::head(BenchRow::Work work) const {
  switch (work) {
    case BenchRow::Work::Prompt:
      return fmt::format("\n{:<10} {:>10} {:>18} {:>11} {:>9} {:>15} {:>8}\n", "prompt", "tokens/s", "min to max", "GOP/token",
                         "GOP/s", "peak, GOP/s", "share");
    case BenchRow::Work::Generation:
      return fmt::format("\n{:<10} {:>10} {:>18} {:>11} {:>9} {:>15} {:>8} {:>9}  {}\n", "depth", "tokens/s", "min to max",
                         "GB/token", "GB/s", "bandwidth, GB/s", "bound", "share", "past by");
    case BenchRow::Work::Batch:
      return fmt::format("\n{:<10} {:>10} {:>18} {:>11} {:>9} {:>15} {:>8} {:>9}  {}\n", "sequences", "tokens/s", "min to max",
                         "GB/step", "GB/s", "bandwidth, GB/s", "bound", "share", "experts a layer");
  }
  return {};
}

std::string BenchReport::line(const BenchRow& row) const {
  const Spread rate = row.tokens_per_s();
  if (row.work == BenchRow::Work::Prompt) {
    const ProductPeak peak = product_peak(row);
    const double operations = row.per_step(row.total_cost().operations());
    const double per_s = operations / row.seconds_per_step();
    return fmt::format("{:<10} {:>10} {:>18} {:>11} {:>9} {:>15} {:>8}\n", row.prompt_tokens, digits(rate.median), range(rate),
                       digits(operations / static_cast<double>(row.prompt_tokens) / kGiga), digits(per_s / kGiga),
                       fmt::format("{} {}", peak.name, digits(peak.operations_per_s / kGiga)),
                       percent(per_s / peak.operations_per_s));
  }
  const bool is_batch = row.work == BenchRow::Work::Batch;
  const double bytes = row.per_step(row.total_cost().bytes()), bound_s = generation_bound_s(row);
  return fmt::format("{:<10} {:>10} {:>18} {:>11} {:>9} {:>15} {:>8} {:>9}  {}\n", is_batch ? row.sequences : row.depth,
                     digits(rate.median), range(rate), digits(bytes / kGiga), digits(bytes / row.seconds_per_step() / kGiga),
                     digits(row.peaks().read_bytes_per_s / kGiga), digits(static_cast<double>(row.sequences) / bound_s),
                     percent(bound_s / row.seconds_per_step()),
                     is_batch ? digits(experts_per_layer(row)) : std::string(to_string(row.past)));
}

std::string BenchReport::stages(const BenchRow& row) const {
  if (!row.profile.has_times()) return {};
  Page page;
  const double step_ns = 1e9 * row.seconds_per_step();
  double all_ns = 0;
  for (double seconds : row.seconds) all_ns += 1e9 * seconds;
  const auto print = [&](std::string_view name, double ns, const StageCost& cost) {
    const double gb = row.per_step(cost.bytes()) / kGiga, gop = row.per_step(cost.operations()) / kGiga;
    const double of_step = ns / all_ns, ms = of_step * step_ns / 1e6;
    const auto rate = [&](double amount) { return amount > 0 ? digits(amount / ms * 1e3) : std::string("-"); };
    const double bound_s = stage_bound_s(cost, row.peaks());
    page.print("  {:<16} {:>10.3f} {:>7} {:>9} {:>8} {:>9} {:>8} {:>8}\n", name, ms, percent(of_step), digits(gb), rate(gb),
               digits(gop), rate(gop), bound_s > 0 ? percent(bound_s * 1e9 / ns) : "-");
  };
  page.print("  {:<16} {:>10} {:>7} {:>9} {:>8} {:>9} {:>8} {:>8}\n", "stage",
             row.work == BenchRow::Work::Prompt ? "ms" : "ms a step", "time", "GB", "GB/s", "GOP", "GOP/s", "share");
  for (size_t i = 0; i < kStages; ++i) {
    const auto stage = static_cast<Stage>(i);
    if (row.profile[stage].ns > 0) print(to_string(stage), static_cast<double>(row.profile[stage].ns), row.profile[stage].cost);
  }
  print("other", all_ns - static_cast<double>(row.profile.sum().ns), {});
  return page.text();
}

std::string BenchReport::closing() const {
  return fmt::format("\nmemory      peak {} GB; weights {} GB, states, latents and workspace at most {} GB\n",
                     digits(static_cast<double>(peak_bytes()) / kGiga),
                     digits(static_cast<double>(engine.plan().weights) / kGiga),
                     digits(static_cast<double>(engine.plan().working()) / kGiga));
}

}  // namespace kilin::cli

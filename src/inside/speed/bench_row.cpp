// Computes rates from a row's figures, and the bounds of these rates.
#include <algorithm>

#include "inside/speed/bench.h"

namespace kilin {

namespace {

// Seconds at a rate; 0 if there is nothing to do.
double time_of(uint64_t amount, double per_s) { return amount == 0 ? 0 : static_cast<double>(amount) / per_s; }

// A CPU without a bf16 instruction computes at its fp32 rate.
double bf16_rate(const MachinePeaks& peaks) { return std::max(peaks.bf16_operations_per_s, peaks.fp32_operations_per_s); }

}  // namespace

Spread spread_of(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t n = values.size();
  return {.median = (values[(n - 1) / 2] + values[n / 2]) / 2, .min = values.front(), .max = values.back()};
}

Spread BenchRow::tokens_per_s() const {
  std::vector<double> rates;
  for (double s : seconds) rates.push_back(static_cast<double>(tokens) / s);
  return spread_of(std::move(rates));
}

double BenchRow::seconds_per_step() const { return spread_of(seconds).median / static_cast<double>(steps); }

double BenchRow::per_step(uint64_t sum) const { return static_cast<double>(sum) / static_cast<double>(steps * seconds.size()); }

ProductPeak product_peak(const MachinePeaks& peaks, ActivationType activations, bool has_panels) {
  if (activations == ActivationType::int8 && has_panels) return {"int8", peaks.int8_operations_per_s};
  if (activations == ActivationType::bf16 && peaks.bf16_operations_per_s > 0) return {"bf16", peaks.bf16_operations_per_s};
  return {"fp32", peaks.fp32_operations_per_s};
}

double generation_bound_s(const BenchRow& row) {
  const MachinePeaks peaks = row.peaks();
  const StageCost& attention = row.profile[Stage::MlaAttention].cost;
  return row.per_step(row.total_cost().bytes()) / peaks.read_bytes_per_s +
         row.per_step(attention.bf16_operations) / bf16_rate(peaks) +
         row.per_step(attention.fp32_operations) / peaks.fp32_operations_per_s;
}

double stage_bound_s(const StageCost& cost, const MachinePeaks& peaks) {
  return std::max(time_of(cost.bytes(), peaks.read_bytes_per_s),
                  time_of(cost.int8_operations, peaks.int8_operations_per_s) + time_of(cost.bf16_operations, bf16_rate(peaks)) +
                      time_of(cost.fp32_operations, peaks.fp32_operations_per_s));
}

}  // namespace kilin

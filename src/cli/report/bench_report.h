// What `kilin bench` says: tables for people, row by row as they are measured, and one object for programs.
#pragma once

#include <string>
#include <vector>

#include "inside/speed/bench.h"

namespace kilin::cli {

struct BenchReport {
  const Engine& engine;
  const BenchPlan& plan;
  double load_s = 0;
  double first_token_s = 0;  ///< from the start, loading included
  uint64_t probe_bytes = 0;  ///< of the probe's memory, which counts for nothing
  std::vector<BenchRow> rows = {};

  /// Peak resident memory so far, without the probe's.
  uint64_t peak_bytes() const;

  /// Everything, with units in the keys.
  std::string json() const;

  // The same in lines. A table's head comes before its first row; stages follow their row if the plan asks for them.
  std::string opening() const;
  std::string head(BenchRow::Work work) const;
  std::string line(const BenchRow& row) const;
  std::string stages(const BenchRow& row) const;
  std::string closing() const;

  ProductPeak product_peak(const BenchRow& row) const;
  /// Distinct routed experts that a step touched in a layer, on average; 0 without such layers.
  double experts_per_layer(const BenchRow& row) const;
};

}  // namespace kilin::cli

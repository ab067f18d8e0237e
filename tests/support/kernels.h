// What tests of kernels share: every form that this machine can run, and random matrices with ragged strides.
#pragma once

#include <string>
#include <vector>

#include "core/cpu_info.h"
#include "core/random.h"
#include "kernels/isa.h"
#include "kernels/kernel_table.h"

namespace kilin::testing {

struct Form {
  std::string name;
  const KernelTable& table;
};

/// One form for every instruction set that this CPU has.
inline std::vector<Form> isa_forms() {
  std::vector<Form> forms;
  for (Isa isa : kIsas)
    if (supports(CpuInfo::detect(), isa) && kernels_of(isa)) forms.push_back({std::string(to_string(isa)), *kernels_of(isa)});
  return forms;
}

/// The same and the naive form.
inline std::vector<Form> all_forms() {
  std::vector<Form> forms = isa_forms();
  forms.push_back({"naive", naive_kernels()});
  return forms;
}

/// Uniform in [low, high), by counter.
class Random {
 public:
  explicit Random(uint64_t seed) : seed_(seed) {}
  float operator()(float low = -1, float high = 1) {
    return low + (high - low) * static_cast<float>(random_uniform(seed_, counter_++));
  }
  std::vector<float> vector(size_t n, float low = -1, float high = 1) {
    std::vector<float> values(n);
    for (float& value : values) value = (*this)(low, high);
    return values;
  }

 private:
  uint64_t seed_;
  uint64_t counter_ = 0;
};

/// Owns a matrix whose rows start at odd places, with a mark in every gap.
class Matrix {
 public:
  Matrix(size_t rows, size_t cols, size_t gap = 3)
      : rows_(rows), cols_(cols), stride_(cols + gap), data_(1 + rows * stride_ + 16, kMark) {}
  Matrix(size_t rows, size_t cols, Random& random, float low = -1, float high = 1, size_t gap = 3) : Matrix(rows, cols, gap) {
    for (size_t r = 0; r < rows; ++r)
      for (size_t c = 0; c < cols; ++c) at(r, c) = random(low, high);
  }

  MatView<float> view() { return {data_.data() + 1, rows_, cols_, stride_}; }
  MatView<const float> view() const { return {data_.data() + 1, rows_, cols_, stride_}; }
  float& at(size_t r, size_t c) { return data_[1 + r * stride_ + c]; }
  float at(size_t r, size_t c) const { return data_[1 + r * stride_ + c]; }

  /// The elements without gaps.
  std::vector<float> values() const {
    std::vector<float> all;
    for (size_t r = 0; r < rows_; ++r) all.insert(all.end(), &data_[1 + r * stride_], &data_[1 + r * stride_] + cols_);
    return all;
  }
  /// Whether the gaps between the rows are unchanged.
  bool gaps_are_intact() const {
    for (size_t i = 0; i < data_.size(); ++i) {
      const bool inside = i >= 1 && i - 1 < rows_ * stride_ && (i - 1) % stride_ < cols_;
      if (!inside && data_[i] != kMark) return false;
    }
    return true;
  }

 private:
  static constexpr float kMark = 12345.5f;
  size_t rows_, cols_, stride_;
  std::vector<float> data_;
};

}  // namespace kilin::testing

// Tensors that a test makes up, and values for its inputs.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/tensor_store.h"
#include "core/dtype.h"
#include "core/random.h"

namespace kilin::testing {

/// Uniform in [-1, 1), by counter.
inline std::vector<float> made_up_values(size_t n, uint64_t seed) {
  std::vector<float> values(n);
  for (size_t i = 0; i < n; ++i) values[i] = static_cast<float>(2 * random_uniform(seed, i) - 1);
  return values;
}

class MadeUpWeights final : public TensorStore {
 public:
  /// @param matrices what the elements of matrices are stored as: f32 or bf16. All else is f32.
  explicit MadeUpWeights(DType matrices = DType::f32) : matrices_(matrices) {}

  /// Values around `centre`, not further from it than `spread`; which, depends on how many tensors there are already.
  void add(const std::string& name, const Shape& shape, double spread, double centre = 0) {
    std::vector<float> values = made_up_values(shape.elements(), tensors_.size() + 1);
    for (float& v : values) v = static_cast<float>(centre + spread * double{v});
    set(name, shape, std::move(values));
  }
  /// A matrix [out, in] of a linear layer: what comes out is about as large as what goes in.
  void add_linear(const std::string& name, size_t out, size_t in) {
    add(name, {out, in}, std::sqrt(3.0 / static_cast<double>(in)));
  }
  void set(const std::string& name, const Shape& shape, std::vector<float> values) {
    Entry entry = {shape, std::move(values), {}};
    if (shape.rank() == 2 && matrices_ == DType::bf16)
      for (float& v : entry.values) v = to_float(entry.halves.emplace_back(to_bf16(v)));
    if (!tensors_.contains(name)) names_.insert(std::ranges::upper_bound(names_, name), name);
    tensors_[name] = std::move(entry);
  }

  /// As they are stored.
  const std::vector<float>& values(const std::string& name) const { return tensors_.at(name).values; }
  const Shape& shape(const std::string& name) const { return tensors_.at(name).shape; }

  const std::vector<std::string>& names() const override { return names_; }
  const std::string& source() const override { return source_; }
  std::optional<StoredTensor> find(std::string_view name) const override {
    const auto found = tensors_.find(std::string(name));
    if (found == tensors_.end()) return std::nullopt;
    const Entry& entry = found->second;
    const bool rounded = !entry.halves.empty();
    return StoredTensor{std::string(name), rounded ? DType::bf16 : DType::f32, entry.shape,
                        rounded ? std::as_bytes(std::span(entry.halves)) : std::as_bytes(std::span(entry.values)), source_};
  }

 private:
  struct Entry {
    Shape shape;
    std::vector<float> values;
    std::vector<bf16> halves;
  };
  DType matrices_;
  std::vector<std::string> names_;
  std::map<std::string, Entry> tensors_;
  std::string source_ = "made up";
};

}  // namespace kilin::testing

// Compares every inner value, and the logits after each edit, with the reference (golden/inside): all elements if the whole
// golden set is there, else the samples in the repository.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "inside/trace/trace.h"
#include "support/golden.h"
#include "support/isas.h"
#include "support/npz.h"
#include "support/safetensors.h"

namespace kilin {
namespace {

// Some elements of an array, and the magnitude that tolerances are relative to.
struct Truth {
  float max = 0;
  std::map<size_t, float> elements;  // by place, flat
};

struct Reference {
  std::vector<int32_t> ids;
  std::map<std::string, Truth> arrays;
};

constexpr size_t kSampleStep = 7919;  // tools/make_golden_inside.py

// @param size_of gives the number of elements of the sampled array
Reference samples(const std::filesystem::path& file, const std::function<size_t(const std::string&)>& size_of) {
  Reference reference;
  for (const auto& [name, tensor] : testing::read_safetensors(file)) {
    if (name == "ids") {
      reference.ids = tensor.ints;
      continue;
    }
    Truth& truth = reference.arrays[name];
    truth.max = tensor.floats.front();
    for (size_t i = 1; i < tensor.floats.size(); ++i) truth.elements[(i - 1) * kSampleStep % size_of(name)] = tensor.floats[i];
  }
  return reference;
}

Reference whole(const std::filesystem::path& file) {
  Reference reference;
  for (const auto& [name, tensor] : testing::read_npz(file)) {
    if (name == "ids") {
      for (size_t i = 0; i < tensor.elements(); ++i) reference.ids.push_back(static_cast<int32_t>(tensor.as<int64_t>()[i]));
      continue;
    }
    Truth& truth = reference.arrays[name];
    for (size_t i = 0; i < tensor.elements(); ++i) {
      const float x = tensor.dtype() == DType::i32 ? static_cast<float>(tensor.as<int32_t>()[i]) : tensor.as<float>()[i];
      truth.elements[i] = x;
      if (std::isfinite(x)) truth.max = std::max(truth.max, std::fabs(x));
    }
  }
  return reference;
}

// The largest error relative to the truth's max; infinite for a NaN, a wrong infinity or too few elements.
double error_of(const Tensor& ours, const Truth& truth) {
  if (truth.elements.empty() || truth.elements.rbegin()->first >= ours.elements()) return INFINITY;
  double worst = 0;
  for (const auto& [i, expected] : truth.elements) {
    const float x = ours.dtype() == DType::i32 ? static_cast<float>(ours.as<int32_t>()[i]) : ours.as<float>()[i];
    if (x == expected) continue;  // an infinity too
    const double error = std::fabs(double{x} - double{expected}) / truth.max;
    worst = std::isnan(error) ? INFINITY : std::max(worst, error);
  }
  return worst;
}

void expect_close(const Tensor& ours, const Truth& truth, const std::string& name) {
  EXPECT_LE(error_of(ours, truth), 1e-5) << name;
}

// One prompt's value as a matrix of floats, rows by its first axis; the destructor writes it back.
class Rows {
 public:
  explicit Rows(const TensorView& view) : view_(view), copy_(copy_of(view)) {}
  ~Rows() { copy_elements(copy_.view(), view_); }
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;

  size_t rows() const { return view_.shape()[0]; }
  size_t row_floats() const { return copy_.elements() / rows(); }
  float* row(size_t r) const { return copy_.as<float>() + r * row_floats(); }
  std::span<float> all() const { return {copy_.as<float>(), copy_.elements()}; }

 private:
  TensorView view_;
  Tensor copy_;
};

using Change = std::function<void(TensorView)>;

Change each(const std::function<float(float)>& f) {
  return [f](TensorView v) {
    const Rows rows(v);
    for (float& x : rows.all()) x = f(x);
  };
}
Change times(float factor) {
  return each([factor](float x) { return factor * x; });
}
Change plus(float term) {
  return each([term](float x) { return x + term; });
}
void reverse_rows(TensorView v) {
  const Rows rows(v);
  for (size_t r = 0; r < rows.rows() / 2; ++r)
    std::swap_ranges(rows.row(r), rows.row(r) + rows.row_floats(), rows.row(rows.rows() - 1 - r));
}
void reverse_heads(TensorView v) {  // [T, heads, V]
  const size_t heads = v.shape()[1], width = v.shape()[2];
  const Rows rows(v);
  for (size_t r = 0; r < rows.rows(); ++r)
    for (size_t h = 0; h < heads / 2; ++h)
      std::swap_ranges(rows.row(r) + h * width, rows.row(r) + (h + 1) * width, rows.row(r) + (heads - 1 - h) * width);
}
void attend_evenly(TensorView v) {  // [heads, T, T]
  const size_t tokens = v.shape()[1];
  const Rows rows(v);
  for (size_t i = 0; i < rows.all().size(); ++i) {
    const size_t t = i / tokens % tokens, s = i % tokens;
    rows.all()[i] = s <= t ? 1.0f / static_cast<float>(t + 1) : 0.0f;
  }
}
void next_expert(TensorView v) {
  for (size_t t = 0; t < v.shape()[0]; ++t)
    for (size_t j = 0; j < v.shape()[1]; ++j) {
      int32_t& e = v.as<int32_t>()[t * v.stride(0) + j * v.stride(1)];
      e = (e + 1) % 16;
    }
}

// The edits that the reference made: golden/README.md.
const std::map<std::string, Change> kEdits = {{"token_embeddings", times(0.5f)},
                                              {"layers.0.attention_output", times(0)},
                                              {"layers.1.layer_output", plus(0.1f)},
                                              {"layers.1.mlp_output", times(-1)},
                                              {"layers.1.linear_attn.input", times(2)},
                                              {"layers.1.linear_attn.k_proj.output", times(-1)},
                                              {"layers.1.linear_attn.attention_keys", reverse_rows},
                                              {"layers.1.linear_attn.decays", times(0)},
                                              {"layers.1.linear_attn.betas", times(0.5f)},
                                              {"layers.1.linear_attn.attention_head_outputs", plus(0.01f)},
                                              {"layers.3.self_attn.attention_queries", times(3)},
                                              {"layers.3.self_attn.attention_keys", times(1.5f)},
                                              {"layers.3.self_attn.attention_scores", times(2)},
                                              {"layers.3.self_attn.attention_probabilities", attend_evenly},
                                              {"layers.3.self_attn.attention_head_outputs", reverse_heads},
                                              {"layers.1.mlp.router_logits", times(-1)},
                                              {"layers.1.mlp.expert_weights", times(0.25f)},
                                              {"layers.1.mlp.expert_indices", next_expert},
                                              {"layers.1.mlp.shared_expert_output", times(0)},
                                              {"norm", plus(0.1f)}};

class GoldenInside : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    ISA_OR_SKIP(GetParam());
    GOLDEN_OR_SKIP(checkpoint, "tiny-kimi-linear");
    engine_ = std::make_unique<Engine>(LoadedModel::load(checkpoint),
                                       EngineOptions{.threads = 2, .kernels = testing::kernels_for(GetParam())});
  }

  // Expects the values of a trace without edits to be those of `reference`, leaving out the results of edits.
  void expect_values(const Reference& reference, bool staged) {
    Trace trace(*engine_, {{reference.ids}});
    std::map<std::string, std::shared_ptr<const SavedValue>> saved;
    for (const OfferedValue& offered : support(block_kinds(engine_->config())))
      if (reference.arrays.contains(offered.name) && (staged || !offered.staged))
        saved[offered.name] = trace.save(offered.name);
    trace.run();
    for (const auto& [name, value] : saved) expect_close(value->of(0), reference.arrays.at(name), name);
    if (!staged) return;
    for (const auto& [name, truth] : reference.arrays) EXPECT_TRUE(saved.contains(name) || name.starts_with("edit:")) << name;
  }

  void expect_edits(const Reference& reference) {
    for (const auto& [name, change] : kEdits) {
      Trace trace(*engine_, {{reference.ids}});
      trace.edit(name, [&change = change](const TracedValue& value) { change(value.of(0)); });
      const auto logits = trace.save("logits");
      trace.run();
      expect_close(logits->of(0), reference.arrays.at("edit:" + name), "edit:" + name);
    }
  }

  // The number of elements of an array, from a trace that keeps it.
  size_t elements(const std::string& name, const std::vector<int32_t>& ids) {
    if (name.starts_with("edit:")) return ids.size() * engine_->config().vocab_size;
    if (!sizes_.contains(name)) {
      Trace trace(*engine_, {{ids}});
      std::map<std::string, std::shared_ptr<const SavedValue>> saved;
      for (const OfferedValue& offered : support(block_kinds(engine_->config())))
        saved[offered.name] = trace.save(offered.name);
      saved.erase("layers.0.linear_attn.state_input");
      trace.run();
      for (const auto& [of, value] : saved)
        if (value->has(0)) sizes_[of] = value->of(0).elements();
    }
    return sizes_.at(name);
  }

  std::unique_ptr<Engine> engine_;
  std::map<std::string, size_t> sizes_;
};
INSTANTIATE_TEST_SUITE_P(Tiny, GoldenInside, ::testing::ValuesIn(testing::isas()),
                         [](const auto& test) { return testing::name_in_tests(test.param); });

TEST(GoldenInsideComparison, SeesWhatIsWrong) {
  const Truth truth = {.max = 4, .elements = {{0, 1.0f}, {2, -INFINITY}}};
  const Tensor ours(DType::f32, {3});
  const auto error = [&](float first, float third) {
    ours.as<float>()[0] = first;
    ours.as<float>()[2] = third;
    return error_of(ours, truth);
  };
  EXPECT_EQ(error(1, -INFINITY), 0);
  EXPECT_EQ(error(1.5, -INFINITY), 0.125);
  EXPECT_EQ(error(1, 0), INFINITY);
  EXPECT_EQ(error(NAN, -INFINITY), INFINITY);
  EXPECT_EQ(error_of(Tensor(DType::f32, {2}), truth), INFINITY);
}

TEST_P(GoldenInside, SampledValuesAndEditsAreTheReferences) {
  const auto file = testing::in_repository("tests/golden/inside/T065_samples.safetensors");
  const std::vector<int32_t> ids = testing::read_safetensors(file).at("ids").ints;
  const Reference reference = samples(file, [&](const std::string& name) { return elements(name, ids); });
  EXPECT_EQ(reference.arrays.size(), 185u);
  expect_values(reference, true);
  expect_edits(reference);
}

TEST_P(GoldenInside, EveryValueIsTheReferences) {
  GOLDEN_OR_SKIP(file, "inside/T065.npz");
  const Reference reference = whole(file);
  expect_values(reference, true);
  expect_values(reference, false);
}

TEST_P(GoldenInside, LogitsAfterEveryEditAreTheReferences) {
  GOLDEN_OR_SKIP(file, "inside/T065.npz");
  expect_edits(whole(file));
}

}  // namespace
}  // namespace kilin

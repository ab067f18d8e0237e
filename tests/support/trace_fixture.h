// What tests of traces share.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/error.h"
#include "inside/trace/trace.h"
#include "support/compare.h"
#include "support/golden.h"
#include "support/ids.h"

namespace kilin::testing {

inline std::vector<float> floats(const Tensor& t) {
  std::vector<float> all(t.elements());
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = t.dtype() == DType::i32 ? static_cast<float>(t.as<int32_t>()[i]) : t.as<float>()[i];
  return all;
}

/// Changes each element of a value of floats.
inline TraceEdit each(std::function<float(float)> f) {
  return [f = std::move(f)](const TracedValue& value) {
    for (size_t n = 0; n < value.prompts(); ++n) {
      const Tensor copy = copy_of(value.of(n));
      for (size_t i = 0; i < copy.elements(); ++i) copy.as<float>()[i] = f(copy.as<float>()[i]);
      copy_elements(copy.view(), value.of(n));
    }
  };
}

/// models/tiny: layers 0 to 2 and 4 are KDA, 3 and 5 MLA; layer 0 is dense. One engine for all tests of a fixture.
class TraceTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    engine_ = std::make_unique<Engine>(LoadedModel::load(in_repository("models/tiny")), EngineOptions{.threads = 2});
  }
  static void TearDownTestSuite() { engine_.reset(); }
  static Engine& engine() { return *engine_; }

  using Saved = std::map<std::string, std::shared_ptr<const SavedValue>>;
  /// Keeps values of one run.
  static Saved run(const std::vector<TracePrompt>& prompts, const std::vector<std::string>& names) {
    Trace trace(engine(), prompts);
    Saved saved;
    for (const std::string& name : names) saved[name] = trace.save(name);
    trace.run();
    return saved;
  }

  static std::vector<float> plain_logits(const std::vector<int32_t>& ids) {
    std::vector<float> all;
    engine().logits(ids, [&](size_t, MatView<const float> rows) {
      for (size_t r = 0; r < rows.rows(); ++r) all.insert(all.end(), rows[r].begin(), rows[r].end());
    });
    return all;
  }

  static std::string message_of(ErrorCode code, const std::function<void()>& f) {
    try {
      f();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      return error.what();
    }
    ADD_FAILURE() << "nothing was thrown";
    return "";
  }

  /// The values offered by some layers, one of each kind, and by the model.
  static std::vector<OfferedValue> offered(const std::vector<int>& layers) {
    std::vector<OfferedValue> some = support(block_kinds(engine().config()));
    std::erase_if(some, [&](const OfferedValue& o) {
      return o.site.layer != Site::kModel && std::find(layers.begin(), layers.end(), o.site.layer) == layers.end();
    });
    return some;
  }

 private:
  static inline std::unique_ptr<Engine> engine_;
};

}  // namespace kilin::testing

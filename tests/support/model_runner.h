// A model with its pools, run batch by batch: the lowest level at which tests can run a forward pass.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "core/thread_pool.h"
#include "model/dry_run.h"
#include "model/kimi_linear_for_causal_lm.h"

namespace kilin::testing {

struct RunnerOptions {
  size_t threads = 2;
  KvType kv_type = KvType::f32;
  ActivationType activations = ActivationType::f32;
  KernelChoice kernels = KernelChoice::from_environment();
  size_t max_tokens = 1024;  // of a batch
  size_t slots = 8;
  std::optional<QuantType> quantize = {};  // its weights at load
};

struct TestSequence {
  StateHandle state;
  PageTable pages;
  size_t tokens = 0;
};

/// One sequence's part of a batch.
struct Part {
  TestSequence* sequence;
  ForwardMode mode;
  std::vector<int32_t> ids;
  std::vector<SnapshotRequest> snapshots = {};
};

class ModelRunner {
 public:
  explicit ModelRunner(const std::filesystem::path& folder, const RunnerOptions& options = {})
      : ModelRunner(Checkpoint::open(folder), ModelConfig::read(folder), options) {}

  ModelRunner(std::shared_ptr<const TensorStore> weights, const ModelConfig& config, const RunnerOptions& options = {})
      : config_(config),
        source_(WeightSource::open(std::move(weights), config_, packing(options))),
        model_(KimiLinearForCausalLM::load(source_, config_)),
        activations_(options.activations),
        pool_(options.threads),
        kernels_(select_kernels(CpuInfo::detect(), options.kernels)),
        workspace_(workspace_bytes(
            model_, {.tokens = options.max_tokens, .logit_rows = options.max_tokens, .threads = options.threads})),
        pools_{RecurrentStatePool(model_.state_dimensions(), options.slots),
               LatentKvPool(model_.latent_dimensions(options.kv_type), 64)} {}

  TestSequence fresh() { return {pools_.states.acquire(), PageTable(pools_.latents), 0}; }

  /// A batch with everything that a step needs, so that a test can count or measure the step alone.
  struct Step {
    std::vector<int32_t> ids;
    std::vector<size_t> cu_seqlens = {0};
    std::vector<SequenceSpan> spans;
    std::vector<uint32_t> rows;  // all of them
    std::vector<float> hidden, logits;
  };

  Step prepare(const std::vector<Part>& parts) {
    Step step;
    for (const Part& part : parts) {
      part.sequence->pages.grow(part.sequence->tokens + part.ids.size());
      step.ids.insert(step.ids.end(), part.ids.begin(), part.ids.end());
      step.cu_seqlens.push_back(step.ids.size());
      step.spans.push_back(
          {part.mode, part.sequence->tokens, part.sequence->state.slot(), part.sequence->pages.pages(), part.snapshots});
    }
    for (size_t i = 0; i < step.ids.size(); ++i) step.rows.push_back(static_cast<uint32_t>(i));
    step.hidden.resize(step.ids.size() * config_.hidden_size);
    step.logits.resize(step.ids.size() * config_.vocab_size);
    return step;
  }

  void run(Step& step, Taps* taps = nullptr) {
    const ForwardBatch batch = {step.ids, step.cu_seqlens, step.spans, step.rows, &pools_};
    const MatView<float> hidden(step.hidden.data(), step.ids.size(), config_.hidden_size);
    ExecContext ctx = context(taps);
    model_.forward(ctx, batch, hidden);
    model_.logits(ctx, hidden, {step.logits.data(), step.ids.size(), config_.vocab_size});
  }

  /// Logits [T, vocab] of all rows of the batch, the parts in turn. Sequences move on.
  std::vector<float> run(const std::vector<Part>& parts, Taps* taps = nullptr) {
    Step step = prepare(parts);
    run(step, taps);
    for (const Part& part : parts) part.sequence->tokens += part.ids.size();
    return std::move(step.logits);
  }

  /// A whole prompt in one Extend.
  std::vector<float> prefill(const std::vector<int32_t>& ids, Taps* taps = nullptr) {
    TestSequence sequence = fresh();
    return run({{&sequence, ForwardMode::Extend, ids}}, taps);
  }

  /// Another sequence with the same memory.
  TestSequence copy_of(const TestSequence& sequence) {
    TestSequence copy = fresh();
    pools_.states.restore(copy.state.slot(), pools_.states.snapshot(sequence.state.slot()));
    copy.pages.grow(sequence.tokens);
    copy.tokens = sequence.tokens;
    const auto& [layers, width, type] = pools_.latents.dimensions();
    std::vector<float> latents(sequence.tokens * width);
    for (size_t layer = 0; layer < layers; ++layer) {
      pools_.latents.read(layer, sequence.pages.pages(), 0, {latents.data(), sequence.tokens, width});
      pools_.latents.write(layer, copy.pages.pages(), 0, {latents.data(), sequence.tokens, width});
    }
    return copy;
  }

  /// Everything that the pools hold for a sequence: its slot (states and convolution tails), then its tokens' latents by layer.
  std::vector<float> memory_of(const TestSequence& sequence) {
    std::vector<float> all = pools_.states.snapshot(sequence.state.slot()).values;
    const auto& [layers, width, type] = pools_.latents.dimensions();
    for (size_t layer = 0; layer < layers; ++layer) {
      std::vector<float> latents(sequence.tokens * width);
      pools_.latents.read(layer, sequence.pages.pages(), 0, {latents.data(), sequence.tokens, width});
      all.insert(all.end(), latents.begin(), latents.end());
    }
    return all;
  }

  /// Adds up all later runs in `profile`.
  void set_profile(StageProfile* profile) { profile_ = profile; }

  ExecContext context(Taps* taps = nullptr) {
    return {pool_, kernels_, communicator_, workspace_, taps, activations_, profile_};
  }
  const ModelConfig& config() const { return config_; }
  KimiLinearForCausalLM& model() { return model_; }
  MemoryPools& pools() { return pools_; }
  Workspace& workspace() { return workspace_; }

 private:
  static PackOptions packing(const RunnerOptions& options) {
    PackOptions packing;
    packing.quantize = options.quantize;
    return packing;
  }

  ModelConfig config_;
  WeightSource source_;
  KimiLinearForCausalLM model_;
  ActivationType activations_;
  ThreadPool pool_;
  KernelTable kernels_;
  LocalCommunicator communicator_;
  Workspace workspace_;
  MemoryPools pools_;
  StageProfile* profile_ = nullptr;
};

}  // namespace kilin::testing

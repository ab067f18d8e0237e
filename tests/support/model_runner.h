// A model with its pools, run batch by batch: the lowest door that tests of the forward pass can use.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "core/thread_pool.h"
#include "model/kimi_linear_for_causal_lm.h"

namespace kilin::testing {

struct RunnerOptions {
  size_t threads = 2;
  KvType kv_type = KvType::f32;
  ActivationType activations = ActivationType::f32;
  KernelChoice kernels = KernelChoice::from_environment();
  size_t max_tokens = 1024;  // of a batch
  size_t slots = 8;
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
      : config_(ModelConfig::read(folder)),
        source_(WeightSource::open(Checkpoint::open(folder), config_)),
        model_(KimiLinearForCausalLM::load(source_, config_)),
        activations_(options.activations),
        pool_(options.threads),
        kernels_(select_kernels(CpuInfo::detect(), options.kernels)),
        workspace_(model_.workspace_bytes(options.max_tokens, options.max_tokens, options.threads)),
        pools_{RecurrentStatePool(model_.state_dimensions(), options.slots),
               LatentKvPool(model_.latent_dimensions(options.kv_type), 64)} {}

  TestSequence fresh() { return {pools_.states.acquire(), PageTable(pools_.latents), 0}; }

  /// Logits [T, vocab] of all rows of the batch, the parts in turn. Sequences move on.
  std::vector<float> run(const std::vector<Part>& parts, Taps* taps = nullptr) {
    std::vector<int32_t> ids;
    std::vector<size_t> cu_seqlens = {0};
    std::vector<SequenceSpan> spans;
    for (const Part& part : parts) {
      part.sequence->pages.grow(part.sequence->tokens + part.ids.size());
      ids.insert(ids.end(), part.ids.begin(), part.ids.end());
      cu_seqlens.push_back(ids.size());
      spans.push_back(
          {part.mode, part.sequence->tokens, part.sequence->state.slot(), part.sequence->pages.pages(), part.snapshots});
    }
    std::vector<uint32_t> rows(ids.size());
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<uint32_t>(i);
    const ForwardBatch batch = {ids, cu_seqlens, spans, rows, &pools_};

    ExecContext ctx = context(taps);
    std::vector<float> hidden(ids.size() * config_.hidden_size), logits(ids.size() * config_.vocab_size);
    model_.forward(ctx, batch, {hidden.data(), ids.size(), config_.hidden_size});
    model_.logits(ctx, {hidden.data(), ids.size(), config_.hidden_size}, {logits.data(), ids.size(), config_.vocab_size});
    for (const Part& part : parts) part.sequence->tokens += part.ids.size();
    return logits;
  }

  /// A whole prompt in one Extend.
  std::vector<float> prefill(const std::vector<int32_t>& ids, Taps* taps = nullptr) {
    TestSequence sequence = fresh();
    return run({{&sequence, ForwardMode::Extend, ids}}, taps);
  }

  ExecContext context(Taps* taps = nullptr) { return {pool_, kernels_, communicator_, workspace_, taps, activations_}; }
  const ModelConfig& config() const { return config_; }
  KimiLinearForCausalLM& model() { return model_; }
  MemoryPools& pools() { return pools_; }
  Workspace& workspace() { return workspace_; }

 private:
  ModelConfig config_;
  WeightSource source_;
  KimiLinearForCausalLM model_;
  ActivationType activations_;
  ThreadPool pool_;
  KernelTable kernels_;
  LocalCommunicator communicator_;
  Workspace workspace_;
  MemoryPools pools_;
};

}  // namespace kilin::testing

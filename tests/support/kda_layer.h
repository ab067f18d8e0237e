// One layer of Kimi Delta Attention with its states, run without a model around it.
#pragma once

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "model/dry_run.h"
#include "model/kda_backend.h"
#include "model/kimi_delta_attention.h"

namespace kilin::testing {

inline ModelConfig kda_config(size_t hidden, size_t heads, size_t head_dim) {
  ModelConfig c;
  c.num_hidden_layers = 1;
  c.attention_kinds = {AttentionKind::Kda};
  c.feed_forward_kinds = {FeedForwardKind::Dense};
  c.hidden_size = hidden;
  c.kda_num_heads = heads;
  c.kda_head_dim = head_dim;
  c.short_conv_kernel_size = 4;
  c.rms_norm_eps = 1e-5;
  return c;
}

// What the layer loads, by its own names: "q_proj.weight".
inline std::vector<ExpectedTensor> kda_tensors(const ModelConfig& config) {
  constexpr std::string_view kPrefix = "model.layers.0.self_attn.";
  std::vector<ExpectedTensor> tensors;
  for (ExpectedTensor& tensor : expected_tensors_of_layer(config, 0)) {
    if (!tensor.name.starts_with(kPrefix)) continue;
    tensor.name.erase(0, kPrefix.size());
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

// A layer with its states, ready to run.
struct KdaLayer {
  using Floats = std::vector<float>;

  KdaLayer(const TensorStore& store, const ModelConfig& config, size_t sequences,
           ActivationType activations = ActivationType::f32, const KernelChoice& choice = KernelChoice::from_environment())
      : source(
            WeightSource::of_tensors(std::shared_ptr<const TensorStore>(std::shared_ptr<void>(), &store), kda_tensors(config))),
        attention(KimiDeltaAttention::load(source, "", config, 0, 0)),
        kernels(select_kernels(CpuInfo::detect(), choice)),
        pools{RecurrentStatePool({.layers = 1,
                                  .heads = config.kda_num_heads,
                                  .key_dim = config.kda_head_dim,
                                  .value_dim = config.kda_head_dim,
                                  .conv_rows = 3,
                                  .conv_cols = 3 * config.kda_width()},
                                 sequences),
              LatentKvPool({.layers = 0, .width = 1, .type = KvType::f32}, 0)},
        activation_type(activations) {
    for (size_t n = 0; n < sequences; ++n) handles.push_back(pools.states.acquire());
  }

  Floats run(const Floats& x, size_t hidden, const std::vector<size_t>& cu_seqlens, ForwardMode mode, size_t start = 0,
             Taps* taps = nullptr) {
    const size_t tokens = x.size() / hidden;
    std::vector<SequenceSpan> spans;
    for (const StateHandle& handle : handles)
      spans.push_back({.mode = mode, .start = start, .state_slot = handle.slot(), .pages = {}});
    const std::vector<int32_t> ids(tokens);
    const ForwardBatch batch = {ids, cu_seqlens, spans, {}, &pools};
    Floats out(x.size());
    const auto forward = [&](ExecContext& ctx) {
      attention.forward(ctx, backend, batch, {x.data(), tokens, hidden}, {out.data(), tokens, hidden});
    };
    Workspace workspace(dry_run(threads.size(), activation_type, forward));
    ExecContext ctx = {threads, kernels, communicator, workspace, taps, activation_type};
    forward(ctx);
    return out;
  }

  WeightSource source;
  KimiDeltaAttention attention;
  KernelTable kernels;
  ThreadPool threads{2};
  LocalCommunicator communicator;
  KdaBackend backend;
  MemoryPools pools;
  std::vector<StateHandle> handles;
  ActivationType activation_type;
};

}  // namespace kilin::testing

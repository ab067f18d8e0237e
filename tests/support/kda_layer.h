// One layer of Kimi Delta Attention with its states, run without a model around it.
#pragma once

#include <vector>

#include "model/kda_backend.h"
#include "model/kimi_delta_attention.h"
#include "support/layer_bench.h"

namespace kilin::testing {

inline ModelConfig kda_config(size_t hidden, size_t heads, size_t head_dim) {
  ModelConfig c;
  c.hidden_size = hidden;
  c.kda_num_heads = heads;
  c.kda_head_dim = head_dim;
  c.short_conv_kernel_size = 4;
  c.rms_norm_eps = 1e-5;
  return c;
}

// A layer with its states, ready to run.
struct KdaLayer : LayerBench {
  KdaLayer(const TensorStore& store, const ModelConfig& config, size_t sequences, const LayerOptions& options = {})
      : LayerBench(config, sequences, 0, options),
        source(source_of(store)),
        attention(KimiDeltaAttention::load(source, "", config, 0, 0)) {}

  Floats run_spans(const Floats& x, const std::vector<size_t>& cu_seqlens, const std::vector<SequenceSpan>& sequences,
                   Taps* taps = nullptr) {
    const auto forward = [&](auto& ctx, auto& batch, auto in, auto out) { attention.forward(ctx, backend, batch, in, out); };
    return LayerBench::run(x, cu_seqlens, sequences, forward, taps);
  }
  Floats run(const Floats& x, const std::vector<size_t>& cu_seqlens, ForwardMode mode, size_t start = 0, Taps* taps = nullptr) {
    return run_spans(x, cu_seqlens, spans(mode, start), taps);
  }

  WeightSource source;
  KimiDeltaAttention attention;
  KdaBackend backend;
};

}  // namespace kilin::testing

// One layer of latent attention with its pages, run without a model around it.
#pragma once

#include <vector>

#include "model/kimi_mla_attention.h"
#include "support/layer_bench.h"

namespace kilin::testing {

struct MlaShape {
  size_t hidden, heads, rank, nope, rope, value;
};

inline ModelConfig mla_config(const MlaShape& shape) {
  ModelConfig c;
  c.hidden_size = shape.hidden;
  c.num_attention_heads = shape.heads;
  c.kv_lora_rank = shape.rank;
  c.qk_nope_head_dim = shape.nope;
  c.qk_rope_head_dim = shape.rope;
  c.v_head_dim = shape.value;
  c.rms_norm_eps = 1e-5;
  c.short_conv_kernel_size = 1;
  return c;
}

// A layer with pages for `positions` of each sequence, ready to run.
struct MlaLayer : LayerBench {
  MlaLayer(const TensorStore& store, const ModelConfig& config, size_t sequences, size_t positions,
           const LayerOptions& options = {})
      : LayerBench(config, sequences, positions, options),
        source(source_of(store)),
        attention(KimiMlaAttention::load(source, "", config, 0, 0)) {}

  Floats run_spans(const Floats& x, const std::vector<size_t>& cu_seqlens, const std::vector<SequenceSpan>& sequences,
                   Taps* taps = nullptr) {
    const auto forward = [&](auto& ctx, auto& batch, auto in, auto out) { attention.forward(ctx, batch, in, out); };
    return LayerBench::run(x, cu_seqlens, sequences, forward, taps);
  }
  Floats run(const Floats& x, const std::vector<size_t>& cu_seqlens, ForwardMode mode, size_t start = 0, Taps* taps = nullptr) {
    return run_spans(x, cu_seqlens, spans(mode, start), taps);
  }

  WeightSource source;
  KimiMlaAttention attention;
};

}  // namespace kilin::testing

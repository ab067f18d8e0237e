// The mixture of experts: a sigmoid router, top-k experts a token, and a shared expert that every token passes.
#pragma once

#include <vector>

#include "config/model_config.h"
#include "model/kimi_mlp.h"

namespace kilin {

class KimiMoe {
 public:
  /// @param prefix "model.layers.N.block_sparse_moe."
  static KimiMoe load(WeightSource& source, const std::string& prefix, const ModelConfig& config, int layer);

  /// x [T, hidden] -> out [T, hidden]. Ranks hold parts of the sum: the caller reduces.
  void forward(ExecContext& ctx, const ActivationRows& x, MatView<float> out) const;

 private:
  struct Expert {
    PackedMatrix w1, w3;  // gate, up [intermediate, hidden]
    PackedMatrix w2;      // down [hidden, intermediate]
  };
  struct Routing {
    MatView<int32_t> ids;    // [T, top_k] ascending
    MatView<float> weights;  // [T, top_k]
  };
  /// Up to 64 neighbouring rows of one expert, once rows are sorted by expert.
  struct RowBlock {
    uint32_t expert;
    uint32_t begin, end;
    uint32_t first, count;  // the blocks of this expert
  };
  /// Rows sorted by expert.
  struct Dispatch {
    std::span<uint32_t> token_of;  // [T x top_k] sorted row -> token
    MatView<uint32_t> sorted_row;  // [T, top_k]  a token's row for each of its experts
    std::span<RowBlock> blocks;
  };

  void check_ids(MatView<const int32_t> ids) const;
  Dispatch sort_by_expert(ExecContext& ctx, Workspace::Frame& frame, MatView<const int32_t> ids) const;
  void sort(MatView<const int32_t> ids, std::span<uint32_t> next, Dispatch& dispatch) const;
  ProductRows gather(ExecContext& ctx, Workspace::Frame& frame, const Dispatch& dispatch, const ProductRows& x) const;
  void count_experts(ExecContext& ctx, const Dispatch& dispatch, const ProductRows& x) const;
  void run_experts(ExecContext& ctx, const Dispatch& dispatch, const ActivationRows& x, MatView<float> expert_out) const;
  void sum_experts(ExecContext& ctx, const Dispatch& dispatch, const Routing& routing, MatView<const float> expert_out,
                   MatView<float> out) const;
  void sum_shown_experts(ExecContext& ctx, const Dispatch& dispatch, const Routing& routing, MatView<const float> expert_out,
                         MatView<float> out) const;

  ExactLinear gate_;                // [experts, hidden], fp32 arithmetic
  Tensor e_score_correction_bias_;  // [experts]: for the selection only
  std::vector<Expert> experts_;
  ActivationType rounding_ =
      ActivationType::f32;  // what inputs of the experts are rounded to: fp32 unless all their matrices agree
  KimiMlp shared_experts_;
  RouteParams route_{};
  size_t hidden_ = 0, intermediate_ = 0;
  int layer_ = 0;
};

}  // namespace kilin

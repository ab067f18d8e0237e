// The router of the mixture of experts: scores in vectors, the choice as in kernels/choose_experts.h.

struct RouterScores {
  const float* logits;
  const float* bias;
  float* score;
  float* choice;
  void operator()(size_t i, size_t n) const {
    const Vec s = sigmoid(load_up_to(logits + i, n));
    store_up_to(score + i, s, n);
    store_up_to(choice + i, s + load_up_to(bias + i, n), n);
  }
};

void route(MatView<const float> logits, const float* bias, const RouteParams& params, MatView<int32_t> ids,
           MatView<float> weights) noexcept {
  const size_t experts = logits.cols();
  assert(experts <= kMaxExperts && params.top_k <= experts);
  float score[kMaxExperts], choice[kMaxExperts];
  for (size_t t = 0; t < logits.rows(); ++t) {
    for_each_vector(experts, RouterScores{logits.row(t), bias, score, choice});
    choose_experts(choice, experts, params, ids.row(t));

    float sum = 0;
    for (size_t slot = 0; slot < params.top_k; ++slot) {
      weights.row(t)[slot] = score[ids.row(t)[slot]];
      sum += weights.row(t)[slot];
    }
    for (size_t slot = 0; slot < params.top_k; ++slot) {
      float& weight = weights.row(t)[slot];
      if (params.renormalize) weight /= sum + 1e-20f;
      weight *= params.scale;
    }
  }
}

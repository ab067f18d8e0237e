#include "model/staged_mla.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "model/ops.h"

namespace kilin {

namespace {

// One sequence's attention: Q rows of this step, K tokens so far.
struct Attention {
  size_t begin = 0, rows = 0, keys = 0;
  Tensor latents = {};    // [K, rank + rope]
  Tensor kv = {};         // [K, heads x (nope + value)]
  Tensor k = {}, v = {};  // [heads, K, nope + rope], [heads, K, value]
  Tensor scores = {};     // [heads, Q, K]; then the probabilities
};

MatView<float> head(const Tensor& t, size_t h) {
  const size_t rows = t.shape()[1], cols = t.shape()[2];
  return {t.as<float>() + h * rows * cols, rows, cols};
}
PackedMatrix as_weight(MatView<float> m) { return {DType::f32, m.rows(), m.cols(), m.data()}; }

class StagedMla {
 public:
  StagedMla(ExecContext& ctx, const ForwardBatch& batch, const MlaParameters& p) : ctx_(ctx), batch_(batch), p_(p) {
    for (size_t n = 0; n < batch.sequences.size(); ++n) {
      const size_t rows = batch.tokens_of(n);
      all_.push_back({.begin = batch.cu_seqlens[n], .rows = rows, .keys = rows == 0 ? 0 : batch.sequences[n].start + rows});
    }
  }

  void decompress() {
    for (size_t n = 0; n < all_.size(); ++n) {
      Attention& a = all_[n];
      if (a.rows == 0) continue;
      a.latents = Tensor(DType::f32, {a.keys, p_.latent_width()});
      a.kv = Tensor(DType::f32, {a.keys, p_.kv_b_proj.rows()});
      batch_.pools->latents.read(p_.latent_layer, batch_.sequences[n].pages, 0, a.latents.matrix());
      matmul(ctx_, {{p_.kv_b_proj, MatView<const float>(a.latents.matrix().columns(0, p_.rank)), a.kv.matrix()}});
    }
    show(Value::KvBProj, &Attention::kv);
  }

  void expand() {
    for (Attention& a : all_) {
      if (a.rows == 0) continue;
      a.k = Tensor(DType::f32, {p_.heads, a.keys, p_.query_dim()});
      a.v = Tensor(DType::f32, {p_.heads, a.keys, p_.value});
    }
    for_each_head([&](const Attention& a, size_t h) {
      const MatView<float> latents = a.latents.matrix(), kv = a.kv.matrix(), k = head(a.k, h), v = head(a.v, h);
      for (size_t s = 0; s < a.keys; ++s) {
        const float* own = kv.row(s) + h * (p_.nope + p_.value);
        std::copy_n(own, p_.nope, k.row(s));
        std::copy_n(latents.row(s) + p_.rank, p_.rope, k.row(s) + p_.nope);  // shared by the heads
        std::copy_n(own + p_.nope, p_.value, v.row(s));
      }
    });
    show(Value::AttentionKeys, &Attention::k);
    show(Value::AttentionValues, &Attention::v);
  }

  void score(MatView<const float> q) {
    for (Attention& a : all_)
      if (a.rows > 0) a.scores = Tensor(DType::f32, {p_.heads, a.rows, a.keys});
    for_each_head([&](const Attention& a, size_t h) {
      const MatView<float> scores = head(a.scores, h);
      const auto own = q.rows(a.begin, a.begin + a.rows).columns(h * p_.query_dim(), (h + 1) * p_.query_dim());
      ctx_.kernels.matmul(as_weight(head(a.k, h)), own, 0, a.keys, scores);
      for (size_t r = 0; r < a.rows; ++r) {
        const size_t seen = a.keys - a.rows + r + 1;
        for (size_t s = 0; s < a.keys; ++s)
          scores[r][s] = s < seen ? scores[r][s] * p_.scale : -std::numeric_limits<float>::infinity();
      }
    });
    show(Value::AttentionScores, &Attention::scores);
  }

  void weigh() {
    for_each_head([&](const Attention& a, size_t h) {
      for (size_t r = 0; r < a.rows; ++r) softmax(ctx_.kernels, head(a.scores, h)[r], head(a.scores, h)[r]);
    });
    show(Value::AttentionProbabilities, &Attention::scores);
  }

  void sum(MatView<float> heads) {
    for_each_head([&](const Attention& a, size_t h) {
      ctx_.kernels.matmul_transposed(as_weight(head(a.v, h)), head(a.scores, h),
                                     heads.rows(a.begin, a.begin + a.rows).columns(h * p_.value, (h + 1) * p_.value));
    });
  }

 private:
  void show(Value value, Tensor Attention::*part) {
    if (!ctx_.wants(value, p_.layer)) return;
    std::vector<TensorView> parts(all_.size());
    for (size_t n = 0; n < all_.size(); ++n)
      if (all_[n].rows > 0) parts[n] = (all_[n].*part).view();
    ctx_.taps->at_sequences({value, p_.layer}, parts);
  }

  template <typename F>
  void for_each_head(F&& f) {
    ctx_.pool.parallel_for(all_.size() * p_.heads, 1, [&](const Slice& s) {
      for (size_t i = s.begin; i < s.end; ++i)
        if (all_[i / p_.heads].rows > 0) f(all_[i / p_.heads], i % p_.heads);
    });
  }

  ExecContext& ctx_;
  const ForwardBatch& batch_;
  const MlaParameters& p_;
  std::vector<Attention> all_;
};

}  // namespace

bool wants_staged_mla(const ExecContext& ctx, int layer) {
  if (ctx.taps == nullptr) return false;
  for (size_t i = 0; i < kValues; ++i) {
    const auto value = static_cast<Value>(i);
    const bool is_attentions = value_info(value).owner == Owner::Attention;
    if (is_attentions && is_staged(value, {.attention = BlockKind::Attention::Mla}) && ctx.wants(value, layer)) return true;
  }
  return false;
}

void staged_mla(ExecContext& ctx, const ForwardBatch& batch, const MlaParameters& p, MatView<const float> q,
                MatView<float> heads) {
  StagedMla attention(ctx, batch, p);
  attention.decompress();
  attention.expand();
  attention.score(q);
  attention.weigh();
  attention.sum(heads);
}

}  // namespace kilin

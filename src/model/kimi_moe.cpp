#include "model/kimi_moe.h"

#include <algorithm>

#include "core/error.h"

namespace kilin {

namespace {

constexpr size_t kBlockRows = 64;  // sorted rows a tile

size_t max_blocks(size_t rows, size_t experts) { return rows / kBlockRows + std::min(rows, experts); }

}  // namespace

KimiMoe KimiMoe::load(WeightSource& source, const std::string& prefix, const ModelConfig& c, int layer) {
  KimiMoe m;
  m.hidden_ = c.hidden_size;
  m.intermediate_ = c.moe_intermediate_size;
  m.layer_ = layer;
  m.route_ = {.top_k = c.num_experts_per_token,
              .groups = c.num_expert_group,
              .top_groups = c.topk_group,
              .renormalize = c.moe_renormalize,
              .scale = static_cast<float>(c.routed_scaling_factor)};
  m.gate_ = ExactLinear::load(source, prefix + "gate.weight");
  m.e_score_correction_bias_ = source.parameter(prefix + "gate.e_score_correction_bias");
  for (size_t e = 0; e < c.num_experts; ++e) {
    const std::string expert = prefix + "experts." + std::to_string(e) + ".";
    m.experts_.push_back({.w1 = source.matrix(expert + "w1.weight"),
                          .w3 = source.matrix(expert + "w3.weight"),
                          .w2 = source.matrix(expert + "w2.weight")});
  }
  m.rounding_ = rounding_of(m.experts_.front().w1);
  for (const Expert& e : m.experts_)
    for (const PackedMatrix* w : {&e.w1, &e.w3, &e.w2})
      if (rounding_of(*w) != m.rounding_) m.rounding_ = ActivationType::f32;
  m.shared_experts_ = KimiMlp::load(source, prefix + "shared_experts.",
                                    {.layer = layer, .gate = Value::SharedGateProj, .up = Value::SharedUpProj});
  return m;
}

void KimiMoe::forward(ExecContext& ctx, const ActivationRows& x, MatView<float> out) const {
  Workspace::Frame frame(ctx.workspace);
  const size_t tokens = x.exact().rows(), top_k = route_.top_k;
  auto logits = frame.matrix(tokens, experts_.size());
  const Routing routing = {.ids = frame.matrix<int32_t>(tokens, top_k), .weights = frame.matrix(tokens, top_k)};
  auto expert_out = frame.matrix(tokens * top_k, hidden_);  // sorted by expert, not yet weighted
  auto shared = frame.matrix(tokens, hidden_);

  StageScope stage = ctx.stage(Stage::Router);
  gate_.apply(ctx, x, logits);
  ctx.tap(Value::RouterLogits, layer_, logits);
  ctx.pool.parallel_for(tokens, grain(experts_.size() * 16), [&](const Slice& s) {
    ctx.kernels.route(logits.rows(s.begin, s.end), e_score_correction_bias_.as<const float>(), route_,
                      routing.ids.rows(s.begin, s.end), routing.weights.rows(s.begin, s.end));
  });
  ctx.tap(Value::ExpertIndices, layer_, routing.ids);
  if (ctx.taps != nullptr) check_ids(routing.ids);  // a tap may have written them
  ctx.tap(Value::ExpertWeights, layer_, routing.weights);

  const Dispatch dispatch = sort_by_expert(ctx, frame, routing.ids);
  stage.next(Stage::Experts);
  run_experts(ctx, dispatch, x, expert_out);
  if (ctx.wants(Value::ExpertOutputs, layer_))
    sum_shown_experts(ctx, dispatch, routing, expert_out, out);
  else
    sum_experts(ctx, dispatch, routing, expert_out, out);
  ctx.tap(Value::RoutedOutput, layer_, out);
  stage.next(Stage::SharedExpert);
  shared_experts_.forward(ctx, x, shared);
  ctx.tap(Value::SharedExpertOutput, layer_, shared);
  add(ctx, shared, out);  // not scaled
}

void KimiMoe::sum_experts(ExecContext& ctx, const Dispatch& dispatch, const Routing& routing, MatView<const float> expert_out,
                          MatView<float> out) const {
  ctx.pool.parallel_for(out.rows(), grain(route_.top_k * hidden_), [&](const Slice& s) {
    for (size_t t = s.begin; t < s.end; ++t) {
      std::ranges::fill(out[t], 0.0f);
      for (size_t j = 0; j < route_.top_k; ++j)  // ascending expert id (unless a tap changed it), in whatever order they ran
        ctx.kernels.add_scaled(expert_out.row(dispatch.sorted_row[t][j]), routing.weights[t][j], hidden_, out.row(t));
    }
  });
}

// The same in two stages, so that a tap sees each expert's weighted output in between. Rounds once more than the fused form.
void KimiMoe::sum_shown_experts(ExecContext& ctx, const Dispatch& dispatch, const Routing& routing,
                                MatView<const float> expert_out, MatView<float> out) const {
  const size_t tokens = out.rows(), top_k = route_.top_k;
  const Tensor weighted(DType::f32, {tokens, top_k, hidden_});
  const MatView<float> rows(weighted.as<float>(), tokens * top_k, hidden_);
  ctx.pool.parallel_for(tokens, grain(top_k * hidden_), [&](const Slice& s) {
    for (size_t t = s.begin; t < s.end; ++t)
      for (size_t j = 0; j < top_k; ++j)
        ctx.kernels.add_scaled(expert_out.row(dispatch.sorted_row[t][j]), routing.weights[t][j], hidden_,
                               rows.row(t * top_k + j));
  });
  ctx.taps->at({Value::ExpertOutputs, layer_}, weighted.view());
  ctx.pool.parallel_for(tokens, grain(top_k * hidden_), [&](const Slice& s) {
    for (size_t t = s.begin; t < s.end; ++t) {
      std::ranges::fill(out[t], 0.0f);
      for (size_t j = 0; j < top_k; ++j) ctx.kernels.add(rows.rows(t * top_k + j, t * top_k + j + 1), out.rows(t, t + 1));
    }
  });
}

void KimiMoe::check_ids(MatView<const int32_t> ids) const {
  for (size_t t = 0; t < ids.rows(); ++t)
    for (int32_t e : ids[t])
      if (e < 0 || static_cast<size_t>(e) >= experts_.size())
        raise(ErrorCode::InvalidArgument, "layers.{}.mlp.expert_indices: row {} holds {}; expected 0 to {}", layer_, t, e,
              experts_.size() - 1);
}

// Takes memory for as many blocks as there can be: how much a step takes must not depend on the router's choice.
KimiMoe::Dispatch KimiMoe::sort_by_expert(ExecContext& ctx, Workspace::Frame& frame, MatView<const int32_t> ids) const {
  const size_t rows = ids.rows() * ids.cols();
  Dispatch d = {.token_of = frame.array<uint32_t>(rows),
                .sorted_row = frame.matrix<uint32_t>(ids.rows(), ids.cols()),
                .blocks = frame.array<RowBlock>(max_blocks(rows, experts_.size()))};
  const std::span<uint32_t> next = frame.array<uint32_t>(experts_.size() + 1);
  ctx.pool.run_alone([&] { sort(ids, next, d); });
  return d;
}

// A counting sort: rows of one expert become neighbours, in order of token. `next`: where the next row of an expert goes.
void KimiMoe::sort(MatView<const int32_t> ids, std::span<uint32_t> next, Dispatch& d) const {
  std::ranges::fill(next, 0u);
  for (size_t t = 0; t < ids.rows(); ++t)
    for (int32_t e : ids[t]) ++next[static_cast<size_t>(e) + 1];
  size_t blocks = 0;
  for (size_t e = 0; e < experts_.size(); ++e) {
    const uint32_t begin = next[e], end = begin + next[e + 1];
    const auto first = static_cast<uint32_t>(blocks),
               count = static_cast<uint32_t>((end - begin + kBlockRows - 1) / kBlockRows);
    for (uint32_t row = begin; row < end; row += kBlockRows)
      d.blocks[blocks++] = {static_cast<uint32_t>(e), row, std::min<uint32_t>(row + kBlockRows, end), first, count};
    next[e + 1] = end;
  }
  for (size_t t = 0; t < ids.rows(); ++t)
    for (size_t j = 0; j < ids.cols(); ++j) {
      const uint32_t row = next[static_cast<size_t>(ids[t][j])]++;
      d.token_of[row] = static_cast<uint32_t>(t);
      d.sorted_row[t][j] = row;
    }
  d.blocks = d.blocks.first(blocks);
}

// The tokens' rows, sorted by expert.
ProductRows KimiMoe::gather(ExecContext& ctx, Workspace::Frame& frame, const Dispatch& d, const ProductRows& x) const {
  const size_t rows = d.token_of.size();
  const auto for_rows = [&](auto copy) {
    ctx.pool.parallel_for(rows, grain(hidden_ / 2), [&](const Slice& s) {  // a copy is half an operation
      for (size_t row = s.begin; row < s.end; ++row) copy(d.token_of[row], row);
    });
  };
  if (const auto* int8 = std::get_if<Int8Rows>(&x)) {
    const Int8Rows sorted = take_int8_rows(frame, rows, hidden_);
    for_rows([&](size_t token, size_t row) {
      std::ranges::copy(int8->values[token], sorted.values.row(row));
      std::ranges::copy(int8->scales[token], sorted.scales.row(row));
      std::ranges::copy(int8->sums[token], sorted.sums.row(row));
    });
    return sorted;
  }
  if (const auto* rounded = std::get_if<MatView<const bf16>>(&x)) {
    const MatView<bf16> sorted = take_bf16_rows(frame, rows, hidden_);
    for_rows([&](size_t token, size_t row) { std::ranges::copy((*rounded)[token], sorted.row(row)); });
    return MatView<const bf16>(sorted);
  }
  const MatView<float> sorted = frame.matrix(rows, hidden_);
  const auto& exact = std::get<MatView<const float>>(x);
  for_rows([&](size_t token, size_t row) { std::ranges::copy(exact[token], sorted.row(row)); });
  return MatView<const float>(sorted);
}

// An expert's weights are read once for all the rows that were sent to it.
void KimiMoe::count_experts(ExecContext& ctx, const Dispatch& d, const ProductRows& x) const {
  if (ctx.profile == nullptr) return;
  StageCost cost = cost_of_operations(x, 2 * d.token_of.size() * 3 * hidden_ * intermediate_);
  for (size_t i = 0; i < d.blocks.size(); ++i) {
    if (i > 0 && d.blocks[i].expert == d.blocks[i - 1].expert) continue;
    const Expert& e = experts_[d.blocks[i].expert];
    cost.weight_bytes += e.w1.bytes() + e.w3.bytes() + e.w2.bytes();
    ++cost.experts;
  }
  ctx.profile->add(cost);
}

void KimiMoe::run_experts(ExecContext& ctx, const Dispatch& d, const ActivationRows& x, MatView<float> expert_out) const {
  Workspace::Frame frame(ctx.workspace);
  const size_t rows = d.token_of.size();
  const ProductRows in = gather(ctx, frame, d, x.as(rounding_));
  count_experts(ctx, d, in);
  auto gate = frame.matrix(rows, intermediate_);
  auto up = frame.matrix(rows, intermediate_);
  const ActivationType rounding = rounding_ == ctx.activations ? rounding_ : ActivationType::f32;
  const auto rounded = take_bf16_rows(frame, rounding == ActivationType::bf16 ? rows : 0, intermediate_);

  const auto for_tiles = [&](size_t out_features, size_t in_features, auto tile) {
    const size_t columns = tile_columns(in_features, d.blocks.size() * out_features / ctx.pool.size());
    const size_t tiles = (out_features + columns - 1) / columns;
    ctx.pool.parallel_for(d.blocks.size() * tiles, 1, [&](const Slice& s) {
      for (size_t i = s.begin; i < s.end; ++i) {
        // An expert's tiles follow one another by columns, so that all its rows meet weights that are still in the cache.
        const RowBlock& any = d.blocks[i / tiles];
        const size_t of_expert = i - any.first * tiles;
        const RowBlock& block = d.blocks[any.first + of_expert % any.count];
        const size_t begin = of_expert / any.count * columns;
        tile(experts_[block.expert], block.begin, block.end, begin, std::min(begin + columns, out_features));
      }
    });
  };
  for_tiles(intermediate_, hidden_, [&](const Expert& e, size_t from, size_t to, size_t begin, size_t end) {
    matmul_tile(ctx.kernels, {e.w1, in, gate}, from, to, begin, end);
    matmul_tile(ctx.kernels, {e.w3, in, up}, from, to, begin, end);
    const MatView<float> h = gate.rows(from, to).columns(begin, end);
    ctx.kernels.silu_mul(h, up.rows(from, to).columns(begin, end), h);
    if (rounding == ActivationType::bf16) ctx.kernels.round_to_bf16(h, rounded.rows(from, to).columns(begin, end));
  });
  ProductRows h = MatView<const float>(gate);
  if (rounding == ActivationType::bf16) h = MatView<const bf16>(rounded);
  if (rounding == ActivationType::int8) {
    const Int8Rows int8 = take_int8_rows(frame, rows, intermediate_);
    quantize_rows(ctx, gate, int8);  // between the two: a scale is one of 256 columns, a tile may have fewer
    h = int8;
  }
  for_tiles(hidden_, intermediate_, [&](const Expert& e, size_t from, size_t to, size_t begin, size_t end) {
    matmul_tile(ctx.kernels, {e.w2, h, expert_out}, from, to, begin, end);
  });
}

}  // namespace kilin

#include "model/tapped_kda.h"

#include <vector>

namespace kilin {

namespace {

// Shows each sequence's state as [heads, K, V], and puts what taps have made of it back into the pool.
void show_states(ExecContext& ctx, const ForwardBatch& batch, Value value, const KdaLayerNumbers& numbers) {
  if (!ctx.wants(value, numbers.layer)) return;
  RecurrentStatePool& pool = batch.pools->states;
  const auto& d = pool.dimensions();
  std::vector<Tensor> states(batch.sequences.size());
  std::vector<TensorView> parts(batch.sequences.size());
  const auto for_each_head = [&](auto f) {
    for (size_t n = 0; n < states.size(); ++n)
      for (size_t h = 0; h < d.heads && !states[n].empty(); ++h)
        f(batch.sequences[n].state_slot, h,
          MatView<float>(states[n].as<float>() + h * d.key_dim * d.value_dim, d.key_dim, d.value_dim));
  };
  for (size_t n = 0; n < states.size(); ++n) {
    if (batch.tokens_of(n) == 0) continue;
    states[n] = Tensor(DType::f32, {d.heads, d.key_dim, d.value_dim});
    parts[n] = states[n].view();
  }
  for_each_head([&](StateSlot slot, size_t h, MatView<float> m) { pool.export_state(slot, numbers.state_layer, h, m); });
  ctx.taps->at_sequences({value, numbers.layer}, parts);
  for_each_head([&](StateSlot slot, size_t h, MatView<float> m) { pool.import_state(slot, numbers.state_layer, h, m); });
}

void show_conv_states(ExecContext& ctx, const ForwardBatch& batch, const KdaLayerNumbers& numbers) {
  if (!ctx.wants(Value::ConvState, numbers.layer)) return;
  std::vector<TensorView> parts(batch.sequences.size());
  for (size_t n = 0; n < parts.size(); ++n)
    if (batch.tokens_of(n) > 0)
      parts[n] = TensorView::of(batch.pools->states.conv_tail(batch.sequences[n].state_slot, numbers.state_layer));
  ctx.taps->at_sequences({Value::ConvState, numbers.layer}, parts);
}

// The recurrence token by token, each in its sequence's own mode. @returns [T, heads, K, V] the states after each
Tensor recur_by_token(const ForwardBatch& batch, size_t state_layer, const KdaParameters& p, const KdaStages& stages,
                      const KdaThreadMemory& memory) {
  const size_t d = p.head_dim;
  Tensor states(DType::f32, {batch.cu_seqlens.back(), p.heads, d, d});
  stages.for_each_head([&](size_t n, size_t h, size_t worker) {
    for (size_t t = batch.cu_seqlens[n]; t < batch.cu_seqlens[n + 1]; ++t) {
      stages.recur(stages.in_place(n, h, t, t + 1), memory.scratch_of(worker));
      batch.pools->states.export_state(batch.sequences[n].state_slot, state_layer, h,
                                       {states.as<float>() + (t * p.heads + h) * d * d, d, d});
    }
  });
  return states;
}

}  // namespace

void run_with_taps(ExecContext& ctx, const ForwardBatch& batch, const KdaLayerNumbers& numbers, const KdaParameters& p,
                   const KdaInputs& inputs, MatView<float> heads, const KdaThreadMemory& memory) {
  const KdaStages stages(ctx, batch, numbers.state_layer, p, inputs, heads);
  const size_t width = p.heads * p.head_dim;
  const int layer = numbers.layer;
  stages.for_each_head([&](size_t n, size_t h, size_t worker) {
    stages.copy_tails(n, h);
    stages.for_each_tile(n, [&](size_t begin, size_t end) {
      const KdaHeadTokens tokens = stages.in_tile(n, h, begin, end, memory.tile_of(worker));
      stages.convolve(tokens);
      stages.put_back(tokens);
    });
    stages.decay(stages.in_place(n, h));
  });
  ctx.tap_heads(Value::AttentionQueries, layer, inputs.qkv.columns(0, width), p.heads);
  ctx.tap_heads(Value::AttentionKeys, layer, inputs.qkv.columns(width, 2 * width), p.heads);
  ctx.tap_heads(Value::AttentionValues, layer, inputs.qkv.columns(2 * width, 3 * width), p.heads);
  ctx.tap_heads(Value::Decays, layer, inputs.f, p.heads);
  ctx.tap(Value::Betas, layer, inputs.b);
  show_states(ctx, batch, Value::StateInput, numbers);

  Tensor states;
  if (ctx.wants(Value::States, layer))
    states = recur_by_token(batch, numbers.state_layer, p, stages, memory);
  else
    stages.for_each_head(
        [&](size_t n, size_t h, size_t worker) { stages.recur(stages.in_place(n, h), memory.scratch_of(worker)); });
  if (!states.empty()) ctx.taps->at({Value::States, layer}, states.view());
  ctx.tap_heads(Value::AttentionHeadOutputs, layer, heads, p.heads);
  show_states(ctx, batch, Value::StateOutput, numbers);
  show_conv_states(ctx, batch, numbers);
  stages.for_each_head([&](size_t n, size_t h, size_t) { stages.normalize(stages.in_place(n, h)); });
  ctx.tap(Value::ONorm, layer, heads);
}

}  // namespace kilin

#include "engine/runner.h"

#include <algorithm>

#include "core/cpu_info.h"
#include "core/float_mode.h"
#include "core/tensor.h"
#include "model/ops.h"

namespace kilin {

Runner::Runner(const LoadedModel& model, const RunnerOptions& options)
    : model_(model.model),
      activations_(options.activations.value_or(model.has_panels() ? ActivationType::int8 : ActivationType::f32)),
      kv_type_(options.kv_type.value_or(activations_ == ActivationType::f32 ? KvType::f32 : KvType::bf16)),
      kernels_(select_kernels(CpuInfo::detect(), options.kernels)),
      pool_(options.threads == 0 ? usable_threads() : options.threads),
      sampler_(kernels_, model.config().vocab_size, pool_.size()) {
  draws_.reserve(kLogitRows);
}

ExecContext Runner::exec_context(Workspace& workspace, Taps* taps) {
  return {pool_, kernels_, communicator_, workspace, taps, activations_, profile_};
}

void Runner::set_profile(StageProfile* profile) {
  const FairLock lock(computing_);
  profile_ = profile;
}

void Runner::run(StepBatch& batch, MemoryPools& pools, Workspace& workspace, Taps* taps) {
  const FairLock lock(computing_);
  FloatModeGuard float_mode;
  ExecContext ctx = exec_context(workspace, taps);
  Workspace::Frame frame(workspace);
  if (taps != nullptr) taps->at({Value::InputIds}, {batch.token_ids_.data(), DType::i32, {batch.tokens()}});
  auto hidden = frame.matrix(batch.hidden_rows_.size(), model_.config().hidden_size);  // after the final norm
  model_.forward(ctx, batch.view(pools), hidden);
  const Tensor shown = show_logits(ctx, hidden);
  // Asked only now: a reader who held the logits may want these next.
  if (ctx.wants(Value::NextTokenProbs, Site::kModel)) show_probabilities(ctx, hidden, shown, batch);
  finish_rows(ctx, frame, hidden, shown, batch);
}

// Logits of all rows that passed the final norm, as a tap left them; none if nobody wants to see them.
Tensor Runner::show_logits(ExecContext& ctx, MatView<const float> hidden) {
  if (!ctx.wants(Value::Logits, Site::kModel)) return {};
  Tensor all(DType::f32, {hidden.rows(), model_.config().vocab_size});
  model_.logits(ctx, hidden, all.matrix());
  ctx.tap(Value::Logits, Site::kModel, all.matrix());
  return all;
}

// Of the spans' last rows.
void Runner::show_probabilities(ExecContext& ctx, MatView<const float> hidden, const Tensor& shown, const StepBatch& batch) {
  const size_t spans = batch.spans_.size(), vocab = model_.config().vocab_size;
  const Tensor rows(DType::f32, {spans, hidden.cols()}), logits(DType::f32, {spans, vocab});
  std::vector<TensorView> parts(spans);
  size_t n = 0;  // rows so far
  for (size_t span = 0; span < spans; ++span) {
    const size_t row = batch.hidden_row_of_last(span);
    if (row == StepBatch::kNoRow) continue;
    if (!shown.empty())
      std::ranges::copy(shown.matrix()[row], logits.matrix().row(n));
    else
      std::ranges::copy(hidden[row], rows.matrix().row(n));
    parts[span] = {logits.matrix().row(n++), DType::f32, {vocab}};
  }
  if (shown.empty()) model_.logits(ctx, rows.matrix().rows(0, n), logits.matrix().rows(0, n));
  for (size_t i = 0; i < n; ++i) softmax(kernels_, logits.matrix()[i], logits.matrix()[i]);
  ctx.taps->at_sequences({Value::NextTokenProbs, Site::kModel}, parts);
}

// Logits to those who want them, and draws. Some rows at a time: 2048 of the real vocabulary would be 1.3 GB.
void Runner::finish_rows(ExecContext& ctx, Workspace::Frame& frame, MatView<const float> hidden, const Tensor& shown,
                         StepBatch& batch) {
  const size_t wanted = batch.logit_rows_.size(), most = std::min(kLogitRows, wanted);
  auto block = frame.matrix(most, hidden.cols());  // the rows of `hidden` that want logits
  auto logits = frame.matrix(most, model_.config().vocab_size);
  size_t drawn = 0;
  for (size_t begin = 0; begin < wanted; begin += kLogitRows) {
    const auto rows = std::span(batch.logit_rows_).subspan(begin, std::min(kLogitRows, wanted - begin));
    if (!shown.empty()) {
      for (size_t r = 0; r < rows.size(); ++r) std::ranges::copy(shown.matrix()[rows[r].hidden], logits.row(r));
    } else {
      for (size_t r = 0; r < rows.size(); ++r) std::ranges::copy(hidden[rows[r].hidden], block.row(r));
      model_.logits(ctx, block.rows(0, rows.size()), logits.rows(0, rows.size()));
    }
    draws_.clear();
    for (size_t r = 0; r < rows.size();) {
      size_t end = r + 1;  // of the rows of one span
      while (end < rows.size() && rows[end].span == rows[r].span) ++end;
      const StepSpan& span = batch.spans_[rows[r].span];
      if (span.logits != nullptr) {
        const size_t row_of_span = batch.hidden_rows_[rows[r].hidden] - batch.cu_seqlens_[rows[r].span];
        (*span.logits)(span.sequence.tokens() + row_of_span, logits.rows(r, end));
      }
      if (rows[end - 1].draws)
        draws_.push_back(
            {.logits = logits[end - 1], .params = span.draw, .history = span.history, .position = span.history.size()});
      r = end;
    }
    const StageScope stage = ctx.stage(Stage::Sampling);
    sampler_.sample(pool_, draws_);
    for (const SampleRow& draw : draws_) batch.drawn_[drawn++] = draw.id;
  }
}

}  // namespace kilin

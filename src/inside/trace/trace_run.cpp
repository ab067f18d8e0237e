#include "inside/trace/trace_run.h"

#include <algorithm>

#include "core/error.h"
#include "core/float_mode.h"
#include "model/ops.h"

namespace kilin {

namespace {

// Leaves a pass of which nothing more is wanted.
struct NothingMoreIsWanted {};

MemoryPools pools_for(Engine& engine, std::span<const TracePrompt> prompts, const TraceOptions& options) {
  size_t pages = 0;
  for (const TracePrompt& prompt : prompts) pages += LatentKvPool::pages_for(prompt.ids.size() + options.new_tokens);
  const KimiLinearForCausalLM& model = engine.loaded().model;
  return {RecurrentStatePool(model.state_dimensions(), prompts.size()),
          LatentKvPool(model.latent_dimensions(engine.pools().latents.dimensions().type), pages)};
}

size_t workspace_for(Engine& engine, std::span<const TracePrompt> prompts) {
  size_t tokens = 0;
  for (const TracePrompt& prompt : prompts) tokens += prompt.ids.size();
  return engine.loaded().model.workspace_bytes(tokens, tokens, engine.threads());
}

class TraceRun final : public Taps {
 public:
  TraceRun(Engine& engine, std::span<const TracePrompt> prompts, const TraceOptions& options, TraceObserver& observer)
      : engine_(engine),
        model_(engine.loaded().model),
        prompts_(prompts),
        options_(options),
        observer_(observer),
        pools_(std::make_shared<MemoryPools>(pools_for(engine, prompts, options))),
        workspace_(workspace_for(engine, prompts)),
        sampler_(engine.kernels(), engine.config().vocab_size),
        ctx_(engine.exec_context(workspace_, this)),
        batch_(0, prompts.size()) {
    for (const TracePrompt& prompt : prompts) {
      sequences_.push_back({pools_, pools_->states.acquire(), PageTable(pools_->latents), {}});
      sequences_.back().pages.grow(prompt.ids.size() + options.new_tokens);
    }
    result_.output_ids.resize(prompts.size());
  }

  TraceResult run() {
    const size_t parts = prompts_.front().cuts.size() + 1, steps = parts + std::max<size_t>(options_.new_tokens, 1) - 1;
    try {
      for (step_ = 0; step_ < steps; ++step_)
        run_step(step_ < parts ? ForwardMode::Extend : ForwardMode::Decode, options_.new_tokens > 0 && step_ + 1 >= parts);
    } catch (const NothingMoreIsWanted&) {
    }
    return std::move(result_);
  }

  void at(const Site& site, TensorView values) override {
    const Moment moment = reach(site);
    if (!observer_.wants(moment)) return;
    parts_.clear();
    for (size_t n = 0; n < sequences_.size(); ++n) parts_.push_back(values.rows(cu_seqlens_[n], cu_seqlens_[n + 1]));
    observer_.at({moment, parts_});
    end_if_done(moment);
  }

  bool wants(const Site& site) override { return observer_.wants({step_, site}); }

  void at_sequences(const Site& site, std::span<const TensorView> parts) override {
    const Moment moment = reach(site);
    observer_.at({moment, parts});
    end_if_done(moment);
  }

 private:
  Moment reach(const Site& site) const {
    const Moment moment = {step_, site};
    if (options_.poll) options_.poll();
    observer_.reached(moment);
    return moment;
  }

  void end_if_done(const Moment& moment) const {
    if (options_.new_tokens == 0 && observer_.is_done(moment)) throw NothingMoreIsWanted();
  }

  void run_step(ForwardMode mode, bool samples) {
    take_ids(mode);
    batch_.clear();
    for (size_t n = 0; n < sequences_.size(); ++n) {
      batch_.add(sequences_[n], mode, std::span(ids_).subspan(cu_seqlens_[n], cu_seqlens_[n + 1] - cu_seqlens_[n]));
      batch_.want_all_rows();  // for their final norm; the product with lm_head is another affair
    }
    const Tensor hidden(DType::f32, {ids_.size(), engine_.config().hidden_size});
    model_.forward(ctx_, batch_.view(*pools_), hidden.matrix());
    for (size_t n = 0; n < sequences_.size(); ++n)
      sequences_[n].ids.insert(sequences_[n].ids.end(), ids_.begin() + static_cast<std::ptrdiff_t>(cu_seqlens_[n]),
                               ids_.begin() + static_cast<std::ptrdiff_t>(cu_seqlens_[n + 1]));
    const Tensor last = show_logits(hidden.matrix(), samples);
    if (samples) sample(last.matrix());
  }

  // The step's tokens, and whatever is made of them.
  void take_ids(ForwardMode mode) {
    ids_.clear();
    cu_seqlens_.assign(1, 0);
    for (size_t n = 0; n < prompts_.size(); ++n) {
      if (mode == ForwardMode::Decode) {
        ids_.push_back(result_.output_ids[n].back());
      } else {
        const TracePrompt& prompt = prompts_[n];
        const size_t begin = step_ == 0 ? 0 : prompt.cuts[step_ - 1];
        const size_t end = step_ < prompt.cuts.size() ? prompt.cuts[step_] : prompt.ids.size();
        ids_.insert(ids_.end(), prompt.ids.begin() + static_cast<std::ptrdiff_t>(begin),
                    prompt.ids.begin() + static_cast<std::ptrdiff_t>(end));
      }
      cu_seqlens_.push_back(ids_.size());
    }
    at({Value::InputIds}, {ids_.data(), DType::i32, {ids_.size()}});
  }

  // Logits of all rows if somebody wants them; else only those of the last rows, if these serve for anything.
  // @returns [prompts, vocab] the last rows' if the step samples
  Tensor show_logits(MatView<const float> hidden, bool samples) {
    const size_t prompts = sequences_.size(), vocab = engine_.config().vocab_size;
    const Moment probabilities = {step_, {Value::NextTokenProbs}};
    const bool all = wants({Value::Logits});
    if (!all && !samples && !observer_.wants(probabilities)) return {};
    Tensor last(DType::f32, {prompts, vocab});
    if (all) {
      const Tensor logits(DType::f32, {hidden.rows(), vocab});
      model_.logits(ctx_, hidden, logits.matrix());
      at({Value::Logits}, logits.view());
      for (size_t n = 0; n < prompts; ++n) std::ranges::copy(logits.matrix()[cu_seqlens_[n + 1] - 1], last.matrix().row(n));
    } else {
      const Tensor rows(DType::f32, {prompts, hidden.cols()});
      for (size_t n = 0; n < prompts; ++n) std::ranges::copy(hidden[cu_seqlens_[n + 1] - 1], rows.matrix().row(n));
      model_.logits(ctx_, rows.matrix(), last.matrix());
    }
    // Asked again: a reader who held the logits may want these only now.
    if (observer_.wants(probabilities)) {
      const Tensor p(DType::f32, {prompts, vocab});
      parts_.clear();
      for (size_t n = 0; n < prompts; ++n) {
        softmax(engine_.kernels(), last.matrix()[n], p.matrix()[n]);
        parts_.push_back({p.matrix().row(n), DType::f32, {vocab}});
      }
      at_sequences(probabilities.site, parts_);
    }
    return last;
  }

  void sample(MatView<float> logits) {
    for (size_t n = 0; n < sequences_.size(); ++n) {
      const std::vector<int32_t>& history = sequences_[n].ids;
      const std::optional<int32_t> id = sampler_.sample(logits[n], options_.sampling, history, history.size());
      if (!id) raise(ErrorCode::Corrupt, "step {}, prompt {}: the model's logits hold no number", step_, n);
      result_.output_ids[n].push_back(*id);
      if (options_.on_token) options_.on_token(n, *id);
    }
  }

  Engine& engine_;
  const KimiLinearForCausalLM& model_;
  std::span<const TracePrompt> prompts_;
  const TraceOptions& options_;
  TraceObserver& observer_;
  std::shared_ptr<MemoryPools> pools_;
  Workspace workspace_;
  Sampler sampler_;
  ExecContext ctx_;
  StepBatch batch_;
  std::vector<Sequence> sequences_;
  size_t step_ = 0;
  std::vector<int32_t> ids_;  // of the step
  std::vector<size_t> cu_seqlens_;
  std::vector<TensorView> parts_;  // of the value that is shown
  TraceResult result_;
};

}  // namespace

std::vector<BlockKind> block_kinds(const ModelConfig& config) {
  std::vector<BlockKind> kinds;
  for (size_t layer = 0; layer < config.num_hidden_layers; ++layer)
    kinds.push_back({config.is_kda(layer) ? BlockKind::Attention::Kda : BlockKind::Attention::Mla,
                     config.is_moe(layer) ? BlockKind::FeedForward::Moe : BlockKind::FeedForward::Dense});
  return kinds;
}

size_t trace_steps(const ModelConfig& config, std::span<const TracePrompt> prompts, const TraceOptions& options) {
  if (prompts.empty()) raise(ErrorCode::InvalidArgument, "there is no prompt to trace; expected at least one");
  options.sampling.validate();
  const size_t parts = prompts.front().cuts.size() + 1;
  size_t shortest = 0;
  for (size_t n = 0; n < prompts.size(); ++n) {
    const auto& [ids, cuts] = prompts[n];
    if (ids.empty()) raise(ErrorCode::InvalidArgument, "prompt {} is empty; expected at least one token", n);
    for (int32_t id : ids)
      if (id < 0 || static_cast<size_t>(id) >= config.vocab_size)
        raise(ErrorCode::InvalidArgument, "prompt {}: token id {} is outside of the vocabulary: 0 to {}", n, id,
              config.vocab_size - 1);
    if (cuts.size() + 1 != parts)
      raise(ErrorCode::InvalidArgument, "prompt {} has {} cuts; expected {}, as prompt 0 has", n, cuts.size(), parts - 1);
    for (size_t i = 0; i < cuts.size(); ++i)
      if (cuts[i] <= (i == 0 ? 0 : cuts[i - 1]) || cuts[i] >= ids.size())
        raise(ErrorCode::InvalidArgument, "prompt {}: cut {} is {}; expected ascending ones between 1 and {}", n, i, cuts[i],
              ids.size() - 1);
    if (ids.size() > config.model_max_length)
      raise(ErrorCode::InvalidArgument, "prompt {}: {} tokens are more than the model's {}", n, ids.size(),
            config.model_max_length);
    if (n == 0 || ids.size() < shortest) shortest = ids.size();
  }
  // The last new token is not fed, so it needs no place.
  if (options.new_tokens > config.model_max_length - shortest + 1)
    raise(ErrorCode::InvalidArgument, "a prompt of {} tokens and {} new ones are more than the model's {}", shortest,
          options.new_tokens, config.model_max_length);
  return parts + std::max<size_t>(options.new_tokens, 1) - 1;
}

TraceResult run_trace(Engine& engine, std::span<const TracePrompt> prompts, const TraceOptions& options,
                      TraceObserver& observer) {
  FloatModeGuard float_mode;
  return TraceRun(engine, prompts, options, observer).run();
}

}  // namespace kilin

#include "inside/trace/trace_run.h"

#include <algorithm>

#include "core/error.h"
#include "engine/memory_plan.h"

namespace kilin {

namespace {

// Thrown to leave a pass of which nothing more is wanted.
struct NothingMoreIsWanted {};

MemoryPools pools_for(Engine& engine, std::span<const TracePrompt> prompts, const TraceOptions& options) {
  size_t pages = 0;
  for (const TracePrompt& prompt : prompts) pages += LatentKvPool::pages_for(prompt.ids.size() + options.new_tokens);
  const KimiLinearForCausalLM& model = engine.loaded().model;
  return {RecurrentStatePool(model.state_dimensions(), prompts.size()),
          LatentKvPool(model.latent_dimensions(engine.runner().kv_type()), pages)};
}

uint64_t workspace_for(Engine& engine, std::span<const TracePrompt> prompts) {
  size_t tokens = 0;
  for (const TracePrompt& prompt : prompts) tokens += prompt.ids.size();
  return step_workspace_bytes(engine.loaded().model,
                              {.tokens = tokens, .hidden_rows = tokens, .shown_rows = tokens, .threads = engine.threads()});
}

class TraceRun final : public Taps {
 public:
  TraceRun(Engine& engine, std::span<const TracePrompt> prompts, const TraceOptions& options, TraceObserver& observer)
      : runner_(engine.runner()),
        prompts_(prompts),
        options_(options),
        observer_(observer),
        pools_(std::make_shared<MemoryPools>(pools_for(engine, prompts, options))),
        workspace_(workspace_for(engine, prompts)),
        batch_(0, prompts.size()),
        histories_(prompts.size()) {
    for (const TracePrompt& prompt : prompts) {
      sequences_.push_back({.pools = pools_});
      take_memory(sequences_.back(), prompt.ids.size() + options.new_tokens);
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
    if (observer_.wants(moment)) {
      parts_.clear();
      for (size_t n = 0; n < sequences_.size(); ++n) parts_.push_back(values.rows(cu_seqlens_[n], cu_seqlens_[n + 1]));
      observer_.at({moment, parts_});
      end_if_done(moment);
    }
    if (site.value == Value::InputIds) remember(values);
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

  // The final norm is computed for all rows, in case somebody reads it; lm_head only for the rows that need it.
  void run_step(ForwardMode mode, bool draws) {
    batch_.clear();
    cu_seqlens_.assign(1, 0);
    for (size_t n = 0; n < sequences_.size(); ++n) {
      const std::span<const int32_t> ids = next_ids(n, mode);
      histories_[n].insert(histories_[n].end(), ids.begin(), ids.end());
      batch_.add({.sequence = sequences_[n],
                  .mode = mode,
                  .ids = ids,
                  .draw = draws ? &options_.sampling : nullptr,
                  .history = histories_[n],
                  .final_norm = StepSpan::Norm::AllRows});
      cu_seqlens_.push_back(batch_.tokens());
    }
    runner_.run(batch_, *pools_, workspace_, this);
    for (size_t n = 0; n < sequences_.size(); ++n) sequences_[n].ids = histories_[n];
    if (draws) take_drawn();
  }

  std::span<const int32_t> next_ids(size_t n, ForwardMode mode) const {
    if (mode == ForwardMode::Decode) return std::span(result_.output_ids[n]).last(1);
    const TracePrompt& prompt = prompts_[n];
    const size_t begin = step_ == 0 ? 0 : prompt.cuts[step_ - 1];
    const size_t end = step_ < prompt.cuts.size() ? prompt.cuts[step_] : prompt.ids.size();
    return std::span(prompt.ids).subspan(begin, end - begin);
  }

  // Remembers the ids that are really fed: an edit may have changed them.
  void remember(const TensorView& fed) {
    for (size_t n = 0; n < sequences_.size(); ++n)
      std::copy(fed.as<int32_t>() + cu_seqlens_[n], fed.as<int32_t>() + cu_seqlens_[n + 1],
                histories_[n].end() - static_cast<std::ptrdiff_t>(cu_seqlens_[n + 1] - cu_seqlens_[n]));
  }

  void take_drawn() {
    for (size_t n = 0; n < sequences_.size(); ++n) {
      const std::optional<int32_t> id = batch_.drawn()[n];
      if (!id) raise(ErrorCode::Corrupt, "step {}, prompt {}: the model's logits hold no number", step_, n);
      result_.output_ids[n].push_back(*id);
      if (options_.on_token) options_.on_token(n, *id);
    }
  }

  Runner& runner_;
  std::span<const TracePrompt> prompts_;
  const TraceOptions& options_;
  TraceObserver& observer_;
  std::shared_ptr<MemoryPools> pools_;
  Workspace workspace_;
  StepBatch batch_;
  std::vector<Sequence> sequences_;
  std::vector<std::vector<int32_t>> histories_;  // of each sequence: all ids fed so far, this step's last
  size_t step_ = 0;
  std::vector<size_t> cu_seqlens_;
  std::vector<TensorView> parts_;  // of the value that is shown
  TraceResult result_;
};

}  // namespace

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
  return TraceRun(engine, prompts, options, observer).run();
}

}  // namespace kilin

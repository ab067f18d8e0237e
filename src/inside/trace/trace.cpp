#include "inside/trace/trace.h"

#include <algorithm>

#include "core/error.h"

namespace kilin {

const Tensor& SavedValue::of(size_t prompt) const {
  if (!has(prompt))
    raise(ErrorCode::OutOfOrder, "{} of step {}, prompt {}: the trace has not come to it, or the prompt has none", name_,
          moment_.step, prompt);
  return prompts_[prompt];
}

class Trace::Observer final : public TraceObserver {
 public:
  explicit Observer(std::vector<Action>& actions, size_t steps) : actions_(actions) {
    for (const Action& action : actions) {
      const Moment last = {std::min(action.moment.step, steps - 1), action.moment.site};
      if (passes_before(last_, last)) last_ = last;
    }
  }

  bool wants(const Moment& moment) override {
    return std::ranges::any_of(actions_, [&](const Action& action) { return is_at(action, moment); });
  }
  void reached(const Moment&) override {}
  void at(const TracedValue& value) override {
    bool is_blank = value.is_blank();
    for (Action& action : actions_) {
      if (!is_at(action, value.moment())) continue;
      if (action.edit) {
        action.edit(value);
        is_blank = false;
        continue;
      }
      action.save->prompts_.clear();
      for (size_t n = 0; n < value.prompts(); ++n) action.save->prompts_.push_back(is_blank ? Tensor() : copy_of(value.of(n)));
    }
  }
  bool is_done(const Moment& moment) const override { return !passes_before(moment, last_); }

 private:
  static bool is_at(const Action& action, const Moment& moment) {
    return action.moment.site == moment.site && (action.moment.step == moment.step || action.moment.step == kEveryStep);
  }

  std::vector<Action>& actions_;
  Moment last_{.step = 0, .site = {Value::InputIds}};
};

Trace::Trace(Engine& engine, std::vector<TracePrompt> prompts, TraceOptions options)
    : engine_(engine),
      prompts_(std::move(prompts)),
      options_(std::move(options)),
      blocks_(block_kinds(engine.config())),
      steps_(trace_steps(engine.config(), prompts_, options_)) {}

Moment Trace::moment_of(std::string_view name, size_t step) const {
  const Site site = find_site(name, blocks_);
  if (step != kEveryStep && step >= steps_)
    raise(ErrorCode::InvalidArgument, "{}: step {} is not run; expected 0 to {}", name_of(site, blocks_), step, steps_ - 1);
  return {step, site};
}

std::shared_ptr<const SavedValue> Trace::save(std::string_view name, size_t step) {
  const Moment moment = moment_of(name, step);
  const std::string standard = name_of(moment.site, blocks_);
  if (step == kEveryStep)
    raise(ErrorCode::InvalidArgument, "{}: a save keeps one step; ask for each of the {}", standard, steps_);
  auto saved = std::make_shared<SavedValue>(moment, standard);
  actions_.push_back({.moment = moment, .edit = {}, .save = saved});
  return saved;
}

void Trace::edit(std::string_view name, TraceEdit edit, size_t step) {
  const Moment moment = moment_of(name, step);
  if (!value_info(moment.site.value).writable)
    raise(ErrorCode::InvalidArgument, "{} can't be written: nothing is computed from it", name_of(moment.site, blocks_));
  actions_.push_back({.moment = moment, .edit = std::move(edit), .save = {}});
}

TraceResult Trace::run() {
  if (actions_.empty() && options_.new_tokens == 0) return {std::vector<std::vector<int32_t>>(prompts_.size())};
  Observer observer(actions_, steps_);
  return run_trace(engine_, prompts_, options_, observer);
}

}  // namespace kilin

#include "inside/trace/interleaved_trace.h"

#include <chrono>
#include <system_error>
#include <utility>

#include "core/error.h"

namespace kilin {

namespace {

// Thrown to leave a pass whose reader is gone.
struct ReaderHasGone {};

constexpr std::chrono::milliseconds kPollInterval(50);  // short enough for Ctrl-C, and cheap beside a pass

}  // namespace

// Runs on the pass's thread, during its turn.
class InterleavedTrace::Observer final : public TraceObserver {
 public:
  explicit Observer(InterleavedTrace& trace) : trace_(trace) {}

  bool wants(const Moment& moment) override { return trace_.wanted_ == moment; }

  void reached(const Moment& moment) override {
    if (trace_.stop_) throw ReaderHasGone();
    trace_.reached_ = moment;
    if (trace_.wanted_ && passes_before(*trace_.wanted_, moment))  // a bug, and without this the reader would wait forever
      raise(ErrorCode::OutOfOrder, "{}: the pass reached {} without showing it", trace_.describe(*trace_.wanted_),
            trace_.describe(moment));
  }

  void at(const TracedValue& value) override {
    const FairUnlock others_may_compute(trace_.engine_.runner().computing());
    std::unique_lock lock(trace_.mutex_);
    if (trace_.stop_) throw ReaderHasGone();
    trace_.current_ = &value;
    trace_.turn_ = Turn::Reader;
    trace_.changed_.notify_all();
    trace_.changed_.wait(lock, [&] { return trace_.turn_ == Turn::Pass; });
    trace_.current_ = nullptr;
    if (trace_.stop_) throw ReaderHasGone();
  }

  bool is_done(const Moment&) const override { return false; }

 private:
  InterleavedTrace& trace_;
};

InterleavedTrace::InterleavedTrace(Engine& engine, std::vector<TracePrompt> prompts, TraceOptions options)
    : engine_(engine),
      prompts_(std::move(prompts)),
      options_(std::move(options)),
      poll_(std::exchange(options_.poll, {})),
      blocks_(block_kinds(engine.config())),
      steps_(trace_steps(engine.config(), prompts_, options_)) {}

InterleavedTrace::~InterleavedTrace() {
  {
    std::unique_lock lock(mutex_);
    stop_ = true;
    turn_ = Turn::Pass;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

const TracedValue& InterleavedTrace::wait_for(std::string_view name, size_t step) {
  return wait_for({step, find_site(name, blocks_)});
}

const TracedValue& InterleavedTrace::wait_for(const Moment& moment) {
  const std::lock_guard alone(reader_);
  std::unique_lock lock(mutex_);
  if (moment.step >= steps_)
    raise(ErrorCode::InvalidArgument, "{}: step {} is not run; expected 0 to {}", name_of(moment.site, blocks_), moment.step,
          steps_ - 1);
  if (current_ != nullptr && current_->moment() == moment) return *current_;
  if (reached_ && !passes_before(*reached_, moment))
    raise(ErrorCode::OutOfOrder, "{} is out of order: the pass has come to {}; read values in the order of the pass",
          describe(moment), describe(*reached_));
  if (ended_) raise(ErrorCode::OutOfOrder, "{} is out of order: the trace has ended", describe(moment));
  wanted_ = moment;
  let_pass_run(lock);
  if (error_) std::rethrow_exception(error_);
  if (current_ == nullptr) raise(ErrorCode::OutOfOrder, "{}: the pass ended without showing it", describe(moment));
  return *current_;
}

TraceResult InterleavedTrace::finish() {
  const std::lock_guard alone(reader_);
  std::unique_lock lock(mutex_);
  wanted_.reset();
  if (options_.new_tokens == 0) stop_ = true;
  if (!ended_ && (thread_.joinable() || options_.new_tokens > 0)) let_pass_run(lock);
  ended_ = true;
  if (error_) std::rethrow_exception(error_);
  return std::exchange(result_, {});
}

// Gives the pass its turn and waits until it is back, at the wanted value or at the end. An exception from poll_ meanwhile ends
// the pass.
void InterleavedTrace::let_pass_run(std::unique_lock<std::mutex>& lock) {
  turn_ = Turn::Pass;
  if (!thread_.joinable()) {
    try {
      thread_ = std::thread([this] { run_pass(); });
    } catch (const std::system_error& error) {
      turn_ = Turn::Reader;
      raise(ErrorCode::ResourceExhausted, "no thread for a trace: {}", error.what());
    }
  }
  changed_.notify_all();
  const auto is_back = [&] { return turn_ == Turn::Reader; };
  try {
    while (!changed_.wait_for(lock, kPollInterval, is_back))
      if (poll_) poll_();
  } catch (...) {
    stop_ = true;  // the pass checks this at every value, and before it gives the turn back
    changed_.wait(lock, is_back);
    throw;
  }
}

void InterleavedTrace::run_pass() noexcept {
  Observer observer(*this);
  TraceResult result;
  std::exception_ptr error;
  try {
    result = run_trace(engine_, prompts_, options_, observer);
  } catch (const ReaderHasGone&) {
  } catch (...) {
    error = std::current_exception();
  }
  const std::unique_lock lock(mutex_);
  result_ = std::move(result);
  error_ = error;
  ended_ = true;
  turn_ = Turn::Reader;
  changed_.notify_all();
}

std::string InterleavedTrace::describe(const Moment& moment) const {
  return name_of(moment.site, blocks_) + (steps_ > 1 ? " of step " + std::to_string(moment.step) : "");
}

}  // namespace kilin

#include "engine/engine_loop.h"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "engine/tap_watch.h"

namespace kilin {

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

EngineLoop::EngineLoop(Runner& runner, std::shared_ptr<MemoryPools> pools, size_t workspace_bytes, const Limits& limits,
                       std::vector<BlockKind> blocks, std::string model)
    : runner_(runner),
      pools_(std::move(pools)),
      blocks_(std::move(blocks)),
      model_(std::move(model)),
      mailbox_(std::make_shared<Mailbox>(Mailbox::Reader::Caller)),
      workspace_(workspace_bytes),
      scheduler_(limits.prefill_chunk),
      batch_(limits.prefill_chunk + limits.max_sequences, limits.max_sequences) {
  in_batch_.reserve(limits.max_sequences);
}

EngineLoop::~EngineLoop() {
  mailbox_->close();
  if (thread_.joinable()) thread_.join();
  const MutexLock lock(stepping_);
  for (auto& request : mailbox_->take()) requests_.push_back(std::move(request));
  for (const auto& request : requests_) request->cancel("the engine has gone");
}

void EngineLoop::start_thread() {
  mailbox_->set_reader(Mailbox::Reader::Thread);
  try {
    thread_ = std::thread([this] { run_thread(); });
  } catch (const std::system_error& error) {
    mailbox_->set_reader(Mailbox::Reader::Caller);
    raise(ErrorCode::ResourceExhausted, "no thread for the engine: {}", error.what());
  }
}

void EngineLoop::run_thread() noexcept {
  while (!mailbox_->closed()) {
    try {
      if (step() == StepResult::Ran) continue;
    } catch (...) {  // beside a step there is only bookkeeping, which fails for want of memory
      const MutexLock lock(stepping_);
      fail_all(std::current_exception());
    }
    mailbox_->wait();
  }
}

void EngineLoop::set_taps(Taps* taps) {
  const MutexLock lock(stepping_);
  taps_ = taps;
}

StepResult EngineLoop::step() {
  const MutexLock lock(stepping_);
  take_mail();
  end_cancelled();
  for (;;) {
    const StepPlan& plan = scheduler_.plan({pools_->states.free_slots(), pools_->latents.free_pages()});
    if (plan.spans.empty() && plan.stuck.empty()) return StepResult::Idle;
    end_stuck(plan);
    admit(plan);
    if (!fill_batch(plan)) continue;  // what was planned has ended: others may start
    compute();
    forget_ended();
    return StepResult::Ran;
  }
}

void EngineLoop::take_mail() {
  for (auto& request : mailbox_->take()) {
    scheduler_.add(request->id(), request->sizes());
    requests_.push_back(std::move(request));
  }
}

void EngineLoop::end_cancelled() {
  for (const auto& request : requests_)
    if (request->is_cancelled()) request->cancel("it was cancelled");
  forget_ended();
}

void EngineLoop::end_stuck(const StepPlan& plan) {
  for (RequestId id : plan.stuck) {
    ActiveRequest* request = find(id);
    const std::string cause = fmt::format(
        "a request that needs {} tokens of context can't start: sequences that nobody continues hold {} of {} slots and {} of "
        "{} pages of {} tokens",
        request->sizes().most_tokens(), pools_->states.slots() - pools_->states.free_slots(), pools_->states.slots(),
        pools_->latents.pages() - pools_->latents.free_pages(), pools_->latents.pages(), LatentKvPool::kPageTokens);
    request->fail(std::make_exception_ptr(Error(ErrorCode::ResourceExhausted, cause)), cause,
                  ActiveRequest::WhatStays::Sequence);
  }
  forget_ended();
}

// The pools have what the scheduler gives away, but for memory of the lists that say so.
void EngineLoop::admit(const StepPlan& plan) {
  for (RequestId id : plan.admitted) {
    ActiveRequest* request = find(id);
    try {
      request->start();
    } catch (...) {
      const auto error = std::current_exception();
      request->fail(error, message_of(error), ActiveRequest::WhatStays::Sequence);
    }
  }
}

// @returns whether anything is left to compute
bool EngineLoop::fill_batch(const StepPlan& plan) {
  batch_.clear();
  in_batch_.clear();
  for (const PlannedSpan& span : plan.spans) {
    ActiveRequest* request = find(span.id);
    if (request == nullptr || request->has_ended()) continue;
    const StepSpan part = request->span_of(span);
    batch_.add(part);
    in_batch_.push_back({.request = request, .span = span, .draws = part.draw != nullptr});
  }
  if (in_batch_.empty()) forget_ended();
  return !in_batch_.empty();
}

void EngineLoop::compute() {
  const auto start = std::chrono::steady_clock::now();
  std::optional<TapWatch> watch;
  if (taps_ != nullptr) watch.emplace(*taps_);
  try {
    runner_.run(batch_, *pools_, workspace_, watch ? &*watch : nullptr);
    scheduler_.advance();
    tell(seconds_since(start));
  } catch (...) {
    const bool in_tap = watch && watch->threw_at();
    fail_batch(std::current_exception(), in_tap ? "a tap at " + name_of(*watch->threw_at(), blocks_) + ": " : std::string());
  }
}

void EngineLoop::tell(double seconds) {
  for (const InBatch& part : in_batch_) part.request->fed(part.span.tokens, seconds);
  size_t draws = 0;
  for (const InBatch& part : in_batch_) {
    if (part.span.ends_prompt) part.request->read_prompt();
    if (!part.draws) continue;
    part.request->drew(batch_.drawn()[draws++],
                       model_ + ": the model's logits hold no number; kilin verify looks for broken weights");
  }
}

void EngineLoop::fail_batch(const std::exception_ptr& error, const std::string& where) {
  const std::string cause = where + message_of(error);
  for (const InBatch& part : in_batch_) part.request->fail(error, cause, ActiveRequest::WhatStays::Nothing);
}

void EngineLoop::fail_all(const std::exception_ptr& error) {
  for (const auto& request : requests_) request->fail(error, message_of(error), ActiveRequest::WhatStays::Nothing);
  forget_ended();
}

void EngineLoop::forget_ended() {
  std::erase_if(requests_, [this](const auto& request) KILIN_NO_THREAD_SAFETY_ANALYSIS {  // the caller holds stepping_
    if (request->has_ended()) scheduler_.remove(request->id());
    return request->has_ended();
  });
}

ActiveRequest* EngineLoop::find(RequestId id) {
  const auto at = std::ranges::find_if(requests_, [id](const auto& request) { return request->id() == id; });
  return at == requests_.end() ? nullptr : at->get();
}

}  // namespace kilin

#include "engine/request.h"

#include <utility>

#include "core/error.h"

namespace kilin {

void RequestChannel::cancel() {
  if (!cancelled_.exchange(true)) mailbox_->ring();
}

std::optional<Event> RequestChannel::next(std::optional<std::chrono::steady_clock::time_point> end) {
  MutexLock lock(mutex_);
  while (unheard_.empty() && phase_ == Phase::Running) {
    const bool nobody_steps = mailbox_->reader() == Mailbox::Reader::Caller;  // meanwhile
    if (nobody_steps && end) return std::nullopt;
    if (nobody_steps)
      raise(ErrorCode::OutOfOrder, "no event is there, and no thread runs the engine; expected a call of Engine::step before");
    if (!end)
      lock.wait(changed_);
    else if (!lock.wait_until(changed_, *end) && unheard_.empty() && phase_ == Phase::Running)
      return std::nullopt;
  }
  if (!unheard_.empty()) {
    TokenEvent token = std::move(unheard_.front());
    unheard_.pop_front();
    return token;
  }
  if (phase_ == Phase::EndWasHeard) raise(ErrorCode::OutOfOrder, "the request has ended, and its end was told");
  phase_ = Phase::EndWasHeard;
  return answer_.finish;
}

bool RequestChannel::has_ended() const {
  const MutexLock lock(mutex_);
  return phase_ != Phase::Running;
}

bool RequestChannel::end_was_heard() const {
  const MutexLock lock(mutex_);
  return phase_ == Phase::EndWasHeard;
}

const Answer& RequestChannel::answer() const {
  const MutexLock lock(mutex_);
  if (phase_ == Phase::Running) raise(ErrorCode::OutOfOrder, "the answer has not ended yet");
  return answer_;
}

Sequence RequestChannel::take_sequence() {
  const MutexLock lock(mutex_);
  if (phase_ == Phase::Running) raise(ErrorCode::OutOfOrder, "the request still runs, so its sequence can't be taken");
  if (!kept_) raise(ErrorCode::OutOfOrder, "the request has no sequence to take: it was not to be kept, or is taken already");
  Sequence sequence = *std::move(kept_);
  kept_.reset();
  return sequence;
}

void RequestChannel::send(TokenEvent token) {
  {
    const MutexLock lock(mutex_);
    answer_.ids.push_back(token.id);
    answer_.text += token.text;
    unheard_.push_back(std::move(token));
    changed_.notify_all();
  }
  if (on_event_) on_event_();
}

void RequestChannel::end(Finish finish, const RequestTimings& timings, std::optional<Sequence> kept) {
  {
    const MutexLock lock(mutex_);
    answer_.text += finish.text;
    answer_.finish = std::move(finish);
    answer_.timings = timings;
    kept_ = std::move(kept);
    phase_ = Phase::Ended;
    changed_.notify_all();
  }
  if (on_event_) on_event_();
}

std::optional<TokenEvent> Request::next_token() {
  Event event = next();
  if (auto* token = std::get_if<TokenEvent>(&event)) return std::move(*token);
  if (const auto& error = std::get<Finish>(event).error) std::rethrow_exception(error);
  return std::nullopt;
}

const Answer& Request::wait() {
  if (!has_ended())
    while (std::holds_alternative<TokenEvent>(next())) {
    }
  if (const auto& error = answer().finish.error) std::rethrow_exception(error);
  return answer();
}

}  // namespace kilin

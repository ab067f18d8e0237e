// A request as its owner sees it.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "core/mutex.h"
#include "engine/events.h"
#include "engine/mailbox.h"
#include "engine/sequence.h"

namespace kilin {

/// What the engine's loop and a request's owner share: events on their way. Thread-safe.
class RequestChannel {
 public:
  /// @param on_event called by the loop's thread after each event, without a lock. Must not block, throw, or destroy the engine
  RequestChannel(std::shared_ptr<Mailbox> mailbox, std::function<void()> on_event)
      : mailbox_(std::move(mailbox)), on_event_(std::move(on_event)) {}

  // Of the owner.
  void cancel();
  std::optional<Event> next(std::optional<std::chrono::steady_clock::time_point> end) KILIN_EXCLUDES(mutex_);
  bool has_ended() const KILIN_EXCLUDES(mutex_);
  bool end_was_heard() const KILIN_EXCLUDES(mutex_);
  const Answer& answer() const KILIN_EXCLUDES(mutex_);
  Sequence take_sequence() KILIN_EXCLUDES(mutex_);
  size_t prompt_tokens_read() const { return prompt_tokens_read_.load(std::memory_order_relaxed); }

  // Of the loop.
  bool is_cancelled() const { return cancelled_.load(std::memory_order_relaxed); }
  void tell_prompt_tokens_read(size_t tokens) { prompt_tokens_read_.store(tokens, std::memory_order_relaxed); }
  void send(TokenEvent token) KILIN_EXCLUDES(mutex_);
  /// The last event. @param kept what take_sequence gives
  void end(Finish finish, const RequestTimings& timings, std::optional<Sequence> kept) KILIN_EXCLUDES(mutex_);

 private:
  enum class Phase : uint8_t { Running, Ended, EndWasHeard };

  std::shared_ptr<Mailbox> mailbox_;
  std::function<void()> on_event_;
  std::atomic<bool> cancelled_ = false;
  std::atomic<size_t> prompt_tokens_read_ = 0;
  mutable Mutex mutex_;
  std::condition_variable changed_;
  Phase phase_ KILIN_GUARDED_BY(mutex_) = Phase::Running;
  std::deque<TokenEvent> unheard_ KILIN_GUARDED_BY(mutex_);
  Answer answer_ KILIN_GUARDED_BY(mutex_);  // does not change any more once the request has ended
  std::optional<Sequence> kept_ KILIN_GUARDED_BY(mutex_);
};

/// Made by Engine::submit. All functions may be called on any thread. It may outlive its engine; when it is destroyed before
/// its end, the request is cancelled.
class Request {
 public:
  Request(std::shared_ptr<RequestChannel> channel, size_t prompt_tokens)
      : channel_(std::move(channel)), prompt_tokens_(prompt_tokens) {}
  ~Request() { channel_->cancel(); }
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  /// Ends it before the next step; its last event says so. Does nothing to one that has ended.
  void cancel() { channel_->cancel(); }

  /// Waits for the next event: tokens in order, then the end, each once.
  /// @throws OutOfOrder after the end, or if nobody runs the engine (EngineOptions::Drive::ByCaller: call Engine::step first)
  Event next() { return *channel_->next({}); }
  /// The same; nothing if none comes within that time, or if nobody runs the engine.
  std::optional<Event> next_within(std::chrono::milliseconds time) {
    return channel_->next(std::chrono::steady_clock::now() + time);
  }
  /// Waits for the next token; nothing at the end of the answer. @throws as next; what ended the request, if that was an error
  std::optional<TokenEvent> next_token();

  /// Waits for the end. Events that nobody has heard are dropped. @throws as next_token
  const Answer& wait();

  bool has_ended() const { return channel_->has_ended(); }
  bool end_was_heard() const { return channel_->end_was_heard(); }  ///< by next: no event is left
  /// What came of it. @throws OutOfOrder before it has ended
  const Answer& answer() const { return channel_->answer(); }

  /// The sequence as it stands, for a next request. Its ids lack the last drawn one, which was not fed. Empty if the request
  /// ended by an error of a step that it was in: nobody can go on then.
  /// @throws OutOfOrder before it has ended, without GenerationParams::keep_sequence, or a second time
  Sequence take_sequence() { return channel_->take_sequence(); }

  size_t prompt_tokens() const { return prompt_tokens_; }
  size_t prompt_tokens_read() const { return channel_->prompt_tokens_read(); }  ///< so far

 private:
  std::shared_ptr<RequestChannel> channel_;
  size_t prompt_tokens_;
};

}  // namespace kilin

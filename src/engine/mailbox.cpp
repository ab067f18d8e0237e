#include "engine/mailbox.h"

#include <utility>

#include "engine/active_request.h"

namespace kilin {

Mailbox::Mailbox(Reader reader) : reader_(reader) {}
Mailbox::~Mailbox() = default;

Mailbox::Reader Mailbox::reader() const {
  const MutexLock lock(mutex_);
  return reader_;
}

void Mailbox::set_reader(Reader reader) {
  const MutexLock lock(mutex_);
  reader_ = reader;
  changed_.notify_all();
}

void Mailbox::put(std::unique_ptr<ActiveRequest> request) {
  const MutexLock lock(mutex_);
  requests_.push_back(std::move(request));
  changed_.notify_one();
}

void Mailbox::ring() {
  const MutexLock lock(mutex_);
  rung_ = true;
  changed_.notify_one();
}

std::vector<std::unique_ptr<ActiveRequest>> Mailbox::take() {
  const MutexLock lock(mutex_);
  rung_ = false;
  return std::exchange(requests_, {});
}

bool Mailbox::wait() {
  MutexLock lock(mutex_);
  while (reader_ != Reader::Gone && !rung_ && requests_.empty()) lock.wait(changed_);
  return reader_ != Reader::Gone;
}

}  // namespace kilin

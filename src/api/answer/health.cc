#include "api/answer/health.h"

#include <fmt/format.h>

#include "api/answer/pages.h"

namespace ceems::api {

HealthProbe::HealthProbe(store::Reader& reader,
                         RequestMetrics& metrics,
                         std::chrono::milliseconds limit)
    : reader_(reader),
      metrics_(metrics),
      limit_(limit),
      thread_([this](const std::stop_token& stop) { ask(stop); }) {}

void HealthProbe::ask(const std::stop_token& stop) {
  MutexLock lock(mutex_);
  while (
      changed_.wait(lock, stop, [this]() CEEMS_REQUIRES(mutex_) { return asked_ > answered_; })) {
    lock.unlock();
    bool good = false;
    {
      QueryTimer timer(metrics_, Query::kPing);
      good = timer.run([this] { return reader_.ping(); }).has_value();
    }
    lock.lock();
    good_ = good;
    answered_ = asked_;
    changed_.notify_all();
  }
}

void HealthProbe::answer(net::Response& response) {
  MutexLock lock(mutex_);
  if (asked_ == answered_) {
    ++asked_;
    asked_at_ = std::chrono::steady_clock::now();
    changed_.notify_all();
  }
  const bool in_time = changed_.wait_until(
      lock, asked_at_ + limit_,
      [this, question = asked_]() CEEMS_REQUIRES(mutex_) { return answered_ >= question; });
  if (!in_time) {
    answer_text(response, 503,
                fmt::format("KO: the database has not answered within {} ms", limit_.count()));
    return;
  }
  answer_text(response, good_ ? 200 : 503, good_ ? "CEEMS API Server is healthy" : "KO");
}

}  // namespace ceems::api

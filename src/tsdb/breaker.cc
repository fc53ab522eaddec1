#include "tsdb/breaker.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/mutex.h"

namespace ceems::tsdb {
namespace {

bool is_failure(const Result<net::ClientResponse>& answer) {
  constexpr int kBadGateway = 502;
  constexpr int kGatewayTimeout = 504;
  if (!answer || answer->status < kBadGateway || answer->status > kGatewayTimeout) {
    return !answer;
  }
  // Prometheus answers 503 to a query that takes too long; it works.
  return !answer->body.contains(R"("errorType":"timeout")");
}

class BreakingTransport final : public Transport {
 public:
  BreakingTransport(std::unique_ptr<Transport> transport, std::string name, const Clock& clock)
      : transport_(std::move(transport)), name_(std::move(name)), clock_(clock) {}

  Result<net::ClientResponse> get(const std::string& url) override {
    return guarded([&] { return transport_->get(url); });
  }
  Result<net::ClientResponse> post_form(const std::string& url, const std::string& form) override {
    return guarded([&] { return transport_->post_form(url, form); });
  }
  void cancel() override { transport_->cancel(); }

 private:
  template <typename Ask>
  Result<net::ClientResponse> guarded(const Ask& ask) {
    if (!may_ask()) {
      return fail(ErrorCode::kUnavailable, "the TSDB has not answered the last {} requests",
                  kBreakerFailures);
    }
    auto answer = ask();
    if (!answer && CancelScope::cancelled()) {  // a client that leaves says nothing about the TSDB
      const MutexLock lock(mutex_);
      next_try_ = {};  // the next one may try instead
    } else {
      note(answer);
    }
    return answer;
  }

  bool may_ask() CEEMS_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (failures_ < kBreakerFailures) {
      return true;
    }
    const auto now = clock_.steady_now();
    if (now < next_try_) {
      return false;
    }
    next_try_ = now + kBreakerPause;  // the others wait for how this one ends
    return true;
  }

  void note(const Result<net::ClientResponse>& answer) CEEMS_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (!is_failure(answer)) {
      if (std::exchange(failures_, 0) >= kBreakerFailures) {
        log::info("the TSDB answers again", {{"tsdb", name_}});
      }
      return;
    }
    next_try_ = clock_.steady_now() + kBreakerPause;
    failures_ = std::min(failures_ + 1, kBreakerFailures + 1);
    if (failures_ == kBreakerFailures) {
      log::warn("the TSDB does not answer: requests fail at once, and one in a while tries again",
                {{"tsdb", name_},
                 {"err", answer ? "HTTP status " + std::to_string(answer->status)
                                : answer.error().message}});
    }
  }

  std::unique_ptr<Transport> transport_;
  const std::string name_;
  const Clock& clock_;
  Mutex mutex_;
  int failures_ CEEMS_GUARDED_BY(mutex_) = 0;  ///< in a row
  Clock::SteadyTime next_try_ CEEMS_GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<Transport> with_breaker(std::unique_ptr<Transport> transport,
                                        std::string name,
                                        const Clock& clock) {
  return std::make_unique<BreakingTransport>(std::move(transport), std::move(name), clock);
}

}  // namespace ceems::tsdb

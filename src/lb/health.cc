#include "lb/health.h"

#include <algorithm>
#include <exception>
#include <map>
#include <optional>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>

#include "base/log.h"
#include "net/relay/connections.h"

namespace ceems::lb {
namespace {

namespace asio = boost::asio;
using net::Task;
using net::Upstream;
using std::chrono::steady_clock;

/// A flag that is true while this object lives.
class Busy {
 public:
  explicit Busy(bool& busy) : busy_(&busy) { busy = true; }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;
  ~Busy() { *busy_ = false; }

 private:
  bool* busy_;
};

/// What is in progress for one backend and must not be started again.
struct Checks {
  bool round = false;
  bool retry = false;
  bool request = false;
  steady_clock::time_point revived{};  ///< last
};

}  // namespace

/// Everything runs on `thread`, except calls of `responds`.
struct HealthChecker::Impl {
  Impl(Targets targets_in, const HealthTimes& times_in)
      : targets(std::move(targets_in)), times(times_in) {
    thread = std::jthread([this](const std::stop_token& token) {
      stop = token;
      spawn(run());
      io.run();  // until everything that was started has ended
    });
  }

  void spawn(Task<void> task) {
    asio::co_spawn(io.get_executor(), std::move(task), [](const std::exception_ptr& thrown) {
      if (thrown) {
        log::error("a health check ended unexpectedly");
      }
    });
  }

  void check_now() {
    asio::post(io, [this] {
      round_due = true;
      next.cancel();
    });
  }

  Task<void> run() {
    const std::stop_callback on_stop(stop, [this] { asio::post(io, [this] { next.cancel(); }); });
    steady_clock::time_point next_round{};
    while (!stop.stop_requested()) {
      const auto now = steady_clock::now();
      const bool round = std::exchange(round_due, false) || now >= next_round;
      if (round) {
        next_round = now + times.interval;
      }
      try {
        check(targets(), round);
      } catch (const std::exception& error) {
        log::error("cannot start health checks", {{"err", error.what()}});
      }
      next.expires_after(times.retry_interval);
      net::ErrorCondition ignored;
      auto token = asio::redirect_error(net::kAwait, ignored);
      co_await next.async_wait(token);
    }
  }

  void check(const std::vector<HealthTarget>& listed, bool round) {
    std::erase_if(checks, [&](const auto& entry) {
      return entry.second.use_count() == 1 &&
             std::ranges::find(listed, entry.first, &HealthTarget::upstream) == listed.end();
    });
    for (const HealthTarget& target : listed) {
      const Upstream& upstream = *target.upstream;
      auto& own = checks[target.upstream];
      if (!own) {
        own = std::make_shared<Checks>();
      }
      if (!own->request && needs_request(target, round)) {
        spawn(send_request(target, own));
      }
      if (round && !own->round) {
        spawn(probe_in_round(target.upstream, own));
      }
      if (!round && !own->retry && !upstream.alive() && !upstream.hangs()) {
        spawn(retry(target.upstream, own));
      }
    }
  }

  /// Without a resolved name, no connection was attempted.
  [[nodiscard]] bool needs_request(const HealthTarget& target, bool round) const {
    Upstream& upstream = *target.upstream;
    return (upstream.hangs() ? round
                             : upstream.silence() >= times.silence ||
                                   (upstream.doubted() && upstream.alive())) &&
           !upstream.addresses().known().list->empty();
  }

  Task<void> probe_in_round(std::shared_ptr<Upstream> upstream, std::shared_ptr<Checks> own) {
    const Busy busy(own->round);
    const auto start = steady_clock::now();
    const auto found = co_await net::probe(io, *upstream, times.probe_timeout, stop);
    if (found == net::Reachability::kReachable) {
      revive(*upstream, *own);
    } else if (found == net::Reachability::kUnreachable && upstream->alive() &&
               own->revived <= start) {  // a retry may have reached it in the meantime
      upstream->set_alive(false);
      log::warn("cannot reach a backend", {{"backend", upstream->address()}});
    }
  }

  /// After a short pause: if a request failed, the backend may have closed just that connection.
  Task<void> retry(std::shared_ptr<Upstream> upstream, std::shared_ptr<Checks> own) {
    const Busy busy(own->retry);
    const auto timeout = std::min(times.probe_timeout, times.retry_interval);
    const auto found = co_await net::probe(io, *upstream, timeout, stop);
    if (found == net::Reachability::kReachable) {
      revive(*upstream, *own);
    }
  }

  static void revive(Upstream& upstream, Checks& own) {
    if (!upstream.hangs() && !upstream.alive()) {
      own.revived = steady_clock::now();
      upstream.set_alive(true);
      log::info("a backend can be reached again", {{"backend", upstream.address()}});
    }
  }

  Task<void> send_request(HealthTarget target, std::shared_ptr<Checks> own) {
    const Busy busy(own->request);
    const bool doubted = target.upstream->doubted();
    target.upstream->set_doubted(false);
    net::Timer ended(io.get_executor(), steady_clock::time_point::max());
    std::optional<bool> responds;
    std::jthread waiting;
    try {
      waiting = std::jthread([&] {
        try {
          responds = target.responds();
        } catch (const std::exception& error) {
          log::error("cannot send a health request to a backend", {{"err", error.what()}});
        }
        asio::post(io, [&ended] { ended.cancel(); });
      });
      threads_short = false;
    } catch (const std::system_error& error) {
      if (!std::exchange(threads_short, true)) {
        log::error("cannot start a thread for health requests", {{"err", error.what()}});
      }
      round_due = true;  // try again soon
      co_return;
    }
    net::ErrorCondition ignored;
    auto token = asio::redirect_error(net::kAwait, ignored);
    co_await ended.async_wait(token);
    waiting.join();
    if (responds && doubted && !*responds) {
      target.upstream->set_alive(false);  // until it accepts connections
      log::warn("a backend closes connections without an answer",
                {{"backend", target.upstream->address()}});
    } else if (responds) {
      set_hangs(*target.upstream, !*responds);
    }
  }

  void set_hangs(Upstream& upstream, bool hangs) {
    if (hangs && !upstream.hangs()) {
      log::warn("a backend accepts connections but does not answer",
                {{"backend", upstream.address()}});
    }
    if (!hangs && upstream.hangs()) {
      check_now();  // it gets requests again once a probe succeeds
    }
    upstream.set_hangs(hangs);
    if (hangs) {
      upstream.set_alive(false);
    }
  }

  Targets targets;
  HealthTimes times;
  asio::io_context io{1};
  std::stop_token stop;
  net::Timer next{io.get_executor()};
  bool round_due = true;
  bool threads_short = false;  ///< the lack of threads was logged
  std::map<std::shared_ptr<Upstream>, std::shared_ptr<Checks>> checks;
  std::jthread thread;  // last, so that it ends before the other members are destroyed
};

HealthChecker::HealthChecker(Targets targets, const HealthTimes& times)
    : impl_(std::make_unique<Impl>(std::move(targets), times)) {}

HealthChecker::~HealthChecker() = default;

void HealthChecker::check_now() {
  impl_->check_now();
}

}  // namespace ceems::lb

#include "lb/health.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <exception>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <system_error>
#include <thread>
#include <utility>

#include "base/fd.h"
#include "base/log.h"

namespace ceems::lb {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kNoRoom{20};   // before a full unix socket is asked again
constexpr milliseconds kNoBell{100};  // between looks whether to stop where nothing can tell

/// Wakes a thread that polls.
class Bell {
 public:
  void ring() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(fd_.get(), &one, sizeof one);
  }
  void still() const {
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t taken = ::read(fd_.get(), &count, sizeof count);
  }
  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  UniqueFd fd_{::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
};

/// A socket on its way to one of the addresses of a server.
class Try {
 public:
  explicit Try(const net::SocketAddress& address)
      : address_(address),
        fd_(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
    short_ = !fd_.valid() && net::is_shortage(errno);
    begin();
  }
  void begin() {
    if (!fd_.valid()) {
      return;
    }
    const bool begun = ::connect(fd_.get(), address_.data(), address_.size()) == 0;
    no_room_ = !begun && errno == EAGAIN;
    if (!begun && !no_room_ && errno != EINPROGRESS) {
      short_ = net::is_shortage(errno);
      fd_.reset();
    }
  }
  [[nodiscard]] bool is_short() const { return short_; }
  [[nodiscard]] bool failed() const { return !fd_.valid(); }
  /// Of a unix socket: not begun, and no use to poll it.
  [[nodiscard]] bool no_room() const { return no_room_; }
  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] const net::SocketAddress& address() const { return address_; }
  /// After something has happened to it.
  bool connected() {
    int error = 0;
    socklen_t size = sizeof error;
    const bool done =
        ::getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
    fd_.reset();
    return done;
  }

 private:
  net::SocketAddress address_;
  UniqueFd fd_;
  bool no_room_ = false;
  bool short_ = false;
};

/// All that is tried of one server: it may listen on one address of its name only.
class Trial {
 public:
  Trial(net::Upstream& server, std::size_t place, const Bell& bell)
      : addresses_(&server.addresses()),
        place_(place),
        waiting_(std::make_unique<net::ServerAddresses::Waiting>(*addresses_,
                                                                 [&bell] { bell.ring(); })) {
    take(addresses_->get(milliseconds(0)));
  }
  [[nodiscard]] std::size_t place() const { return place_; }
  void finish() { finished_ = true; }
  [[nodiscard]] bool finished() const { return finished_; }
  /// Begins what has become known or possible since.
  void go_on() {
    if (looking_) {
      take(addresses_->known());
    }
    for (Try& one : tries_) {
      if (one.no_room()) {
        one.begin();
      }
    }
  }
  [[nodiscard]] bool failed() const {
    return !looking_ && std::ranges::all_of(tries_, &Try::failed);
  }
  /// Of what has failed, or come to nothing in time.
  [[nodiscard]] Verdict failure() const {
    return std::ranges::any_of(tries_, &Try::is_short) ? Verdict::kNotKnown : Verdict::kGone;
  }
  [[nodiscard]] bool no_room() const { return std::ranges::any_of(tries_, &Try::no_room); }

  void add_to(std::vector<pollfd>& waiting) const {
    for (const Try& one : tries_) {
      const int fd = one.no_room() ? -1 : one.fd();  // poll(2) passes those below 0 over
      waiting.push_back({.fd = fd, .events = POLLOUT, .revents = 0});
    }
  }
  /// Takes its part of what add_to() added.
  bool connected(std::span<const pollfd>& happened) {
    bool any = false;
    for (Try& one : tries_) {
      any = (happened.front().revents != 0 && one.connected()) || any;
      happened = happened.subspan(1);
    }
    return any;
  }

 private:
  void take(const net::ServerAddresses::Known& known) {
    looking_ = known.looking;
    for (const net::SocketAddress& address : *known.list) {
      if (std::ranges::find(tries_, address, &Try::address) == tries_.end()) {
        tries_.emplace_back(address);
      }
    }
  }

  net::ServerAddresses* addresses_;
  std::size_t place_;
  std::unique_ptr<net::ServerAddresses::Waiting> waiting_;
  bool looking_ = false;
  bool finished_ = false;
  std::vector<Try> tries_;
};

}  // namespace

void probe(const std::vector<std::shared_ptr<net::Upstream>>& servers,
           milliseconds patience,
           const std::stop_token& stop,
           const std::function<void(std::size_t place, Verdict verdict)>& decided) {
  const Bell bell;
  const std::stop_callback on_stop(stop, [&bell] { bell.ring(); });
  std::vector<Trial> trials;
  trials.reserve(servers.size());
  for (const auto& server : servers) {
    trials.emplace_back(*server, trials.size(), bell);
  }
  const auto end = steady_clock::now() + patience;
  while (!stop.stop_requested()) {
    const auto left = std::chrono::ceil<milliseconds>(end - steady_clock::now());
    for (Trial& trial : trials) {
      trial.go_on();
      if (trial.failed() || left.count() <= 0) {
        trial.finish();
        decided(trial.place(), trial.failure());
      }
    }
    std::erase_if(trials, [](const Trial& trial) { return trial.finished(); });
    if (trials.empty()) {
      return;
    }
    std::vector<pollfd> waiting = {{.fd = bell.fd(), .events = POLLIN, .revents = 0}};
    for (const Trial& trial : trials) {
      trial.add_to(waiting);
    }
    auto wait = std::ranges::any_of(trials, &Trial::no_room) ? std::min(left, kNoRoom) : left;
    wait = bell.fd() < 0 ? std::min(wait, kNoBell) : wait;
    ::poll(waiting.data(), waiting.size(), static_cast<int>(wait.count()));
    bell.still();
    std::span<const pollfd> happened = std::span(waiting).subspan(1);
    for (Trial& trial : trials) {
      if (trial.connected(happened)) {
        trial.finish();
        decided(trial.place(), Verdict::kTakesConnections);
      }
    }
    std::erase_if(trials, [](const Trial& trial) { return trial.finished(); });
  }
}

void LookNow::ask() {
  const std::scoped_lock lock(mutex_);
  asked_ = true;
  wake_.notify_all();
}

bool LookNow::wait(const std::stop_token& stop, milliseconds time) {
  std::unique_lock lock(mutex_);
  wake_.wait_for(lock, stop, time, [this] { return asked_; });
  return std::exchange(asked_, false);
}

namespace {

/// Work that others do not wait for, each on a thread of its own; its ends are waited for when this
/// goes. Calls come from one thread.
class Beside {
 public:
  /// False where no thread can be had, which is logged once.
  bool run(std::function<void()> work) {
    std::erase_if(jobs_, [](const Job& job) { return job.over->load(); });
    auto over = std::make_shared<std::atomic<bool>>(false);
    try {
      std::jthread thread([over, work = std::move(work)] {
        work();
        *over = true;
      });
      jobs_.push_back({.over = std::move(over), .thread = std::move(thread)});
    } catch (const std::system_error& error) {
      if (!std::exchange(told_, true)) {
        log::error("backends cannot be looked at: no thread", {{"err", error.what()}});
      }
      return false;
    }
    told_ = false;
    return true;
  }

 private:
  struct Job {
    std::shared_ptr<std::atomic<bool>> over;
    std::jthread thread;
  };
  std::vector<Job> jobs_;
  bool told_ = false;
};

class Watch {
 public:
  Watch(const std::stop_token& stop, const WatchTimes& times, LookNow& wake)
      : stop_(stop), times_(times), wake_(&wake) {}

  /// One look at the servers, which waits for none of them; `all`: also at those that seem well.
  /// False where it could not be had.
  bool look(const std::vector<Watched>& watched, bool all) {
    forget_others(watched);
    bool done = true;
    for (const Watched& one : watched) {
      done = ask(one, all) && done;
    }
    return try_connections(watched, all) && done;
  }

 private:
  using Servers = std::vector<std::shared_ptr<net::Upstream>>;
  using Busy = std::set<const net::Upstream*>;

  void forget_others(const std::vector<Watched>& watched) {
    const std::scoped_lock lock(mutex_);
    std::erase_if(came_back_, [&](const auto& entry) {
      return std::ranges::none_of(
          watched, [&](const Watched& one) { return one.upstream.get() == entry.first; });
    });
  }

  /// Asks one that has said nothing for so long; with `again` also one that did not answer before.
  /// One whose name is not found yet has not even been connected.
  bool ask(const Watched& one, bool again) {
    net::Upstream& server = *one.upstream;
    const bool suspect = server.hangs() ? again : server.silence() >= times_.silence;
    if (!suspect || server.addresses().known().list->empty()) {
      return true;
    }
    {
      const std::scoped_lock lock(mutex_);
      if (!asked_.insert(&server).second) {
        return true;  // it is thinking
      }
    }
    const bool begun = beside_.run([this, one] {
      std::optional<bool> answers;
      try {
        answers = one.answers();
      } catch (const std::exception& error) {
        log::error("a backend cannot be asked", {{"err", error.what()}});
      }
      const std::scoped_lock lock(mutex_);
      asked_.erase(one.upstream.get());
      if (answers) {
        set_hangs(*one.upstream, !*answers);
      }
    });
    if (!begun) {
      const std::scoped_lock lock(mutex_);
      asked_.erase(&server);
    }
    return begun;
  }

  /// Under the lock: whoever marks a server must have seen what others made of it.
  void set_hangs(net::Upstream& server, bool hangs) {
    if (server.hangs() && !hangs) {
      wake_->ask();  // it gets requests again when a connection to it has been tried
    }
    if (hangs && !server.hangs()) {
      log::warn("a backend takes connections but answers nothing", {{"backend", server.address()}});
    }
    server.set_hangs(hangs);
    if (hangs) {
      server.set_alive(false);
    }
  }

  /// Between the rounds those that are gone are tried, for a short while: one that a request found
  /// gone may have closed a connection and nothing else.
  bool try_connections(const std::vector<Watched>& watched, bool all) {
    Busy& busy = all ? tried_ : glanced_;
    Servers servers;
    Busy meant;
    {
      const std::scoped_lock lock(mutex_);
      for (const Watched& one : watched) {
        const bool due = all || (!one.upstream->alive() && !one.upstream->hangs());
        if (due && busy.insert(one.upstream.get()).second) {
          servers.push_back(one.upstream);
          meant.insert(one.upstream.get());
        }
      }
    }
    if (servers.empty()) {
      return true;
    }
    const auto patience = all ? times_.patience : std::min(times_.patience, times_.glance);
    const auto trying = [this, &busy, all, start = steady_clock::now(), patience,
                         servers](Busy& left) {
      probe(servers, patience, stop_, [&](std::size_t place, Verdict verdict) {
        const std::scoped_lock lock(mutex_);
        net::Upstream& server = *servers[place];
        left.erase(&server);  // the others may take longer
        busy.erase(&server);
        decide(server, verdict, all, start);
      });
    };
    const auto leave = [this, &busy](const Busy& left) {
      const std::scoped_lock lock(mutex_);
      for (const net::Upstream* const server : left) {
        busy.erase(server);
      }
    };
    const bool begun = beside_.run([trying, leave, left = meant]() mutable {
      try {
        trying(left);
      } catch (const std::exception& error) {
        log::error("backends cannot be looked at", {{"err", error.what()}});
      }
      leave(left);
    });
    if (!begun) {
      leave(meant);
    }
    return begun;
  }

  /// Under the lock. A glance only brings back; and what was tried before a glance brought the
  /// server back says nothing against it.
  void decide(net::Upstream& server, Verdict verdict, bool all, steady_clock::time_point start) {
    if (verdict == Verdict::kTakesConnections) {
      if (!server.hangs() && !server.alive()) {
        came_back_[&server] = steady_clock::now();
        server.set_alive(true);
        log::info("a backend is back", {{"backend", server.address()}});
      }
      return;
    }
    const auto back = came_back_.find(&server);
    const bool old = back != came_back_.end() && back->second > start;
    if (verdict == Verdict::kGone && all && !old && server.alive()) {
      server.set_alive(false);
      log::warn("a backend cannot be reached", {{"backend", server.address()}});
    }
  }

  std::stop_token stop_;
  WatchTimes times_;
  LookNow* wake_;
  std::mutex mutex_;
  Busy asked_ CEEMS_GUARDED_BY(mutex_);
  Busy tried_ CEEMS_GUARDED_BY(mutex_);
  Busy glanced_ CEEMS_GUARDED_BY(mutex_);
  std::map<const net::Upstream*, steady_clock::time_point> came_back_ CEEMS_GUARDED_BY(mutex_);
  Beside beside_;  // ended before all the rest
};

}  // namespace

void keep_watch(const std::stop_token& stop,
                const std::function<std::vector<Watched>()>& servers,
                const WatchTimes& times,
                LookNow* now) {
  LookNow nobody;
  LookNow& wake = now == nullptr ? nobody : *now;
  Watch watch(stop, times, wake);
  steady_clock::time_point next{};
  bool asked = true;
  while (!stop.stop_requested()) {
    const auto time = steady_clock::now();
    const bool all = asked || time >= next;
    const bool done = watch.look(servers(), all);
    if (all) {
      next = done ? time + times.interval : time;
    }
    asked = wake.wait(stop, times.glance);
  }
}

}  // namespace ceems::lb

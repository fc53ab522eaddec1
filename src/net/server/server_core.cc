#include "net/server/server_core.h"

#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "net/server/connection.h"

namespace ceems::net {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

ServerCore::ServerCore(ServerOptions server_options, Handler request_handler)
    : options(std::move(server_options)),
      handler(std::move(request_handler)),
      memory(options.request_memory
                 ? options.request_memory
                 : std::make_shared<RequestMemory>(ServerOptions::kDefaultRequestMemory)) {}

void ServerCore::start_workers() {
  workers =
      std::make_unique<asio::thread_pool>(static_cast<std::size_t>(std::max(1, options.threads)));
  if (web) {
    passwords = std::make_unique<asio::thread_pool>(1);
  }
  if (options.urgent) {
    urgent = std::make_unique<asio::thread_pool>(1);
  }
  if (options.waits) {
    waiters =
        std::make_unique<asio::thread_pool>(static_cast<std::size_t>(std::max(1, options.threads)));
  }
}

void ServerCore::join_workers() {
  for (auto* const pool : {workers.get(), passwords.get(), urgent.get(), waiters.get()}) {
    if (pool != nullptr) {
      pool->join();
    }
  }
}

void ServerCore::wake_worker() {
  asio::post(*workers, [this] {
    if (auto job = queue.take()) {  // none: it was dropped
      job(Turn::kRun);
    }
  });
}

void ServerCore::wake_waiting() {
  asio::post(*waiters, [this] {
    if (auto job = waiting_queue.take()) {
      job(Turn::kRun);
      wake_waiting();  // another of this user may run now
    }
  });
}

void ServerCore::watch_queue() {
  if (std::exchange(watching_queue, true)) {
    return;
  }
  constexpr int kLooks = 10;  // in the time that a request may wait
  queue_timer.expires_after(
      std::clamp(options.queue_timeout / kLooks, milliseconds(10), milliseconds(1000)));
  queue_timer.async_wait([this](const ErrorCondition& error) {
    watching_queue = false;
    if (!error) {
      drop_late();
    }
  });
}

void ServerCore::drop_late() {
  const auto now = steady_clock::now();
  bool waiting = false;
  for (const auto& [key, weak] : connections) {
    if (const auto connection = weak.lock()) {
      waiting = connection->drop_if_late(now) || waiting;
    }
  }
  if (waiting) {
    watch_queue();
  }
}

void ServerCore::count(Dropped what) const {
  if (options.on_dropped) {
    options.on_dropped(what);
  }
}

void ServerCore::give_memory_back() {
  asio::post(*workers, [this] {
    if (options.give_memory_back) {
      options.give_memory_back();
    } else {
      ::malloc_trim(0);
    }
  });
}

void ServerCore::give_memory_back_later() {
  if (options.give_back_after.count() == 0 || std::exchange(giving_back, true)) {
    return;
  }
  give_back_timer.expires_after(options.give_back_after);
  give_back_timer.async_wait([this](const ErrorCondition& error) {
    giving_back = false;
    if (!error) {
      give_memory_back();
    }
  });
}

const std::string& ServerCore::http_date() {
  const std::time_t now = std::time(nullptr);
  if (now != date_of) {
    constexpr std::array kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    constexpr std::array kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                    "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    std::tm utc{};
    gmtime_r(&now, &utc);
    date = fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT",
                       kDays.at(static_cast<std::size_t>(utc.tm_wday)), utc.tm_mday,
                       kMonths.at(static_cast<std::size_t>(utc.tm_mon)), utc.tm_year + 1900,
                       utc.tm_hour, utc.tm_min, utc.tm_sec);
    date_of = now;
  }
  return date;
}

std::string_view to_string(Dropped what) {
  constexpr std::array<std::string_view, 4> kNames = {"slow_reader", "late", "client_gone",
                                                      "memory"};
  return kNames.at(static_cast<std::size_t>(what));
}

std::size_t connections_allowed(std::size_t wanted, std::size_t open_files, std::size_t share) {
  constexpr std::size_t kMin = 8;  // enough to say what is wrong
  return std::min(wanted, std::max(kMin, open_files / std::max<std::size_t>(1, share)));
}

std::size_t open_file_limit() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == RLIM_INFINITY) {
    return std::numeric_limits<std::size_t>::max();
  }
  return files.rlim_cur;
}

}  // namespace ceems::net

#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "net/upstream.h"

namespace ceems::lb {

/// Tries a connection to each address of each server at the same time, those known before and those
/// that a new lookup of its name finds. Calls `decided` once for each server, by its place in
/// `servers`, as soon as it is clear whether it took one before `patience` was over. Ends early
/// when stopped; nothing is decided then.
void probe(const std::vector<std::shared_ptr<net::Upstream>>& servers,
           std::chrono::milliseconds patience,
           const std::stop_token& stop,
           const std::function<void(std::size_t place, bool alive)>& decided);

/// A server and a question to it that any answer will do for; false when none came in time.
struct Watched {
  std::shared_ptr<net::Upstream> upstream;
  std::function<bool()> answers;
};

struct WatchTimes {
  std::chrono::milliseconds interval{20'000};  ///< between connections that are tried to all
  std::chrono::milliseconds patience{10'000};  ///< with each
  std::chrono::milliseconds glance{2500};      ///< between looks at those that are gone or silent
  std::chrono::milliseconds silence{5000};     ///< after which a server is asked
};

/// Probes the servers that `servers` names, at once and then every interval, those that are gone
/// at every glance; those that requests wait for in vain are asked a question. Marks them alive or
/// not and logs every change. Returns soon after it is stopped: names and connections are not
/// waited for then, questions are.
void keep_watch(const std::stop_token& stop,
                const std::function<std::vector<Watched>()>& servers,
                const WatchTimes& times = {});

}  // namespace ceems::lb

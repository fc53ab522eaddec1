#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "net/upstream.h"

namespace ceems::lb {

/// Tries a TCP connection to each address of each server at the same time. True for those that took
/// one before `patience` was over.
std::vector<bool> probe(const std::vector<std::shared_ptr<net::Upstream>>& servers,
                        std::chrono::milliseconds patience);

/// A server and a question to it that any answer will do for; false when none came in time.
struct Watched {
  std::shared_ptr<net::Upstream> upstream;
  std::function<bool()> answers;
};

struct WatchTimes {
  std::chrono::milliseconds interval{20'000};  ///< between connections that are tried
  std::chrono::milliseconds patience{10'000};  ///< with each
  std::chrono::milliseconds glance{2500};      ///< between looks for servers that say nothing
  std::chrono::milliseconds silence{5000};     ///< after which a server is asked
};

/// Probes the servers that `servers` names, at once and then every interval; those that requests
/// wait for in vain are asked a question. Marks them alive or not and logs every change. Returns
/// when stopped.
void keep_watch(const std::stop_token& stop,
                const std::function<std::vector<Watched>()>& servers,
                const WatchTimes& times = {});

}  // namespace ceems::lb

#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "net/upstream.h"

namespace ceems::lb {

/// Tries a TCP connection to each server at the same time. True for those that took it before
/// `patience` was over.
std::vector<bool> probe(const std::vector<std::shared_ptr<net::Upstream>>& servers,
                        std::chrono::milliseconds patience);

/// Probes the servers that `servers` names, at once and then every `interval`, marks them alive or
/// not, and logs every change. Returns when stopped.
void keep_watch(const std::stop_token& stop,
                const std::function<std::vector<std::shared_ptr<net::Upstream>>()>& servers,
                std::chrono::milliseconds interval,
                std::chrono::milliseconds patience);

}  // namespace ceems::lb

#pragma once

// Internal to what runs an io_context: shows Asio.

#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <vector>

#include "net/relay/upstream.h"
#include "net/stream.h"

namespace ceems::net {

/// Connections to an upstream that wait for their next request. I/O thread only.
struct Upstream::Kept {
  struct Entry {
    std::unique_ptr<Stream> stream;
    std::chrono::steady_clock::time_point since;
  };
  std::vector<Entry> entries;  // the youngest last
};

/// Opens `socket` and connects it. There is no time limit: the caller closes the socket to end the
/// wait, which then fails with asio::error::operation_aborted.
Task<void> connect_socket(Socket& socket, const SocketAddress& address, ErrorCondition& error);

/// Does this machine lack descriptors or memory? Such a failure says nothing about the server.
/// EADDRNOTAVAIL is no such error: [::1] gives it where there is no IPv6.
bool is_shortage(const ErrorCondition& error);

enum class Reachability : std::uint8_t {
  kUnknown,  ///< stopped, or this machine is short of descriptors or memory
  kUnreachable,
  kReachable,
};

/// Finds out whether a server takes connections. Tries all its addresses at the same time, those
/// known before and those that a new lookup of its name finds. Ends as soon as one connection is
/// made or all have failed, when the time is over, and when stopped, which any thread may do.
/// `upstream` and `io` must outlive it; run `io` on one thread, until it has nothing left to do.
Task<Reachability> probe(asio::io_context& io,
                         Upstream& upstream,
                         std::chrono::milliseconds timeout,
                         std::stop_token stop);

}  // namespace ceems::net

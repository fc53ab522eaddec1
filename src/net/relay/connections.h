#pragma once

// Internal to code that runs an io_context, because it exposes Asio.

#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <vector>

#include "net/relay/upstream.h"
#include "net/stream.h"

namespace ceems::net {

/// The idle connections to an upstream. Used on the I/O thread only.
struct Upstream::Kept {
  struct Entry {
    std::unique_ptr<Stream> stream;
    std::chrono::steady_clock::time_point since;
  };
  std::vector<Entry> entries;  // the newest last
};

/// Opens `socket` and connects it. There is no time limit: the caller closes the socket to end the
/// wait, which then fails with asio::error::operation_aborted.
Task<void> connect_socket(Socket& socket, const SocketAddress& address, ErrorCondition& error);

/// True if this machine lacks descriptors or memory. Such a failure says nothing about the server.
/// EADDRNOTAVAIL is not such an error, because connecting to [::1] gives it on a machine without
/// IPv6.
bool is_shortage(const ErrorCondition& error);

enum class Reachability : std::uint8_t {
  kUnknown,  ///< stopped, or this machine is short of descriptors or memory
  kUnreachable,
  kReachable,
};

/// Finds out whether a server accepts connections. Tries all its addresses at the same time: those
/// that are known and those that a new lookup of its name finds. Ends when one connection is made,
/// when all have failed, after `timeout`, or when `stop` is requested, which any thread may do.
/// `upstream` and `io` must outlive the probe. Run `io` on one thread until it has nothing left to
/// do.
Task<Reachability> probe(asio::io_context& io,
                         Upstream& upstream,
                         std::chrono::milliseconds timeout,
                         std::stop_token stop);

}  // namespace ceems::net

#pragma once

// Internal to what runs an io_context: shows Asio.

#include <chrono>
#include <memory>
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

}  // namespace ceems::net

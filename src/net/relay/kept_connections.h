#pragma once

// Internal to the server: shows Asio.

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

}  // namespace ceems::net

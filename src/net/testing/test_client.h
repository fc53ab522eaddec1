#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "net/http.h"

namespace ceems::net {

/// A response as received, parsed by this test client and not by the code under test.
struct RawAnswer {
  int status = 0;
  Headers headers;
  std::string body;  ///< with chunks joined
  bool complete = false;
  [[nodiscard]] std::string header(std::string_view name) const;
};

/// A blocking socket that sends exactly the bytes a test gives it.
class RawConnection {
 public:
  /// "127.0.0.1:1234", "[::1]:1234" or "unix:/path".
  explicit RawConnection(const std::string& address);

  [[nodiscard]] bool connected() const { return fd_.valid(); }
  [[nodiscard]] int fd() const { return fd_.get(); }
  bool send(std::string_view bytes) const;  // NOLINT(modernize-use-nodiscard): answer() tells
  /// Reads one response. It is incomplete if the connection ends or nothing arrives for `patience`.
  RawAnswer answer(bool head = false,
                   std::chrono::milliseconds patience = std::chrono::seconds(60));
  /// True if the server closes the connection within `time`. Discards what it sends before.
  bool ended_within(std::chrono::milliseconds time);

 private:
  bool fill(std::chrono::milliseconds patience);
  UniqueFd fd_;
  std::string received_;
};

/// Sends a GET with "Connection: close" on a new connection.
RawAnswer raw_get(const std::string& address,
                  const std::string& target,
                  const Headers& headers = {});

}  // namespace ceems::net

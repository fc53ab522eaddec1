#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "net/http.h"

namespace ceems::net {

struct RequestLimits {
  std::size_t max_header_bytes = 16384;
  std::size_t max_body_bytes = 1U << 20U;
};

/// An incremental parser that takes the text of one HTTP/1.0 or 1.1 request (RFC 9112) and gives a
/// Request. Bytes that feed() leaves, such as an incomplete header, must be passed again with the
/// next call. Not thread-safe.
class RequestParser {
 public:
  enum class State { kHeader, kBody, kDone, kFailed };

  explicit RequestParser(RequestLimits limits);
  ~RequestParser();
  RequestParser(const RequestParser&) = delete;
  RequestParser& operator=(const RequestParser&) = delete;

  /// Parses `data`, which begins with the bytes that the last call left, and returns how many bytes
  /// at its front are used up. Never uses bytes after the request.
  std::size_t feed(std::string_view data);
  [[nodiscard]] State state() const;

  /// In kFailed: the status and the reason to respond with.
  [[nodiscard]] int failure_status() const;
  [[nodiscard]] const std::string& failure() const;

  /// Valid from kBody on; the body is complete in kDone. The caller may move out of it.
  [[nodiscard]] Request& request();
  /// The announced size of the body; nothing if it is sent in chunks.
  [[nodiscard]] std::optional<std::uint64_t> body_bytes() const;
  [[nodiscard]] bool keep_alive() const;
  [[nodiscard]] bool http_1_0() const;
  /// The client waits for "100 Continue" before it sends the body.
  [[nodiscard]] bool expects_continue() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ceems::net

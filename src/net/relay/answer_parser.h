#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "net/http.h"

namespace ceems::net {

/// Incremental parser of one HTTP/1.x answer (RFC 9112): bytes in, pieces of the body out. The
/// bytes of a header must be offered again until it is complete. Not thread-safe.
class AnswerParser {
 public:
  enum class State { kHeader, kBody, kDone, kFailed };

  /// `to_head`: the answer to HEAD has no body, whatever its fields say.
  explicit AnswerParser(bool to_head, std::size_t max_header_bytes = 65536);
  ~AnswerParser();
  AnswerParser(const AnswerParser&) = delete;
  AnswerParser& operator=(const AnswerParser&) = delete;

  /// Looks at `data`, which starts with what the last call left, appends what of the body is in it
  /// to `body`, and says how many bytes of its front are used up. Interim answers (1xx) are left
  /// out.
  std::size_t feed(std::string_view data, std::string& body);
  /// The server has closed the connection: the end of a body without length, else a failure.
  void end();
  [[nodiscard]] State state() const;
  [[nodiscard]] const std::string& failure() const;

  // From kBody on:
  [[nodiscard]] int status() const;
  [[nodiscard]] const Headers& headers() const;
  [[nodiscard]] std::optional<std::uint64_t> length() const;  ///< of the body, if it was told
  [[nodiscard]] bool keep_alive() const;  ///< the connection can take another request after kDone

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  bool to_head_;
  std::size_t max_header_bytes_;
};

}  // namespace ceems::net

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "net/http.h"

namespace ceems::net {

/// An incremental parser of one HTTP/1.x response (RFC 9112) that takes bytes and gives pieces of
/// the body. Bytes that feed() leaves, such as an incomplete header, must be passed again with the
/// next call. Not thread-safe.
class AnswerParser {
 public:
  enum class State { kHeader, kBody, kDone, kFailed };

  /// `to_head`: the response is one to HEAD, which has no body whatever its fields say.
  explicit AnswerParser(bool to_head, std::size_t max_header_bytes = 65536);
  ~AnswerParser();
  AnswerParser(const AnswerParser&) = delete;
  AnswerParser& operator=(const AnswerParser&) = delete;

  /// Parses `data`, which begins with the bytes that the last call left, and appends the bytes of
  /// the body in it to `body`. Returns how many bytes at the front of `data` are used up. Interim
  /// responses (1xx) are skipped.
  std::size_t feed(std::string_view data, std::string& body);
  /// Reports that the server has closed the connection. This ends a body without a length; before
  /// the end of any other response it is a failure.
  void end();
  [[nodiscard]] State state() const;
  [[nodiscard]] const std::string& failure() const;

  // Valid from kBody on:
  [[nodiscard]] int status() const;
  [[nodiscard]] const Headers& headers() const;
  [[nodiscard]] std::optional<std::uint64_t> length() const;  ///< of the body, if given
  [[nodiscard]] bool keep_alive() const;  ///< in kDone: the connection can be used again

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  bool to_head_;
  std::size_t max_header_bytes_;
};

}  // namespace ceems::net

#pragma once

// Internal to the parsers of requests and answers: shows Beast.

#include <cstddef>
#include <cstdint>

#include <boost/beast/http/basic_parser.hpp>

namespace ceems::net {

/// What both parsers do with bodies, in chunks (RFC 9112 §7.1) or not: all bytes go to take_body().
template <bool is_request>
class ChunkedParser : public boost::beast::http::basic_parser<is_request> {
 public:
  /// Between chunks Beast 1.81 asserts that the shortest end of a body, "0" and two line ends, is
  /// there when it looks at a last chunk again. True where it must not be given so few bytes: more
  /// will come, or the body is broken.
  [[nodiscard]] bool wants_more_than(std::size_t bytes) const {
    constexpr std::size_t kShortestEnd = 5;
    return this->is_header_done() && this->chunked() && chunk_left_ == 0 && bytes < kShortestEnd;
  }

 protected:
  virtual void take_body(boost::beast::string_view text) = 0;

  std::size_t on_body_impl(boost::beast::string_view text,
                           boost::beast::error_code& /*error*/) final {
    take_body(text);
    return text.size();
  }
  void on_chunk_header_impl(std::uint64_t size,
                            boost::beast::string_view /*extensions*/,
                            boost::beast::error_code& /*error*/) final {
    chunk_left_ = size;
  }
  std::size_t on_chunk_body_impl(std::uint64_t /*remain*/,
                                 boost::beast::string_view text,
                                 boost::beast::error_code& /*error*/) final {
    chunk_left_ -= text.size();
    take_body(text);
    return text.size();
  }

 private:
  std::uint64_t chunk_left_ = 0;  // bytes of the chunk that are still to come
};

}  // namespace ceems::net

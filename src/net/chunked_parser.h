#pragma once

// Internal to the parsers of requests and answers: shows Beast.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>

namespace ceems::net {

/// What both parsers do: a header's fields go to take_field(), those behind the last chunk to
/// nobody (RFC 9110 §6.5.1: who does not know a trailer field must not merge it into the header);
/// bodies, in chunks (RFC 9112 §7.1) or not, go to take_body().
template <bool is_request>
class ChunkedParser : public boost::beast::http::basic_parser<is_request> {
 public:
  explicit ChunkedParser(std::size_t max_header_bytes)
      : max_bytes_(max_header_bytes), left_(max_header_bytes) {
    this->eager(true);
  }

  /// put(), with bounds that Beast does not keep: it counts a header's bytes anew at each call and
  /// behind the first line, and those of a line between chunks and of trailers not at all.
  std::size_t put_bounded(std::string_view data, boost::beast::error_code& error) {
    namespace http = boost::beast::http;
    if (!this->is_header_done()) {
      this->header_limit(static_cast<std::uint32_t>(left_));
    }
    const std::size_t used = this->put(boost::asio::buffer(data.data(), data.size()), error);
    left_ = this->is_header_done() ? max_bytes_ : left_ - std::min(used, left_);
    if (error == http::error::need_more && data.size() - used > left_) {
      error = http::error::header_limit;
    }
    return used;
  }

  /// Between chunks Beast 1.81 asserts that the shortest end of a body, "0" and two line ends, is
  /// there when it looks at a last chunk again. True where it must not be given so few bytes: more
  /// will come, or the body is broken.
  [[nodiscard]] bool wants_more_than(std::size_t bytes) const {
    constexpr std::size_t kShortestEnd = 5;
    return this->is_header_done() && this->chunked() && chunk_left_ == 0 && bytes < kShortestEnd;
  }

 protected:
  /// To be called with the first line, whose bytes count as the header's.
  void count_first_line(std::size_t bytes) {
    this->header_limit(static_cast<std::uint32_t>(left_ - std::min(bytes, left_)));
  }

  virtual void take_field(boost::beast::http::field name,
                          boost::beast::string_view text,
                          boost::beast::string_view value) = 0;
  virtual void take_body(boost::beast::string_view text) = 0;

  void on_field_impl(boost::beast::http::field name,
                     boost::beast::string_view text,
                     boost::beast::string_view value,
                     boost::beast::error_code& error) final {
    if (this->is_header_done()) {
      return;
    }
    if (++fields_ > kMaxFields) {
      error = boost::beast::http::error::header_limit;
      return;
    }
    take_field(name, text, value);
  }

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
  static constexpr std::size_t kMaxFields = 500;

  std::size_t max_bytes_;
  std::size_t left_;  // how long what is not complete may be: the rest of the header, or a line
  std::size_t fields_ = 0;
  std::uint64_t chunk_left_ = 0;  // bytes of the chunk that are still to come
};

}  // namespace ceems::net

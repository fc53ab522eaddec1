#pragma once

// Internal to the parsers of requests and responses, because it exposes Beast.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>

namespace ceems::net {

/// The common part of both parsers. Header fields go to take_field(). Trailer fields are dropped,
/// because a recipient must not merge a trailer field that it does not understand into the header
/// (RFC 9110 §6.5.1). Bodies, chunked (RFC 9112 §7.1) or not, go to take_body().
template <bool is_request>
class ChunkedParser : public boost::beast::http::basic_parser<is_request> {
 public:
  explicit ChunkedParser(std::size_t max_header_bytes)
      : max_bytes_(max_header_bytes), left_(max_header_bytes) {
    this->eager(true);
  }

  /// Calls put() and enforces limits that Beast does not. Beast starts counting the bytes of a
  /// header again in each call and after the first line, and it does not limit chunk-size lines and
  /// trailers at all.
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

  /// True if the parser must not be given so few bytes: either more will come, or the body is
  /// broken. Between chunks, when Beast 1.81 looks at a last chunk again, it asserts that at least
  /// the shortest end of a body, "0" and two line ends, is present.
  [[nodiscard]] bool wants_more_than(std::size_t bytes) const {
    constexpr std::size_t kShortestEnd = 5;
    return this->is_header_done() && this->chunked() && chunk_left_ == 0 && bytes < kShortestEnd;
  }

 protected:
  /// Must be called with the size of the first line, which counts towards the limit of the header.
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
  std::size_t left_;  // bytes allowed for the rest of the header, or for a line after it
  std::size_t fields_ = 0;
  std::uint64_t chunk_left_ = 0;  // bytes of the chunk still to come
};

}  // namespace ceems::net

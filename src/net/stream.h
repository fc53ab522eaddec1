#pragma once

// Internal to the server and the relay, because it exposes Asio.

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>

struct ssl_ctx_st;

namespace ceems::net {

namespace asio = boost::asio;
using ErrorCondition = boost::system::error_code;
using IoExecutor = asio::io_context::executor_type;
template <typename T>
using Task = asio::awaitable<T, IoExecutor>;
using Socket = asio::basic_stream_socket<asio::generic::stream_protocol, IoExecutor>;
using Timer = asio::basic_waitable_timer<std::chrono::steady_clock,
                                         asio::wait_traits<std::chrono::steady_clock>,
                                         IoExecutor>;
inline constexpr asio::use_awaitable_t<IoExecutor> kAwait;

/// The bytes of one connection, plain or TLS. Used on the I/O thread only.
class Stream {
 public:
  Stream() = default;
  virtual ~Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  virtual Socket& socket() = 0;
  /// Performs the TLS handshake. Does nothing for a plain stream.
  virtual Task<void> handshake(ErrorCondition& error) = 0;
  /// Reads at least one byte, or reports an error. The end of the stream is an error.
  virtual Task<std::size_t> read(asio::mutable_buffer into, ErrorCondition& error) = 0;
  /// Writes both texts completely, or reports an error.
  virtual Task<void> write(std::string_view first,
                           std::string_view second,
                           ErrorCondition& error) = 0;
  /// Tells the peer that nothing more will be sent.
  virtual Task<void> end(ErrorCondition& error) = 0;
};

/// Resizes `text` without initialising the new bytes, because the next read overwrites them.
inline void resize_for_read(std::string& text, std::size_t size) {
  text.resize_and_overwrite(size, [](char* /*begin*/, std::size_t count) { return count; });
}

std::unique_ptr<Stream> plain_stream(Socket socket);
/// The server side of TLS.
std::unique_ptr<Stream> tls_stream(Socket socket, const std::shared_ptr<ssl_ctx_st>& context);
/// The client side of TLS. It sends `name` as the server name (RFC 6066 §3), unless that is an IP
/// address.
std::unique_ptr<Stream> tls_client_stream(Socket socket,
                                          const std::shared_ptr<ssl_ctx_st>& context,
                                          const std::string& name);

}  // namespace ceems::net

#include "net/stream.h"

#include <arpa/inet.h>

#include <array>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <openssl/ssl.h>

namespace ceems::net {

namespace {

class PlainStream final : public Stream {
 public:
  explicit PlainStream(Socket socket) : socket_(std::move(socket)) {}

  Socket& socket() override { return socket_; }
  Task<void> handshake(ErrorCondition& /*error*/) override { co_return; }
  Task<std::size_t> read(asio::mutable_buffer into, ErrorCondition& error) override {
    auto token = asio::redirect_error(kAwait, error);
    const std::size_t count = co_await socket_.async_read_some(into, token);
    co_return count;
  }
  Task<void> write(std::string_view first,
                   std::string_view second,
                   ErrorCondition& error) override {
    const std::array<asio::const_buffer, 2> buffers = {asio::buffer(first), asio::buffer(second)};
    auto token = asio::redirect_error(kAwait, error);
    co_await asio::async_write(socket_, buffers, token);
  }
  Task<void> end(ErrorCondition& error) override {
    static_cast<void>(socket_.shutdown(Socket::shutdown_send, error));
    co_return;
  }

 private:
  Socket socket_;
};

class TlsStream final : public Stream {
 public:
  TlsStream(Socket socket, SSL_CTX* context, asio::ssl::stream_base::handshake_type side)
      : context_(context), stream_(std::move(socket), context_), side_(side) {}

  SSL* native() { return stream_.native_handle(); }

  Socket& socket() override { return stream_.next_layer(); }
  Task<void> handshake(ErrorCondition& error) override {
    auto token = asio::redirect_error(kAwait, error);
    co_await stream_.async_handshake(side_, token);
  }
  Task<std::size_t> read(asio::mutable_buffer into, ErrorCondition& error) override {
    auto token = asio::redirect_error(kAwait, error);
    const std::size_t count = co_await stream_.async_read_some(into, token);
    co_return count;
  }
  Task<void> write(std::string_view first,
                   std::string_view second,
                   ErrorCondition& error) override {
    const std::array<asio::const_buffer, 2> buffers = {asio::buffer(first), asio::buffer(second)};
    auto token = asio::redirect_error(kAwait, error);
    co_await asio::async_write(stream_, buffers, token);
  }
  Task<void> end(ErrorCondition& error) override {
    auto token = asio::redirect_error(kAwait, error);
    co_await stream_.async_shutdown(token);
  }

 private:
  asio::ssl::context context_;  // owns the reference it was given
  asio::ssl::stream<Socket> stream_;
  asio::ssl::stream_base::handshake_type side_;
};

}  // namespace

std::unique_ptr<Stream> plain_stream(Socket socket) {
  return std::make_unique<PlainStream>(std::move(socket));
}

std::unique_ptr<Stream> tls_stream(Socket socket, const std::shared_ptr<ssl_ctx_st>& context) {
  SSL_CTX_up_ref(context.get());
  return std::make_unique<TlsStream>(std::move(socket), context.get(),
                                     asio::ssl::stream_base::server);
}

std::unique_ptr<Stream> tls_client_stream(Socket socket,
                                          const std::shared_ptr<ssl_ctx_st>& context,
                                          const std::string& name) {
  SSL_CTX_up_ref(context.get());
  auto stream =
      std::make_unique<TlsStream>(std::move(socket), context.get(), asio::ssl::stream_base::client);
  std::array<unsigned char, 16> address{};
  if (inet_pton(AF_INET, name.c_str(), address.data()) != 1 &&
      inet_pton(AF_INET6, name.c_str(), address.data()) != 1) {
    SSL_set_tlsext_host_name(stream->native(), name.c_str());
  }
  return stream;
}

}  // namespace ceems::net

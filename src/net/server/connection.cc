#include "net/server/connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include <boost/asio/redirect_error.hpp>
#include <fmt/format.h>

#include "base/log.h"
#include "base/strings.h"

namespace ceems::net {

using std::chrono::steady_clock;

namespace {

/// A client must receive this much within one write timeout.
constexpr std::size_t kWriteSlice = std::size_t{256} * 1024;

}  // namespace

Connection::Connection(ServerCore& core, Socket socket, std::string peer)
    : core_(core),
      stream_(plain_stream(std::move(socket))),
      peer_(std::move(peer)),
      timer_(core.io.get_executor()) {}

Task<void> Connection::serve(std::shared_ptr<Connection> self) {
  bool more = true;
  if (self->core_.web && self->core_.web->tls()) {
    more = co_await self->start_tls();
  }
  while (more) {
    more = co_await self->serve_one();
    if (self->core_.memory->burst_is_over()) {
      self->core_.give_memory_back();
    }
    self->core_.give_memory_back_later();
  }
  if (self->cut_) {
    self->reset();
  } else {
    co_await self->linger();
  }
  self->disarm();
  self->close();
}

void Connection::close() {
  ErrorCondition ignored;
  (void)stream_->socket().close(ignored);
}

/// Makes close() send a reset. This is for a response that broke off and whose end is the end of
/// the connection: an orderly close would make it look complete.
void Connection::reset() {
  ErrorCondition ignored;
  const asio::socket_base::linger no_wait(true, 0);
  static_cast<void>(stream_->socket().set_option(no_wait, ignored));
}

void Connection::arm(std::chrono::milliseconds time) {
  deadline_ = steady_clock::now() + time;
  if (!watched_ || deadline_ < timer_.expiry()) {
    watch();
  }
}

void Connection::disarm() {
  deadline_ = steady_clock::time_point::max();
}

void Connection::watch() {
  watched_ = true;
  timer_.expires_at(deadline_);
  timer_.async_wait([weak = weak_from_this()](const ErrorCondition& error) {
    const auto self = weak.lock();
    // If the timer was set again, its old completion may already have been queued.
    if (error || !self || self->timer_.expiry() > steady_clock::now()) {
      return;
    }
    self->watched_ = false;
    if (self->deadline_ <= steady_clock::now()) {
      self->timed_out_ = true;
      self->close();
    } else if (self->deadline_ != steady_clock::time_point::max()) {
      self->watch();
    }
  });
}

std::chrono::milliseconds Connection::first_byte_timeout() const {
  constexpr std::chrono::milliseconds kFirstByte{10'000};
  return std::min(core_.options.idle_timeout, kFirstByte);
}

Task<bool> Connection::start_tls() {
  arm(first_byte_timeout());
  ErrorCondition error;
  char first = 0;
  ssize_t count = -1;
  do {  // a wait may also end because of an event for a socket closed before
    auto token = asio::redirect_error(kAwait, error);
    co_await stream_->socket().async_wait(Socket::wait_read, token);
    if (error) {
      co_return false;
    }
    count = ::recv(stream_->socket().native_handle(), &first, 1, MSG_PEEK | MSG_DONTWAIT);
  } while (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR));
  if (count != 1) {
    co_return false;
  }
  arm(core_.options.header_timeout);
  if (first >= 'A' && first <= 'Z') {  // a TLS record starts with 22
    co_await answer_plain_http();
    co_return false;
  }
  const auto context = core_.web->tls_context();
  if (!context) {
    co_return false;
  }
  stream_ = tls_stream(std::move(stream_->socket()), context);
  tls_ = true;
  idle_ = false;
  co_await stream_->handshake(error);
  if (error) {
    log::debug("TLS handshake failed", {{"peer", peer_}, {"err", error.message()}});
    co_return false;
  }
  idle_ = true;
  co_return true;
}

Task<void> Connection::answer_plain_http() {
  const auto now = steady_clock::now();
  if (now - core_.hinted > std::chrono::minutes(1)) {
    core_.hinted = now;
    log::warn("Plain HTTP request on a TLS port", {{"peer", peer_}});
  }
  constexpr std::string_view kAnswer =
      "HTTP/1.0 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\n"
      "Connection: close\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";
  drain_ = true;
  co_await write(kAnswer, {});
}

Task<bool> Connection::send(Exchange& exchange, const Headers& extra) {
  const std::string header = header_text(exchange, extra, core_.http_date());
  if (!sends_body(exchange)) {
    co_return co_await write(header, {});
  }
  if (exchange.streaming) {
    const bool sent = co_await write(header, {});
    if (!sent) {
      co_return false;
    }
    co_return co_await send_pieces(exchange);
  }
  std::string_view body = exchange.response.body;
  std::string_view slice = body.substr(0, kWriteSlice);
  bool sent = co_await write(header, slice);
  body.remove_prefix(slice.size());
  while (sent && !body.empty()) {
    slice = body.substr(0, kWriteSlice);
    sent = co_await write(slice, {});
    body.remove_prefix(slice.size());
  }
  co_return sent;
}

Task<bool> Connection::send_pieces(Exchange& exchange) {
  std::string piece = std::move(exchange.response.body);
  const std::function<void()> take = [&exchange, &piece] { piece = next_piece(exchange); };
  bool last = false;
  while (!last) {
    if (piece.empty()) {
      co_await in_turn(exchange.request, take, false);
    }
    if (exchange.failed) {
      cut_ = exchange.http_1_0;
      co_return false;  // the client notices the missing last chunk
    }
    last = piece.empty();
    if (exchange.http_1_0) {
      const bool sent = last || co_await write(piece, {});
      if (!sent) {
        co_return false;
      }
    } else {
      const std::string size = fmt::format("{:x}\r\n", piece.size());
      piece += "\r\n";
      const bool sent = co_await write(size, piece);
      if (!sent) {
        co_return false;
      }
    }
    piece.clear();
  }
  co_return true;
}

/// True if the client has closed the connection. Nothing reads from the socket meanwhile, so it is
/// polled. POLLRDHUP reports the close even if unread bytes precede it, such as the alert that ends
/// TLS.
bool Connection::client_gone() {
  if (!stream_->socket().is_open()) {
    return true;  // closed by stop()
  }
  pollfd wait{.fd = stream_->socket().native_handle(), .events = POLLRDHUP, .revents = 0};
  return ::poll(&wait, 1, 0) == 1;
}

Task<bool> Connection::pass_on(Exchange& exchange, const Headers& extra) {
  const std::shared_ptr<Relay> relay = std::move(exchange.response.relay);
  Relaying relaying(core_.io, core_.keepers, *relay, [this] { return client_gone(); });
  const bool answered = co_await relaying.start();
  if (!answered) {
    exchange.response = std::move(relay->unavailable);
    co_return co_await send(exchange, extra);
  }
  co_return co_await send_relayed(exchange, relaying, extra);
}

Task<bool> Connection::send_relayed(Exchange& exchange, Relaying& relaying, const Headers& extra) {
  Response& response = exchange.response;
  response.status = relaying.answer().status();
  response.headers = without_hop_fields(relaying.answer().headers());
  if (relaying.filtered()) {
    std::erase_if(response.headers, [](const auto& field) {
      const std::string low = to_lower(field.first);
      return low == "etag" || low == "content-md5" || low == "digest" || low == "accept-ranges" ||
             low == "content-encoding";
    });
  }
  const bool has_body = sends_body(exchange);
  exchange.length = relaying.length();
  exchange.streaming = !exchange.length && has_body_of_get(exchange);
  if (exchange.streaming && exchange.http_1_0) {
    exchange.keep_alive = false;
  }
  const std::string header = header_text(exchange, extra, core_.http_date());
  std::string piece;
  bool first = true;
  while (true) {
    const bool whole = co_await relaying.next(piece);
    if (!whole && first && relaying.filtered()) {
      // Nothing has been sent yet, so send a clear error instead of half a response.
      exchange.response = {};
      exchange.streaming = false;
      exchange.length.reset();
      constexpr int kBadGateway = 502;
      plain_text(exchange.response, kBadGateway, "Bad Gateway");
      relaying.end().status = kBadGateway;
      co_return co_await send(exchange, extra);
    }
    if (!whole) {
      cut_ = exchange.http_1_0;
      co_return false;  // the client notices the missing end
    }
    const bool last = piece.empty();
    std::string framed;
    if (has_body && exchange.streaming && !exchange.http_1_0) {
      framed = fmt::format("{:x}\r\n", piece.size());
      piece += "\r\n";
    }
    if (!has_body) {
      piece.clear();
    }
    if (first) {
      framed.insert(0, header);
      first = false;
    }
    if (!framed.empty() || !piece.empty()) {
      const bool sent = co_await write(framed, piece);
      if (!sent) {
        relaying.end().error = "the client does not take the answer";
        co_return false;
      }
    }
    if (last) {
      co_return true;
    }
  }
}

Task<bool> Connection::write(std::string_view first, std::string_view second) {
  arm(core_.options.write_timeout);
  ErrorCondition error;
  co_await stream_->write(first, second, error);
  disarm();
  if (error && timed_out_) {
    core_.count(Dropped::kSlowReader);
  }
  co_return !error;
}

/// Ends this side of the connection, and then reads for a while what still arrives. Closing a
/// socket with unread bytes would make the kernel send a reset, which may overtake the response.
Task<void> Connection::linger() {
  constexpr std::size_t kMaxUnreadBytes = std::size_t{256} * 1024;
  constexpr std::chrono::milliseconds kMaxLinger{500};
  ErrorCondition error;
  arm(kMaxLinger);
  idle_ = true;  // stop() may end this early
  if (!stream_->socket().is_open()) {
    co_return;
  }
  co_await stream_->end(error);
  if (!drain_) {
    co_return;
  }
  std::array<char, 4096> unused{};
  std::size_t total = 0;
  while (!error && total < kMaxUnreadBytes) {
    total += co_await stream_->read(asio::buffer(unused), error);
  }
}

}  // namespace ceems::net

#include "net/server/connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <exception>

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <fmt/format.h>

#include "base/log.h"
#include "base/strings.h"

namespace ceems::net {

using std::chrono::steady_clock;

namespace {

constexpr std::size_t kHeaderPiece = 4096;
constexpr std::size_t kBodyPiece = 65536;
/// A client must receive this much within one write timeout.
constexpr std::size_t kWriteSlice = std::size_t{256} * 1024;

/// Runs `work` on the executor and then resumes on the I/O thread. `work` must not throw.
template <typename Executor, typename Work>
Task<void> run_on(const Executor& executor, Work& work) {
  auto start = [&executor, &work](auto done) {
    asio::post(executor, [&work, done = std::move(done)]() mutable {
      work();
      const auto io = asio::get_associated_executor(done);
      asio::post(io, std::move(done));
    });
  };
  auto token = kAwait;
  co_await asio::async_initiate<asio::use_awaitable_t<IoExecutor>, void()>(start, token);
}

}  // namespace

ServerCore::ServerCore(ServerOptions server_options, Handler request_handler)
    : options(std::move(server_options)), handler(std::move(request_handler)) {}

void ServerCore::start_workers() {
  workers =
      std::make_unique<asio::thread_pool>(static_cast<std::size_t>(std::max(1, options.threads)));
  password_checks =
      std::make_unique<asio::strand<asio::thread_pool::executor_type>>(workers->get_executor());
}

const std::string& ServerCore::http_date() {
  const std::time_t now = std::time(nullptr);
  if (now != date_of) {
    constexpr std::array kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    constexpr std::array kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                    "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    std::tm utc{};
    gmtime_r(&now, &utc);
    date = fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT",
                       kDays.at(static_cast<std::size_t>(utc.tm_wday)), utc.tm_mday,
                       kMonths.at(static_cast<std::size_t>(utc.tm_mon)), utc.tm_year + 1900,
                       utc.tm_hour, utc.tm_min, utc.tm_sec);
    date_of = now;
  }
  return date;
}

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
      self->close();
    } else if (self->deadline_ != steady_clock::time_point::max()) {
      self->watch();
    }
  });
}

Task<bool> Connection::start_tls() {
  arm(core_.options.header_timeout);
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

Task<std::size_t> Connection::read_more() {
  ErrorCondition error;
  if (received_.empty() && !tls_) {
    received_.shrink_to_fit();  // an idle connection holds no buffer
    auto token = asio::redirect_error(kAwait, error);
    co_await stream_->socket().async_wait(Socket::wait_read, token);
    if (error) {
      co_return 0;
    }
  }
  const std::size_t old = received_.size();
  resize_for_read(received_, old + (old < kHeaderPiece ? kHeaderPiece : kBodyPiece));
  const std::size_t count =
      co_await stream_->read(asio::buffer(received_.data() + old, received_.size() - old), error);
  received_.resize(old + (error ? 0 : count));
  co_return error ? 0 : count;
}

Task<bool> Connection::read_request(RequestParser& parser) {
  const ServerOptions& options = core_.options;
  auto started = steady_clock::now();
  idle_ = received_.empty();
  arm(first_ || !idle_ ? options.header_timeout : options.idle_timeout);
  if (idle_ && core_.stopping) {
    co_return false;
  }
  bool in_body = false;
  while (true) {
    received_.erase(0, parser.feed(received_));
    const auto state = parser.state();
    if (state == RequestParser::State::kDone || state == RequestParser::State::kFailed) {
      co_return true;
    }
    if (state == RequestParser::State::kBody && !in_body) {
      in_body = true;
      if (parser.expects_continue()) {
        const bool sent = co_await write("HTTP/1.1 100 Continue\r\n\r\n", {});
        if (!sent) {
          co_return false;
        }
      }
      const auto spent = steady_clock::now() - started;
      arm(std::max(
          std::chrono::milliseconds(0),
          std::chrono::duration_cast<std::chrono::milliseconds>(options.read_timeout - spent)));
    }
    const std::size_t count = co_await read_more();
    if (count == 0) {
      co_return false;
    }
    if (idle_) {
      idle_ = false;
      started = steady_clock::now();
      arm(options.header_timeout);
    }
  }
}

Task<bool> Connection::serve_one() {
  RequestParser parser({core_.options.max_header_bytes, core_.options.max_body_bytes});
  const bool complete = co_await read_request(parser);
  first_ = false;
  if (!complete) {
    co_return false;
  }
  if (parser.state() == RequestParser::State::kFailed) {
    co_return co_await refuse(parser);
  }
  disarm();
  Exchange exchange;
  exchange.request = std::move(parser.request());
  exchange.request.remote_address = peer_;
  exchange.request.tls = tls_;
  exchange.http_1_0 = parser.http_1_0();
  exchange.keep_alive = parser.keep_alive();

  std::shared_ptr<const WebRules> rules;
  if (!produce_inline(exchange)) {
    co_await produce(exchange, rules);
  }
  if (core_.stopping || (exchange.streaming && exchange.http_1_0)) {
    exchange.keep_alive = false;
  }
  static const Headers kNone;
  const Headers& extra = rules ? rules->headers : kNone;
  bool sent = false;
  if (exchange.response.relay) {
    sent = co_await pass_on(exchange, extra);
  } else {
    sent = co_await send(exchange, extra);
  }
  drain_ = !received_.empty();
  co_return sent&& exchange.keep_alive;
}

Task<bool> Connection::refuse(const RequestParser& parser) {
  Exchange exchange;
  const std::string_view status = status_text(parser.failure_status());
  const std::string why = parser.failure() == status ? "" : ": " + parser.failure();
  plain_text(exchange.response, parser.failure_status(),
             fmt::format("{} {}{}", parser.failure_status(), status, why));
  static const Headers kNone;
  drain_ = true;
  co_await send(exchange, kNone);
  co_return false;
}

/// Tries the inline handler, which saves the cost of switching to a worker and back.
bool Connection::produce_inline(Exchange& exchange) {
  if (!core_.options.inline_handler || core_.web) {
    return false;
  }
  try {
    if (core_.options.inline_handler(exchange.request, exchange.response) &&
        exchange.response.relay) {
      return true;
    }
  } catch (const std::exception& exception) {
    log::error("Handling a request failed", {{"err", exception.what()}});
  }
  exchange.response = {};
  return false;
}

/// Does everything from the complete request to a response that is ready to send, on worker
/// threads.
Task<void> Connection::produce(Exchange& exchange, std::shared_ptr<const WebRules>& rules) {
  WebAccess* const web = core_.web.get();
  auto verdict = WebAccess::Verdict::kAllowed;
  auto answer = [this, web, &exchange, &rules, &verdict] {
    if (web != nullptr && !rules) {
      plain_text(exchange.response, 500, "Internal Server Error");
    } else if (verdict == WebAccess::Verdict::kDenied) {
      plain_text(exchange.response, 401, "Unauthorized");
      exchange.response.set_header("WWW-Authenticate", "Basic");
    } else {
      run_handler(core_.handler, exchange);
    }
    prepare_body(exchange, core_.options.gzip_level);
  };
  auto begin = [web, &exchange, &rules, &verdict, &answer] {
    if (web != nullptr) {
      rules = web->rules();
      if (rules) {
        verdict = web->authorize(*rules, exchange.request);
      }
    }
    if (verdict != WebAccess::Verdict::kUnknown) {
      answer();
    }
  };
  co_await run_on(core_.workers->get_executor(), begin);
  if (verdict == WebAccess::Verdict::kUnknown) {
    auto check = [web, &exchange, &rules, &verdict] {
      verdict = web->check_password(*rules, exchange.request);
    };
    co_await run_on(*core_.password_checks, check);
    co_await run_on(core_.workers->get_executor(), answer);
  }
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
  auto take = [&exchange, &piece] { piece = next_piece(exchange); };
  bool last = false;
  while (!last) {
    if (piece.empty()) {
      co_await run_on(core_.workers->get_executor(), take);
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

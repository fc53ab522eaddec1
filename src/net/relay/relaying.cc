#include "net/relay/relaying.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <fmt/format.h>
#include <openssl/ssl.h>

#include "base/log.h"
#include "base/strings.h"
#include "net/relay/connections.h"

namespace ceems::net {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

namespace {

// Most responses are short, so the first read uses a small buffer.
constexpr std::size_t kFirstPiece = std::size_t{8} * 1024;
constexpr std::size_t kPiece = std::size_t{64} * 1024;
constexpr milliseconds kWatch{1000};  // how often to check that the client is still there

bool is_hop_field(std::string_view low) {
  return low == "connection" || low == "proxy-connection" || low == "keep-alive" ||
         low == "proxy-authenticate" || low == "proxy-authorization" || low == "te" ||
         low == "trailer" || low == "transfer-encoding" || low == "upgrade" || low == "expect";
}

std::string request_head(const Relay::Attempt& attempt, std::size_t body_bytes) {
  std::string head;
  head.reserve(512 + attempt.target.size());
  append_in_line(head, attempt.method);
  head += ' ';
  append_in_line(head, attempt.target);
  head += " HTTP/1.1\r\nHost: ";
  append_in_line(head, attempt.host);
  head += "\r\n";
  for (const auto& [name, value] : attempt.headers) {
    append_in_line(head, name);
    head += ": ";
    append_in_line(head, value);
    head += "\r\n";
  }
  if (body_bytes > 0 || attempt.method == "POST" || attempt.method == "PUT" ||
      attempt.method == "PATCH") {
    fmt::format_to(std::back_inserter(head), "Content-Length: {}\r\n", body_bytes);
  }
  head += "\r\n";
  return head;
}

/// True if the peer has closed the connection or has sent something unexpected.
bool is_stale(Stream& stream) {
  char byte = 0;
  const ssize_t count = ::recv(stream.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return count >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

}  // namespace

HopFields::HopFields(const Headers& headers) {
  for (const auto& [name, value] : headers) {
    if (!same_in_any_case(name, "connection")) {
      continue;
    }
    std::string_view rest = value;
    while (!rest.empty()) {
      const std::string_view part = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(part.size() + 1, rest.size()));
      named_.push_back(to_lower(trim(part)));
    }
  }
  std::ranges::sort(named_);
}

bool HopFields::contains(std::string_view low) const {
  return is_hop_field(low) || std::ranges::binary_search(named_, low);
}

Headers without_hop_fields(const Headers& headers) {
  const HopFields hop(headers);
  Headers kept;
  kept.reserve(headers.size());
  for (const auto& [name, value] : headers) {
    if (!hop.contains(to_lower(name))) {
      kept.emplace_back(name, value);
    }
  }
  return kept;
}

Keepers::~Keepers() {
  for (const auto& [key, weak] : all_) {
    if (const auto upstream = weak.lock()) {
      upstream->drop_kept();
    }
  }
}

void Keepers::add(const std::shared_ptr<Upstream>& upstream) {
  all_.insert_or_assign(upstream.get(), upstream);
  constexpr std::chrono::seconds kEvery{1};
  const auto now = steady_clock::now();
  if (now >= cleaned_ + kEvery) {
    cleaned_ = now;
    clean(now);
  }
}

void Keepers::clean(steady_clock::time_point now) {
  std::erase_if(all_, [now](const auto& known) {
    const auto upstream = known.second.lock();
    if (upstream) {
      std::erase_if(upstream->kept().entries, [&](const Upstream::Kept::Entry& entry) {
        return now - entry.since > upstream->options().keep_for;
      });
    }
    return !upstream || upstream->kept().entries.empty();
  });
}

Relaying::Relaying(asio::io_context& io,
                   Keepers& keepers,
                   Relay& relay,
                   std::function<bool()> client_gone)
    : io_(io),
      keepers_(keepers),
      relay_(relay),
      client_gone_(std::move(client_gone)),
      timer_(io.get_executor()) {}

Relaying::~Relaying() {
  *alive_ = false;
  if (relay_.done) {
    relay_.done(end_);
  }
}

void Relaying::arm(milliseconds time) {
  deadline_ = steady_clock::now() + time;
  if (!watched_ || deadline_ < timer_.expiry()) {
    watch();
  }
}

/// Ends the request when its time is up, the client has left or the server hangs. Closing the
/// socket ends every wait.
void Relaying::watch() {
  watched_ = true;
  static_cast<void>(timer_.expires_at(std::min(deadline_, steady_clock::now() + kWatch)));
  timer_.async_wait([this, alive = alive_](const ErrorCondition& error) {
    if (error || !*alive || timer_.expiry() > steady_clock::now()) {
      return;  // the timer was set again
    }
    watched_ = false;
    if (stream_ == nullptr) {
      return;
    }
    timed_out_ = steady_clock::now() >= deadline_;
    gone_ = !timed_out_ && client_gone_();
    abandoned_ = !timed_out_ && !gone_ && waiting_ && upstream_->hangs();
    if (timed_out_ || gone_ || abandoned_) {
      ErrorCondition ignored;
      static_cast<void>(stream_->socket().close(ignored));
    } else {
      watch();
    }
  });
}

Task<bool> Relaying::start() {
  std::vector<Upstream*> broken;  // servers that closed without an answer
  for (std::size_t i = 0; i < relay_.attempts.size(); ++i) {
    const Relay::Attempt& next = relay_.attempts[i];
    has_next_ = i + 1 < relay_.attempts.size();
    const Outcome outcome = co_await attempt(next);
    if (outcome == Outcome::kAnswered) {
      for (Upstream* const server : broken) {
        server->set_alive(false);  // this one answers the same request
      }
      end_.status = parser_->status();
      end_.error.clear();  // from a server tried before
      end_.upstream = upstream_.get();
      if (relay_.filter) {
        filter_ = relay_.filter(parser_->status(), parser_->headers());
        filtered_ = filter_ != nullptr;
        if (next.method == "HEAD") {
          filter_.reset();  // there is no body, and its filtered length is not known
        }
      }
      co_return true;
    }
    flight_.reset();
    if (gone_) {
      end_.error = "the client has left";
      co_return false;
    }
    const bool broke_off = outcome == Outcome::kMaybeSent && !timed_out_ && !abandoned_ && !local_;
    if (broke_off) {
      broken.push_back(next.upstream.get());
      ++end_.broken;
      next.upstream->broke_off(relay_.user);  // it may be the requests: they do not decide
    }
    if (!local_ &&
        ((outcome == Outcome::kNotSent) || (outcome == Outcome::kMaybeSent && abandoned_))) {
      next.upstream->set_alive(false);
    }
    log::warn("a backend does not answer",
              {{"backend", next.upstream->address()}, {"err", end_.error}});
    if (outcome != Outcome::kNotSent && (timed_out_ || !relay_.repeatable)) {
      break;
    }
  }
  if (timed_out_) {
    constexpr int kGatewayTimeout = 504;
    relay_.unavailable.status = kGatewayTimeout;
  }
  end_.status = relay_.unavailable.status;
  co_return false;
}

Task<Relaying::Outcome> Relaying::attempt(const Relay::Attempt& attempt) {
  upstream_ = attempt.upstream;
  flight_ = std::make_unique<Upstream::Flight>(*upstream_);
  timed_out_ = false;
  local_ = false;
  // The server may be closing a kept connection, so a request that must not be sent twice uses a
  // new one.
  const bool reused = relay_.repeatable && take_kept(*upstream_);
  if (reused) {
    const Outcome outcome = co_await exchange(attempt, true);
    // The server may have closed the connection at this moment, so try again on a new one.
    if (outcome == Outcome::kAnswered || timed_out_ || gone_ || abandoned_) {
      co_return outcome;
    }
  }
  const bool connected = co_await connect(*upstream_);
  if (!connected) {
    co_return Outcome::kNotSent;
  }
  co_return co_await exchange(attempt, false);
}

bool Relaying::take_kept(Upstream& upstream) {
  auto& entries = upstream.kept().entries;
  while (!entries.empty()) {
    Upstream::Kept::Entry entry = std::move(entries.back());
    entries.pop_back();
    const bool old = steady_clock::now() - entry.since > upstream.options().keep_for;
    if (!old && !is_stale(*entry.stream)) {
      stream_ = std::move(entry.stream);
      return true;
    }
  }
  return false;
}

/// Returns the known addresses at once. Waits for a lookup only if no address is known.
Task<ServerAddresses::Known> Relaying::find_addresses(Upstream& upstream) {
  ServerAddresses& addresses = upstream.addresses();
  ServerAddresses::Known known = addresses.get();
  if (!known.list->empty() || !known.looking) {
    co_return known;
  }
  auto timer = std::make_shared<Timer>(io_.get_executor());
  const ServerAddresses::Waiting waiting(
      addresses, [&io = io_, timer] { asio::post(io, [timer] { timer->cancel(); }); });
  const auto end = steady_clock::now() + upstream.options().connect_timeout;
  for (known = addresses.known(); known.looking && known.list->empty(); known = addresses.known()) {
    const auto now = steady_clock::now();
    timed_out_ = now >= end;
    gone_ = !timed_out_ && client_gone_();
    if (timed_out_ || gone_) {
      break;
    }
    static_cast<void>(timer->expires_at(std::min(end, now + kWatch)));
    ErrorCondition ignored;
    auto token = asio::redirect_error(kAwait, ignored);
    co_await timer->async_wait(token);
  }
  co_return known;
}

Task<bool> Relaying::connect(Upstream& upstream) {
  stream_.reset();
  const ServerAddresses::Known found = co_await find_addresses(upstream);
  if (found.list->empty()) {
    end_.error =
        timed_out_ ? "no address in time" : fmt::format("cannot find the address: {}", found.error);
    co_return false;
  }
  ErrorCondition error;
  for (const SocketAddress& address : *found.list) {
    timed_out_ = false;
    stream_ = plain_stream(Socket(io_.get_executor()));
    arm(upstream_->options().connect_timeout);
    co_await connect_socket(stream_->socket(), address, error);
    if (!error || gone_) {
      break;
    }
  }
  if (!error) {
    auto context = upstream.tls_context();
    if (!context) {
      local_ = true;
      end_.error = context.error().message;
      co_return false;
    }
    if (*context) {
      const std::string& name = upstream.options().tls.server_name.empty()
                                    ? upstream.options().host
                                    : upstream.options().tls.server_name;
      stream_ = tls_client_stream(std::move(stream_->socket()), *context, name);
      co_await stream_->handshake(error);
    }
  }
  if (error) {
    local_ = is_shortage(error);
    end_.error =
        timed_out_ ? "no connection in time" : fmt::format("no connection: {}", error.message());
    co_return false;
  }
  co_return true;
}

Task<Relaying::Outcome> Relaying::exchange(const Relay::Attempt& attempt, bool reused) {
  parser_ = std::make_unique<AnswerParser>(attempt.method == "HEAD");
  received_.clear();
  piece_ = kFirstPiece;
  body_.clear();
  abandoned_ = false;
  waiting_ = has_next_ && relay_.repeatable;
  arm(attempt.upstream->options().answer_timeout);
  ErrorCondition error;
  const std::string head = request_head(attempt, relay_.body.size());
  co_await stream_->write(head, relay_.body, error);
  // A server may reject a request before reading all of it. Then its response counts and not the
  // failed write.
  sent_whole_ = !error;
  while (parser_->state() == AnswerParser::State::kHeader) {
    const bool more = co_await read_more(milliseconds(0));
    if (!more) {
      break;
    }
  }
  waiting_ = false;
  const auto state = parser_->state();
  if (state == AnswerParser::State::kBody || state == AnswerParser::State::kDone) {
    deadline_ = steady_clock::time_point::max();
    co_return Outcome::kAnswered;
  }
  end_.error = timed_out_   ? "no answer in time"
               : abandoned_ ? "the server hangs"
               : state == AnswerParser::State::kFailed && !received_.empty()
                   ? fmt::format("invalid HTTP response: {}", parser_->failure())
               : reused ? "a kept connection was closed"
                        : "the connection was closed without an answer";
  stream_.reset();
  co_return reused ? Outcome::kKeptClosed : Outcome::kMaybeSent;
}

/// Reads once and parses. With a `patience` of 0, the current deadline stays in force.
Task<bool> Relaying::read_more(milliseconds patience) {
  if (patience.count() > 0) {
    arm(patience);
  }
  const std::size_t old = received_.size();
  resize_for_read(received_, old + piece_);
  ErrorCondition error;
  const std::size_t count =
      co_await stream_->read(asio::buffer(received_.data() + old, piece_), error);
  received_.resize(old + (error ? 0 : count));
  if (patience.count() > 0 && !timed_out_) {
    deadline_ = steady_clock::time_point::max();  // the client's time does not count
  }
  if (error) {
    if (error == asio::error::eof) {  // neither a reset nor closed by this side
      parser_->end();
    }
    co_return parser_->state() == AnswerParser::State::kDone;
  }
  piece_ = count == piece_ ? kPiece : piece_;
  upstream_->heard();
  received_.erase(0, parser_->feed(received_, body_));
  co_return parser_->state() != AnswerParser::State::kFailed;
}

Task<bool> Relaying::next(std::string& piece) {
  piece.clear();
  bool finished = false;
  while (piece.empty()) {
    if (body_.empty()) {
      if (parser_->state() == AnswerParser::State::kDone) {
        if (!filter_ || finished) {
          break;
        }
        finished = true;
        if (auto done = filter_->finish(piece); !done) {
          end_.error = done.error().message;
          co_return false;
        }
        filter_.reset();
        continue;
      }
      const bool more = co_await read_more(upstream_->options().idle_timeout);
      if (!more) {
        end_.error = gone_        ? "the client has left"
                     : timed_out_ ? "the answer stood still"
                                  : "the answer broke off";
        co_return false;
      }
      continue;
    }
    if (!filter_) {
      piece.swap(body_);
    } else if (auto fed = filter_->feed(body_, piece); !fed) {
      end_.error = fed.error().message;
      co_return false;
    }
    body_.clear();
  }
  end_.body_bytes += piece.size();
  if (piece.empty()) {
    keep();
  }
  co_return true;
}

std::optional<std::uint64_t> Relaying::length() const {
  return filtered_ ? std::nullopt : parser_->length();
}

/// Keeps the connection for the next request, if possible. Called at the end of a response.
void Relaying::keep() {
  flight_.reset();
  if (stream_ == nullptr || !sent_whole_ || !parser_->keep_alive() || !received_.empty()) {
    return;
  }
  auto& entries = upstream_->kept().entries;
  if (entries.size() < upstream_->options().max_kept) {
    entries.push_back({std::move(stream_), steady_clock::now()});
    keepers_.add(upstream_);
  }
}

}  // namespace ceems::net

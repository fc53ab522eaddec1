#include <exception>
#include <functional>
#include <limits>
#include <utility>

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <fmt/format.h>

#include "base/log.h"
#include "net/server/connection.h"

// The part of a connection from the first byte of a request to the response of the handler.

namespace ceems::net {

using std::chrono::steady_clock;

namespace {

constexpr std::size_t kHeaderPiece = 4096;
constexpr std::size_t kBodyPiece = 65536;
constexpr int kBusy = 503;
constexpr std::uint64_t kUnknown = std::numeric_limits<std::uint64_t>::max();

void refuse_in(Response& response, int status, std::string_view why) {
  const std::string_view text = status_text(status);
  plain_text(response, status,
             fmt::format("{} {}{}{}", status, text, why.empty() || why == text ? "" : ": ",
                         why == text ? "" : why));
}

}  // namespace

Task<std::size_t> Connection::read_more() {
  ErrorCondition error;
  if (received_.empty()) {
    received_.shrink_to_fit();  // an idle connection holds no buffer
  }
  if (received_.empty() && !tls_) {
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

/// Parses what was received. Returns false if it needs more memory than requests may occupy.
bool Connection::feed(RequestParser& parser, RequestMemory::Share& memory) {
  received_.erase(0, parser.feed(received_));
  const bool in_body = parser.state() == RequestParser::State::kBody;
  const std::size_t body = in_body ? parser.request().body.capacity() : 0;
  if (parser.state() == RequestParser::State::kDone) {
    return memory.resize(parser.request().body.capacity());
  }
  return memory.resize(received_.capacity() + body);
}

/// Reads up to the end of the header, and whatever came with it. Returns false if no client waits
/// for an answer.
Task<bool> Connection::read_header(RequestParser& parser, RequestMemory::Share& memory) {
  const ServerOptions& options = core_.options;
  idle_ = received_.empty();
  arm(!idle_ ? options.header_timeout : first_ ? first_byte_timeout() : options.idle_timeout);
  if (idle_ && core_.stopping) {
    co_return false;
  }
  while (true) {
    out_of_memory_ = !feed(parser, memory);
    if (out_of_memory_ || parser.state() != RequestParser::State::kHeader) {
      co_return true;
    }
    const std::size_t count = co_await read_more();
    if (count == 0) {
      co_return false;
    }
    if (idle_) {
      idle_ = false;
      arm(options.header_timeout);
    }
  }
}

Task<bool> Connection::read_body(RequestParser& parser, RequestMemory::Share& memory) {
  if (parser.expects_continue()) {
    const bool sent = co_await write("HTTP/1.1 100 Continue\r\n\r\n", {});
    if (!sent) {
      co_return false;
    }
  }
  arm(core_.options.read_timeout);
  while (!out_of_memory_ && parser.state() == RequestParser::State::kBody) {
    const std::size_t count = co_await read_more();
    if (count == 0) {
      co_return false;
    }
    out_of_memory_ = !feed(parser, memory);
  }
  co_return true;
}

Task<bool> Connection::serve_one() {
  RequestParser parser({core_.options.max_header_bytes, core_.options.max_body_bytes});
  RequestMemory::Share memory(*core_.memory);
  const bool complete = co_await read_header(parser, memory);
  first_ = false;
  if (!complete) {
    co_return false;
  }
  Exchange exchange;
  Access access;
  Turn turn = Turn::kRun;
  bool with_body = true;
  if (!out_of_memory_ && parser.state() == RequestParser::State::kBody) {
    disarm();
    if (parser.body_bytes().value_or(kUnknown) > core_.options.small_body_bytes) {
      turn = co_await admit(parser.request(), access, with_body);
    }
    if (turn == Turn::kRun && with_body) {
      const bool whole = co_await read_body(parser, memory);
      if (!whole) {
        co_return false;
      }
    }
  }
  if (parser.state() == RequestParser::State::kFailed) {
    co_return co_await refuse(parser.failure_status(), parser.failure());
  }
  if (out_of_memory_) {
    core_.count(Dropped::kMemory);
    co_return co_await refuse(kBusy, "too many requests at once");
  }
  disarm();
  const bool unread = parser.state() != RequestParser::State::kDone;
  exchange.request = std::move(parser.request());
  exchange.request.remote_address = peer_;
  exchange.request.tls = tls_;
  exchange.http_1_0 = parser.http_1_0();
  exchange.keep_alive = parser.keep_alive() && !unread;
  if (unread) {
    exchange.request.body_missing = true;
    exchange.request.body = {};
  }
  bool sent = false;
  if (turn == Turn::kRun) {
    sent = co_await answer(exchange, access);
  } else {
    sent = co_await answer_dropped(exchange, turn);
  }
  drain_ = unread || !received_.empty();
  co_return sent&& exchange.keep_alive;
}

/// Decides by the header whether the body is read.
Task<Turn> Connection::admit(Request& request, Access& access, bool& with_body) {
  request.remote_address = peer_;
  request.tls = tls_;
  Turn turn = Turn::kRun;
  if (core_.web) {
    turn = co_await authenticate(request, access);
    if (turn != Turn::kRun || !access.rules || access.verdict != WebAccess::Verdict::kAllowed) {
      with_body = false;
      co_return turn;
    }
  }
  if (core_.options.needs_body) {
    const std::function<void()> ask = [this, &request, &with_body] {
      try {
        with_body = core_.options.needs_body(request);
      } catch (const std::exception& exception) {
        with_body = false;
        log::error("Deciding by the header of a request failed", {{"err", exception.what()}});
      }
    };
    turn = co_await in_turn(request, ask, true);
  }
  co_return turn;
}

Task<bool> Connection::refuse(int status, std::string_view why) {
  Exchange exchange;
  refuse_in(exchange.response, status, why);
  if (status == kBusy) {
    exchange.response.set_header("Retry-After", "1");
  }
  static const Headers kNone;
  drain_ = true;
  co_await send(exchange, kNone);
  co_return false;
}

Task<bool> Connection::answer(Exchange& exchange, Access& access) {
  Turn turn = Turn::kRun;
  if (!produce_inline(exchange)) {
    turn = co_await produce(exchange, access);
  }
  if (turn != Turn::kRun) {
    co_return co_await answer_dropped(exchange, turn);
  }
  if (core_.stopping || (exchange.streaming && exchange.http_1_0)) {
    exchange.keep_alive = false;
  }
  exchange.request.body = {};  // a relay has its own
  static const Headers kNone;
  const Headers& extra = access.rules ? access.rules->headers : kNone;
  bool sent = false;
  if (exchange.response.relay) {
    sent = co_await pass_on(exchange, extra);
  } else {
    sent = co_await send(exchange, extra);
  }
  co_return sent;
}

/// The end of a request that a worker never took up.
Task<bool> Connection::answer_dropped(Exchange& exchange, Turn turn) {
  if (turn == Turn::kGone) {
    core_.count(Dropped::kGone);
    co_return false;
  }
  core_.count(Dropped::kLate);
  exchange.response = {};
  refuse_in(exchange.response, kBusy, "too many requests wait");
  exchange.response.set_header("Retry-After", "1");
  static const Headers kNone;
  const bool sent = co_await send(exchange, kNone);
  co_return sent;
}

/// Tries the inline handler, which saves the cost of switching to a worker and back.
bool Connection::produce_inline(Exchange& exchange) {
  if (!core_.options.inline_handler || core_.web || exchange.request.body_missing) {
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

/// Does everything from the request to a response that is ready to send, on other threads.
Task<Turn> Connection::produce(Exchange& exchange, Access& access) {
  const std::function<void()> answer = [this, &exchange, &access] {
    if (core_.web && !access.rules) {
      plain_text(exchange.response, 500, "Internal Server Error");
    } else if (access.verdict == WebAccess::Verdict::kDenied) {
      plain_text(exchange.response, 401, "Unauthorized");
      exchange.response.set_header("WWW-Authenticate", "Basic");
    } else {
      run_handler(core_.handler, exchange);
    }
    prepare_body(exchange, core_.options.gzip_level);
  };
  const std::function<void()> begin = [this, &exchange, &access, &answer] {
    look_up(exchange.request, access);
    if (access.verdict != WebAccess::Verdict::kUnknown) {
      answer();
    }
  };
  Turn turn = co_await in_turn(exchange.request, begin, true);
  if (turn == Turn::kRun && access.verdict == WebAccess::Verdict::kUnknown) {
    co_await check_password(exchange.request, access);
    turn = co_await in_turn(exchange.request, answer, true);
  }
  co_return turn;
}

/// Asks the web configuration, unless it was asked before. Only then is the verdict unknown.
void Connection::look_up(Request& request, Access& access) {
  if (!core_.web || std::exchange(access.decided, true)) {
    return;
  }
  access.rules = core_.web->rules();
  if (access.rules) {
    access.verdict = core_.web->authorize(*access.rules, request);
  }
}

Task<Turn> Connection::authenticate(Request& request, Access& access) {
  const std::function<void()> begin = [this, &request, &access] { look_up(request, access); };
  const Turn turn = co_await in_turn(request, begin, true);
  if (turn == Turn::kRun && access.verdict == WebAccess::Verdict::kUnknown) {
    co_await check_password(request, access);
  }
  co_return turn;
}

Task<void> Connection::check_password(Request& request, Access& access) {
  auto check = [this, &request, &access] {
    access.verdict = core_.web->check_password(*access.rules, request);
  };
  co_await run_on(core_.passwords->get_executor(), check);
}

Task<Turn> Connection::in_turn(Request& request,
                               const std::function<void()>& work,
                               bool droppable) {
  if (core_.urgent && core_.options.urgent(request)) {
    co_await run_on(core_.urgent->get_executor(), work);
    co_return Turn::kRun;
  }
  if (core_.options.brief && core_.options.brief(request)) {
    work();
    co_return Turn::kRun;
  }
  Turn turn = Turn::kRun;
  const bool waits = core_.waiters && core_.options.waits(request);
  if (waits && !request.given_up.stop_possible()) {
    given_up_.emplace();
    request.given_up = given_up_->get_token();
  }
  auto start = [this, &request, &work, &turn, droppable, waits](auto done) {
    auto job = [&work, &turn, done = std::move(done)](Turn given) mutable {
      turn = given;
      if (given == Turn::kRun) {
        work();
      }
      const auto io = asio::get_associated_executor(done);
      asio::post(io, std::move(done));
    };
    const auto& key = core_.options.queue_key;
    FairQueue& queue = waits ? core_.waiting_queue : core_.queue;
    auto ticket = queue.add(key ? key(request) : peer_, std::move(job));
    if (droppable) {
      wait_ = Wait{.queue = &queue, .ticket = std::move(ticket), .since = steady_clock::now()};
      core_.watch_queue();
    }
    waits ? core_.wake_waiting() : core_.wake_worker();
  };
  auto token = kAwait;
  co_await asio::async_initiate<asio::use_awaitable_t<IoExecutor>, void()>(start, token);
  wait_.reset();
  co_return turn;
}

bool Connection::drop_if_late(steady_clock::time_point now) {
  if (!wait_) {
    return false;
  }
  const bool late = now - wait_->since >= core_.options.queue_timeout;
  if (!late && !client_gone()) {
    return true;
  }
  if (auto job = wait_->queue->remove(wait_->ticket)) {  // none: a worker has just taken it
    job(late ? Turn::kLate : Turn::kGone);
  } else if (given_up_) {
    if (!client_gone()) {
      return true;
    }
    give_up();
  }
  wait_.reset();
  return false;
}

void Connection::give_up() {
  if (given_up_) {
    given_up_->request_stop();
  }
}

}  // namespace ceems::net

#include "net/server/request_parser.h"

#include "base/strings.h"
#include "net/chunked_parser.h"

namespace ceems::net {

namespace http = boost::beast::http;
using boost::beast::error_code;

namespace {

/// Splits the request target (RFC 9112 §3.2) into path and query. Returns false for a form that the
/// server does not support.
bool split_target(Request& request) {
  std::string_view target = request.target;
  if (target == "*" && request.method == "OPTIONS") {
    request.path = "*";
    return true;
  }
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (target.starts_with(scheme)) {
      const std::size_t slash = target.find_first_of("/?", scheme.size());
      target = slash == std::string_view::npos ? "/" : target.substr(slash);
      break;
    }
  }
  target = target.substr(0, target.find('#'));
  const std::size_t question = target.find('?');
  auto path = url_decode(target.substr(0, question));
  if (!path || !path->starts_with('/')) {
    return false;
  }
  request.path = *std::move(path);
  if (question != std::string_view::npos) {
    request.query = target.substr(question + 1);
  }
  return true;
}

/// True if a field continues on the next line (RFC 9112 §5.2). Such a request is rejected, because
/// other parsers may take that line for a separate field.
bool has_folded_field(std::string_view data) {
  if (data.starts_with("\r\n")) {
    return false;  // the end of the header: what follows is the body
  }
  const std::string_view header = data.substr(0, data.find("\r\n\r\n"));
  return header.find("\r\n ") != std::string_view::npos ||
         header.find("\r\n\t") != std::string_view::npos;
}

}  // namespace

struct RequestParser::Impl final : ChunkedParser<true> {
  Request request;
  State state = State::kHeader;
  int status = 400;
  std::string failure;
  int version = 11;
  int hosts = 0;
  int codings = 0;
  bool bad_coding = false;
  bool wants_continue = false;

  using ChunkedParser::ChunkedParser;

  void on_request_impl(http::verb /*method*/,
                       boost::beast::string_view method,
                       boost::beast::string_view target,
                       int http_version,
                       error_code& /*error*/) override {
    request.method.assign(method.data(), method.size());
    request.target.assign(target.data(), target.size());
    version = http_version;
    count_first_line(method.size() + target.size() + std::string_view("  HTTP/1.1\r\n").size());
  }
  void on_response_impl(int /*code*/,
                        boost::beast::string_view /*reason*/,
                        int /*version*/,
                        error_code& /*error*/) override {}
  void take_field(http::field name,
                  boost::beast::string_view text,
                  boost::beast::string_view value) override {
    request.headers.emplace_back(std::string(text.data(), text.size()),
                                 std::string(value.data(), value.size()));
    if (name == http::field::host) {
      ++hosts;
    } else if (name == http::field::expect) {
      wants_continue = to_lower(request.headers.back().second) == "100-continue";
    } else if (name == http::field::transfer_encoding) {
      bad_coding =
          version < 11 || ++codings > 1 || to_lower(request.headers.back().second) != "chunked";
    }
  }
  void on_header_impl(error_code& error) override {
    if (!split_target(request)) {
      reject("bad request target", error);
    } else if (hosts == 0 && version > 10) {
      reject("missing required Host header", error);
    } else if (hosts > 1) {
      reject("too many Host headers", error);
    } else if (bad_coding) {
      // Parsers do not agree where such a body ends (RFC 9112 §6.1).
      reject("unsupported transfer encoding", error);
    } else {
      state = State::kBody;
    }
  }
  void on_body_init_impl(const boost::optional<std::uint64_t>& length,
                         error_code& /*error*/) override {
    if (length) {
      // Reserve 64 KiB at most, because a client may announce a body that it never sends.
      request.body.reserve(static_cast<std::size_t>(std::min<std::uint64_t>(*length, 65536)));
    }
  }
  void take_body(boost::beast::string_view text) override {
    request.body.append(text.data(), text.size());
  }
  void on_finish_impl(error_code& /*error*/) override { state = State::kDone; }

  void reject(std::string_view why, error_code& error) {
    failure = why;
    error = http::error::bad_target;
  }

  void fail_with(const error_code& error) {
    state = State::kFailed;
    if (error == http::error::header_limit) {
      status = 431;
    } else if (error == http::error::body_limit) {
      status = 413;
    } else if (error == http::error::bad_version) {
      status = 505;
    }
    if (failure.empty()) {
      failure = status == 400 ? error.message() : std::string(status_text(status));
    }
  }
};

RequestParser::RequestParser(RequestLimits limits)
    : impl_(std::make_unique<Impl>(limits.max_header_bytes)) {
  impl_->body_limit(limits.max_body_bytes);
}
RequestParser::~RequestParser() = default;

std::size_t RequestParser::feed(std::string_view data) {
  std::size_t used = 0;
  while (impl_->state == State::kHeader || impl_->state == State::kBody) {
    error_code error;
    const std::string_view rest = data.substr(used);
    if (impl_->state == State::kHeader && has_folded_field(rest)) {
      impl_->reject("folded header field", error);
      impl_->fail_with(error);
      break;
    }
    if (impl_->wants_more_than(rest.size())) {
      break;
    }
    used += impl_->put_bounded(rest, error);
    if (error && error != http::error::need_more) {
      impl_->fail_with(error);
    } else if (error || used == data.size()) {
      break;
    }
  }
  return used;
}

RequestParser::State RequestParser::state() const {
  return impl_->state;
}
int RequestParser::failure_status() const {
  return impl_->status;
}
const std::string& RequestParser::failure() const {
  return impl_->failure;
}
Request& RequestParser::request() {
  return impl_->request;
}
std::optional<std::uint64_t> RequestParser::body_bytes() const {
  const auto length = impl_->content_length();
  return length ? std::optional<std::uint64_t>(*length) : std::nullopt;
}
bool RequestParser::keep_alive() const {
  return impl_->keep_alive();
}
bool RequestParser::http_1_0() const {
  return impl_->version < 11;
}
bool RequestParser::expects_continue() const {
  return impl_->wants_continue && !http_1_0();
}

}  // namespace ceems::net

#include "net/relay/answer_parser.h"

#include "net/chunked_parser.h"

namespace ceems::net {

namespace http = boost::beast::http;
using boost::beast::error_code;

struct AnswerParser::Impl final : ChunkedParser<false> {
  int code = 0;
  Headers fields;
  std::string* body = nullptr;
  State state = State::kHeader;
  std::string failure;

  Impl(bool to_head, std::size_t max_header_bytes) : ChunkedParser(max_header_bytes) {
    skip(to_head);
    body_limit(boost::none);
  }

  void on_request_impl(http::verb /*method*/,
                       boost::beast::string_view /*method_text*/,
                       boost::beast::string_view /*target*/,
                       int /*version*/,
                       error_code& /*error*/) override {}
  void on_response_impl(int status,
                        boost::beast::string_view /*reason*/,
                        int /*version*/,
                        error_code& /*error*/) override {
    code = status;
  }
  void take_field(http::field /*name*/,
                  boost::beast::string_view text,
                  boost::beast::string_view value) override {
    fields.emplace_back(std::string(text.data(), text.size()),
                        std::string(value.data(), value.size()));
  }
  void on_header_impl(error_code& /*error*/) override { state = State::kBody; }
  void on_body_init_impl(const boost::optional<std::uint64_t>& /*length*/,
                         error_code& /*error*/) override {}
  void take_body(boost::beast::string_view text) override {
    body->append(text.data(), text.size());
  }
  void on_finish_impl(error_code& /*error*/) override { state = State::kDone; }

  void fail_with(const error_code& error) {
    state = State::kFailed;
    failure = error.message();
  }
};

AnswerParser::AnswerParser(bool to_head, std::size_t max_header_bytes)
    : impl_(std::make_unique<Impl>(to_head, max_header_bytes)),
      to_head_(to_head),
      max_header_bytes_(max_header_bytes) {}

AnswerParser::~AnswerParser() = default;

std::size_t AnswerParser::feed(std::string_view data, std::string& body) {
  std::size_t used = 0;
  constexpr std::string_view kStart = "HTTP/";
  if (state() == State::kHeader && !impl_->got_some() &&
      data.substr(0, kStart.size()) != kStart.substr(0, data.size())) {
    impl_->fail_with(http::error::bad_version);  // Beast would wait for more
  }
  while (used < data.size() && state() != State::kDone && state() != State::kFailed) {
    impl_->body = &body;
    error_code error;
    const std::string_view rest = data.substr(used);
    if (impl_->wants_more_than(rest.size())) {
      break;
    }
    const std::size_t count = impl_->put_bounded(rest, error);
    used += count;
    if (error == http::error::need_more) {
      break;
    }
    if (error) {
      impl_->fail_with(error);
      break;
    }
    constexpr int kSwitchingProtocols = 101;  // is never requested
    if (state() != State::kHeader && (impl_->code < 100 || impl_->code == kSwitchingProtocols)) {
      impl_->fail_with(http::error::bad_status);
      break;
    }
    if (impl_->is_done() && impl_->code >= 100 && impl_->code < 200) {
      impl_ = std::make_unique<Impl>(to_head_, max_header_bytes_);
    } else if (count == 0) {
      break;
    }
  }
  return used;
}

void AnswerParser::end() {
  if (state() == State::kDone || state() == State::kFailed) {
    return;
  }
  error_code error = http::error::end_of_stream;
  if (state() == State::kBody) {
    impl_->put_eof(error);
  }
  if (error || state() != State::kDone) {
    impl_->fail_with(error ? error : error_code(http::error::partial_message));
  }
}

AnswerParser::State AnswerParser::state() const {
  return impl_->state;
}

const std::string& AnswerParser::failure() const {
  return impl_->failure;
}

int AnswerParser::status() const {
  return impl_->code;
}

const Headers& AnswerParser::headers() const {
  return impl_->fields;
}

std::optional<std::uint64_t> AnswerParser::length() const {
  constexpr int kNoContent = 204;
  constexpr int kNotModified = 304;
  const auto told = impl_->content_length();
  const bool has_none = !to_head_ && (impl_->code == kNoContent || impl_->code == kNotModified);
  return told && !has_none ? std::optional<std::uint64_t>(*told) : std::nullopt;
}

bool AnswerParser::keep_alive() const {
  return impl_->state == State::kDone && impl_->keep_alive();
}

}  // namespace ceems::net

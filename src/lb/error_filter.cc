#include "lb/error_filter.h"

#include <algorithm>
#include <array>

#include <boost/json.hpp>

#include "base/strings.h"
#include "store/json.h"

namespace ceems::lb {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxBodyBytes = std::size_t{64} << 10U;
constexpr std::size_t kDepth = 16;

constexpr std::array<std::string_view, 9> kTypes{"bad_data", "canceled",       "execution",
                                                 "internal", "not_acceptable", "not_found",
                                                 "timeout",  "unavailable",    "too_many_requests"};

constexpr std::string_view kWithheld =
    "the server's message is withheld: it may name labels that are hidden here";

/// What a message may be told by. Only these texts go out, never a part of the message.
constexpr std::array<std::string_view, 13> kKnown{
    "many-to-many matching not allowed: matching labels must be unique on one side",
    "multiple matches for labels: many-to-one matching must be explicit (group_left/group_right)",
    "multiple matches for labels: grouping labels must ensure unique matches",
    "vector cannot contain metrics with the same labelset",
    "query processing would load too many samples into memory",
    "query timed out",
    "query was canceled",
    "too many queries waiting for execution",
    "exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the query "
    "resolution (?step=XX)",
    "end timestamp must not be before start time",
    "zero or negative query resolution step widths are not accepted. Try a positive integer",
    "invalid parameter",
    "parse error"};

/// The type that Prometheus has for the status where the answer names none.
std::string_view type_of(int status) {
  switch (status) {
    case 400:
      return "bad_data";
    case 404:
      return "not_found";
    case 406:
      return "not_acceptable";
    case 422:
      return "execution";
    case 429:
      return "too_many_requests";
    case 503:
      return "unavailable";
    case 504:
      return "timeout";
    default:
      return "internal";
  }
}

std::string text_under(const json::object& object, std::string_view key) {
  const json::value* const value = object.if_contains(key);
  const json::string* const text = value == nullptr ? nullptr : value->if_string();
  return text == nullptr ? std::string() : std::string(*text);
}

}  // namespace

Result<> ErrorFilter::feed(std::string_view piece, std::string& /*out*/) {
  too_long_ = too_long_ || body_.size() + piece.size() > kMaxBodyBytes;
  if (too_long_) {
    body_.clear();
  } else if (is_json_) {
    body_ += piece;
  }
  return {};
}

Result<> ErrorFilter::finish(std::string& out) {
  if (!is_json_) {
    out += net::status_text(status_);
    out += '\n';
    return {};
  }
  std::string_view type = type_of(status_);
  std::string_view message = kWithheld;
  boost::system::error_code error;
  json::parse_options options;
  options.max_depth = kDepth;
  const json::value document = json::parse(body_, error, {}, options);
  if (const json::object* const object = error ? nullptr : document.if_object()) {
    const auto* const known = std::ranges::find(kTypes, text_under(*object, "errorType"));
    type = known == kTypes.end() ? type : *known;
    const std::string given = text_under(*object, "error");
    const auto* const told = std::ranges::find_if(
        kKnown, [&](std::string_view text) { return given.find(text) != std::string::npos; });
    message = told == kKnown.end() ? message : *told;
  }
  out += R"({"status":"error","errorType":)";
  store::append_json_string(out, type);
  out += R"(,"error":)";
  store::append_json_string(out, message);
  out += '}';
  return {};
}

std::unique_ptr<net::BodyFilter> make_error_filter(int status, const net::Headers& headers) {
  constexpr int kNotModified = 304;
  if (status < 300 || status == kNotModified) {
    return nullptr;
  }
  const std::string* const type = net::find_header(headers, "Content-Type");
  const bool is_json = type != nullptr && to_lower(*type).starts_with("application/json");
  return std::make_unique<ErrorFilter>(status, is_json);
}

}  // namespace ceems::lb

#include "lb/answer_filter.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include <boost/json.hpp>
#include <boost/json/basic_parser_impl.hpp>

#include "base/json.h"
#include "base/log.h"
#include "base/strings.h"

namespace ceems::lb {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxTextBytes = std::size_t{1} << 20U;
constexpr std::size_t kMaxDepth = 64;

/// Keys from the top level to the object with the labels; "[]" is an array.
using Path = std::span<const std::string_view>;
constexpr std::array<std::string_view, 4> kSamplePath = {"data", "result", "[]", "metric"};
constexpr std::array<std::string_view, 2> kSeriesPath = {"data", "[]"};
constexpr std::array<std::string_view, 3> kExemplarSeries = {"data", "[]", "seriesLabels"};
constexpr std::array<std::string_view, 5> kExemplarLabels = {"data", "[]", "exemplars", "[]",
                                                             "labels"};
constexpr std::array<std::string_view, 1> kNamesPath = {"data"};

/// Writes the document again while it is parsed. The parser requires these names of its functions.
struct Handler {
  // NOLINTBEGIN(readability-identifier-naming)
  static constexpr std::size_t max_object_size = std::size_t(-1);
  static constexpr std::size_t max_array_size = std::size_t(-1);
  static constexpr std::size_t max_key_size = kMaxTextBytes;
  static constexpr std::size_t max_string_size = std::size_t(-1);
  // NOLINTEND(readability-identifier-naming)

  struct Level {
    bool is_array = false;
    std::string key;  // in an object: the current key
  };

  AnswerKind kind = AnswerKind::kSamples;
  std::vector<std::string> labels;
  JsonWriter writer;  // continues across pieces
  std::vector<Level> levels;
  std::string text;         // of a key, or of a name that may be removed
  std::size_t dropped = 0;  // > 0: nesting depth inside a value that is left out, at least 1

  [[nodiscard]] bool hidden(std::string_view name) const {
    return std::ranges::find(labels, name) != labels.end();
  }

  /// Whether the innermost level is at this path.
  [[nodiscard]] bool is_at(Path path) const {
    if (levels.size() != path.size() + 1) {
      return false;
    }
    for (std::size_t i = 0; i < path.size(); ++i) {
      const bool fits = path[i] == "[]" ? levels[i].is_array : levels[i].key == path[i];
      if (!fits) {
        return false;
      }
    }
    return true;
  }

  [[nodiscard]] bool is_labels() const {
    switch (kind) {
      case AnswerKind::kSamples:
        return is_at(kSamplePath);
      case AnswerKind::kSeries:
        return is_at(kSeriesPath);
      case AnswerKind::kExemplars:
        return is_at(kExemplarSeries) || is_at(kExemplarLabels);
      case AnswerKind::kNames:
        return false;
    }
    return false;
  }

  [[nodiscard]] bool is_name() const {
    return kind == AnswerKind::kNames && levels.size() == 2 && levels.back().is_array &&
           is_at(kNamesPath);
  }

  void end_value() {
    if (dropped == 1) {
      dropped = 0;
    }
  }

  void open(bool is_array) {
    if (dropped > 0) {
      ++dropped;
      return;
    }
    is_array ? writer.begin_array() : writer.begin_object();
    levels.push_back({.is_array = is_array, .key = {}});
  }
  void close(bool is_array) {
    if (dropped > 0) {
      --dropped;
      end_value();
      return;
    }
    is_array ? writer.end_array() : writer.end_object();
    levels.pop_back();
  }

  void plain(std::string_view literal) {
    if (dropped == 0) {
      writer.raw(literal);
    }
    end_value();
  }

  // Called by json::basic_parser, which sets errors itself.

  static bool on_document_begin(json::error_code& /*error*/) { return true; }
  static bool on_document_end(json::error_code& /*error*/) { return true; }
  bool on_object_begin(json::error_code& /*error*/) {
    open(false);
    return true;
  }
  bool on_object_end(std::size_t /*size*/, json::error_code& /*error*/) {
    close(false);
    return true;
  }
  bool on_array_begin(json::error_code& /*error*/) {
    open(true);
    return true;
  }
  bool on_array_end(std::size_t /*size*/, json::error_code& /*error*/) {
    close(true);
    return true;
  }
  bool on_key_part(json::string_view part, std::size_t /*size*/, json::error_code& /*error*/) {
    text.append(part.data(), part.size());
    return true;
  }
  bool on_key(json::string_view part, std::size_t /*size*/, json::error_code& /*error*/) {
    text.append(part.data(), part.size());
    if (dropped == 0) {
      if (is_labels() && hidden(text)) {
        dropped = 1;
      } else {
        writer.key(text);
        levels.back().key = text;
      }
    }
    text.clear();
    return true;
  }
  bool on_string_part(json::string_view part, std::size_t /*size*/, json::error_code& error) {
    text.append(part.data(), part.size());
    if (text.size() > kMaxTextBytes) {
      error = json::error::string_too_large;
      return false;
    }
    return true;
  }
  bool on_string(json::string_view part, std::size_t /*size*/, json::error_code& /*error*/) {
    text.append(part.data(), part.size());
    if (dropped == 0 && !(is_name() && hidden(text))) {
      writer.value(text);
    }
    text.clear();
    end_value();
    return true;
  }
  // The parser passes the text of a number in parts and then its value.
  bool on_number_part(json::string_view part, json::error_code& /*error*/) {
    text.append(part.data(), part.size());
    return true;
  }
  bool number(json::string_view part) {
    text.append(part.data(), part.size());
    plain(text);
    text.clear();
    return true;
  }
  bool on_int64(std::int64_t /*value*/, json::string_view part, json::error_code& /*error*/) {
    return number(part);
  }
  bool on_uint64(std::uint64_t /*value*/, json::string_view part, json::error_code& /*error*/) {
    return number(part);
  }
  bool on_double(double /*value*/, json::string_view part, json::error_code& /*error*/) {
    return number(part);
  }
  bool on_bool(bool value, json::error_code& /*error*/) {
    plain(value ? "true" : "false");
    return true;
  }
  bool on_null(json::error_code& /*error*/) {
    plain("null");
    return true;
  }
  static bool on_comment_part(json::string_view /*part*/, json::error_code& /*error*/) {
    return true;
  }
  static bool on_comment(json::string_view /*part*/, json::error_code& /*error*/) { return true; }
};

constexpr std::size_t kMaxErrorBytes = std::size_t{64} << 10U;
constexpr std::size_t kMaxErrorDepth = 16;

constexpr std::array<std::string_view, 9> kErrorTypes{
    "bad_data",  "canceled", "execution",   "internal",         "not_acceptable",
    "not_found", "timeout",  "unavailable", "too_many_requests"};

constexpr std::string_view kWithheld =
    "the server's message is withheld: it may name labels that are hidden here";

/// Texts to look for in a message. Only these are sent to users, never a part of the message.
constexpr std::array<std::string_view, 13> kKnownMessages{
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

/// The errorType that Prometheus uses for the status, for answers without one.
std::string_view error_type_of(int status) {
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

/// Logs why an answer of a server cannot be filtered.
class LoggedFilter final : public net::BodyFilter {
 public:
  LoggedFilter(HiddenLabels hidden, std::unique_ptr<net::BodyFilter> filter)
      : hidden_(std::move(hidden)), filter_(std::move(filter)) {}

  Result<> feed(std::string_view piece, std::string& out) override {
    return logged(filter_->feed(piece, out));
  }
  Result<> finish(std::string& out) override { return logged(filter_->finish(out)); }

 private:
  Result<> logged(Result<> done) const {
    if (!done) {
      log::warn("cannot remove labels from an answer", {{"cluster_id", hidden_.cluster},
                                                        {"path", printable(hidden_.path, 200)},
                                                        {"err", done.error().message}});
    }
    return done;
  }

  HiddenLabels hidden_;
  std::unique_ptr<net::BodyFilter> filter_;
};

/// Replaces the answer to a request for the values of a hidden label by an empty list.
class NoValuesFilter final : public net::BodyFilter {
 public:
  Result<> feed(std::string_view /*piece*/, std::string& /*out*/) override { return {}; }
  Result<> finish(std::string& out) override {
    JsonWriter json(out);
    json.begin_object().member("status", "success").key("data").begin_array().end_array();
    json.end_object();
    return {};
  }
};

/// Fails, because the server compressed its answer although the request did not allow it.
class CompressedFilter final : public net::BodyFilter {
 public:
  Result<> feed(std::string_view /*piece*/, std::string& out) override { return finish(out); }
  Result<> finish(std::string& /*out*/) override {
    return fail(ErrorCode::kParse, "the answer is compressed");
  }
};

std::optional<AnswerKind> kind_of(std::string_view endpoint) {
  if (endpoint == "query" || endpoint == "query_range") {
    return AnswerKind::kSamples;
  }
  if (endpoint == "series") {
    return AnswerKind::kSeries;
  }
  if (endpoint == "labels") {
    return AnswerKind::kNames;
  }
  if (endpoint == "query_exemplars") {
    return AnswerKind::kExemplars;
  }
  return std::nullopt;
}

/// Prometheus 3 decodes names that begin with U__, so such a name may stand for a hidden label
/// (https://prometheus.io/docs/instrumenting/escaping_schemes).
bool may_be_hidden(std::string_view label, const std::vector<std::string>& names) {
  return label.starts_with("U__") || std::ranges::find(names, label) != names.end();
}

bool is_compressed(const net::Headers& headers) {
  const std::string* const coding = net::find_header(headers, "Content-Encoding");
  return coding != nullptr && !same_in_any_case(*coding, "identity");
}

bool is_json(const net::Headers& headers) {
  const std::string* const type = net::find_header(headers, "Content-Type");
  return type != nullptr && to_lower(*type).starts_with("application/json");
}

}  // namespace

Endpoint endpoint_of(std::string_view path) {
  while (path.ends_with('/')) {
    path.remove_suffix(1);
  }
  const std::size_t slash = path.rfind('/');
  Endpoint endpoint;
  endpoint.name = slash == std::string_view::npos ? path : path.substr(slash + 1);
  if (endpoint.name == "values") {
    path = path.substr(0, slash);
    endpoint.label = path.substr(path.rfind('/') + 1);
  }
  return endpoint;
}

std::unique_ptr<net::BodyFilter> make_answer_filter(const HiddenLabels& hidden,
                                                    int status,
                                                    const net::Headers& headers) {
  constexpr int kNoContent = 204;
  constexpr int kFirstNonSuccess = 300;
  constexpr int kNotModified = 304;
  if (status == kNoContent || status == kNotModified) {
    return nullptr;
  }
  if (status >= kFirstNonSuccess) {
    return hidden.admin ? nullptr : std::make_unique<ErrorFilter>(status, is_json(headers));
  }
  const Endpoint endpoint = endpoint_of(hidden.path);
  std::unique_ptr<net::BodyFilter> filter;
  if (const auto kind = kind_of(endpoint.name)) {
    filter = std::make_unique<LabelFilter>(*kind, hidden.names);
  } else if (may_be_hidden(endpoint.label, hidden.names)) {
    filter = std::make_unique<NoValuesFilter>();
  } else {
    return nullptr;
  }
  if (is_compressed(headers)) {
    filter = std::make_unique<CompressedFilter>();
  }
  return std::make_unique<LoggedFilter>(hidden, std::move(filter));
}

struct LabelFilter::Impl {
  Impl(AnswerKind kind, std::vector<std::string> labels)
      : parser(options(), kind, std::move(labels), JsonWriter(start)) {}

  static json::parse_options options() {
    json::parse_options options;
    options.max_depth = kMaxDepth;
    return options;
  }

  Result<> write(std::string_view piece, bool more, std::string& out) {
    json::error_code error;
    parser.handler().writer.continue_in(out);
    const std::size_t used = parser.write_some(more, piece.data(), piece.size(), error);
    if (error || used != piece.size()) {
      return fail(ErrorCode::kParse, "the answer is not JSON: {}",
                  error ? error.message() : "text after its end");
    }
    return {};
  }

  std::string start;  // stays empty
  json::basic_parser<Handler> parser;
};

LabelFilter::LabelFilter(AnswerKind kind, std::vector<std::string> labels)
    : impl_(std::make_unique<Impl>(kind, std::move(labels))) {}
LabelFilter::~LabelFilter() = default;

Result<> LabelFilter::feed(std::string_view piece, std::string& out) {
  return impl_->write(piece, true, out);
}

Result<> LabelFilter::finish(std::string& out) {
  return impl_->write({}, false, out);
}

Result<> ErrorFilter::feed(std::string_view piece, std::string& /*out*/) {
  too_long_ = too_long_ || body_.size() + piece.size() > kMaxErrorBytes;
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
  std::string_view type = error_type_of(status_);
  std::string_view message = kWithheld;
  boost::system::error_code error;
  json::parse_options options;
  options.max_depth = kMaxErrorDepth;
  const json::value document = json::parse(body_, error, {}, options);
  if (const json::object* const object = error ? nullptr : document.if_object()) {
    const auto* const known = std::ranges::find(kErrorTypes, text_under(*object, "errorType"));
    type = known == kErrorTypes.end() ? type : *known;
    const std::string given = text_under(*object, "error");
    const auto* const match = std::ranges::find_if(kKnownMessages, [&](std::string_view text) {
      return given.find(text) != std::string::npos;
    });
    message = match == kKnownMessages.end() ? message : *match;
  }
  JsonWriter writer(out);
  writer.begin_object().member("status", "error");
  writer.member("errorType", type).member("error", message).end_object();
  return {};
}

}  // namespace ceems::lb

#include "lb/label_filter.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include <boost/json/basic_parser_impl.hpp>

#include "store/json.h"

namespace ceems::lb {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxTextBytes = std::size_t{1} << 20U;
constexpr std::size_t kDepth = 64;

/// Keys from the top to the object of labels; "[]" is an array.
using Path = std::span<const std::string_view>;
constexpr std::array<std::string_view, 4> kSamplePath = {"data", "result", "[]", "metric"};
constexpr std::array<std::string_view, 2> kSeriesPath = {"data", "[]"};
constexpr std::array<std::string_view, 3> kExemplarSeries = {"data", "[]", "seriesLabels"};
constexpr std::array<std::string_view, 5> kExemplarLabels = {"data", "[]", "exemplars", "[]",
                                                             "labels"};
constexpr std::array<std::string_view, 1> kNamesPath = {"data"};

/// Writes the document again while it is parsed. The names are those the parser calls.
struct Handler {
  // NOLINTBEGIN(readability-identifier-naming)
  static constexpr std::size_t max_object_size = std::size_t(-1);
  static constexpr std::size_t max_array_size = std::size_t(-1);
  static constexpr std::size_t max_key_size = kMaxTextBytes;
  static constexpr std::size_t max_string_size = std::size_t(-1);
  // NOLINTEND(readability-identifier-naming)

  struct Level {
    bool is_array = false;
    bool empty = true;
    std::string key;  // of an object: the one whose value stands here
  };

  AnswerKind kind = AnswerKind::kSamples;
  std::vector<std::string> labels;
  std::string* out = nullptr;
  std::vector<Level> levels;
  std::string text;         // of the key, or of a name that may be dropped
  std::size_t dropped = 0;  // > 0: inside a value that is left out; counts its levels and itself
  bool in_string = false;

  [[nodiscard]] bool hidden(std::string_view name) const {
    return std::ranges::find(labels, name) != labels.end();
  }

  /// Does the innermost level stand at this path?
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

  void comma() {
    if (levels.empty()) {
      return;
    }
    if (!levels.back().empty) {
      *out += ',';
    }
    levels.back().empty = false;
  }

  /// Before a value: its comma, in an array (in an object the key has written it).
  void begin_value() {
    if (dropped == 0 && !levels.empty() && levels.back().is_array) {
      comma();
    }
  }
  void end_value() {
    if (dropped == 1) {
      dropped = 0;
    }
  }

  void open(bool is_array) {
    begin_value();
    if (dropped > 0) {
      ++dropped;
      return;
    }
    *out += is_array ? '[' : '{';
    levels.push_back({.is_array = is_array, .empty = true, .key = {}});
  }
  void close(char bracket) {
    if (dropped > 0) {
      --dropped;
      end_value();
      return;
    }
    *out += bracket;
    levels.pop_back();
  }

  void plain(std::string_view literal) {
    begin_value();
    if (dropped == 0) {
      *out += literal;
    }
    end_value();
  }

  // What json::basic_parser calls. Errors are set by the parser itself.

  static bool on_document_begin(json::error_code& /*error*/) { return true; }
  static bool on_document_end(json::error_code& /*error*/) { return true; }
  bool on_object_begin(json::error_code& /*error*/) {
    open(false);
    return true;
  }
  bool on_object_end(std::size_t /*size*/, json::error_code& /*error*/) {
    close('}');
    return true;
  }
  bool on_array_begin(json::error_code& /*error*/) {
    open(true);
    return true;
  }
  bool on_array_end(std::size_t /*size*/, json::error_code& /*error*/) {
    close(']');
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
        comma();
        store::append_json_string(*out, text);
        *out += ':';
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
      begin_value();
      store::append_json_string(*out, text);
    }
    text.clear();
    end_value();
    return true;
  }
  // Numbers come in parts as they were written, then once more as values.
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

}  // namespace

struct LabelFilter::Impl {
  Impl(AnswerKind kind, std::vector<std::string> labels) : parser(options()) {
    parser.handler().kind = kind;
    parser.handler().labels = std::move(labels);
  }

  static json::parse_options options() {
    json::parse_options options;
    options.max_depth = kDepth;
    return options;
  }

  Result<> write(std::string_view piece, bool more, std::string& out) {
    json::error_code error;
    parser.handler().out = &out;
    const std::size_t used = parser.write_some(more, piece.data(), piece.size(), error);
    if (error || used != piece.size()) {
      return fail(ErrorCode::kParse, "answer that is no JSON: {}",
                  error ? error.message() : "text behind its end");
    }
    return {};
  }

  json::basic_parser<Handler> parser;
};

LabelFilter::LabelFilter(AnswerKind kind, std::vector<std::string> labels)
    : impl_(std::make_unique<Impl>(kind, std::move(labels))) {}
LabelFilter::LabelFilter(LabelFilter&&) noexcept = default;
LabelFilter& LabelFilter::operator=(LabelFilter&&) noexcept = default;
LabelFilter::~LabelFilter() = default;

Result<> LabelFilter::feed(std::string_view piece, std::string& out) {
  return impl_->write(piece, true, out);
}

Result<> LabelFilter::finish(std::string& out) {
  return impl_->write({}, false, out);
}

}  // namespace ceems::lb

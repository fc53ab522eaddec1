#include "api/envelope.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "store/json.h"

namespace ceems::api {
namespace {

constexpr std::size_t kWholeAnswer = std::size_t{256} * 1024;  // streamed when longer
constexpr std::size_t kPiece = std::size_t{64} * 1024;

constexpr std::array kErrors = {
    ApiErrorInfo{ApiErrorType::kBadData, 400, "bad_data",
                 "a parameter is malformed, or the window is longer than `--query.max-period`"},
    ApiErrorInfo{ApiErrorType::kUnauthorized, 401, "unauthorized", "the request names no user"},
    ApiErrorInfo{ApiErrorType::kForbidden, 403, "forbidden",
                 "the caller is no administrator, or may not see these units"},
    ApiErrorInfo{ApiErrorType::kInternal, 500, "internal", "details are in the log only"},
    ApiErrorInfo{ApiErrorType::kTimeout, 503, "timeout",
                 "the data base or the time-series server does not answer in time"},
};

void set_json(net::Response& response, int status) {
  response.status = status;
  response.set_header("Content-Type", "application/json");
  response.set_header("X-Content-Type-Options", "nosniff");
}

/// Rows on their way into an answer.
class RowStream {
 public:
  explicit RowStream(Listing listing) : listing_(std::move(listing)) {}

  /// Appends rows up to about `limit` bytes; false at the end, an error when reading fails.
  Result<bool> fill(std::string& out, std::size_t limit) {
    while (out.size() < limit) {
      const auto row = listing_.meter.run([this] { return listing_.rows->next(); });
      if (!row) {
        return fail(row.error());
      }
      if (!*row) {
        listing_.rows.reset();
        out += "]}\n";
        return false;
      }
      if (!std::exchange(first_, false)) {
        out += ',';
      }
      listing_.meter.count_row();
      listing_.format.append(out, *listing_.rows);
    }
    return true;
  }

 private:
  Listing listing_;
  bool first_ = true;
};

}  // namespace

std::span<const ApiErrorInfo> all_errors() {
  return kErrors;
}

void answer_error(net::Response& response, ApiErrorType type, std::string_view message) {
  const ApiErrorInfo& info = kErrors.at(static_cast<std::size_t>(type));
  set_json(response, info.status);
  response.body = R"({"status":"error","data":null,"errorType":")";
  response.body += info.word;
  response.body += R"(","error":)";
  store::append_json_string(response.body, message);
  response.body += "}\n";
}

void answer_failure(net::Response& response, const Error& error) {
  if (error.code == ErrorCode::kTimeout || error.code == ErrorCode::kUnavailable) {
    answer_error(response, ApiErrorType::kTimeout, "the server is too busy, try again later");
  } else {
    answer_error(response, ApiErrorType::kInternal, "internal error");
  }
}

void answer_data(net::Response& response, std::string_view data) {
  set_json(response, 200);
  response.body = R"({"status":"success","data":)";
  response.body += data;
  response.body += "}\n";
}

RowFormat::RowFormat(std::span<const store::Field> all, std::vector<std::size_t> selected)
    : all_(all), columns_(std::move(selected)) {
  for (std::size_t i = 0; i < all_.size(); ++i) {
    Shown shown{.field = &all_[i]};
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (columns_[c] == i) {
        shown.column = static_cast<int>(c);
      }
    }
    if (shown.column >= 0 || !all_[i].omit_empty) {
      shown_.push_back(shown);
    }
  }
}

std::vector<std::size_t> RowFormat::read_also(std::span<const std::size_t> fields) {
  std::vector<std::size_t> places;
  for (const std::size_t field : fields) {
    const auto found = std::ranges::find(columns_, field);
    places.push_back(static_cast<std::size_t>(found - columns_.begin()));
    if (found == columns_.end()) {
      columns_.push_back(field);
    }
  }
  return places;
}

void RowFormat::convert_times(const TimeZone& zone) {
  zone_ = zone;
  for (Shown& shown : shown_) {
    if (shown.column < 0 || shown.field->kind != store::FieldKind::kText) {
      continue;
    }
    const auto epoch = store::find_field(all_, std::string(shown.field->name) + "_ts");
    if (epoch) {
      shown.epoch_ms_column = static_cast<int>(columns_.size());
      columns_.push_back(*epoch);
    }
  }
}

void RowFormat::append(std::string& out, const store::Cursor& row) const {
  out += '{';
  const std::size_t begin = out.size();
  for (const Shown& shown : shown_) {
    const std::size_t before = out.size();
    if (before > begin) {
      out += ',';
    }
    out += '"';
    out += shown.field->name;
    out += "\":";
    const std::size_t value = out.size();
    append_field(out, shown, row);
    if (out.size() == value) {
      out.resize(before);
    }
  }
  out += '}';
}

void RowFormat::append_field(std::string& out, const Shown& shown, const store::Cursor& row) const {
  const bool omit = shown.field->omit_empty;
  const auto column = static_cast<std::size_t>(shown.column);
  const std::string_view text = shown.column < 0 ? std::string_view() : row.text(column);
  const std::size_t begin = out.size();
  switch (shown.field->kind) {
    case store::FieldKind::kText: {
      if (shown.epoch_ms_column >= 0) {
        const std::int64_t ms = row.integer(static_cast<std::size_t>(shown.epoch_ms_column));
        if (ms > 0) {
          store::append_json_string(out, zone_.local_with_offset(ms));
          return;
        }
      }
      if (!text.empty() || !omit) {
        store::append_json_string(out, text);
      }
      return;
    }
    case store::FieldKind::kInteger: {
      const std::int64_t number = shown.column < 0 ? 0 : row.integer(column);
      if (number != 0 || !omit) {
        out += std::to_string(number);
      }
      return;
    }
    case store::FieldKind::kMetrics: {
      const auto map = store::parse_metric_map(text);
      if (map && (!map->empty() || !omit)) {
        store::append_metric_map(out, *map);
      }
      return;
    }
    case store::FieldKind::kObject:
      if (store::append_json_object(out, text) && omit && out.size() == begin + 2) {
        out.resize(begin);
      }
      return;
    case store::FieldKind::kList: {
      const auto list = store::parse_string_list(text);
      if (list && !list->empty()) {
        out += store::string_list_text(*list);
      } else if (!omit) {
        out += text == "[]" ? "[]" : "null";
      }
      return;
    }
  }
}

void answer_rows(net::Response& response, Listing listing) {
  auto stream = std::make_shared<RowStream>(std::move(listing));
  std::string text = R"({"status":"success","data":[)";
  const auto more = stream->fill(text, kWholeAnswer);
  if (!more) {
    answer_failure(response, more.error());
    return;
  }
  set_json(response, 200);
  if (!*more) {
    response.body = std::move(text);
    return;
  }
  response.next_chunk = [stream = std::move(stream),
                         start = std::move(text)](std::string& out) mutable {
    if (!start.empty()) {
      out += std::exchange(start, {});
      return true;
    }
    const auto next = stream->fill(out, out.size() + kPiece);
    if (!next) {
      throw std::runtime_error(next.error().message);
    }
    return *next;
  };
}

}  // namespace ceems::api

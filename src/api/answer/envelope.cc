#include "api/answer/envelope.h"

#include <algorithm>
#include <array>
#include <utility>

#include "api/answer/long_answer.h"
#include "base/json_reader.h"
#include "store/json.h"

namespace ceems::api {
namespace {

constexpr std::array kErrors = {
    ApiErrorInfo{ApiErrorType::kBadData, 400, "bad_data",
                 "a parameter is malformed, or the window is longer than `--query.max-period`"},
    ApiErrorInfo{ApiErrorType::kUnauthorized, 401, "unauthorized",
                 "the request does not name a user"},
    ApiErrorInfo{ApiErrorType::kForbidden, 403, "forbidden",
                 "the caller is not an administrator, or may not see these units"},
    ApiErrorInfo{ApiErrorType::kInternal, 500, "internal", "details are in the log only"},
    ApiErrorInfo{ApiErrorType::kTimeout, 503, "timeout",
                 "the database or the time-series server does not respond in time"},
    ApiErrorInfo{ApiErrorType::kNotFound, 404, "not_found",
                 "there is no such unit among those that the caller may see"},
    ApiErrorInfo{ApiErrorType::kConflict, 409, "conflict",
                 "the unit still runs and `so_far` is absent"},
};

void set_json(net::Response& response, int status) {
  response.status = status;
  response.set_header("Content-Type", "application/json");
  response.set_header("X-Content-Type-Options", "nosniff");
}

/// Writes rows into an answer piece by piece.
class RowStream {
 public:
  /// Begins the answer in `out`.
  RowStream(Listing listing, std::string& out) : listing_(std::move(listing)), json_(out) {
    json_.begin_object().member("status", "success").key("data").begin_array();
  }

  /// The slot is given back with the last row.
  void hold(StreamSlots::Slot slot) { slot_ = std::move(slot); }

  /// Appends rows up to about `limit` bytes. Returns false at the end, an error if reading fails.
  Result<bool> fill(std::string& out, std::size_t limit) {
    json_.continue_in(out);
    while (out.size() < limit) {
      CEEMS_TRY(row, listing_.timer.run([this] { return listing_.rows->next(); }));
      if (!row) {
        listing_.rows.reset();
        slot_ = {};
        json_.end_array().end_object();
        out += '\n';
        return false;
      }
      listing_.timer.count_row();
      listing_.format.append(json_, *listing_.rows);
    }
    return true;
  }

 private:
  Listing listing_;
  JsonWriter json_;
  StreamSlots::Slot slot_;
};

}  // namespace

std::span<const ApiErrorInfo> all_errors() {
  return kErrors;
}

void answer_error(net::Response& response,
                  ApiErrorType type,
                  std::string_view message,
                  std::string_view login) {
  const ApiErrorInfo& info = kErrors.at(static_cast<std::size_t>(type));
  set_json(response, info.status);
  response.body.clear();
  JsonWriter json(response.body);
  json.begin_object().member("status", "error");
  json.member("errorType", info.word).member("error", message);
  if (!login.empty()) {
    json.raw_member("login", login);
  }
  json.member("data", nullptr).end_object();
  response.body += '\n';
}

void answer_nobody(net::Response& response, std::string_view login) {
  set_json(response, 200);
  response.body.clear();
  JsonWriter json(response.body);
  json.begin_object().member("status", "success").raw_member("data", "[]");
  if (!login.empty()) {
    json.raw_member("login", login);
  }
  json.end_object();
  response.body += '\n';
}

void answer_failure(net::Response& response, const Error& error) {
  if (error.code == ErrorCode::kTimeout || error.code == ErrorCode::kUnavailable) {
    // Soon for a busy database; an upgrade of a large one takes minutes.
    response.set_header("Retry-After", "10");
    answer_error(response, ApiErrorType::kTimeout, "the server is too busy, try again later");
  } else {
    answer_error(response, ApiErrorType::kInternal, "internal error");
  }
}

void answer_tsdb_failure(net::Response& response) {
  response.set_header("Retry-After", "10");
  answer_error(response, ApiErrorType::kTimeout, "the time-series server does not respond");
}

void answer_data(net::Response& response,
                 std::string_view data,
                 std::string_view next,
                 std::string_view previous,
                 std::string_view missing) {
  set_json(response, 200);
  response.body.clear();
  JsonWriter json(response.body);
  json.begin_object().member("status", "success").raw_member("data", data);
  if (!next.empty()) {
    json.member("next", next);
  }
  if (!previous.empty()) {
    json.member("previous", previous);
  }
  if (!missing.empty()) {
    json.raw_member("missing", missing);
  }
  json.end_object();
  response.body += '\n';
}

RowFormat::RowFormat(std::span<const store::Field> all, std::vector<std::size_t> selected)
    : all_(all), columns_(std::move(selected)) {
  for (std::size_t i = 0; i < all_.size(); ++i) {
    Shown shown{.field = &all_[i]};
    append_json_string(shown.key, all_[i].name);
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (columns_[c] == i) {
        shown.column = static_cast<int>(c);
      }
    }
    if (shown.column >= 0 || !all_[i].omit_empty) {
      shown_.push_back(std::move(shown));
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

void RowFormat::append(JsonWriter& json, const store::Cursor& row) const {
  json.begin_object();
  for (const Shown& shown : shown_) {
    append_field(json, shown, row);
  }
  json.end_object();
}

void RowFormat::append_field(JsonWriter& json, const Shown& shown, const store::Cursor& row) const {
  const bool omit = shown.field->omit_empty;
  const auto column = static_cast<std::size_t>(shown.column);
  const std::string_view text = shown.column < 0 ? std::string_view() : row.text(column);
  switch (shown.field->kind) {
    case store::FieldKind::kText: {
      if (shown.epoch_ms_column >= 0) {
        const std::int64_t ms = row.integer(static_cast<std::size_t>(shown.epoch_ms_column));
        if (ms > 0) {
          json.raw_key(shown.key).value(zone_.local_with_offset(ms));
          return;
        }
      }
      if (!text.empty() || !omit) {
        json.raw_key(shown.key).value(text);
      }
      return;
    }
    case store::FieldKind::kInteger: {
      const std::int64_t number = shown.column < 0 ? 0 : row.integer(column);
      if (number != 0 || !omit) {
        json.raw_key(shown.key).value(number);
      }
      return;
    }
    case store::FieldKind::kMetrics: {
      const auto map = store::parse_metric_map(text);
      if (map && (!map->empty() || !omit)) {
        store::append_metric_map(json.raw_key(shown.key).begin_value(), *map);
      }
      return;
    }
    case store::FieldKind::kObject: {
      std::string object;
      if (append_json_object(object, text) && !(omit && object == "{}")) {
        json.raw_key(shown.key).raw(object);
      }
      return;
    }
    case store::FieldKind::kList: {
      const auto list = store::parse_string_list(text);
      if (list && !list->empty()) {
        json.raw_key(shown.key).raw(store::string_list_text(*list));
      } else if (!omit) {
        json.raw_key(shown.key).raw(text == "[]" ? "[]" : "null");
      }
      return;
    }
  }
}

void answer_rows(net::Response& response,
                 Listing listing,
                 StreamSlots& slots,
                 const std::string& user) {
  std::string text;
  auto stream = std::make_shared<RowStream>(std::move(listing), text);
  answer_long(response, std::move(stream), std::move(text), slots, user,
              [](net::Response& whole) { set_json(whole, 200); });
}

}  // namespace ceems::api

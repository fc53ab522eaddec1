#include "tsdb/answer.h"

#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "base/strings.h"

namespace ceems::tsdb {
namespace {

namespace sj = simdjson::ondemand;

std::unexpected<Error> not_json(simdjson::error_code code) {
  return fail(ErrorCode::kParse, "TSDB response: {}", std::string(simdjson::error_message(code)));
}

/// Prometheus prints sample values like Go's strconv.FormatFloat: "1.5", "NaN", "+Inf", "-Inf".
std::optional<double> parse_sample_value(std::string_view text) {
  if (text == "NaN") {
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (text == "+Inf" || text == "Inf") {
    return std::numeric_limits<double>::infinity();
  }
  if (text == "-Inf") {
    return -std::numeric_limits<double>::infinity();
  }
  return parse_double(text);
}

Result<std::string> text_of(simdjson::simdjson_result<sj::value> value, std::string_view what) {
  std::string_view text;
  if (const auto error = value.get_string().get(text)) {
    if (error == simdjson::INCORRECT_TYPE) {
      return fail(ErrorCode::kParse, "TSDB response: {} is not a string", what);
    }
    return not_json(error);
  }
  return std::string(text);
}

Result<sj::object> object_of(simdjson::simdjson_result<sj::value> value, std::string_view what) {
  sj::object object;
  if (const auto error = value.get_object().get(object)) {
    if (error == simdjson::INCORRECT_TYPE) {
      return fail(ErrorCode::kParse, "TSDB response: {} is not an object", what);
    }
    return not_json(error);
  }
  return object;
}

Result<sj::array> array_of(simdjson::simdjson_result<sj::value> value, std::string_view what) {
  sj::array array;
  if (const auto error = value.get_array().get(array)) {
    if (error == simdjson::INCORRECT_TYPE) {
      return fail(ErrorCode::kParse, "TSDB response: {} is not a list", what);
    }
    return not_json(error);
  }
  return array;
}

/// Calls visit(key, value) for every member.
template <typename Visit>
Result<> each_member(sj::object object, Visit&& visit) {
  for (auto member : object) {
    std::string_view key;
    if (const auto error = member.unescaped_key().get(key)) {
      return not_json(error);
    }
    CEEMS_TRY(visit(std::string(key), member.value()));
  }
  return {};
}

template <typename Visit>
Result<> each_item(sj::array array, Visit&& visit) {
  for (auto item : array) {
    if (const auto error = item.error()) {
      return not_json(error);
    }
    CEEMS_TRY(visit(item));
  }
  return {};
}

Result<Labels> read_labels(simdjson::simdjson_result<sj::value> value) {
  CEEMS_TRY(object, object_of(value, "metric"));
  Labels labels;
  CEEMS_TRY(each_member(object, [&labels](std::string key, auto member) -> Result<> {
    CEEMS_TRY(text, text_of(member, "label value"));
    labels.add(std::move(key), std::move(text));
    return {};
  }));
  return labels;
}

/// Reads [seconds, "value"].
Result<Sample> read_sample(simdjson::simdjson_result<sj::value> value) {
  CEEMS_TRY(array, array_of(value, "sample"));
  Sample sample;
  std::size_t position = 0;
  CEEMS_TRY(each_item(array, [&](auto item) -> Result<> {
    if (position == 0) {
      double seconds = 0;
      // With at most 1e13 s, the milliseconds stay far from the end of the integer range.
      if (item.get_double().get(seconds) != simdjson::SUCCESS || !std::isfinite(seconds) ||
          std::abs(seconds) > 1e13) {
        return fail(ErrorCode::kParse, "TSDB response: the time of a sample is not a number");
      }
      sample.time_ms = std::llround(seconds * 1000);
    } else if (position == 1) {
      CEEMS_TRY(text, text_of(item, "sample value"));
      const auto number = parse_sample_value(text);
      if (!number) {
        return fail(ErrorCode::kParse, "TSDB response: sample value '{}' is not a number",
                    printable(text, 32));
      }
      sample.value = *number;
    } else {
      return fail(ErrorCode::kParse, "TSDB response: a sample has more than two parts");
    }
    ++position;
    return {};
  }));
  if (position != 2) {
    return fail(ErrorCode::kParse, "TSDB response: a sample has fewer than two parts");
  }
  return sample;
}

Result<Series> read_series(simdjson::simdjson_result<sj::value> value) {
  CEEMS_TRY(object, object_of(value, "series"));
  Series series;
  CEEMS_TRY(each_member(object, [&series](const std::string& key, auto member) -> Result<> {
    if (key == "metric") {
      CEEMS_TRY(labels, read_labels(member));
      series.labels = std::move(labels);
    } else if (key == "value") {
      CEEMS_TRY(sample, read_sample(member));
      series.samples.push_back(sample);
    } else if (key == "values") {
      CEEMS_TRY(array, array_of(member, "values"));
      return each_item(array, [&series](auto item) -> Result<> {
        CEEMS_TRY(sample, read_sample(item));
        series.samples.push_back(sample);
        return {};
      });
    }
    return {};
  }));
  // Prometheus sorts them, but a proxy that merges responses may not.
  if (!std::ranges::is_sorted(series.samples, {}, &Sample::time_ms)) {
    std::ranges::stable_sort(series.samples, {}, &Sample::time_ms);
  }
  return series;
}

/// The error that the TSDB itself reports. The prefix "TSDB: " distinguishes it from parse errors.
Error reported(const std::string& type, const std::string& text) {
  ErrorCode code = ErrorCode::kUnavailable;
  if (type == "bad_data" || type == "execution") {
    code = ErrorCode::kInvalidArgument;
  } else if (type == "timeout" || type == "canceled") {
    code = ErrorCode::kTimeout;
  } else if (type == "not_found") {
    code = ErrorCode::kNotFound;
  }
  return {code, fmt::format("TSDB: {}: {}", printable(type, 32), printable(text, 400))};
}

/// Prometheus also puts remarks about the query itself among the warnings.
bool is_about_missing_data(std::string_view warning) {
  return !warning.starts_with("PromQL info:") && !warning.starts_with("PromQL warning:");
}

/// Reads {"status", "data", "errorType", "error", "warnings", "isPartial"} and passes the data to
/// read_data.
template <typename ReadData>
Result<> read_envelope(std::string body, std::string* incomplete, ReadData&& read_data) {
  const std::size_t size = body.size();
  const std::string start = printable(trim(std::string_view(body).substr(0, 200)), 60);
  body.resize(size + simdjson::SIMDJSON_PADDING);
  sj::parser parser;
  sj::document document;
  sj::object object;
  const simdjson::padded_string_view view(body.data(), size, body.size());
  if (parser.iterate(view).get(document) != simdjson::SUCCESS ||
      document.get_object().get(object) != simdjson::SUCCESS) {
    return fail(ErrorCode::kParse, "TSDB response is not complete JSON: '{}'", start);
  }
  std::string status;
  std::string error_type;
  std::string error_text;
  bool has_data = false;
  Result<> data_done;
  CEEMS_TRY(each_member(object, [&](const std::string& key, auto member) -> Result<> {
    std::string* target = nullptr;
    if (key == "status") {
      target = &status;
    } else if (key == "errorType") {
      target = &error_type;
    } else if (key == "error") {
      target = &error_text;
    }
    if (target != nullptr) {
      CEEMS_TRY(text, text_of(member, key));
      *target = std::move(text);
    } else if (key == "data") {
      sj::value value;
      if (const auto error = member.get(value)) {
        return not_json(error);
      }
      if (value.type().value_unsafe() == sj::json_type::null) {
        return {};
      }
      has_data = true;
      return read_data(member);
    } else if (key == "isPartial" && incomplete != nullptr) {
      bool partial = false;
      if (member.get_bool().get(partial) == simdjson::SUCCESS && partial && incomplete->empty()) {
        *incomplete = "isPartial";
      }
    } else if (key == "warnings" && incomplete != nullptr) {
      if (member.type().value_unsafe() == sj::json_type::null) {
        return {};
      }
      CEEMS_TRY(array, array_of(member, "warnings"));
      return each_item(array, [incomplete](auto item) -> Result<> {
        CEEMS_TRY(text, text_of(item, "warning"));
        if (incomplete->empty() && is_about_missing_data(text)) {
          *incomplete = printable(text, 200);
        }
        return {};
      });
    }
    return {};
  }));
  const char* rest = nullptr;
  if (document.current_location().get(rest) == simdjson::SUCCESS) {
    return fail(ErrorCode::kParse, "TSDB response: unexpected text after the JSON document");
  }
  if (status == "error") {
    return fail(reported(error_type, error_text));
  }
  if (status != "success") {
    return fail(ErrorCode::kParse, "TSDB response has no status: '{}'", start);
  }
  if (!has_data) {
    return fail(ErrorCode::kParse, "TSDB response has no data: '{}'", start);
  }
  return {};
}

Result<ResultType> parse_result_type(std::string_view text) {
  for (const auto type :
       {ResultType::kVector, ResultType::kMatrix, ResultType::kScalar, ResultType::kString}) {
    if (text == to_string(type)) {
      return type;
    }
  }
  return fail(ErrorCode::kParse, "TSDB response: unknown result type '{}'", printable(text, 32));
}

}  // namespace

void Labels::add(std::string name, std::string value) {
  entries_.emplace_back(std::move(name), std::move(value));
}

std::string_view Labels::get(std::string_view name) const {
  for (const auto& [key, value] : entries_) {
    if (key == name) {
      return value;
    }
  }
  return {};
}

std::int64_t moment_ms(double seconds) {
  constexpr double kYear10000 = 253'402'300'800;
  return std::isnan(seconds) ? 0 : std::llround(std::clamp(seconds, 0.0, kYear10000) * 1000);
}

std::string_view to_string(ResultType type) {
  switch (type) {
    case ResultType::kVector:
      return "vector";
    case ResultType::kMatrix:
      return "matrix";
    case ResultType::kScalar:
      return "scalar";
    case ResultType::kString:
      return "string";
  }
  return "unknown";
}

Result<QueryAnswer> parse_query_answer(std::string body, std::size_t max_series) {
  QueryAnswer answer;
  std::string type;
  CEEMS_TRY(read_envelope(std::move(body), &answer.incomplete, [&](auto data) -> Result<> {
    CEEMS_TRY(object, object_of(data, "data"));
    return each_member(object, [&](const std::string& key, auto member) -> Result<> {
      if (key == "resultType") {
        CEEMS_TRY(text, text_of(member, key));
        type = std::move(text);
        return {};
      }
      if (key != "result") {
        return {};
      }
      if (type == "scalar" || type == "string") {
        if (type == "scalar") {
          CEEMS_TRY(sample, read_sample(member));
          answer.series.push_back({.labels = {}, .samples = {sample}});
        }
        return {};
      }
      CEEMS_TRY(array, array_of(member, "result"));
      return each_item(array, [&answer, max_series](auto item) -> Result<> {
        if (max_series > 0 && answer.series.size() >= max_series) {
          return fail(ErrorCode::kParse, "TSDB response: more than {} series", max_series);
        }
        CEEMS_TRY(series, read_series(item));
        if (!series.samples.empty()) {
          answer.series.push_back(std::move(series));
        }
        return {};
      });
    });
  }));
  CEEMS_TRY(parsed, parse_result_type(type));
  answer.type = parsed;
  if (answer.type == ResultType::kVector) {
    for (const auto& series : answer.series) {
      if (series.samples.size() != 1) {
        return fail(ErrorCode::kParse, "TSDB response: a series of a vector has several samples");
      }
    }
  }
  return answer;
}

Result<std::vector<std::string>> parse_string_list_answer(std::string body) {
  std::vector<std::string> list;
  CEEMS_TRY(read_envelope(std::move(body), nullptr, [&list](auto data) -> Result<> {
    CEEMS_TRY(array, array_of(data, "data"));
    return each_item(array, [&list](auto item) -> Result<> {
      CEEMS_TRY(text, text_of(item, "list member"));
      list.push_back(std::move(text));
      return {};
    });
  }));
  return list;
}

Result<std::vector<Labels>> parse_series_answer(std::string body) {
  std::vector<Labels> list;
  CEEMS_TRY(read_envelope(std::move(body), nullptr, [&list](auto data) -> Result<> {
    CEEMS_TRY(array, array_of(data, "data"));
    return each_item(array, [&list](auto item) -> Result<> {
      CEEMS_TRY(labels, read_labels(item));
      list.push_back(std::move(labels));
      return {};
    });
  }));
  return list;
}

Result<std::vector<Target>> parse_targets_answer(std::string body) {
  std::vector<Target> list;
  const auto read_member = [](Target& target, const std::string& key, auto member) -> Result<> {
    if (key == "discoveredLabels" || key == "labels") {
      CEEMS_TRY(labels, read_labels(member));
      (key == "labels" ? target.labels : target.discovered) = std::move(labels);
      return {};
    }
    std::string* text = nullptr;
    if (key == "scrapeUrl") {
      text = &target.url;
    } else if (key == "health") {
      text = &target.health;
    } else if (key == "lastError") {
      text = &target.last_error;
    }
    if (text != nullptr) {
      CEEMS_TRY(read, text_of(member, key));
      *text = std::move(read);
    }
    return {};
  };
  CEEMS_TRY(read_envelope(std::move(body), nullptr, [&](auto data) -> Result<> {
    CEEMS_TRY(object, object_of(data, "data"));
    return each_member(object, [&](const std::string& key, auto member) -> Result<> {
      if (key != "activeTargets") {
        return {};
      }
      CEEMS_TRY(array, array_of(member, key));
      return each_item(array, [&](auto item) -> Result<> {
        CEEMS_TRY(entry, object_of(item, "target"));
        Target& target = list.emplace_back();
        return each_member(entry, [&](const std::string& name, auto value) {
          return read_member(target, name, value);
        });
      });
    });
  }));
  return list;
}

Result<Labels> parse_status_answer(std::string body) {
  Labels members;
  CEEMS_TRY(read_envelope(std::move(body), nullptr, [&members](auto data) -> Result<> {
    CEEMS_TRY(object, object_of(data, "data"));
    return each_member(object, [&members](std::string key, auto member) -> Result<> {
      sj::json_type type{};
      if (const auto error = member.type().get(type)) {
        return not_json(error);
      }
      if (type == sj::json_type::string) {
        CEEMS_TRY(text, text_of(member, key));
        members.add(std::move(key), std::move(text));
      } else if (type == sj::json_type::number || type == sj::json_type::boolean) {
        std::string_view raw;
        if (const auto error = member.raw_json_token().get(raw)) {
          return not_json(error);
        }
        members.add(std::move(key), std::string(trim(raw)));
      }
      return {};
    });
  }));
  return members;
}

}  // namespace ceems::tsdb

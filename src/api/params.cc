#include "api/params.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "net/http.h"

namespace ceems::api {
namespace {

constexpr std::int64_t kSecond = 1000;
constexpr std::int64_t kDaySeconds = std::int64_t{24} * 60 * 60;
constexpr std::int64_t kRounding = 900;
constexpr std::int64_t kMaxSeconds = 253'402'300'799;  // 9999-12-31T23:59:59Z

void add_value(std::vector<std::string>& list, std::string value) {
  if (!value.empty() && std::ranges::find(list, value) == list.end()) {
    list.push_back(std::move(value));
  }
}

void set_first(std::string& target, std::string value) {
  if (target.empty()) {
    target = std::move(value);
  }
}

struct Bounds {
  std::optional<std::int64_t> from, to;
};

Result<Bounds> parse_bounds(const Params& params) {
  Bounds bounds;
  auto from = parse_seconds("from", params.from);
  if (!from) {
    return fail(std::move(from).error());
  }
  bounds.from = *from;
  auto to = parse_seconds("to", params.to);
  if (!to) {
    return fail(std::move(to).error());
  }
  bounds.to = *to;
  return bounds;
}

Result<> check_length(std::int64_t from, std::int64_t to, std::int64_t max_period_ms) {
  if (max_period_ms > 0 && (to - from) > max_period_ms / kSecond) {
    return fail(ErrorCode::kInvalidArgument, "maximum query window exceeded");
  }
  return {};
}

std::int64_t floor_to(std::int64_t value, std::int64_t step) {
  const std::int64_t rest = value % step;
  return value - (rest < 0 ? rest + step : rest);
}

}  // namespace

Params parse_params(std::string_view query) {
  Params params;
  for (auto& [key, value] : net::parse_query(query)) {
    if (key == "cluster_id") {
      add_value(params.clusters, std::move(value));
    } else if (key == "project") {
      add_value(params.projects, std::move(value));
    } else if (key == "user") {
      add_value(params.users, std::move(value));
    } else if (key == "uuid") {
      add_value(params.uuids, std::move(value));
    } else if (key == "field") {
      add_value(params.fields, std::string(trim(value)));
    } else if (key == "groupby") {
      add_value(params.group_by, std::string(trim(value)));
    } else if (key == "from") {
      set_first(params.from, std::move(value));
    } else if (key == "to") {
      set_first(params.to, std::move(value));
    } else if (key == "timezone") {
      set_first(params.time_zone, std::move(value));
    } else if (key == "role") {
      set_first(params.role, std::move(value));
    } else if (key == "running") {
      params.running = true;
    } else if (key == "experimental") {
      params.experimental = true;
    } else if (key == "__terminated") {
      params.terminated = true;
    }
  }
  return params;
}

Result<std::optional<std::int64_t>> parse_seconds(std::string_view name, std::string_view text) {
  if (text.empty()) {
    return std::nullopt;
  }
  const auto seconds = parse_int<std::int64_t>(text);
  if (!seconds || *seconds > kMaxSeconds || *seconds < -kMaxSeconds) {
    return fail(ErrorCode::kInvalidArgument, "query parameter '{}': malformed timestamp", name);
  }
  return *seconds;
}

Result<store::TimeRange> parse_window(const Params& params,
                                      std::int64_t now_ms,
                                      std::int64_t max_period_ms) {
  const auto bounds = parse_bounds(params);
  if (!bounds) {
    return fail(bounds.error());
  }
  std::int64_t to = now_ms / kSecond;
  std::int64_t from = to - kDaySeconds;
  if (bounds->from) {
    from = bounds->from.value_or(from);
    to = bounds->to.value_or(from + kDaySeconds);
  } else if (bounds->to) {
    to = bounds->to.value_or(to);
    from = to - kDaySeconds;
  }
  if (auto done = check_length(from, to, max_period_ms); !done) {
    return fail(std::move(done).error());
  }
  return store::TimeRange{from * kSecond, to * kSecond};
}

Result<store::TimeRange> parse_rounded_window(const Params& params,
                                              std::int64_t now_ms,
                                              std::int64_t max_period_ms) {
  const auto bounds = parse_bounds(params);
  if (!bounds) {
    return fail(bounds.error());
  }
  const std::int64_t now = now_ms / kSecond;
  const std::int64_t from = bounds->from.value_or(now - kDaySeconds);
  const std::int64_t to = bounds->to.value_or(now);
  if (auto done = check_length(from, to, max_period_ms); !done) {
    return fail(std::move(done).error());
  }
  return store::TimeRange{floor_to(from, kRounding) * kSecond,
                          floor_to(to + kRounding - 1, kRounding) * kSecond};
}

Result<std::vector<std::size_t>> select_fields(std::span<const store::Field> all,
                                               const std::vector<std::string>& names) {
  std::vector<std::size_t> fields;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (names.empty() || std::ranges::find(names, all[i].name) != names.end()) {
      fields.push_back(i);
    }
  }
  if (fields.empty()) {
    return fail(ErrorCode::kInvalidArgument, "invalid query fields");
  }
  return fields;
}

}  // namespace ceems::api

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "access/policy.h"
#include "api/answer/envelope.h"
#include "api/figures.h"
#include "api/login/sign_in.h"
#include "api/request/paging.h"
#include "api/request/params.h"
#include "api/series.h"
#include "api/usage_cache.h"
#include "base/clock.h"
#include "net/http.h"
#include "store/reader.h"

namespace ceems::api {

/// What handlers work with; everything outlives them. Safe for concurrent use.
struct Services {
  store::Reader* reader = nullptr;
  SeriesSource* series = nullptr;  ///< null: no cluster has one
  UsageCache* usage_cache = nullptr;
  Figures* figures = nullptr;        ///< never null
  login::SignIn* sign_in = nullptr;  ///< null: users are named by header
  const Clock* clock = nullptr;
  std::int64_t max_period_ms = 0;  ///< of from..to; 0: no limit

  [[nodiscard]] std::int64_t now_ms() const;
};

/// One request on its way, after routing, the identity check and the checks that the route asks
/// for.
struct Call {
  const net::Request* request = nullptr;
  net::Response* response = nullptr;
  std::string_view route = {};  ///< its path
  Params params = {};
  access::Identity identity = {};
  bool admin_route = false;                     ///< the caller was checked to be an admin
  std::optional<store::TimeRange> window = {};  ///< as the route wants it
  std::optional<Page> page = {};                ///< nothing: all rows
};

using ApiHandler = void (*)(const Services& services, Call& call);

// docs/api/endpoints.md describes each.
void get_units(const Services& services, Call& call);
void verify_units(const Services& services, Call& call);
void get_unit_series(const Services& services, Call& call);
void get_current_usage(const Services& services, Call& call);
void get_global_usage(const Services& services, Call& call);
void get_users(const Services& services, Call& call);
void get_projects(const Services& services, Call& call);
void get_clusters(const Services& services, Call& call);
void get_current_stats(const Services& services, Call& call);
void get_global_stats(const Services& services, Call& call);
void get_whoami(const Services& services, Call& call);
void get_demo_units(const Services& services, Call& call);
void get_demo_usage(const Services& services, Call& call);

/// Answers with the rows or a page of them, or with what went wrong. `key` are the fields of the
/// row's key, where the route gives pages; `placed` means that the query began behind
/// `page->after`.
struct Rows {
  QueryMeter meter;
  Result<std::unique_ptr<store::Cursor>> cursor;
  RowFormat format;
  std::span<const std::size_t> key_columns = {};
  bool placed = false;
};
void answer_with(Call& call, Rows rows);

/// A format for all of these fields.
RowFormat all_of(std::span<const store::Field> fields);

/// 400 with the error's message.
void answer_bad_request(Call& call, const Error& error);

}  // namespace ceems::api

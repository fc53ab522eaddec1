#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "access/policy.h"
#include "api/answer/entity_tag.h"
#include "api/answer/envelope.h"
#include "api/answer/stream_slots.h"
#include "api/login/sign_in.h"
#include "api/request/paging.h"
#include "api/request/params.h"
#include "api/request_metrics.h"
#include "api/series.h"
#include "api/site.h"
#include "api/usage_cache.h"
#include "base/clock.h"
#include "base/time/time_zone.h"
#include "net/http.h"
#include "store/reader.h"

namespace ceems::api {

class Accounting;
class DigestMaker;
class Fleet;
class ReportMaker;

/// What handlers use. All pointers outlive the handlers. Safe for concurrent use.
struct Services {
  store::Reader* reader = nullptr;
  SeriesSource* series = nullptr;          ///< null: no cluster has one
  Fleet* fleet = nullptr;                  ///< null: no cluster has a TSDB
  const ReportMaker* reports = nullptr;    ///< never null
  const DigestMaker* digests = nullptr;    ///< never null
  const EntityTags* tags = nullptr;        ///< never null
  const Accounting* accounting = nullptr;  ///< never null
  UsageCache* usage_cache = nullptr;
  RequestMetrics* metrics = nullptr;  ///< never null
  login::SignIn* sign_in = nullptr;   ///< null: a header names the user
  const SiteOptions* site = nullptr;  ///< never null
  const Clock* clock = nullptr;
  std::int64_t max_period_ms = 0;  ///< maximum length of a window; 0: no limit
  TimeZone zone = {};              ///< of days and months

  [[nodiscard]] std::int64_t now_ms() const;
};

/// One request after routing and after the checks of identity and access that the route requires.
struct Call {
  const net::Request* request = nullptr;
  net::Response* response = nullptr;
  std::string_view route = {};  ///< its path
  Params params = {};
  access::Identity identity = {};
  StreamSlots* streams = nullptr;  ///< never null
  bool foreign = false;            ///< the answer has data of other people, which is for the audit
  bool admin_route = false;        ///< the caller is an administrator
  std::optional<store::TimeRange> window = {};  ///< as WindowKind of the route says
  Sorting sorting = {};                         ///< of routes with `sort`
  /// The route and its sorting: a cursor is valid only for the listing that it comes from.
  std::string listing = {};
  std::optional<Page> page = {};  ///< nothing: all rows
};

using ApiHandler = void (*)(const Services& services, Call& call);

// docs/api/endpoints.md describes each.
void get_units(const Services& services, Call& call);
void get_unit_list(const Services& services, Call& call);
void get_unit_summary(const Services& services, Call& call);
void get_nodes(const Services& services, Call& call);
void get_node_series(const Services& services, Call& call);
void get_units_on_node(const Services& services, Call& call);
void get_gpus(const Services& services, Call& call);
void get_grid(const Services& services, Call& call);
void get_idle(const Services& services, Call& call);
void get_budgets(const Services& services, Call& call);
void get_bill(const Services& services, Call& call);
void get_usage_series(const Services& services, Call& call);
void verify_units(const Services& services, Call& call);
void get_findings(const Services& services, Call& call);
void get_report(const Services& services, Call& call);
void get_digest(const Services& services, Call& call);
void compare_units(const Services& services, Call& call);
void get_unit_series(const Services& services, Call& call);
void get_current_usage(const Services& services, Call& call);
void get_global_usage(const Services& services, Call& call);
void get_users(const Services& services, Call& call);
void get_projects(const Services& services, Call& call);
void get_clusters(const Services& services, Call& call);
void get_current_stats(const Services& services, Call& call);
void get_global_stats(const Services& services, Call& call);
void get_site(const Services& services, Call& call);
void get_whoami(const Services& services, Call& call);
void get_demo_units(const Services& services, Call& call);
void get_demo_usage(const Services& services, Call& call);

/// The result of a query: rows or an error. `key_columns` are the fields of the key of a row if the
/// route has pages. `placed` is true if the query itself started after `page->after`.
struct Rows {
  QueryTimer timer;
  Result<std::unique_ptr<store::Cursor>> cursor;
  RowFormat format;
  std::span<const std::size_t> key_columns = {};
  bool placed = false;
};
/// Answers with all rows, with the requested page of them, or with the error.
void answer_with(Call& call, Rows rows);

/// The format that writes all of these fields.
RowFormat all_of(std::span<const store::Field> fields);

/// Lines of charts, as a list of {name, unit, points}.
std::string series_json(const std::vector<Series>& all);

/// Answers 400 with the message of the error.
void answer_bad_request(Call& call, const Error& error);

}  // namespace ceems::api

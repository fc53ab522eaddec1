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
#include "api/answer/request_metrics.h"
#include "api/answer/stream_slots.h"
#include "api/answer/usage_cache.h"
#include "api/login/sign_in.h"
#include "api/login/tokens.h"
#include "api/request/paging.h"
#include "api/request/params.h"
#include "api/site.h"
#include "api/tsdb/series.h"
#include "base/clock.h"
#include "base/time/time_zone.h"
#include "net/http.h"
#include "store/reader.h"

namespace ceems::api {

class Accounting;
class DigestMaker;
class FeedbackBox;
class Fleet;
class JobCheck;
class KeptStatements;
class NodeJudge;
class ProfileSource;
class ReportMaker;

/// What handlers use. All pointers outlive the handlers. Safe for concurrent use.
struct Services {
  store::Reader* reader = nullptr;
  SeriesSource* series = nullptr;          ///< null: no cluster has one
  Fleet* fleet = nullptr;                  ///< null: no cluster has a TSDB
  ProfileSource* profiles = nullptr;       ///< null: no cluster has profiles
  const ReportMaker* reports = nullptr;    ///< never null
  const DigestMaker* digests = nullptr;    ///< never null
  const EntityTags* tags = nullptr;        ///< never null
  const Accounting* accounting = nullptr;  ///< never null
  JobCheck* checks = nullptr;              ///< never null
  FeedbackBox* feedback = nullptr;         ///< never null
  NodeJudge* nodes = nullptr;              ///< never null
  KeptStatements* statements = nullptr;    ///< never null
  UsageCache* usage_cache = nullptr;
  RequestMetrics* metrics = nullptr;  ///< never null
  login::SignIn* sign_in = nullptr;   ///< null: a header names the user
  login::Tokens* tokens = nullptr;    ///< null: personal tokens are off
  const SiteOptions* site = nullptr;  ///< never null
  const Clock* clock = nullptr;
  std::int64_t max_period_ms = 0;  ///< maximum length of a window; 0: no limit
  TimeZone zone = {};              ///< of days and months

  [[nodiscard]] std::int64_t now_ms() const;
};

/// One request after routing and after the checks of identity and access that the endpoint
/// requires.
struct Call {
  const net::Request* request = nullptr;
  net::Response* response = nullptr;
  std::string_view route = {};  ///< its path
  Params params = {};
  access::Identity identity = {};
  StreamSlots* streams = nullptr;  ///< never null
  bool foreign = false;            ///< the answer has data of other people, which is for the audit
  bool admin_route = false;        ///< the caller is an administrator
  bool by_token = false;           ///< `identity` is that of a personal token
  // For the audit.
  std::string_view denied_for = {};  ///< why, if that does not follow from the endpoint
  std::string_view changed = {};     ///< what was done, of requests that change something
  std::string changed_token = {};    ///< the id of a personal token
  std::string changed_owner = {};
  std::optional<store::TimeRange> window = {};  ///< as WindowKind of the endpoint says
  Sorting sorting = {};                         ///< of endpoints with `sort`
  /// The path and its sorting: a cursor is valid only for the listing that it comes from.
  std::string listing = {};
  std::optional<Page> page = {};  ///< nothing: all rows
};

using ApiHandler = void (*)(const Services& services, Call& call);

/// Who may call an endpoint. The zero value is the strictest.
enum class Caller : std::uint8_t { kAdmin, kUser, kAnyone };

/// Whether an endpoint may be called with a personal token.
enum class ByToken : std::uint8_t {
  kReads,  ///< with GET
  kNever,
  kAlways,  ///< for those that only read, although they take a body
};

/// How an endpoint interprets `from` and `to`.
enum class WindowKind : std::uint8_t {
  kNone,     ///< not at all
  kEnded,    ///< parse_window(), unless units are requested by id
  kListed,   ///< the same, unless units are looked for without a period
  kOwn,      ///< in its own way
  kRounded,  ///< parse_rounded_window()
};

/// What `data` of an answer is, for the OpenAPI document.
struct DataSchema {
  std::string_view name = {};  ///< in the document; empty: `data` is null
  bool one = false;            ///< `data` is one such value, otherwise a list of them
  /// The fields of a row from the database, which schema and example are made of.
  std::span<const store::Field> fields = {};
  /// Without fields: the schema and those that only it refers to, as members of an object of JSON
  /// Schemas; and a value.
  std::string_view definitions = {};
  std::string_view example = {};
};

/// One endpoint below {prefix}/api/v1/: how requests are answered, and what the documentation says.
struct Endpoint {
  std::string_view path = {};  ///< "units/admin"
  Caller caller = Caller::kAdmin;
  std::string_view summary = {};
  ApiHandler handler = nullptr;
  DataSchema data = {};
  /// What requests have as their body, in JSON: it then takes POST instead of GET.
  DataSchema body = {};
  ParamSet params = {};    ///< others are ignored
  ParamSet required = {};  ///< of them; the handler answers 400 without one
  WindowKind window = WindowKind::kNone;
  /// Number of columns in the key of a row, for listings that accept `limit` and `cursor`;
  /// otherwise 0.
  std::size_t page_key = 0;
  bool table = false;       ///< it accepts them in its own way
  bool by_cluster = false;  ///< its answers name the clusters that they lack
  /// The answer depends only on the request, the caller and the database, so it gets an entity tag.
  bool tagged = true;
  bool waits = false;   ///< its answers may need a TSDB: see ApiServer::waits()
  bool priced = false;  ///< they have costs, for which prices in a TSDB are read
  /// What admins and support read there is data of other people, which the audit records.
  bool audited = true;
  bool raw_ids = false;  ///< `uuid` names units only as they are stored
  ByToken by_token = ByToken::kReads;
  std::string_view verb = {};               ///< instead of GET or POST
  bool login = false;                       ///< callers without identity get the ways to log in
  std::string_view header = {};             ///< that its answers have, and no others
  std::vector<ApiErrorType> refusals = {};  ///< that do not follow from caller and parameters

  [[nodiscard]] std::string_view method() const {
    return !verb.empty() ? verb : body.name.empty() ? "GET" : "POST";
  }
  [[nodiscard]] bool takes_tokens() const {
    return by_token == ByToken::kAlways || (by_token == ByToken::kReads && method() == "GET");
  }
  /// This endpoint at a path of its own, for users or for admins. `more` are further parameters.
  [[nodiscard]] Endpoint for_users(std::string_view at,
                                   std::string_view what,
                                   ParamSet more = {}) const;
  [[nodiscard]] Endpoint for_admins(std::string_view at,
                                    std::string_view what,
                                    ParamSet more = {}) const;
};
using Endpoints = std::vector<Endpoint>;

/// All endpoints of all.h, by path and method.
const Endpoints& all_endpoints();

/// The endpoint with exactly this path and method, or null. OPTIONS finds any.
const Endpoint* find_endpoint(std::string_view path, std::string_view method);

/// The result of a query: rows or an error. `key_columns` are the fields of the key of a row if the
/// endpoint has pages. `placed` is true if the query itself started after `page->after`.
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

/// Whether the request says that its body is JSON; answers if it does not. Forms of other sites
/// cannot say so.
bool has_json_body(Call& call);

/// Answers 400 with the message of the error.
void answer_bad_request(Call& call, const Error& error);

}  // namespace ceems::api

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/recent_map.h"
#include "gate/request.h"
#include "gate/selection.h"
#include "gate/shared_ids.h"
#include "promql/reach.h"

namespace ceems::gate {

/// A query all of whose selectors name their units, so that its text does not depend on the user.
struct CheckedQuery {
  std::string encoded;  ///< canonical text, encoded as a form value
  std::set<std::string, std::less<>> units;
  std::optional<std::string> cluster;
  promql::Reach reach;
};
/// Keyed by the text of the query as received: dashboards send the same queries again and again.
using CheckedQueries = RecentMap<std::shared_ptr<const CheckedQuery>>;

/// The kinds of servers that have parameters of their own.
enum class TsdbServer : std::uint8_t { kPrometheus, kThanos, kVictoriaMetrics };

/// What users may request from the HTTP API of Prometheus
/// (https://prometheus.io/docs/prometheus/latest/querying/api/).
struct TsdbRules {
  SelectionRules selection = {};
  /// What may precede /api/v1 in the path: "" or, for example, "/prometheus".
  std::vector<std::string> prefixes = {""};
  std::size_t max_body_bytes = std::size_t{1} << 20U;
  /// Allows endpoints that read no series but that query editors need.
  bool editors = false;
  /// A cache that read() uses. It must not be shared with other rules nor used together with
  /// Selection::pin(). Null: every query is parsed.
  CheckedQueries* checked = nullptr;
};

/// A request of which every part is known: endpoint, parameters, selectors. Anything else was
/// refused. Movable; not thread-safe.
class TsdbRequest {
 public:
  /// Whether read() accepts the method and the path.
  static bool accepts_route(const ParsedRequest& received, const TsdbRules& rules);
  /// `rules` must outlive the request; `received` need not.
  /// `server` chooses the language: queries to VictoriaMetrics may use MetricsQL.
  static Checked<TsdbRequest> read(const ParsedRequest& received,
                                   const TsdbRules& rules,
                                   Budget budget = Budget::kFull,
                                   TsdbServer server = TsdbServer::kPrometheus);

  TsdbRequest(TsdbRequest&&) noexcept;
  TsdbRequest& operator=(TsdbRequest&&) noexcept;
  TsdbRequest(const TsdbRequest&) = delete;
  TsdbRequest& operator=(const TsdbRequest&) = delete;
  ~TsdbRequest();

  [[nodiscard]] Selection& selection();
  /// Keeps the parameters that only this kind of server has, and that cannot make it read other
  /// series (docs/lb/access.md). Without this call, they are dropped. Refuses invalid values. To be
  /// called once, before restrict_times().
  Checked<bool> keep_parameters_of(TsdbServer server);
  /// The times that the request may read, in milliseconds since the epoch: all times if they cannot
  /// be read. `now_ms` stands for times that are not given.
  [[nodiscard]] promql::TimeSpan times_read(std::int64_t now_ms) const;
  /// Narrows the request to times at which it does not read others' units, and refuses it if there
  /// are none. `now_ms`, in milliseconds since the epoch, stands for times that are not given.
  Checked<bool> restrict_times(const SharedIds& ids, std::int64_t now_ms);
  /// The request to send on: canonical path, known parameters and canonical texts of queries. It
  /// keeps its method, except that a GET request with a long query is sent as POST if servers
  /// accept that: proxies in front of them often limit URLs to 8 KiB.
  [[nodiscard]] Forward forward() const;
  /// The same after Selection::widen(): the units are named beside the texts (unit_filters.h).
  /// Servers that do not know MetricsQL cannot parse the texts.
  [[nodiscard]] Forward forward_filtered(const std::set<std::string, std::less<>>& units) const;

 private:
  struct Parts;
  [[nodiscard]] Forward forward_form(std::string form) const;
  explicit TsdbRequest(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace ceems::gate

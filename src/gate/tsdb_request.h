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

/// A query all of whose selectors are confined, so that nothing of its text depends on who asks.
struct CheckedQuery {
  std::string encoded;  ///< canonical text as a value of a form
  std::set<std::string, std::less<>> units;
  std::optional<std::string> cluster;
  promql::Reach reach;
};
/// By the text of the query as it came: dashboards send the same ones again and again.
using CheckedQueries = RecentMap<std::shared_ptr<const CheckedQuery>>;

/// What of the HTTP API of Prometheus (https://prometheus.io/docs/prometheus/latest/querying/api/)
/// users may ask for.
struct TsdbRules {
  SelectionRules selection = {};
  /// What may stand before /api/v1: "" and, say, "/prometheus".
  std::vector<std::string> prefixes = {""};
  std::size_t max_body_bytes = std::size_t{1} << 20U;
  /// Also what reads no series and editors of queries ask for.
  bool editors = false;
  /// Filled and asked by read(). Of these rules alone, and not where Selection::pin() is used;
  /// null: every query is parsed.
  CheckedQueries* checked = nullptr;
};

/// A request that names nothing but what is known: endpoint, parameters, selectors. Everything else
/// was refused. Movable; not thread-safe.
class TsdbRequest {
 public:
  /// `rules` must outlive the request.
  static Checked<TsdbRequest> read(const RawRequest& raw,
                                   const TsdbRules& rules,
                                   Budget budget = Budget::kFull);

  TsdbRequest(TsdbRequest&&) noexcept;
  TsdbRequest& operator=(TsdbRequest&&) noexcept;
  TsdbRequest(const TsdbRequest&) = delete;
  TsdbRequest& operator=(const TsdbRequest&) = delete;
  ~TsdbRequest();

  [[nodiscard]] Selection& selection();
  /// Leaves of the request's times those at which it reads nothing of others' units; a refusal
  /// where that leaves nothing. `now_ms`: epoch, for times that are not given.
  Checked<bool> restrict_times(const SharedIds& ids, std::int64_t now_ms);
  /// The request as it goes on: canonical path, known parameters, canonical texts of queries. By
  /// GET or POST, as it came (HEAD as HEAD).
  [[nodiscard]] Forward forward() const;

 private:
  struct Parts;
  explicit TsdbRequest(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace ceems::gate

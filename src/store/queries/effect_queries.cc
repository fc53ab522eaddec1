// What nodes drew in units, and how those ended.
#include <utility>

#include "base/utf8.h"
#include "store/node_effects.h"
#include "store/queries/read_all.h"
#include "store/queries/sql_reader.h"

namespace ceems::store {

Result<std::vector<NodeEffect>> SqlReader::node_effects(const std::string& cluster_id,
                                                        std::int64_t from_ms) {
  Sql sql = query_of(
      "SELECT ended_at_ts, node, username, family, effect, outcome FROM ceems_node_effects"
      " WHERE ended_at_ts >= ");
  sql.value(from_ms).add(" AND cluster_id = ").value(clean_text(cluster_id));
  sql.add(" ORDER BY ended_at_ts DESC, cluster_id DESC, node DESC, uuid DESC LIMIT ")
      .value(std::int64_t{kMaxNodeEffects});
  std::vector<NodeEffect> all;
  auto done = read_all(open(sql, kShortLimit), [&all](const Cursor& row) {
    NodeEffect& one = all.emplace_back();
    one.ended_ms = row.integer(0);
    one.on.node = row.text(1);
    one.username = row.text(2);
    one.family = row.text(3);
    const std::int64_t effect = row.integer(4);
    if (effect != kNoEffect) {
      one.on.effect = static_cast<double>(effect) / kEffectScale;
    }
    const std::int64_t outcome = row.integer(5);
    one.outcome = outcome == 1   ? NodeOutcome::kFailed
                  : outcome == 2 ? NodeOutcome::kNodeFailed
                                 : NodeOutcome::kEnded;
  });
  return done ? Result<std::vector<NodeEffect>>(std::move(all)) : fail(std::move(done).error());
}

}  // namespace ceems::store

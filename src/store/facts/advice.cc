#include "store/facts/advice.h"

#include "store/advice_rules.h"

namespace ceems::store {

std::int64_t advice_bits(std::span<const std::string> rules) {
  std::int64_t bits = 0;
  for (const std::string& rule : rules) {
    bits |= advice_bit(rule);
  }
  return bits;
}

Result<> set_advice(Session& session,
                    std::string_view cluster_id,
                    std::string_view uuid,
                    std::int64_t started_at_ts,
                    std::int64_t bits,
                    Verdict verdict) {
  Sql sql(session.dialect(), "UPDATE ceems_unit_facts SET advice = ");
  sql.value(bits).add(", verdict = ").value(static_cast<std::int64_t>(verdict));
  sql.add(" WHERE cluster_id = ").value(cluster_id).add(" AND uuid = ").value(uuid);
  return session.run(sql.add(" AND started_at_ts = ").value(started_at_ts), {});
}

}  // namespace ceems::store

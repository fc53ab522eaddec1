#include "store/reports/report_rows.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "store/facts/advice.h"

namespace ceems::store {
namespace {

constexpr double kMilli = 1000;
constexpr double kNano = 1e9;
constexpr double kMaxNumber = 4e15;
constexpr double kGreatestEffect = 100;

/// In units of 1/scale; -1 if it is not known.
std::int64_t scaled(const std::optional<double>& value, double scale) {
  if (!value || !std::isfinite(*value) || *value < 0) {
    return -1;
  }
  return std::llround(std::min(*value * scale, kMaxNumber));
}

Sql& add_key(Sql& sql, const ReportKey& key) {
  sql.add(" WHERE cluster_id = ").value(key.cluster_id).add(" AND uuid = ").value(key.uuid);
  return sql.add(" AND started_at_ts = ").value(key.started_at_ts);
}

Result<> delete_findings(Session& session, const ReportKey& key) {
  Sql sql(session.dialect(), "DELETE FROM ceems_findings");
  return session.run(add_key(sql, key), {});
}

Result<> insert_findings(Session& session, const ReportRow& report) {
  if (report.findings.empty()) {
    return {};
  }
  Sql sql(session.dialect(),
          "INSERT INTO ceems_findings (cluster_id, uuid, started_at_ts, rule, ended_at_ts,"
          " severity, confidence, runs, saves, numbers) VALUES ");
  bool first = true;
  for (const FindingRow& finding : report.findings) {
    sql.add(first ? "(" : ", (").value(report.key.cluster_id).add(",").value(report.key.uuid);
    sql.add(",").value(report.key.started_at_ts).add(",").value(finding.rule);
    for (const std::int64_t number :
         {report.ended_at_ts, std::int64_t{finding.severity}, std::int64_t{finding.confidence},
          finding.runs, scaled(finding.saves_kwh, kNano)}) {
      sql.add(",").value(number);
    }
    sql.add(",").value(finding.numbers).add(")");
    first = false;
  }
  return session.run(sql, {});
}

/// A unit may get a report more than once.
Result<> put_effects(Session& session, const ReportRow& report) {
  if (report.on.nodes.empty()) {
    return {};
  }
  Sql sql(session.dialect(),
          "INSERT INTO ceems_node_effects (ended_at_ts, cluster_id, node, uuid, started_at_ts,"
          " username, family, effect, outcome) VALUES ");
  std::set<std::string> nodes;  // a statement must not have a key twice
  for (const NodeOfUnit& one : report.on.nodes) {
    const auto [node, added] = nodes.insert(clean_text(one.node));
    if (!added) {
      continue;
    }
    const bool known =
        one.effect && std::isfinite(*one.effect) && std::abs(*one.effect) < kGreatestEffect;
    sql.add(nodes.size() == 1 ? "(" : ", (").value(report.ended_at_ts);
    sql.add(",").value(report.key.cluster_id).add(",").value(*node).add(",").value(report.key.uuid);
    sql.add(",").value(report.key.started_at_ts).add(",").value(clean_text(report.on.username));
    sql.add(",").value(clean_text(report.on.family)).add(",");
    sql.value(known ? std::llround(*one.effect * kEffectScale) : kNoEffect).add(",");
    sql.value(static_cast<std::int64_t>(report.on.outcome)).add(")");
  }
  sql.add(
      " ON CONFLICT (ended_at_ts, cluster_id, node, uuid, started_at_ts) DO UPDATE SET"
      " effect = excluded.effect, outcome = excluded.outcome");
  return session.run(sql, {});
}

}  // namespace

Result<bool> store_report(Session& session, const ReportRow& report) {
  std::optional<std::int64_t> state;
  Sql find(session.dialect(), "SELECT state FROM ceems_unit_reports");
  add_key(find, report.key).add(" AND ended_at_ts = ").value(report.ended_at_ts);
  auto done = session.run(find, [&](std::size_t, const AnswerRow& row) { state = row.integer(0); });
  if (!done) {
    return fail(std::move(done).error());
  }
  if (!state || *state == static_cast<std::int64_t>(ReportState::kFinal)) {
    return false;
  }
  Sql update(session.dialect(), "UPDATE ceems_unit_reports SET state = ");
  update.value(
      static_cast<std::int64_t>(report.final ? ReportState::kFinal : ReportState::kPartial));
  update.add(", due_ms = ").value(report.due_ms).add(", made_ms = ").value(report.made_ms);
  update.add(", version = ").value(std::int64_t{report.version});
  update.add(", coverage = ").value(scaled(report.coverage, kMilli));
  update.add(", memory_peak = ").value(scaled(report.numbers.mem_peak, 1));
  update.add(", cpus_used = ").value(scaled(report.numbers.cpu_used_max, kMilli));
  update.add(", gpu_seconds = ").value(scaled(report.numbers.gpu_busy_seconds, kMilli));
  update.add(", gpus = ").value(static_cast<std::int64_t>(report.numbers.gpus));
  update.add(", gpus_unused = ").value(static_cast<std::int64_t>(report.numbers.gpus_unused));
  update.add(", body = ").value(report.body);
  done = session.run(add_key(update, report.key), {});
  if (done) {
    done = delete_findings(session, report.key);
  }
  if (done) {
    done = insert_findings(session, report);
  }
  if (done) {
    done = put_effects(session, report);
  }
  if (done) {
    std::vector<std::string> rules;
    rules.reserve(report.findings.size());
    for (const FindingRow& finding : report.findings) {
      rules.push_back(finding.rule);
    }
    done = set_advice(session, report.key.cluster_id, report.key.uuid, report.key.started_at_ts,
                      advice_bits(rules), report.verdict);
  }
  return done ? Result<bool>(report.final) : fail(std::move(done).error());
}

Result<> postpone_reports(Session& session, std::span<const ReportKey> keys, std::int64_t due_ms) {
  for (const ReportKey& key : keys) {
    Sql sql(session.dialect(), "UPDATE ceems_unit_reports SET due_ms = ");
    sql.value(due_ms);
    CEEMS_TRY(session.run(add_key(sql, key).add(" AND state < 2"), {}));
  }
  return {};
}

Result<> drop_reports(Session& session, std::span<const ReportKey> keys) {
  for (const ReportKey& key : keys) {
    auto done = delete_findings(session, key);
    if (done) {
      Sql sql(session.dialect(), "DELETE FROM ceems_unit_reports");
      done = session.run(add_key(sql, key), {});
    }
    if (!done) {
      return done;
    }
  }
  return {};
}

Result<std::int64_t> purge_some_reports(Session& session,
                                        std::int64_t cutoff_ms,
                                        std::int64_t limit) {
  std::vector<ReportKey> keys;
  std::vector<ReportKey> made;  // those that are only queued have no advice
  Sql sql(session.dialect(),
          "SELECT cluster_id, uuid, started_at_ts, state FROM ceems_unit_reports"
          " WHERE ended_at_ts < ");
  sql.value(cutoff_ms).add(" ORDER BY ended_at_ts LIMIT ").value(limit);
  auto done = session.run(sql, [&keys, &made](std::size_t, const AnswerRow& row) {
    keys.push_back({.cluster_id = std::string(row.text(0)),
                    .uuid = std::string(row.text(1)),
                    .started_at_ts = row.integer(2)});
    if (row.integer(3) != 0) {
      made.push_back(keys.back());
    }
  });
  for (auto key = made.begin(); done && key != made.end(); ++key) {
    done =
        set_advice(session, key->cluster_id, key->uuid, key->started_at_ts, 0, Verdict::kUnknown);
  }
  if (done) {
    done = drop_reports(session, keys);
  }
  return done ? Result<std::int64_t>(static_cast<std::int64_t>(keys.size()))
              : fail(std::move(done).error());
}

Result<> store_strip(Session& session, const UnitStrip& strip) {
  Sql sql(session.dialect(), "UPDATE ceems_unit_facts SET strip = ");
  return session.run(add_key(sql.value(strip.text), strip.key), {});
}

Result<> purge_effects(Session& session, std::int64_t cutoff_ms) {
  Sql sql(session.dialect(), "DELETE FROM ceems_node_effects WHERE ended_at_ts < ");
  return session.run(sql.value(cutoff_ms), {});
}

Result<> purge_reports_of(Session& session, const Sql& units) {
  for (const std::string_view table : {"ceems_feedback", "ceems_findings", "ceems_unit_reports"}) {
    Sql sql(session.dialect(), "DELETE FROM ");
    sql.add(table).add(
        " WHERE (cluster_id, uuid, started_at_ts) IN"
        " (SELECT cluster_id, uuid, started_at_ts FROM units WHERE ");
    CEEMS_TRY(session.run(sql.append(units).add(")"), {}));
  }
  return {};
}

}  // namespace ceems::store

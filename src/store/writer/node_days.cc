#include "store/writer/node_days.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/strings.h"

namespace ceems::store {
namespace {

/// Whether every database can store the name: PostgreSQL refuses NULs, and long texts in an index.
bool is_node_name(const std::string& text) {
  constexpr std::size_t kMaxBytes = 512;
  return !text.empty() && text.size() <= kMaxBytes && text.find('\0') == std::string::npos;
}

Sql add_energy(const Session& session, const NodeUpdate& update, const NodeEnergy& one) {
  Sql sql(session.dialect(),
          "INSERT INTO ceems_node_days AS days (cluster_id,day_ms,node,energy,idle,system,"
          "unallocated,modelled,covered_ms) VALUES (");
  sql.value(update.cluster_id).add(",").value(update.day_ms).add(",").value(one.node);
  for (const std::int64_t value :
       {one.energy, one.idle, one.system, one.unallocated, one.modelled, one.covered_ms}) {
    sql.add(",").value(value);
  }
  return sql.add(
      ") ON CONFLICT (cluster_id, day_ms, node) DO UPDATE SET energy = days.energy +"
      " excluded.energy, idle = days.idle + excluded.idle, system = days.system + excluded.system,"
      " unallocated = days.unallocated + excluded.unallocated,"
      " modelled = days.modelled + excluded.modelled,"
      " covered_ms = days.covered_ms + excluded.covered_ms");
}

Sql keep_facts(const Session& session, const NodeUpdate& update, const NodeFacts& node) {
  Sql sql(session.dialect(),
          "INSERT INTO ceems_nodes AS known"
          " (cluster_id,node,class,source,cpus,memory,gpus,first_ms,last_ms) VALUES (");
  sql.value(update.cluster_id).add(",").value(node.node).add(",").value(node.node_class);
  sql.add(",").value(node.source);
  for (const std::int64_t value :
       {node.cpus, node.memory, node.gpus, update.start_ms, update.end_ms}) {
    sql.add(",").value(value);
  }
  sql.add(") ON CONFLICT (cluster_id, node) DO UPDATE SET last_ms = excluded.last_ms");
  for (const std::string_view text : {"class", "source"}) {
    sql.add(fmt::format(", {0} = CASE WHEN excluded.{0} = '' THEN known.{0} ELSE excluded.{0} END",
                        text));
  }
  for (const std::string_view number : {"cpus", "memory", "gpus"}) {
    sql.add(fmt::format(", {0} = CASE WHEN excluded.{0} = 0 THEN known.{0} ELSE excluded.{0} END",
                        number));
  }
  return sql;
}

Result<> check_version(Session& session, std::int64_t wanted) {
  std::int64_t version = 0;
  auto done =
      session.run(Sql(session.dialect(), "SELECT max(version) FROM ceems_schema"),
                  [&version](std::size_t, const AnswerRow& row) { version = row.integer(0); });
  if (done && version != wanted) {
    return fail(ErrorCode::kInvalidArgument,
                "the database has version {} of ceems_schema, not {}: start ceems_api_server of"
                " this release once, which upgrades it",
                version, wanted);
  }
  return done;
}

Bill bill_of(const AnswerRow& row) {
  return {.cluster_id = std::string(row.text(0)),
          .start_ms = row.integer(1),
          .end_ms = row.integer(2),
          .energy = row.integer(3),
          .cost = std::string(row.text(4)),
          .currency = std::string(row.text(5)),
          .kgco2 = std::string(row.text(6))};
}

Result<> put_bill(Session& session, const Bill& bill, bool replace, BillReport& report) {
  Sql select(session.dialect(),
             "SELECT cluster_id,start_ms,end_ms,energy,cost,currency,kgco2 FROM ceems_bills"
             " WHERE cluster_id = ");
  select.value(bill.cluster_id).add(" AND start_ms < ").value(bill.end_ms);
  select.add(" AND end_ms > ").value(bill.start_ms);
  std::vector<Bill> others;
  auto done = session.run(
      select, [&others](std::size_t, const AnswerRow& row) { others.push_back(bill_of(row)); });
  if (!done) {
    return done;
  }
  if (others.size() == 1 && others.front() == bill) {
    report.unchanged += 1;
    return {};
  }
  if (!others.empty() && !replace) {
    return fail(ErrorCode::kInvalidArgument,
                "the bill from {} to {} (epoch ms) overlaps one that is stored, from {} to {}",
                bill.start_ms, bill.end_ms, others.front().start_ms, others.front().end_ms);
  }
  for (const Bill& other : others) {
    Sql remove(session.dialect(), "DELETE FROM ceems_bills WHERE cluster_id = ");
    remove.value(other.cluster_id).add(" AND start_ms = ").value(other.start_ms);
    done = session.run(remove, {});
    if (!done) {
      return done;
    }
    report.replaced += 1;
  }
  Sql insert(session.dialect(),
             "INSERT INTO ceems_bills (cluster_id,start_ms,end_ms,energy,cost,currency,kgco2)"
             " VALUES (");
  insert.value(bill.cluster_id).add(",").value(bill.start_ms).add(",").value(bill.end_ms);
  insert.add(",").value(bill.energy).add(",").value(bill.cost).add(",").value(bill.currency);
  insert.add(",").value(bill.kgco2).add(")");
  report.added += 1;
  return session.run(insert, {});
}

}  // namespace

Result<std::optional<std::int64_t>> read_nodes_until(Session& session,
                                                     const std::string& cluster_id) {
  std::optional<std::int64_t> until;
  Sql sql(session.dialect(), "SELECT until_ms FROM ceems_node_progress WHERE cluster_id = ");
  CEEMS_TRY(session.run(sql.value(cluster_id),
                        [&until](std::size_t, const AnswerRow& row) { until = row.integer(0); }));
  return until;
}

Result<> put_nodes(Session& session, const NodeUpdate& update) {
  CEEMS_TRY(until, read_nodes_until(session, update.cluster_id));
  if (update.start_ms >= update.end_ms || (until && until.value() != update.start_ms)) {
    return fail(ErrorCode::kInvalidArgument,
                "nodes of cluster {}: an update begins at {} and the last one ended at {}",
                printable(update.cluster_id, 40), update.start_ms, until.value_or(0));
  }
  for (const NodeEnergy& one : update.energies) {
    if (!is_node_name(one.node)) {
      continue;
    }
    CEEMS_TRY(session.run(add_energy(session, update, one), {}));
  }
  for (const NodeFacts& one : update.facts) {
    if (!is_node_name(one.node)) {
      continue;
    }
    CEEMS_TRY(session.run(keep_facts(session, update, one), {}));
  }
  Sql progress(session.dialect(),
               "INSERT INTO ceems_node_progress (cluster_id, until_ms) VALUES (");
  progress.value(update.cluster_id).add(",").value(update.end_ms);
  progress.add(") ON CONFLICT (cluster_id) DO UPDATE SET until_ms = excluded.until_ms");
  return session.run(progress, {});
}

Result<BillReport> put_bills(Session& session,
                             std::int64_t version,
                             const std::vector<Bill>& bills,
                             bool replace) {
  CEEMS_TRY(check_version(session, version));
  std::vector<Bill> sorted = bills;
  std::ranges::sort(sorted, [](const Bill& a, const Bill& b) {
    return std::tie(a.cluster_id, a.start_ms) < std::tie(b.cluster_id, b.start_ms);
  });
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i - 1].cluster_id == sorted[i].cluster_id &&
        sorted[i].start_ms < sorted[i - 1].end_ms) {
      return fail(ErrorCode::kInvalidArgument,
                  "two bills overlap: one from {} to {} (epoch ms) and one from {}",
                  sorted[i - 1].start_ms, sorted[i - 1].end_ms, sorted[i].start_ms);
    }
  }
  BillReport report;
  auto done = in_transaction(session, [&]() -> Result<> {
    for (const Bill& bill : sorted) {
      CEEMS_TRY(put_bill(session, bill, replace, report));
    }
    return {};
  });
  return done ? Result<BillReport>(report) : fail(std::move(done).error());
}

}  // namespace ceems::store

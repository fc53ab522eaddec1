// What people said of suggestions (store/feedback.h).
#include <string>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "store/feedback.h"
#include "store/queries/read_all.h"
#include "store/queries/sql_reader.h"

namespace ceems::store {

Result<std::vector<std::string>> SqlReader::rules_found(const ReportKey& key) {
  Sql sql = query_of("SELECT rule FROM ceems_findings WHERE cluster_id = ");
  sql.value(clean_text(key.cluster_id)).add(" AND uuid = ").value(clean_text(key.uuid));
  sql.add(" AND started_at_ts = ").value(key.started_at_ts).add(" ORDER BY rule");
  std::vector<std::string> rules;
  auto done = read_all(open(sql, kShortLimit),
                       [&rules](const Cursor& row) { rules.emplace_back(row.text(0)); });
  return done ? Result<std::vector<std::string>>(std::move(rules)) : fail(std::move(done).error());
}

Result<std::vector<Feedback>> SqlReader::feedback_of(const ReportKey& key,
                                                     const std::string& username) {
  Sql sql = query_of("SELECT rule, answer, answered_ms FROM ceems_feedback WHERE cluster_id = ");
  sql.value(clean_text(key.cluster_id)).add(" AND uuid = ").value(clean_text(key.uuid));
  sql.add(" AND started_at_ts = ").value(key.started_at_ts);
  sql.add(" AND username = ").value(clean_text(username)).add(" ORDER BY rule");
  std::vector<Feedback> found;
  auto done = read_all(open(sql, kShortLimit), [&](const Cursor& row) {
    found.push_back({.key = key,
                     .rule = std::string(row.text(0)),
                     .username = username,
                     .answer = std::string(row.text(1)),
                     .answered_ms = row.integer(2)});
  });
  return done ? Result<std::vector<Feedback>>(std::move(found)) : fail(std::move(done).error());
}

Result<std::vector<FeedbackSum>> SqlReader::feedback_by_rule() {
  std::vector<FeedbackSum> sums;
  auto done = read_all(
      open(query_of("SELECT rule, sum(CASE answer WHEN 'yes' THEN 1 ELSE 0 END),"
                    " sum(CASE answer WHEN 'no' THEN 1 ELSE 0 END),"
                    " sum(CASE answer WHEN 'not_applicable' THEN 1 ELSE 0 END),"
                    " count(DISTINCT username) FROM ceems_feedback GROUP BY rule ORDER BY rule"),
           kFactLimit),
      [&sums](const Cursor& row) {
        sums.push_back({.rule = std::string(row.text(0)),
                        .yes = row.integer(1),
                        .no = row.integer(2),
                        .not_applicable = row.integer(3),
                        .people = row.integer(4)});
      });
  return done ? Result<std::vector<FeedbackSum>>(std::move(sums)) : fail(std::move(done).error());
}

}  // namespace ceems::store

#include "store/schema/mail_tables.h"

#include <fmt/format.h>

namespace ceems::store {

std::string create_mail_tables(Dialect dialect) {
  const bool sqlite = dialect == Dialect::kSqlite;
  const char* const text = sqlite ? "text not null" : "text COLLATE \"C\" NOT NULL";
  const char* const number = sqlite ? "integer not null" : "bigint NOT NULL";
  const char* const end = sqlite ? ") WITHOUT ROWID;" : ");";
  return fmt::format(
      "CREATE TABLE ceems_outbox (id {0}, kind {0}, state {0}, username {0}, recipient {0},"
      "digest {0}, body {0}, received_ms {1}, due_ms {1}, done_ms {1}, tries {1},"
      "PRIMARY KEY (id){2}"
      "CREATE INDEX ceems_outbox_due ON ceems_outbox (state, due_ms);"
      "CREATE INDEX ceems_outbox_digest ON ceems_outbox (digest, state);"
      "CREATE TABLE ceems_contacts (username {0}, rule {0}, told_ms {1}, muted_until_ms {1},"
      "PRIMARY KEY (username, rule){2}",
      text, number, end);
}

}  // namespace ceems::store

#include "store/schema/token_table.h"

#include <fmt/format.h>

namespace ceems::store {

std::string create_token_table(Dialect dialect) {
  const bool sqlite = dialect == Dialect::kSqlite;
  return fmt::format(
      "CREATE TABLE ceems_tokens (id {0}, hash {0}, username {0}, name {0}, scope {0},"
      "created_ms {1}, expires_ms {1}, used_ms {1},PRIMARY KEY (id){2}"
      "CREATE UNIQUE INDEX ceems_tokens_hash ON ceems_tokens (hash);"
      "CREATE INDEX ceems_tokens_user ON ceems_tokens (username);",
      sqlite ? "text not null default ''" : "text COLLATE \"C\" NOT NULL DEFAULT ''",
      sqlite ? "integer not null default 0" : "bigint NOT NULL DEFAULT 0",
      sqlite ? ") WITHOUT ROWID;" : ");");
}

}  // namespace ceems::store

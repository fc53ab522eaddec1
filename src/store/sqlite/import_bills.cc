#include "store/sqlite/import_bills.h"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "store/schema/tables.h"
#include "store/sqlite/connection.h"
#include "store/sqlite/session.h"
#include "store/writer/node_days.h"

namespace ceems::store::sqlite {

Result<BillReport> import_bills(const DatabaseOptions& options,
                                const std::vector<Bill>& bills,
                                bool replace) {
  const std::string path = fmt::format("{}/{}", options.directory, kDatabaseFile);
  CEEMS_TRY(connection, Connection::open(path, OpenMode::kReadWrite));
  connection.set_busy_wait(options.busy_wait);
  CEEMS_TRY(reference, connection.query_integer("SELECT version FROM schema_migrations"));
  CEEMS_TRY(session, SqliteSession::create(std::move(connection), static_cast<int>(reference)));
  return put_bills(*session, kOwnVersion, bills, replace);
}

}  // namespace ceems::store::sqlite

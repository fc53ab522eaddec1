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
  auto connection = Connection::open(path, OpenMode::kReadWrite);
  if (!connection) {
    return fail(std::move(connection).error());
  }
  connection->set_busy_wait(options.busy_wait);
  const auto reference = connection->query_integer("SELECT version FROM schema_migrations");
  if (!reference) {
    return fail(reference.error());
  }
  auto session = SqliteSession::create(std::move(*connection), static_cast<int>(*reference));
  if (!session) {
    return fail(std::move(session).error());
  }
  return put_bills(**session, kOwnVersion, bills, replace);
}

}  // namespace ceems::store::sqlite

#include "store/factory/open_database.h"

#include <utility>

#include "base/time/time_zone.h"
#include "store/postgres/database.h"
#include "store/sqlite/database.h"

namespace ceems::store {

Result<std::unique_ptr<Database>> open_database(const DatabaseOptions& options,
                                                const Clock& clock) {
  CEEMS_TRY(zone, TimeZone::find(options.time_zone));
  return options.url.empty() ? sqlite::open_database(options, zone, clock)
                             : postgres::open_database(options, zone, clock);
}

Result<std::shared_ptr<Reader>> open_reader(const DatabaseOptions& options) {
  if (options.url.empty()) {
    return sqlite::open_reader(options);
  }
  DatabaseOptions in_use = options;
  in_use.upgrade_in_use_above = in_use.upgrade_in_use_above.value_or(0);
  CEEMS_TRY(database, open_database(in_use, real_clock()));
  const std::shared_ptr<Database> shared = std::move(database);
  return std::shared_ptr<Reader>(shared, &shared->reader());
}

Result<BillReport> import_bills(const DatabaseOptions& options,
                                const std::vector<Bill>& bills,
                                bool replace) {
  return options.url.empty() ? sqlite::import_bills(options, bills, replace)
                             : postgres::import_bills(options, bills, replace);
}

}  // namespace ceems::store

#pragma once

#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "store/database.h"
#include "store/nodes.h"
#include "store/reader.h"

namespace ceems::store {

/// Creates or upgrades the tables and opens the database: PostgreSQL if the options have a URL,
/// else SQLite. `clock` outlives it. Errors are one line that names the database.
Result<std::unique_ptr<Database>> open_database(const DatabaseOptions& options, const Clock& clock);

/// Opens the reading half only. A SQLite file is opened as it is, whatever its version, beside the
/// program that writes it: its generation() never changes, options.around_open is called around
/// each opening, and the error is kNotFound if there is no file. The tables of a PostgreSQL
/// database are created, or upgraded while it is in use, as by open_database().
Result<std::shared_ptr<Reader>> open_reader(const DatabaseOptions& options);

/// Adds bills to a database of this version, beside the program that updates it. Of the options,
/// those that say where the database is count. A bill that is stored already is left as it is.
/// kInvalidArgument if a bill overlaps another one of the same cluster, and then none is added;
/// with `replace`, those that are stored are removed instead.
Result<BillReport> import_bills(const DatabaseOptions& options,
                                const std::vector<Bill>& bills,
                                bool replace);

}  // namespace ceems::store

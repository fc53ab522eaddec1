#pragma once

#include <memory>

#include "base/clock.h"
#include "base/result.h"
#include "store/database.h"
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

}  // namespace ceems::store

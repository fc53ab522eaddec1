#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "tool/db/tables.h"

namespace ceems::tool::db {

/// Tables::open() for a file. ":memory:" is a new database in memory.
Result<std::unique_ptr<Tables>> open_sqlite(const std::string& file, Use use);

/// If root runs this program, gives a new file to the owner of its directory, so that the API
/// server can open it.
void give_to_owner_of_directory(const std::string& file);

}  // namespace ceems::tool::db

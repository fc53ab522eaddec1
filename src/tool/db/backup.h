#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "tool/db/progress.h"

namespace ceems::tool::db {

/// Copies a SQLite database, which an API server may be writing, to `output`: all of it as of one
/// moment. The file has mode 0600 and is complete, or does not exist. Returns its size.
/// kInvalidArgument if `output` exists, unless `force` replaces it.
Result<std::int64_t> backup_file(const std::string& file,
                                 const std::string& output,
                                 bool force,
                                 Progress& progress);

}  // namespace ceems::tool::db

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "tool/db/compare.h"
#include "tool/db/progress.h"
#include "tool/db/tables.h"

namespace ceems::tool::db {

struct CopyOptions {
  /// Rows in one transaction.
  std::size_t batch = 5000;
  /// Throws away what an interrupted copy has written.
  bool restart = false;
};

struct CopyReport {
  std::vector<TableComparison> tables;
  std::int64_t copied = 0;              ///< rows that this run wrote
  std::int64_t resumed = 0;             ///< rows that earlier runs had written
  std::int64_t converted = 0;           ///< values that the destination cannot hold as they are
  std::vector<std::string> not_copied;  ///< tables and columns of other programs

  [[nodiscard]] bool equal() const;
};

/// Copies all data of a database (Use::kAlone) into an empty one (Use::kWrite), or continues a copy
/// of the same source that was interrupted in any way, then compares both. Memory does not grow
/// with the databases. While the copy is unfinished, or if the comparison finds a difference,
/// nothing else can open the destination.
///
/// kInvalidArgument if the source does not have the current schema, has changed since the copy
/// began, or has rows that another program has written and no API server has read since, and if the
/// destination is not empty.
Result<CopyReport> copy_database(Tables& from,
                                 Tables& to,
                                 const CopyOptions& options,
                                 Progress& progress);

}  // namespace ceems::tool::db

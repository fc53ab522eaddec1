#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tool/db/layout.h"
#include "tool/db/tables.h"

namespace ceems::tool::db {

/// How far a copy is, kept in a table of the destination (store/schema/copying.h) and changed in
/// the same transactions as the rows. Not thread-safe.
class CopyState {
 public:
  explicit CopyState(Tables& destination) : tables_(&destination) {}

  /// Whether the destination holds an unfinished copy.
  Result<bool> exists();
  /// The source of the unfinished copy, as passed to begin().
  Result<std::string> source();

  /// Begins a copy in one transaction: removes all rows, and the indexes, which are made again when
  /// all rows are there.
  Result<> begin(const std::string& source, const std::vector<TableLayout>& layout);

  struct TableState {
    std::optional<Row> after;  ///< the key of the newest row
    std::int64_t rows = 0;
    bool done = false;
  };
  Result<TableState> table(std::string_view name);
  /// The statement that stores the state; to be run in the transaction of the rows.
  Result<> set_table(std::string_view name, const TableState& state);

  /// Names and statements of the indexes that have not been made again.
  Result<std::vector<Row>> indexes();
  /// Makes one of them, in one transaction.
  Result<> make_index(const Row& index);

  /// Ends the copy: the destination is a usual database from now on.
  Result<> finish();

 private:
  Result<std::optional<std::string>> value(std::string_view kind, std::string_view name);
  Result<> set(std::string_view kind, std::string_view name, const std::string& text);

  Tables* tables_;
};

/// A key as a JSON array, and back; nothing for a text that is none.
std::string key_text(const Row& key);
std::optional<Row> parse_key(std::string_view text);

}  // namespace ceems::tool::db

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/sql/sql.h"

namespace ceems::store {

/// The statements of the writer, prepared once per connection.
enum class WriterStatement : std::size_t {
  kWatermark,
  kSetWatermark,
  kInsertUnit,
  kUpdateUnit,
  kDeleteUnit,
  kFindUsage,
  kInsertUsage,
  kUpdateUsage,
  kFindDay,
  kInsertDay,
  kUpdateDay,
  kUpsertUser,
  kUserNames,
  kDeleteUser,
  kUpsertProject,
  kProjectNames,
  kDeleteProject,
  kInsertGapUnit,
  kFillUnit,
  kFillUsage,
  kFillDay,
  kInsertSums,
  kDeleteSums,
  kInsertSpan,
  kDeleteSpan,
};
inline constexpr std::size_t kWriterStatements = 25;

/// The text, with ? for each value.
std::string statement_text(WriterStatement statement);
/// "table (columns)" of an INSERT that does nothing but store its values, for databases that take
/// many rows at once; nothing for other statements.
std::string insert_target(WriterStatement statement);

/// One statement with its values.
struct WriterCall {
  WriterStatement statement{};
  std::vector<SqlValue> values = {};
};

/// The current row of an answer. Columns count from 0; texts live until the next row.
class AnswerRow {
 public:
  virtual ~AnswerRow() = default;
  [[nodiscard]] virtual std::string_view text(std::size_t column) const = 0;
  [[nodiscard]] virtual std::int64_t integer(std::size_t column) const = 0;
};
/// Gets the index of the call in its list, and a row of its answer.
using OnRow = std::function<void(std::size_t, const AnswerRow&)>;

/// What a database has to do for the writer: transactions of one connection. Used by one thread.
///
/// Errors: kUnavailable where trying again may help (a lost connection, a full disk, a lock); after
/// any error the transaction has to be rolled back.
class Session {
 public:
  virtual ~Session() = default;

  /// Starts a transaction that no other writer of the database can be in at the same time, after
  /// rolling back whatever an earlier failure left open. Refused with kUnavailable when another
  /// program leads.
  virtual Result<> begin() = 0;
  /// After an error the transaction may have taken effect or not; the watermark tells.
  virtual Result<> commit() = 0;
  virtual void roll_back() = 0;

  /// Runs the calls in order.
  virtual Result<> run(std::span<const WriterCall> calls, const OnRow& on_row) = 0;
  /// Runs each group as a whole or, when the database refuses one of its values (too large, not
  /// unique), not at all. The error of a refused group stands at its index in the result.
  virtual Result<std::vector<std::optional<Error>>> run_groups(
      std::span<const std::vector<WriterCall>> groups) = 0;
  /// Runs a statement that is not worth preparing.
  virtual Result<> run(const Sql& sql, const OnRow& on_row) = 0;

  [[nodiscard]] virtual Dialect dialect() const = 0;
};

}  // namespace ceems::store

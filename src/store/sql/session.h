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
#include "store/schema/column.h"
#include "store/sql/sql.h"
#include "store/sql/upgrading.h"

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
  kPutFacts,
  kFillFacts,
  kDeleteFacts,
  kQueueReport,
  kQueueEnded,
  kQueueFilled,
};
inline constexpr std::size_t kWriterStatements = 31;

/// The SQL text of a statement, with a ? for each value, for tables of this version of the
/// reference (schema/table_sql.h).
std::string statement_text(WriterStatement statement, int reference = kNewestReference);
/// "table (columns)" of a plain INSERT, for databases that can load many rows at once; empty for
/// other statements.
std::string insert_target(WriterStatement statement);

/// One statement with its values.
struct WriterCall {
  WriterStatement statement{};
  std::vector<SqlValue> values = {};
};

/// The current row of a result. Columns count from 0. Texts are valid until the next row.
class AnswerRow {
 public:
  virtual ~AnswerRow() = default;
  [[nodiscard]] virtual std::string_view text(std::size_t column) const = 0;
  [[nodiscard]] virtual std::int64_t integer(std::size_t column) const = 0;
};
/// Receives the index of a call in its list, and a row of its result.
using OnRow = std::function<void(std::size_t, const AnswerRow&)>;

/// Transactions on one connection: the database operations of the writer. Used by one thread.
///
/// Errors: kUnavailable if trying again may help (a lost connection, a full disk, a lock). After
/// any error the caller must roll the transaction back.
class Session {
 public:
  virtual ~Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// kUnavailable while the database is upgraded: nothing can be run then.
  [[nodiscard]] Result<> ready() const { return upgrade_ ? upgrade_->ready() : Result<>(); }

  /// Starts a transaction that excludes all other writers of the database. Rolls back first what an
  /// earlier failure left open. kUnavailable if another program leads.
  virtual Result<> begin() = 0;
  /// After an error the transaction may have taken effect or not; the watermark shows which. Other
  /// programs that share the database learn of the commit, and whether it leaves usage as it is.
  virtual Result<> commit() = 0;
  void set_leaves_usage(bool leaves) { leaves_usage_ = leaves; }
  virtual void roll_back() = 0;

  /// Runs the calls in order.
  virtual Result<> run(std::span<const WriterCall> calls, const OnRow& on_row) = 0;
  /// Runs each group of calls as a whole. A group with a value that the database refuses (too
  /// large, not unique) has no effect, and its error is at its index in the result.
  virtual Result<std::vector<std::optional<Error>>> run_groups(
      std::span<const std::vector<WriterCall>> groups) = 0;
  /// Runs a statement once, without preparing it.
  virtual Result<> run(const Sql& sql, const OnRow& on_row) = 0;

  [[nodiscard]] virtual Dialect dialect() const = 0;
  /// The version of the reference's tables (schema/column.h).
  [[nodiscard]] virtual int reference() const { return kNewestReference; }

 protected:
  /// `upgrade`, which may be null, must outlive the session.
  explicit Session(const UpgradeInUse* upgrade = nullptr) : upgrade_(upgrade) {}
  [[nodiscard]] bool leaves_usage() const { return leaves_usage_; }

 private:
  const UpgradeInUse* upgrade_;
  bool leaves_usage_ = false;
};

/// Runs `work` in a transaction, which is rolled back if it fails.
Result<> in_transaction(Session& session, const std::function<Result<>()>& work);

}  // namespace ceems::store

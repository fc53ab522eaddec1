#include "tool/db/copy.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/strings.h"
#include "store/schema/tables.h"
#include "tool/db/copy_state.h"
#include "tool/db/layout.h"

namespace ceems::tool::db {
namespace {

/// What tells whether the source is still the same: the number of rows and the newest row of each
/// table, and the newest update.
Result<std::string> fingerprint(Tables& tables,
                                const std::vector<TableLayout>& layout,
                                std::vector<std::int64_t>& counts) {
  std::string text;
  for (const TableLayout& table : layout) {
    CEEMS_TRY(count, tables.integer(fmt::format("SELECT count(*) FROM {}", table.name)));
    counts.push_back(count);
    text += fmt::format("{}: {} rows", table.name, count);
    std::string newest = table.has_ids() ? "max(id)" : "";
    for (const std::string_view column : {"last_updated_at_ts", "window_end_ms"}) {
      if (std::ranges::find(table.columns, column, &Column::name) != table.columns.end()) {
        newest += fmt::format("{}max({})", newest.empty() ? "" : ", ", column);
      }
    }
    if (!newest.empty()) {
      CEEMS_TRY(rows, tables.query(fmt::format("SELECT {} FROM {}", newest, table.name)));
      for (const Cell& cell : rows.front()) {
        text += fmt::format(", {}", cell.null ? "none" : cell.text);
      }
    }
    text += "; ";
  }
  return text;
}

Result<> check_source(Tables& from, const std::vector<TableLayout>& layout) {
  CEEMS_TRY(names, from.table_names());
  const auto has = [&names](std::string_view name) {
    return std::ranges::find(names, name) != names.end();
  };
  if (!has("units")) {
    return fail(ErrorCode::kInvalidArgument, "database {}: holds no tables of CEEMS", from.name());
  }
  if (const auto copying = CopyState(from).exists(); !copying || *copying) {
    return copying ? fail(ErrorCode::kInvalidArgument, "database {}: holds an unfinished copy",
                          from.name())
                   : fail(copying.error());
  }
  CEEMS_TRY(version,
            has("ceems_schema") ? from.integer("SELECT max(version) FROM ceems_schema") : 0);
  if (version != store::kOwnVersion) {
    return fail(ErrorCode::kInvalidArgument,
                "database {}: has version {} of the additions of this program, which copies only"
                " version {}; run 'ceems_tool db migrate --db {}' first",
                from.name(), version, store::kOwnVersion, from.name());
  }
  CEEMS_TRY(missing, missing_parts(from, layout));
  if (!missing.empty()) {
    return fail(ErrorCode::kInvalidArgument, "database {}: {}; see 'ceems_tool db verify'",
                from.name(), missing.front());
  }
  CEEMS_TRY(foreign, from.integer("SELECT count(*) FROM usage WHERE last_updated_at_ts IS NULL"));
  if (foreign > 0) {
    return fail(ErrorCode::kInvalidArgument,
                "database {}: an API server of CEEMS 0.10.2 has written to it; run 'ceems_tool db"
                " migrate --db {}' first, which reads its times",
                from.name(), from.name());
  }
  return {};
}

/// The tables that a destination has already are empty.
Result<> check_empty(Tables& to, const std::vector<TableLayout>& layout) {
  CEEMS_TRY(names, to.table_names());
  for (const TableLayout& table : layout) {
    if (std::ranges::find(names, table.name) == names.end()) {
      continue;
    }
    CEEMS_TRY(any, to.integer(fmt::format("SELECT count(*) FROM (SELECT 1 FROM {} LIMIT 1) AS one",
                                          table.name)));
    if (any > 0) {
      return fail(ErrorCode::kInvalidArgument,
                  "database {}: the table {} has rows; a copy needs an empty database", to.name(),
                  table.name);
    }
  }
  return {};
}

/// Whether the column is one of custom metrics. A layout lacks them only if they hold nothing.
bool is_unused(std::string_view column) {
  return std::ranges::any_of(store::kMapColumns, [column](const store::Column& one) {
    return one.reference > 0 && one.name == column;
  });
}

/// What a source has besides the tables and columns of the layout.
Result<std::vector<std::string>> extras(Tables& from, const std::vector<TableLayout>& layout) {
  std::vector<std::string> result;
  CEEMS_TRY(names, from.table_names());
  for (const std::string& name : names) {
    const auto table = std::ranges::find(layout, name, &TableLayout::name);
    if (table == layout.end()) {
      if (!is_administrative(name)) {
        result.push_back(name);
      }
      continue;
    }
    CEEMS_TRY(columns, from.column_names(name));
    for (const std::string& column : columns) {
      if (std::ranges::find(table->columns, column, &Column::name) == table->columns.end() &&
          !is_unused(column)) {
        result.push_back(fmt::format("{}.{}", name, column));
      }
    }
  }
  return result;
}

/// One run of a copy.
class Run {
 public:
  Run(Tables& from, Tables& to, const CopyOptions& options, Progress& progress)
      : from_(from), to_(to), options_(options), progress_(progress), state_(to) {}

  Result<CopyReport> all() {
    auto done = prepare();
    for (std::size_t i = 0; done && i < layout_.size(); ++i) {
      done = copy_table(layout_[i]);
    }
    if (done) {
      done = finish_tables();
    }
    if (done) {
      done = compare();
    }
    if (done && report_.equal()) {
      done = state_.finish();
      if (done && to_.dialect() == store::Dialect::kSqlite) {
        // A copy of the file alone is complete then.
        done = to_.execute("PRAGMA wal_checkpoint(TRUNCATE)");
      }
    }
    progress_.clear();
    if (!done) {
      return fail(std::move(done).error());
    }
    return std::move(report_);
  }

 private:
  Result<> prepare() {
    // A file that CEEMS 0.15 can open stays one. PostgreSQL has the columns of custom metrics
    // always, but a file gets them only if there are values, so that CEEMS 0.10.2 can open it.
    const auto custom_stats = from_.dialect() == store::Dialect::kSqlite ? has_custom_stats(from_)
                                                                         : uses_custom_stats(from_);
    CEEMS_TRY(layout, custom_stats ? current_layout(*custom_stats) : fail(custom_stats.error()));
    layout_ = std::move(layout);
    CEEMS_TRY(check_source(from_, layout_));
    auto others = extras(from_, layout_);
    auto source = others ? fingerprint(from_, layout_, counts_) : fail(others.error());
    CEEMS_TRY(unfinished, source ? state_.exists() : fail(source.error()));
    report_.not_copied = std::move(*others);
    for (const std::int64_t count : counts_) {
      all_ += count;
    }
    if (!unfinished) {
      // Before anything changes: it may be a database that somebody needs.
      auto ready = check_empty(to_, layout_);
      if (ready) {
        ready = to_.upgrade("UTC", *custom_stats);
      }
      return ready ? state_.begin(*source, layout_) : ready;
    }
    if (options_.restart) {
      return state_.begin(*source, layout_);
    }
    CEEMS_TRY(stored, state_.source());
    if (stored != *source) {
      return fail(ErrorCode::kInvalidArgument,
                  "database {}: holds an unfinished copy of another source, or the source has"
                  " changed since; --restart throws it away and begins again",
                  to_.name());
    }
    return {};
  }

  Result<> write(const TableLayout& table, std::vector<Row>& rows, CopyState::TableState& state) {
    const std::string target = fmt::format("{} ({})", table.name, table.names());
    if (!rows.empty()) {
      Row key;
      for (std::size_t i = 0; i < table.key_size; ++i) {
        key.push_back(rows.back()[table.order[i]]);
      }
      state.after = std::move(key);
    }
    state.rows += static_cast<std::int64_t>(rows.size());
    auto done = to_.execute("BEGIN");
    if (done) {
      done = to_.insert(target, rows);
    }
    if (done) {
      done = state_.set_table(table.name, state);
    }
    if (done) {
      done = to_.execute("COMMIT");
    } else {
      static_cast<void>(to_.execute("ROLLBACK"));
      return fail(std::move(done).error().with_context(fmt::format("table {}", table.name)));
    }
    report_.copied += static_cast<std::int64_t>(rows.size());
    done_ += static_cast<std::int64_t>(rows.size());
    rows.clear();
    progress_.show(fmt::format("copying {}", table.name), done_, all_, "rows");
    return done;
  }

  Result<> copy_table(const TableLayout& table) {
    CEEMS_TRY(state, state_.table(table.name));
    report_.resumed += state.rows;
    done_ += state.rows;
    if (state.done) {
      return {};
    }
    CEEMS_TRY(cursor,
              from_.stream(table.select(state.after.has_value()), state.after.value_or(Row())));
    const Conversion conversion(to_.dialect(), table);
    std::vector<Row> rows;
    Row row;
    while (true) {
      CEEMS_TRY(more, cursor->next(row));
      if (!more) {
        break;
      }
      report_.converted += conversion.apply(row);
      // An interrupted copy continues after a key, so all rows of one are written together.
      if (rows.size() >= options_.batch && table.compare(rows.back(), row, table.key_size) != 0) {
        CEEMS_TRY(write(table, rows, state));
      }
      rows.push_back(std::move(row));
      row.clear();
    }
    state.done = true;
    return write(table, rows, state);
  }

  /// Makes the indexes, and lets new rows get ids after the copied ones.
  Result<> finish_tables() {
    CEEMS_TRY(indexes, state_.indexes());
    std::int64_t made = 0;
    for (const Row& index : indexes) {
      progress_.show("making indexes", made++, static_cast<std::int64_t>(indexes.size()),
                     "indexes");
      CEEMS_TRY_IN(fmt::format("index {}", printable(index.front().text)),
                   state_.make_index(index));
    }
    if (to_.dialect() != store::Dialect::kPostgres) {
      return {};
    }
    for (const TableLayout& table : layout_) {
      if (!table.has_ids()) {
        continue;
      }
      CEEMS_TRY(
          to_.query(fmt::format("SELECT setval(pg_get_serial_sequence('{0}', 'id'),"
                                " (SELECT coalesce(max(id), 0) + 1 FROM {0}), false)",
                                table.name)));
    }
    return to_.execute("ANALYZE");
  }

  Result<> compare() {
    std::int64_t compared = 0;
    for (const TableLayout& table : layout_) {
      const auto on_row = [&] {
        constexpr std::int64_t kSeldom = 1024;
        if (++compared % kSeldom == 0) {
          progress_.show(fmt::format("comparing {}", table.name), compared, all_, "rows");
        }
      };
      CEEMS_TRY(result, compare_table(from_, to_, table, on_row));
      report_.tables.push_back(std::move(result));
    }
    return {};
  }

  Tables& from_;
  Tables& to_;
  const CopyOptions& options_;
  Progress& progress_;
  CopyState state_;
  std::vector<TableLayout> layout_;
  std::vector<std::int64_t> counts_;
  std::int64_t all_ = 0;
  std::int64_t done_ = 0;
  CopyReport report_;
};

}  // namespace

bool CopyReport::equal() const {
  return std::ranges::all_of(tables, &TableComparison::equal);
}

Result<CopyReport> copy_database(Tables& from,
                                 Tables& to,
                                 const CopyOptions& options,
                                 Progress& progress) {
  return Run(from, to, options, progress).all();
}

}  // namespace ceems::tool::db

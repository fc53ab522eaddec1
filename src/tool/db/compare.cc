#include "tool/db/compare.h"

#include <memory>
#include <optional>
#include <utility>

#include "base/json_reader.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "store/json.h"

namespace ceems::tool::db {
namespace {

/// What a value that is NULL becomes in PostgreSQL: the default of its column.
std::string_view default_of(const Column& column) {
  if (column.integer) {
    return "0";
  }
  switch (column.content) {
    case Content::kText:
      return "";
    case Content::kMetrics:
    case Content::kObject:
      return "{}";
    case Content::kList:
      return "[]";
  }
  return "";
}

bool is_list(const std::string& text) {
  std::string ignored;
  return text == "null" ||
         (JsonScanner(text).at('[') && append_json(ignored, text) && is_utf8(text));
}

/// One side of a comparison: the current row, if there is one.
class Side {
 public:
  static Result<Side> open(Tables& tables, const TableLayout& table) {
    CEEMS_TRY(cursor, tables.stream(table.select(false)));
    Side side;
    side.cursor_ = std::move(cursor);
    return side;
  }
  Result<> next() {
    CEEMS_TRY(more, cursor_->next(row_));
    there_ = more;
    return {};
  }
  [[nodiscard]] bool there() const { return there_; }
  [[nodiscard]] Row& row() { return row_; }

 private:
  std::unique_ptr<Cursor> cursor_;
  Row row_;
  bool there_ = false;
};

/// "id=7"
std::string key_of(const TableLayout& table, const Row& row) {
  std::string text;
  for (std::size_t i = 0; i < table.key_size; ++i) {
    const std::size_t column = table.order[i];
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", table.columns[column].name,
                        printable(row[column].text));
  }
  return text;
}

void report(TableComparison& result, std::string line) {
  constexpr std::size_t kShown = 10;
  ++result.different;
  if (result.differences.size() < kShown) {
    result.differences.push_back(std::move(line));
  }
}

/// Sums of rows that both sides have, and of the others.
struct Sums {
  MetricSums both, only_from, only_to;
};

void compare_rows(
    const TableLayout& table, const Row& a, const Row& b, Sums& sums, TableComparison& result) {
  std::string names;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (a[i] != b[i]) {
      names += fmt::format("{}{}", names.empty() ? "" : ", ", table.columns[i].name);
    }
  }
  if (names.empty()) {
    add_sums(table, a, sums.both);
    return;
  }
  add_sums(table, a, sums.only_from);
  add_sums(table, b, sums.only_to);
  report(result, fmt::format("{} {}: {}", table.name, key_of(table, a), names));
}

}  // namespace

Conversion::Conversion(store::Dialect destination, const TableLayout& table)
    : table_(&table), postgres_(destination == store::Dialect::kPostgres) {}

std::int64_t Conversion::apply(Row& row) const {
  if (!postgres_) {
    return 0;
  }
  std::int64_t changed = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const Column& column = table_->columns[i];
    Cell& cell = row[i];
    if (cell.null) {
      cell = {.text = std::string(default_of(column))};
      continue;
    }
    if (column.integer) {
      continue;
    }
    if (column.content == Content::kList && !is_list(cell.text)) {
      cell.text = "[]";
      ++changed;
    } else if (cell.text.find('\0') != std::string::npos || !is_utf8(cell.text)) {
      cell.text = clean_text(cell.text);
      ++changed;
    }
  }
  return changed;
}

void add_sums(const TableLayout& table, const Row& row, MetricSums& sums) {
  if (table.name.starts_with("ceems_")) {
    return;  // derived from the others
  }
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const Column& column = table.columns[i];
    if (column.name == "num_units") {
      sums[column.name] += static_cast<double>(parse_int<std::int64_t>(row[i].text).value_or(0));
    }
    if (column.content != Content::kMetrics || row[i].text.size() <= 2) {
      continue;
    }
    const auto map = store::parse_metric_map(row[i].text);
    if (!map) {
      continue;  // verify reports it
    }
    for (const auto& [name, value] : *map) {
      sums[fmt::format("{}.{}", column.name, name)] += value;
    }
  }
}

Result<TableComparison> compare_table(Tables& from,
                                      Tables& to,
                                      const TableLayout& table,
                                      const std::function<void()>& on_row) {
  TableComparison result{.table = table.name};
  Sums sums;
  const Conversion conversion(to.dialect(), table);
  auto a = Side::open(from, table);
  CEEMS_TRY(b, a ? Side::open(to, table) : fail(a.error()));
  const auto next_of_source = [&]() -> Result<> {
    auto done = a->next();
    if (done && a->there()) {
      conversion.apply(a->row());
      ++result.rows_from;
      on_row();
    }
    return done;
  };
  const auto next_of_copy = [&]() -> Result<> {
    auto done = b.next();
    if (done && b.there()) {
      ++result.rows_to;
    }
    return done;
  };
  auto done = next_of_source();
  if (done) {
    done = next_of_copy();
  }
  while (done && (a->there() || b.there())) {
    const int order = !a->there()  ? 1
                      : !b.there() ? -1
                                   : table.compare(a->row(), b.row(), table.order.size());
    if (order == 0) {
      compare_rows(table, a->row(), b.row(), sums, result);
    } else if (order < 0) {
      add_sums(table, a->row(), sums.only_from);
      report(result,
             fmt::format("{} {}: missing in the destination", table.name, key_of(table, a->row())));
    } else {
      add_sums(table, b.row(), sums.only_to);
      report(result,
             fmt::format("{} {}: only in the destination", table.name, key_of(table, b.row())));
    }
    if (order <= 0) {
      done = next_of_source();
    }
    if (done && order >= 0) {
      done = next_of_copy();
    }
  }
  if (!done) {
    return fail(std::move(done).error());
  }
  result.sums_from = sums.both;
  result.sums_to = std::move(sums.both);
  for (const auto& [name, value] : sums.only_from) {
    result.sums_from[name] += value;
  }
  for (const auto& [name, value] : sums.only_to) {
    result.sums_to[name] += value;
  }
  return result;
}

}  // namespace ceems::tool::db

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "store/reader.h"
#include "store/schema/dialect.h"

namespace ceems::store {

/// A bound value.
using SqlValue = std::variant<std::string, std::int64_t>;

/// A query under construction: text from constants only, values always bound. Not thread-safe.
class Sql {
 public:
  Sql(Dialect dialect, std::string_view text) : dialect_(dialect), text_(text) {}

  /// Appends constant text.
  Sql& add(std::string_view text);
  /// Appends another query with its values.
  Sql& append(const Sql& other);
  Sql& value(std::string_view text);
  Sql& value(std::int64_t number);
  /// " AND column IN (?,...)", or nothing for an empty list.
  Sql& and_in(std::string_view column, const std::vector<std::string>& values);
  /// "(?,...)"; nothing is in an empty list.
  Sql& list(const std::vector<std::string>& values);
  /// " AND (ended_at_ts is in the range)", or runs when `running` is asked for.
  Sql& and_ended(const TimeRange& range, bool running);
  /// " AND (the row of `units` is in scope)": by its user name, or its project where that is led.
  Sql& and_owner_in(const Scope& scope);
  /// " AND (column is in scope)": the row's user name.
  Sql& and_user_in(std::string_view column, const Scope& scope);
  /// " AND (the row's (cluster_id, project column) has a member in scope, or is led)".
  Sql& and_project_of(std::string_view project_column, const Scope& scope);

  [[nodiscard]] Dialect dialect() const { return dialect_; }
  /// With a ? for each value; see numbered().
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] const std::vector<SqlValue>& values() const { return values_; }

 private:
  void user_in(std::string_view column, const Scope& scope);
  /// " OR the row's (cluster_id, project column) is led".
  void or_led(std::string_view project_column, const Scope& scope);
  /// The members of projects, one row each. A list that is no JSON array has none.
  [[nodiscard]] std::string_view members() const;

  Dialect dialect_;
  std::string text_;
  std::vector<SqlValue> values_;
};

/// The text with $1, $2, ... in the places of ?. There must be no ? in literals.
std::string numbered(std::string_view text);

}  // namespace ceems::store

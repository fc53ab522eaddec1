#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "store/reader.h"
#include "store/sqlite/connection.h"

namespace ceems::store::sqlite {

/// A query under construction: text from constants only, values always bound.
class Sql {
 public:
  explicit Sql(std::string_view text) : text_(text) {}

  /// Appends constant text.
  Sql& add(std::string_view text);
  Sql& value(std::string_view text);
  Sql& value(std::int64_t number);
  /// " AND column IN (?,...)", or nothing for an empty list.
  Sql& and_in(std::string_view column, const std::vector<std::string>& values);
  /// "(?,...)"
  Sql& list(const std::vector<std::string>& values);
  /// " AND (the row of `units` is in scope)": by its user name, or its project where that is led.
  Sql& and_owner_in(const Scope& scope);
  /// " AND (column is in scope)": the row's user name.
  Sql& and_user_in(std::string_view column, const Scope& scope);
  /// " AND (the row's (cluster_id, project column) has a member in scope, or is led)".
  Sql& and_project_of(std::string_view project_column, const Scope& scope);

  [[nodiscard]] const std::string& text() const { return text_; }
  Result<Statement> prepare(Connection& connection) const;

 private:
  void user_in(std::string_view column, const Scope& scope);
  /// " OR the row's (cluster_id, project column) is led".
  void or_led(std::string_view project_column, const Scope& scope);

  std::string text_;
  std::vector<std::variant<std::string, std::int64_t>> values_;
};

}  // namespace ceems::store::sqlite

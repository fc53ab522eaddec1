#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "store/reader.h"
#include "store/schema/dialect.h"

namespace ceems::store {

/// A value that is bound to a ?.
using SqlValue = std::variant<std::string, std::int64_t>;

/// A statement that is being built. Its text consists of constants only; values are always bound.
/// Not thread-safe.
class Sql {
 public:
  Sql(Dialect dialect, std::string_view text) : dialect_(dialect), text_(text) {}

  /// Appends constant text.
  Sql& add(std::string_view text);
  /// Appends another statement with its values.
  Sql& append(const Sql& other);
  /// Appends a ? and binds the value.
  Sql& value(std::string_view text);
  Sql& value(std::int64_t number);
  /// Appends " AND column IN (?,...)", or nothing if the list is empty.
  Sql& and_in(std::string_view column, const std::vector<std::string>& values);
  /// The same, but in SQLite no index is chosen for it. SQLite has no statistics about the values,
  /// so it takes a cluster for as selective as a user. (PostgreSQL has some, and needs the column.)
  Sql& and_filter_in(std::string_view column, const std::vector<std::string>& values);
  /// Appends "(?,...)". No value is IN an empty list.
  Sql& list(const std::vector<std::string>& values);
  /// Appends a condition on units: they ended in the range or, with `running`, have not ended.
  Sql& and_ended(const TimeRange& range, bool running);
  /// Appends a condition on rows of `units`: the scope has their user or leads their project.
  Sql& and_owner_in(const Scope& scope);
  /// Appends a condition: the scope has the user that the column names.
  Sql& and_user_in(std::string_view column, const Scope& scope);
  /// Appends a condition: the scope has a member of the row's project (cluster_id, project column),
  /// or leads it.
  Sql& and_project_of(std::string_view project_column, const Scope& scope);
  /// Appends a condition on rows of units, their facts and usage: the scope has their user, or
  /// and_project_of() their project. Membership widens rights; it never takes away what is one's
  /// own.
  Sql& and_usage_of(const Scope& scope);

  /// Appends a condition on rows of `units` of a service account of `project`: they are in a
  /// cluster where the scope has a member of the project, and the scope does not lead their
  /// project.
  Sql& and_service_of(std::string_view project, const Scope& scope);

  /// and_usage_of() for a few units, which `units` selects (" FROM units WHERE ..."): reads only
  /// the projects of these units, and keeps the condition from choosing the index by which the
  /// units are found.
  /// A member sees what ran while the project had them: not what had ended when they joined, as far
  /// as ceems_members knows that. `since` is false for databases without that table.
  Sql& and_seen_among(const Scope& scope, const Sql& units, bool since);

  /// What to select from for the members of projects (p.cluster_id, p.name, m.value), one row for
  /// each. A list that is not a JSON array has none.
  [[nodiscard]] std::string_view members() const;

  [[nodiscard]] Dialect dialect() const { return dialect_; }
  /// The text, with a ? for each value; see numbered().
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] const std::vector<SqlValue>& values() const { return values_; }

 private:
  void user_in(std::string_view column, const Scope& scope);
  /// Appends " OR (the scope leads the row's project)".
  void or_led(std::string_view project_column, const Scope& scope);
  /// Appends "(?,?),..." with the cluster and name of each led project.
  void led_list(const Scope& scope);
  Dialect dialect_;
  std::string text_;
  std::vector<SqlValue> values_;
};

/// Replaces each ? by $1, $2, ... The text must not have a ? in a literal.
std::string numbered(std::string_view text);

}  // namespace ceems::store

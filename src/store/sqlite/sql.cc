#include "store/sqlite/sql.h"

namespace ceems::store::sqlite {
namespace {

/// The members of projects, one row each. A list that is no JSON has none.
constexpr std::string_view kMembers =
    "projects AS p, json_each(CASE WHEN json_valid(p.users) THEN p.users ELSE '[]' END) AS m";

}  // namespace

Sql& Sql::add(std::string_view text) {
  text_ += text;
  return *this;
}

Sql& Sql::value(std::string_view text) {
  text_ += '?';
  values_.emplace_back(std::string(text));
  return *this;
}

Sql& Sql::value(std::int64_t number) {
  text_ += '?';
  values_.emplace_back(number);
  return *this;
}

Sql& Sql::list(const std::vector<std::string>& values) {
  text_ += '(';
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) {
      text_ += ',';
    }
    value(values[i]);
  }
  text_ += ')';
  return *this;
}

Sql& Sql::and_in(std::string_view column, const std::vector<std::string>& values) {
  if (!values.empty()) {
    add(" AND ").add(column).add(" IN ").list(values);
  }
  return *this;
}

void Sql::user_in(std::string_view column, const Scope& scope) {
  add(column).add(" IN ").list(scope.names);
  if (!scope.service_projects.empty()) {
    add(" OR (cluster_id,").add(column).add(") IN (SELECT p.cluster_id, p.name || ':svc' FROM ");
    add(kMembers).add(" WHERE p.name IN ").list(scope.service_projects);
    add(" AND m.value IN ").list(scope.names).add(")");
  }
}

void Sql::or_led(std::string_view project_column, const Scope& scope) {
  if (scope.led_projects.empty()) {
    return;
  }
  add(" OR (cluster_id,").add(project_column).add(") IN (VALUES ");
  for (std::size_t i = 0; i < scope.led_projects.size(); ++i) {
    add(i == 0 ? "(" : ",(").value(scope.led_projects[i].cluster_id);
    add(",").value(scope.led_projects[i].project).add(")");
  }
  add(")");
}

Sql& Sql::and_owner_in(const Scope& scope) {
  if (scope.everybody) {
    return *this;
  }
  add(" AND (");
  user_in("username", scope);
  or_led("project", scope);
  return add(")");
}

Sql& Sql::and_user_in(std::string_view column, const Scope& scope) {
  if (scope.everybody) {
    return *this;
  }
  add(" AND (");
  user_in(column, scope);
  return add(")");
}

Sql& Sql::and_project_of(std::string_view project_column, const Scope& scope) {
  if (scope.everybody) {
    return *this;
  }
  add(" AND ((cluster_id,").add(project_column).add(") IN (SELECT p.cluster_id, p.name FROM ");
  add(kMembers).add(" WHERE m.value IN ").list(scope.names).add(")");
  or_led(project_column, scope);
  return add(")");
}

Result<Statement> Sql::prepare(Connection& connection) const {
  auto statement = connection.prepare(text_);
  if (!statement) {
    return statement;
  }
  int index = 0;
  for (const auto& value : values_) {
    ++index;
    if (const auto* text = std::get_if<std::string>(&value); text != nullptr) {
      statement->bind(index, std::string_view(*text));
    } else {
      statement->bind(index, std::get<std::int64_t>(value));
    }
  }
  return statement;
}

}  // namespace ceems::store::sqlite

#include "store/sql/sql.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

namespace ceems::store {
std::string_view Sql::members() const {
  // In PostgreSQL a constraint allows arrays only, because the cast fails on any other text.
  return dialect_ == Dialect::kSqlite
             ? "projects AS p,"
               " json_each(CASE WHEN json_valid(p.users) THEN p.users ELSE '[]' END) AS m"
             : "projects AS p, jsonb_array_elements_text("
               "coalesce(nullif(p.users, 'null'), '[]')::jsonb) AS m(value)";
}

Sql& Sql::add(std::string_view text) {
  text_ += text;
  return *this;
}

Sql& Sql::append(const Sql& other) {
  text_ += other.text_;
  values_.insert(values_.end(), other.values_.begin(), other.values_.end());
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
  if (values.empty()) {
    return add("(NULL)");  // PostgreSQL has no empty list, and nothing equals NULL
  }
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

Sql& Sql::and_filter_in(std::string_view column, const std::vector<std::string>& values) {
  return dialect_ == Dialect::kSqlite ? and_in(fmt::format("{} || ''", column), values)
                                      : and_in(column, values);
}

Sql& Sql::and_ended(const TimeRange& range, bool running) {
  // 0 means that the unit runs; it is not a time.
  add(" AND (ended_at_ts BETWEEN ").value(std::max<std::int64_t>(range.from_ms, 1));
  add(" AND ").value(range.to_ms);
  return add(running ? " OR ended_at_ts = 0)" : ")");
}

void Sql::user_in(std::string_view column, const Scope& scope) {
  add(column).add(" IN ").list(scope.names);
  if (!scope.service_projects.empty()) {
    add(" OR (cluster_id,").add(column).add(") IN (SELECT p.cluster_id, p.name || ':svc' FROM ");
    add(members()).add(" WHERE p.name IN ").list(scope.service_projects);
    add(" AND m.value IN ").list(scope.names).add(")");
  }
}

void Sql::or_led(std::string_view project_column, const Scope& scope) {
  if (scope.led_projects.empty()) {
    return;
  }
  add(" OR (cluster_id,").add(project_column).add(") IN (VALUES ");
  led_list(scope);
  add(")");
}

void Sql::led_list(const Scope& scope) {
  for (std::size_t i = 0; i < scope.led_projects.size(); ++i) {
    add(i == 0 ? "(" : ",(").value(scope.led_projects[i].cluster_id);
    add(",").value(scope.led_projects[i].project).add(")");
  }
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
  add(members()).add(" WHERE m.value IN ").list(scope.names).add(")");
  or_led(project_column, scope);
  return add(")");
}

Sql& Sql::and_usage_of(const Scope& scope) {
  if (scope.everybody) {
    return *this;
  }
  // The first condition is for the index: all projects with rows that the second one allows.
  add(" AND ((cluster_id,project) IN (SELECT p.cluster_id, p.name FROM ").add(members());
  add(" WHERE m.value IN ").list(scope.names);
  add(" UNION SELECT cluster_id, project FROM usage WHERE username IN ").list(scope.names);
  add(")");
  or_led("project", scope);
  add(") AND (username IN ").list(scope.names);
  add(" OR (cluster_id || '', project || '') IN (SELECT p.cluster_id, p.name FROM ");
  add(members()).add(" WHERE m.value IN ").list(scope.names).add(")");
  or_led("project", scope);
  return add(")");
}

Sql& Sql::and_service_of(std::string_view project, const Scope& scope) {
  // Within coalesce() no index is chosen, and a row without a cluster or project has a value.
  add(" AND coalesce(cluster_id IN (SELECT p.cluster_id FROM ").add(members());
  add(" WHERE p.name = ").value(project).add(" AND m.value IN ").list(scope.names);
  add("), false)");
  if (!scope.led_projects.empty()) {
    add(" AND NOT coalesce((cluster_id,project) IN (VALUES ");
    led_list(scope);
    add("), false)");
  }
  return *this;
}

Sql& Sql::and_seen_among(const Scope& scope, const Sql& units, bool since) {
  if (scope.everybody) {
    return *this;
  }
  add(" AND (username IN ").list(scope.names);
  add(" OR ((cluster_id || '', project || '') IN (SELECT p.cluster_id, p.name FROM ");
  add(members()).add(" WHERE m.value IN ").list(scope.names);
  add(" AND (p.cluster_id, p.name) IN (SELECT cluster_id, project").append(units).add("))");
  if (since) {
    add(" AND NOT EXISTS (SELECT 1 FROM ceems_members AS s WHERE s.name IN ").list(scope.names);
    add(" AND s.cluster_id = units.cluster_id AND s.project = units.project"
        " AND units.ended_at_ts > 0 AND units.ended_at_ts < s.since_ms)");
  }
  add(")");
  or_led("project", scope);
  return add(")");
}

std::string numbered(std::string_view text) {
  std::string result;
  int count = 0;
  for (const char c : text) {
    if (c == '?') {
      fmt::format_to(std::back_inserter(result), "${}", ++count);
    } else {
      result += c;
    }
  }
  return result;
}

}  // namespace ceems::store

#include "api/config.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "base/time/time_zone.h"
#include "config/section.h"
#include "ingest/update_window.h"
#include "model/protocol.h"

namespace ceems::api {
namespace {

void warn_obsolete(const config::Node& node,
                   std::initializer_list<std::string_view> keys,
                   std::vector<std::string>& warnings) {
  for (const std::string_view key : keys) {
    if (node[key].present()) {
      warnings.push_back(node[key].error("no longer has an effect").message);
    }
  }
}

Result<> read_data(const config::Node& node,
                   const std::string& directory,
                   bool checks,
                   Config& config) {
  using std::chrono::milliseconds;
  Config::Data& data = config.data;
  warn_obsolete(node, {"query_batch_size", "skip_delete_old_units"}, config.warnings);
  config::Section section(node);
  section
      .only({"path", "database_url", "database_password_file", "backup_path", "backup_interval",
             "retention_period", "update_interval", "max_update_interval", "update_from",
             "time_zone", "query_batch_size", "skip_delete_old_units"})
      .text("path", data.path)
      .text("backup_path", data.backup_path)
      .text("database_url", data.database_url)
      .file("database_password_file", data.database_password_file, directory)
      .duration("backup_interval", data.backup_interval)
      .duration("retention_period", data.retention)
      .duration("update_interval", data.update_interval)
      .duration("max_update_interval", data.max_update_interval)
      .text("update_from", data.update_from)
      .text("time_zone", data.time_zone)
      .refuse(data.update_interval <= milliseconds(0), "update_interval",
              "update_interval and/or max_update_interval must be more than 0s")
      .refuse(data.max_update_interval <= milliseconds(0), "max_update_interval",
              "update_interval and/or max_update_interval must be more than 0s")
      .refuse(checks && data.backup_interval < std::chrono::days(1) &&
                  (data.backup_interval > milliseconds(0) || !data.backup_path.empty()),
              "backup_interval", "backup_interval of less than 1 day is not supported")
      .refuse(data.path.empty(), "path", "expected the name of a directory")
      .refuse(!data.database_url.empty() && !data.backup_path.empty(), "backup_path",
              "cannot be combined with database_url: use pg_dump to back up PostgreSQL")
      .refuse(data.database_url.empty() && !data.database_password_file.empty(),
              "database_password_file", "needs database_url");
  if (const auto zone = TimeZone::find(data.time_zone); !zone) {
    section.refuse(true, "time_zone", zone.error().message);
  } else if (const auto from = ingest::parse_update_from(data.update_from, data.time_zone, {});
             !from) {
    section.refuse(true, "update_from", from.error().message);
  }
  return section.done();
}

Result<> read_admin(const config::Node& node, const std::string& directory, Config& config) {
  warn_obsolete(node, {"users_db_file"}, config.warnings);
  config::Section section(node);
  section.only({"users", "grafana", "users_db_file"}).list("users", config.admin.users);
  if (const config::Node grafana = node["grafana"]; section.ok() && grafana.present()) {
    config::Section inner(grafana);
    inner.text("url", config.admin.grafana_url).list("teams_ids", config.admin.grafana_teams);
    auto client = ingest::client_options(grafana, directory, {"url", "teams_ids"});
    if (inner.ok() && client) {
      config.admin.grafana = std::move(*client);
    }
    section.also(inner.done());
    if (!client) {
      section.also(fail(std::move(client).error()));
    }
  }
  return section.done();
}

bool is_label_name(std::string_view name) {
  return !name.empty() && !is_digit(name.front()) && has_only_words(name, "_");
}

Result<> read_series(const config::Node& node, SeriesOptions& series) {
  config::Section section(node);
  bool pinned = false;
  section.only({"pin_cluster", "cluster_label"})
      .boolean("pin_cluster", pinned)
      .text("cluster_label", series.cluster_label)
      .refuse(!is_label_name(series.cluster_label), "cluster_label",
              "expected the name of a label");
  if (node["pin_cluster"].present()) {
    series.pin_cluster = pinned;
  }
  return section.done();
}

/// `identity` and `roles`.
Result<> read_login(const config::Node& node, const std::string& directory, Config& config) {
  CEEMS_TRY(login, login::parse_login(node["identity"], node["roles"], directory, config.warnings));
  config.login = std::move(login);
  return {};
}

}  // namespace

Result<Config> parse_config(const config::Node& document,
                            const std::string& directory,
                            bool checks) {
  Config config;
  config::Section root(document);
  root.only(config::kTopLevelKeys);
  const config::Node server = document["ceems_api_server"];
  // The load balancer reads `web` to reach this server. The server itself ignores it.
  root.also(config::Section(server).only(config::kApiServerKeys).done());
  root.also(read_data(server["data"], directory, checks, config));
  root.also(read_admin(server["admin"], directory, config));
  root.also(read_login(server, directory, config));
  root.also(read_series(server["series"], config.series));
  if (auto profiles = read_profile_servers(server, directory); profiles) {
    config.profiles = std::move(*profiles);
  } else {
    root.also(fail(std::move(profiles).error()));
  }
  config::Section report(server["report"]);
  constexpr double kMaxReports = 1000;
  report.only({"rules", "rate", "keep"})
      .file("rules", config.report.rules, directory)
      .number("rate", config.report.rate)
      .duration("keep", config.report.keep)
      .refuse(!(config.report.rate >= 0 && config.report.rate <= kMaxReports), "rate",
              "expected a number from 0 to 1000")
      .refuse(config.report.keep < std::chrono::days(1), "keep", "expected at least 1d");
  root.also(report.done());
  if (auto site = read_site(server["ui"], directory); site) {
    config.site = std::move(*site);
  } else {
    root.also(fail(std::move(site).error()));
  }
  if (auto exports = exporting::read_targets(server["export"], directory); exports) {
    config.exports = std::move(*exports);
  } else {
    root.also(fail(std::move(exports).error()));
  }
  if (auto mail = mail::read_options(server["mail"], directory); mail) {
    config.mail = std::move(*mail);
  } else {
    root.also(fail(std::move(mail).error()));
  }
  if (root.ok()) {
    const TimeZone zone = TimeZone::find(config.data.time_zone).value_or(TimeZone());
    auto accounting = read_accounting(server["accounting"], directory, config.site, zone);
    root.also(accounting ? Result<>() : fail(accounting.error()));
    config.accounting = std::move(accounting).value_or(AccountingOptions());
  }
  if (auto audit = audit::read_options(server["audit"], directory); audit) {
    config.audit = std::move(*audit);
  } else {
    root.also(fail(std::move(audit).error()));
  }
  if (root.ok()) {
    root.also(ingest::read_updaters(document["updaters"], directory, config.updaters));
  }
  if (root.ok()) {
    root.also(ingest::read_clusters(document["clusters"], directory, config.clusters));
  }
  if (root.ok()) {
    std::vector<std::string> ids;
    ids.reserve(config.clusters.size());
    for (const ingest::ClusterConfig& cluster : config.clusters) {
      ids.push_back(cluster.cluster.id);
    }
    root.also(check_profile_servers(config.profiles, ids, server));
  }
  if (!root.ok()) {
    return fail(root.done().error());
  }
  config.data.retention = std::chrono::floor<std::chrono::days>(config.data.retention);
  if (std::ranges::find(config.admin.users, model::kServiceAccount) == config.admin.users.end()) {
    config.admin.users.emplace_back(model::kServiceAccount);
  }
  config.login.roles.admins = config.admin.users;
  if (config.clusters.empty()) {
    config.warnings.emplace_back("no clusters are configured: nothing will be collected");
  }
  return config;
}

}  // namespace ceems::api

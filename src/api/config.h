#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "api/accounting/options.h"
#include "api/login/config.h"
#include "api/profiles/pyroscope.h"
#include "api/report/options.h"
#include "api/site.h"
#include "api/tsdb/series.h"
#include "audit/config.h"
#include "base/result.h"
#include "config/yaml.h"
#include "export/push/config.h"
#include "ingest/config.h"
#include "mail/config.h"
#include "net/client/client.h"

namespace ceems::api {

/// The configuration file of ceems_api_server (docs/api/configuration.md).
struct Config {
  struct Data {
    std::string path = "data";
    std::string backup_path = {};   ///< empty: no backups
    std::string database_url = {};  ///< connection URI of PostgreSQL; empty: SQLite in `path`
    std::string database_password_file = {};
    std::chrono::milliseconds backup_interval{std::chrono::days(1)};
    std::chrono::milliseconds retention{std::chrono::days(30)};  ///< whole days
    std::chrono::milliseconds update_interval{std::chrono::minutes(15)};
    std::chrono::milliseconds max_update_interval{std::chrono::hours(1)};
    std::string update_from = "today";
    std::string time_zone = "Local";
  };
  struct Admin {
    std::vector<std::string> users = {};  ///< including model::kServiceAccount
    std::string grafana_url = {};
    std::vector<std::string> grafana_teams = {};
    net::ClientOptions grafana = {};
  };
  Data data = {};
  Admin admin = {};
  login::LoginOptions login = {};  ///< `identity` and `roles`
  SeriesOptions series = {};
  std::vector<ProfileServer> profiles = {};
  SiteOptions site = {};  ///< `ui`
  AccountingOptions accounting = {};
  ReportOptions report = {};
  std::vector<exporting::Target> exports = {};
  mail::Options mail = {};
  audit::Options audit = {};
  std::vector<ingest::ClusterConfig> clusters = {};
  std::vector<ingest::UpdaterConfig> updaters = {};
  /// One log line per key that no longer has an effect.
  std::vector<std::string> warnings = {};
};

/// Reads the document. An unknown key is an error with file, line and the nearest known key. Keys
/// of older versions of the reference and sections of its other programs are accepted. Relative
/// file names in blocks of HTTP clients start at `directory`. All errors are kInvalidArgument.
/// Without `checks` (--test.disable.checks) backups may be more frequent than daily.
Result<Config> parse_config(const config::Node& document,
                            const std::string& directory,
                            bool checks = true);

}  // namespace ceems::api

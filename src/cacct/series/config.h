#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "config/yaml.h"
#include "net/client/client.h"
#include "tsdb/query_template.h"

namespace ceems::cacct {

/// A query of `tsdb.queries`, as text with `%s` for a unit ID (0.10.2 to 0.15) or as a template
/// with variables such as {{.UUIDs}} (0.16).
class SeriesQuery {
 public:
  std::string name;
  std::string title;  ///< of the field of an instant query
  std::string help;
  bool instant = false;  ///< one value a unit, shown as a field; otherwise a time series

  /// kInvalidArgument if the text has neither `%s` nor a variable for IDs, or an unknown variable.
  Result<> set_text(std::string_view text);
  /// The query for these units. IDs are inserted such that they match nothing but themselves.
  /// `variables.uuids` is not used.
  [[nodiscard]] std::string render(const std::vector<std::string>& uuids,
                                   tsdb::QueryVariables variables) const;

 private:
  std::string text_;                             // with %s
  std::optional<tsdb::QueryTemplate> template_;  // instead of text_
};

struct LogOptions {
  bool enabled = false;
  log::Level level = log::Level::kInfo;
  log::Format format = log::Format::kLogfmt;
  std::string directory = "/var/log/ceems";
};

struct Config {
  std::string cluster_id;
  std::string user_header = "X-Grafana-User";
  std::string api_url;
  net::ClientOptions api_client;
  std::string tsdb_url;
  net::ClientOptions tsdb_client;
  std::vector<SeriesQuery> queries;
  /// `tsdb.queries` was a list, as in 0.16: IDs are limited, and metadata has names and help texts.
  bool listed = false;
  std::optional<std::int64_t> max_units;                     ///< in one dump
  std::optional<std::chrono::milliseconds> scrape_interval;  ///< instead of asking the TSDB
  std::optional<std::chrono::milliseconds> evaluation_interval;
  LogOptions log;
};

/// Reads the configuration file of cacct (docs/cacct.md). It may be one that all programs share.
Result<Config> parse_config(const config::Node& root, const std::string& directory);

/// Replaces the names of secret files by their content, so that the privileges that these files
/// need can be given up. Messages name the file only.
Result<> read_secret_files(net::ClientOptions& options);

}  // namespace ceems::cacct

// ceems_tool report
#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/config.h"
#include "api/statements/all.h"
#include "base/clock.h"
#include "base/strings.h"
#include "base/version.h"
#include "statement/document.h"
#include "tool/command.h"
#include "tool/connection.h"

namespace ceems::tool {
namespace {

std::string kinds() {
  std::string text;
  for (const api::StatementSpec& spec : api::statements()) {
    text += fmt::format("{}{} ({})", text.empty() ? "" : "; ", spec.name, spec.help);
  }
  return text;
}

std::string kind_names() {
  std::string text;
  for (const api::StatementSpec& spec : api::statements()) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", spec.name);
  }
  return text;
}

/// The sum of a query's series at each step.
Result<std::vector<std::pair<std::int64_t, double>>> values_of(tsdb::Client& client,
                                                               const std::string& query,
                                                               std::int64_t from_ms,
                                                               std::int64_t to_ms,
                                                               std::chrono::milliseconds step) {
  CEEMS_TRY(answer, client.query_range(query, from_ms, to_ms, step));
  std::map<std::int64_t, double> sums;
  for (const tsdb::Series& series : answer.series) {
    for (const tsdb::Sample& sample : series.samples) {
      sums[sample.time_ms] += sample.value;
    }
  }
  return std::vector<std::pair<std::int64_t, double>>(sums.begin(), sums.end());
}

class Report final : public Command {
 public:
  [[nodiscard]] std::string_view words() const override { return "report"; }
  [[nodiscard]] std::string_view help() const override {
    return "Print a report of a year or a month that rules ask for, with all that is needed to "
           "check it. The database may be in use.";
  }
  void add_flags(config::FlagSet& flags) override {
    flags.positionals("kind", kinds_, "The report: " + kinds() + ".");
    flags.add("period", period_,
              {.help = "The year or the month, such as 2026 or 2026-11.", .placeholder = "PERIOD"});
    flags.add(
        "format", format_,
        {.help = "The format: md, csv, json, xlsx or html, from which a browser prints a PDF."});
    flags.add("config.file", config_file_,
              {.help = "Configuration file of ceems_api_server, for its database, time zone, "
                       "contracts, meters and hardware. Without it, --db is needed, days are in "
                       "UTC, and only the database and the bills in it are known.",
               .placeholder = "FILE"});
    flags.add("db", database_,
              {.help = "The database instead of that of the configuration: the directory of "
                       "ceems.db, or a URL without a password, postgresql://user@host/database.",
               .placeholder = "DIR|URL"});
    flags.add("password-file", password_file_,
              {.help = "File with the password of the PostgreSQL user. PGPASSFILE works as well.",
               .placeholder = "FILE"});
    flags.add("cluster-id", cluster_,
              {.help = "Only this cluster. The default is the whole site.", .placeholder = "ID"});
    server_.add(flags, "the TSDB that has the series of meters. Without it, they are missing",
                "tsdb.");
  }

  Result<int> run(Console& console) override {
    const api::StatementSpec* spec =
        kinds_.size() == 1 ? api::find_statement(kinds_.front()) : nullptr;
    if (spec == nullptr) {
      return fail(ErrorCode::kInvalidArgument, "expected one kind of report: {}", kind_names());
    }
    const auto format = statement::find_format(format_);
    if (!format) {
      return fail(ErrorCode::kInvalidArgument,
                  "--format: '{}' is none of md, csv, json, xlsx and html", printable(format_, 20));
    }
    api::Config config;
    config.data.time_zone = "UTC";
    if (!config_file_.empty()) {
      CEEMS_TRY(read,
                config::read_config(config_file_, false,
                                    [](const config::Node& document, const std::string& directory) {
                                      return api::parse_config(document, directory, false);
                                    }));
      config = std::move(read);
    } else if (database_.empty()) {
      return fail(ErrorCode::kInvalidArgument, "one of --config.file and --db is needed");
    }
    if (!cluster_.empty() && !config.clusters.empty() &&
        std::ranges::none_of(config.clusters,
                             [this](const auto& one) { return one.cluster.id == cluster_; })) {
      return fail(ErrorCode::kInvalidArgument, "--cluster-id: no cluster has the ID '{}'",
                  printable(cluster_, 80));
    }
    CEEMS_TRY(zone, TimeZone::find(config.data.time_zone));
    CEEMS_TRY(reader, open(config));
    std::unique_ptr<TsdbConnection> tsdb;
    api::StatementContext context{.reader = reader.get(),
                                  .accounting = &config.accounting,
                                  .pue = config.site.pue,
                                  .site = config.site.name,
                                  .cluster = cluster_,
                                  .one_cluster = config.clusters.size() == 1,
                                  .zone = zone,
                                  .now_ms = real_clock().now_ms(),
                                  .by = fmt::format("ceems_tool {}", version().version)};
    if (!server_.url.empty()) {
      CEEMS_TRY(connection, TsdbConnection::open(server_));
      tsdb = std::move(connection);
      context.ask = [&tsdb](const std::string& /*cluster*/, const std::string& query,
                            std::int64_t from_ms, std::int64_t to_ms,
                            std::chrono::milliseconds step) {
        return values_of(tsdb->client(), query, from_ms, to_ms, step);
      };
    }
    CEEMS_TRY(period, api::statement_period(*spec, period_, context.zone, context.now_ms));
    CEEMS_TRY(document, api::make_statement(*spec, context, period));
    CEEMS_TRY(text, statement::render(document, *format));
    console.print(text);
    for (const std::string& note : document.notes) {
      console.say(note);
    }
    return 0;
  }

 private:
  [[nodiscard]] Result<std::shared_ptr<store::Reader>> open(const api::Config& config) const {
    store::DatabaseOptions options{.directory = config.data.path,
                                   .time_zone = config.data.time_zone,
                                   .url = config.data.database_url,
                                   .password_file = config.data.database_password_file};
    if (!database_.empty()) {
      CEEMS_TRY_IN("--db", named,
                   database_options(database_, password_file_, config.data.time_zone));
      options = std::move(named);
    }
    CEEMS_TRY_IN("database", reader, store::open_reader(options));
    return reader;
  }

  std::vector<std::string> kinds_;
  std::string period_, format_ = "md", config_file_, database_, password_file_, cluster_;
  ServerFlags server_;
};

}  // namespace

std::unique_ptr<Command> report_command() {
  return std::make_unique<Report>();
}

}  // namespace ceems::tool

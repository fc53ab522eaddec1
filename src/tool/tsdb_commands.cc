#include <fmt/format.h>

#include "base/clock.h"
#include "base/json.h"
#include "tool/command.h"
#include "tool/connection.h"
#include "tool/rules/queries.h"
#include "tool/rules/relabel.h"

namespace ceems::tool {
namespace {

/// A command that asks Prometheus about a time and prints what follows from it.
class TsdbCommand : public Command {
 public:
  TsdbCommand() { server_.url = "http://localhost:9090"; }
  void add_flags(config::FlagSet& flags) override {
    server_.add(flags, "Prometheus");
    range_.add(flags);
    flags.add("json", json_, {.help = "Print JSON to stdout instead of YAML to stderr."});
  }

  Result<int> run(Console& console) final {
    CEEMS_TRY(range, range_.range(real_clock()));
    CEEMS_TRY(connection, TsdbConnection::open(server_));
    CEEMS_TRY(print(connection->client(), range, console));
    return 0;
  }

 protected:
  virtual Result<> print(tsdb::Client& client, rules::TimeRange range, Console& console) = 0;
  [[nodiscard]] bool json() const { return json_; }

 private:
  ServerFlags server_;
  RangeFlags range_;
  bool json_ = false;
};

class RelabelConfigs final : public TsdbCommand {
 public:
  [[nodiscard]] std::string_view words() const override { return "tsdb create-relabel-configs"; }
  [[nodiscard]] std::string_view help() const override {
    return "Print the relabelling of the metrics of GPU exporters for Prometheus. The recording "
           "rules of this release work with and without it.";
  }

 private:
  Result<> print(tsdb::Client& client, rules::TimeRange range, Console& console) override {
    CEEMS_TRY(jobs, rules::gpu_exporter_jobs(client, range));
    if (json()) {
      console.print(rules::relabel_json(jobs) + "\n");
      return {};
    }
    console.say("Merge the following scrape_configs with the current config.");
    console.say(rules::relabel_text(jobs));
    return {};
  }
};

class UpdaterQueries final : public TsdbCommand {
 public:
  [[nodiscard]] std::string_view words() const override {
    return "tsdb create-ceems-tsdb-updater-queries";
  }
  [[nodiscard]] std::string_view help() const override {
    return "Print the queries for the TSDB updater of ceems_api_server, for the records that "
           "exist.";
  }

 private:
  Result<> print(tsdb::Client& client, rules::TimeRange range, Console& console) override {
    CEEMS_TRY(queries, rules::updater_queries(client, range));
    if (json()) {
      std::string out;
      JsonWriter json(out, JsonEscape::kPlain);
      json.begin_array();
      for (const rules::UpdaterQuery& query : queries) {
        json.begin_object()
            .member("metric", query.metric)
            .member("sub_metric", query.sub_metric)
            .member("query", query.query)
            .end_object();
      }
      json.end_array();
      console.print(out + "\n");
      return {};
    }
    std::string text = rules::updater_queries_text(queries);
    text.pop_back();  // say() ends the last line
    console.say("Queries for TSDB updater:");
    console.say(text);
    return {};
  }
};

}  // namespace

std::unique_ptr<Command> relabel_configs_command() {
  return std::make_unique<RelabelConfigs>();
}

std::unique_ptr<Command> updater_queries_command() {
  return std::make_unique<UpdaterQueries>();
}

}  // namespace ceems::tool

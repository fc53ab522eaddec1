#include "ingest/manager/local/local.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/time/time_zone.h"
#include "base/utf8.h"
#include "config/section.h"
#include "ingest/manager/local/units.h"
#include "ingest/updater/unit_counters.h"

namespace ceems::ingest {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPart = std::chrono::minutes(15);
constexpr milliseconds kMinLookback = std::chrono::minutes(5);
constexpr milliseconds kMinGone = std::chrono::seconds(30);
constexpr std::string_view kUnknownUser = "unknown";

std::string origin_of(const tsdb::Labels& labels) {
  const std::string_view host = labels.get("hostname");
  return fmt::format("{}\n{}", host.empty() ? labels.get("instance") : host,
                     labels.get("cgrouphostname"));
}

/// A unit on one host.
using Key = std::pair<std::string, std::string>;  // uuid, origin
Key key_of(const tsdb::Labels& labels) {
  return {std::string(labels.get("uuid")), origin_of(labels)};
}

class LocalManager final : public ResourceManager {
 public:
  LocalManager(LocalOptions options, std::unique_ptr<tsdb::Client> client, TimeZone zone)
      : options_(std::move(options)),
        client_(std::move(client)),
        zone_(zone),
        matcher_(fmt::format("manager=~\"{}\"",
                             tsdb::quote_text(tsdb::exact_regex(options_.unit_managers)))) {}

  [[nodiscard]] milliseconds settle() const override { return settle_time(client_->settings()); }

  Result<std::vector<model::Unit>> fetch_units(model::Window window,
                                               std::stop_token stop) override {
    const std::stop_callback cancel(stop, [this] { client_->cancel(); });
    const tsdb::Settings settings = client_->settings();
    const milliseconds settle = settle_time(settings);
    const milliseconds gone_after = std::max(kMinGone, 3 * settings.scrape_interval);
    const Range range{.first_ms = window.start_ms - std::max(kMinLookback, 2 * gone_after).count(),
                      .last_ms = window.end_ms + settle.count(),
                      .mark_ms = window.start_ms + settle.count()};

    CEEMS_TRY(starts, runs("ceems_compute_unit_start_time_seconds", range, stop));
    CEEMS_TRY(ends, runs("ceems_compute_unit_end_time_seconds", range, stop));
    CEEMS_TRY(names, latest("last_over_time", "ceems_compute_unit_info", range));
    CEEMS_TRY(cpus, latest("max_over_time", "ceems_compute_unit_cpus", range));
    CEEMS_TRY(memory, latest("max_over_time", "ceems_compute_unit_memory_total_bytes", range));

    std::vector<UnitLife> lives;
    for (const auto& [key, start_runs] : starts) {
      for (auto& life : lives_of(start_runs, ends[key])) {
        const auto& info = names[key].labels;
        life.uuid = key.first;
        life.origin = key.second;
        life.name = info.get("name").empty() ? key.first : std::string(info.get("name"));
        life.owner_known = !info.get("username").empty();
        life.username = std::string(life.owner_known ? info.get("username") : kUnknownUser);
        life.allocation_known = cpus.contains(key) && memory.contains(key);
        life.cpus = std::max(cpus[key].value, 0.0);
        life.memory_bytes = std::clamp(memory[key].value, 0.0, 9e18);
        lives.push_back(std::move(life));
      }
    }
    for (const auto& life : lives) {
      users_.insert(clean_text(life.username));
    }
    return local_units(merge_hosts(std::move(lives)),
                       {.window = window,
                        .settle_ms = settle.count(),
                        .gone_after_ms = gone_after.count(),
                        .project = options_.project},
                       zone_);
  }

  /// Returns all users seen in the last 30 days or since the program started, in the one project.
  Result<UsersAndProjects> fetch_users_projects(model::Window window,
                                                std::stop_token stop) override {
    const std::stop_callback cancel(stop, [this] { client_->cancel(); });
    // After a restart, owners of units that ended long ago must not lose access to them.
    if (!history_read_) {
      const milliseconds reach = std::chrono::days(30);
      CEEMS_TRY(series, client_->series({fmt::format("ceems_compute_unit_info{{{}}}", matcher_)},
                                        window.end_ms - reach.count(), window.end_ms));
      for (const auto& labels : series) {
        const auto name = labels.get("username");
        users_.insert(clean_text(name.empty() ? kUnknownUser : name));
      }
      history_read_ = true;
    }
    std::set<Membership> members;
    for (const auto& user : users_) {
      members.insert({.project = options_.project, .user = user});
    }
    return users_and_projects(members);
  }

 private:
  struct Range {
    std::int64_t first_ms = 0;
    std::int64_t last_ms = 0;
    std::int64_t mark_ms = 0;  ///< samples up to here were visible to the previous window
  };
  struct Latest {
    tsdb::Labels labels;
    double value = 0;
  };

  [[nodiscard]] std::string selector(std::string_view metric, milliseconds range) const {
    return fmt::format("{}{{{}}}[{}]", metric, matcher_, tsdb::duration_text(range));
  }

  /// Reads raw samples in parts, to keep each answer small, and stores them as runs.
  Result<std::map<Key, std::vector<Run>>> runs(std::string_view metric,
                                               Range range,
                                               const std::stop_token& stop) {
    std::map<Key, std::vector<Run>> found;
    for (std::int64_t begin = range.first_ms; begin < range.last_ms; begin += kPart.count()) {
      if (stop.stop_requested()) {
        return fail(ErrorCode::kUnavailable, "stopped");
      }
      const std::int64_t end = std::min(begin + kPart.count(), range.last_ms);
      CEEMS_TRY(answer,
                client_->query_samples({.query = selector(metric, milliseconds(end - begin)),
                                        .time_ms = end,
                                        .lookback = milliseconds(0),
                                        .timeout = milliseconds(0)}));
      // If a target changed its address within the part, one unit has two series.
      std::map<Key, std::vector<tsdb::Sample>> samples;
      for (const auto& series : answer.series) {
        if (!series.labels.get("uuid").empty()) {
          auto& all = samples[key_of(series.labels)];
          all.insert(all.end(), series.samples.begin(), series.samples.end());
        }
      }
      for (auto& [key, all] : samples) {
        std::ranges::stable_sort(all, {}, &tsdb::Sample::time_ms);
        append_runs(found[key], all, range.mark_ms);
      }
    }
    return found;
  }

  Result<std::map<Key, Latest>> latest(std::string_view function,
                                       std::string_view metric,
                                       Range range) {
    const milliseconds length(range.last_ms - range.first_ms);
    CEEMS_TRY(answer,
              client_->query({.query = fmt::format("{}({})", function, selector(metric, length)),
                              .time_ms = range.last_ms,
                              .lookback = milliseconds(0),
                              .timeout = milliseconds(0)}));
    std::map<Key, Latest> found;
    for (auto& series : answer.series) {
      const double value = series.samples.front().value;
      auto& entry = found[key_of(series.labels)];
      entry = {.labels = std::move(series.labels), .value = value};
    }
    return found;
  }

  LocalOptions options_;
  std::unique_ptr<tsdb::Client> client_;
  TimeZone zone_;
  std::string matcher_;
  std::set<std::string> users_;
  bool history_read_ = false;
};

Result<LocalOptions> read_options(const config::Node& extra) {
  LocalOptions options;
  config::Section section(extra);
  section.text("project", options.project)
      .list("unit_managers", options.unit_managers)
      .refuse(options.unit_managers.empty(), "unit_managers", "expected at least one manager");
  CEEMS_TRY(section.done());
  return options;
}

Result<std::unique_ptr<ResourceManager>> create_local(const ClusterConfig& config,
                                                      const ManagerContext& context) {
  CEEMS_TRY(options, read_options(config.extra));
  if (config.web_url.empty()) {
    return fail(ErrorCode::kInvalidArgument,
                "cluster {}: manager local needs the URL of a TSDB: extra_config.tsdb, web.url or "
                "an updater with one",
                config.cluster.id);
  }
  CEEMS_TRY_IN("cluster " + config.cluster.id, transport, tsdb::http_transport(config.web));
  return make_local(
      std::move(options),
      std::make_unique<tsdb::Client>(config.web_url, std::move(transport), *context.clock),
      context.zone);
}

}  // namespace

std::unique_ptr<ResourceManager> make_local(LocalOptions options,
                                            std::unique_ptr<tsdb::Client> client,
                                            TimeZone zone) {
  return std::make_unique<LocalManager>(std::move(options), std::move(client), zone);
}

/// Reads the TSDB that tsdb_of_cluster() finds.
ManagerSpec local_manager() {
  return {.name = "local",
          .units = "systemd services, containers, any cgroup",
          .source = "the TSDB, from the exporter's `cgroup` collector",
          .reads_web = true,
          .units_from_tsdb = true,
          .extra_keys = {"tsdb", "project", "unit_managers"},
          .create = create_local};
}

}  // namespace ceems::ingest

#include "tool/site/examine.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/strings.h"
#include "tool/site/nodes.h"

namespace ceems::tool {
namespace {

constexpr std::size_t kShown = 5;

/// Names at most kShown of them.
std::string some_of(const std::vector<std::string>& names) {
  const std::size_t shown = std::min(names.size(), kShown);
  std::string text = fmt::format(
      "{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  if (names.size() > shown) {
    text += fmt::format(" and {} more", names.size() - shown);
  }
  return text;
}

std::string without_credentials(std::string_view url) {
  const std::size_t at = url.rfind('@');
  const std::size_t begin = url.find("://");
  if (at == std::string_view::npos || begin == std::string_view::npos) {
    return std::string(url);
  }
  return fmt::format("{}{}", url.substr(0, begin + 3), url.substr(at + 1));
}

/// For messages.
std::string shown_url(std::string_view url) {
  return printable(without_credentials(url));
}

class Examination {
 public:
  explicit Examination(const SiteContext& context) : context_(context) {}

  std::vector<Finding> run() {
    if (examine_tsdb()) {
      examine_exporters();
      auto nodes = examine_nodes(*context_.tsdb, context_.now_ms);
      std::ranges::move(nodes.findings, std::back_inserter(findings_));
      reporting_ = std::move(nodes.reporting);
      examine_data();
      examine_servers_metrics();
    }
    examine_api();
    examine_lb();
    return std::move(findings_);
  }

 private:
  void add(State state, std::string subject, std::string text, std::string fix = {}) {
    findings_.push_back({.state = state,
                         .subject = std::move(subject),
                         .text = std::move(text),
                         .fix = std::move(fix)});
  }

  std::optional<std::vector<tsdb::Series>> ask(const std::string& query) {
    auto answer = context_.tsdb->query({.query = query, .time_ms = context_.now_ms});
    if (!answer) {
      add(State::kWarning, "prometheus",
          fmt::format("query '{}' failed: {}", query, answer.error().message));
      return std::nullopt;
    }
    return std::move(answer->series);
  }

  /// The values of a label in the answer to a query, sorted.
  std::vector<std::string> names(const std::string& query, std::string_view label) {
    std::set<std::string> found;
    for (const tsdb::Series& series : ask(query).value_or(std::vector<tsdb::Series>{})) {
      found.emplace(printable(series.labels.get(label)));
    }
    return {found.begin(), found.end()};
  }

  bool examine_tsdb();
  void examine_matchers();
  void examine_exporters();
  void examine_passwords();
  void examine_data();
  void examine_servers_metrics();
  void examine_api();
  void examine_units();
  void examine_lb();
  /// Whether a stranger gets a page, and what went wrong otherwise.
  std::optional<int> status_for_stranger(const std::string& url, const net::Headers& headers = {});

  const SiteContext& context_;
  std::vector<Finding> findings_;
  std::vector<std::string> exporter_pages_;  ///< URLs of exporters that are up
  std::set<std::string, std::less<>> exporter_jobs_;
  std::set<std::string, std::less<>> reporting_;  ///< nodes
};

std::optional<int> Examination::status_for_stranger(const std::string& url,
                                                    const net::Headers& headers) {
  if (context_.stranger == nullptr) {
    return std::nullopt;
  }
  const auto response = context_.stranger->get(url, headers);
  return response ? std::optional(response->status) : std::nullopt;
}

bool Examination::examine_tsdb() {
  const auto answer = context_.tsdb->query({.query = "vector(1)", .time_ms = context_.now_ms});
  const std::string url = shown_url(context_.tsdb_url);
  if (!answer) {
    add(State::kProblem, "prometheus", fmt::format("{}: {}", url, answer.error().message),
        "check --url, and --http.config.file if it requires a password");
    return false;
  }
  add(State::kOk, "prometheus", fmt::format("{} answers", url));
  if (status_for_stranger(without_credentials(context_.tsdb_url) +
                          "/api/v1/query?query=vector(1)") == 200) {
    add(State::kWarning, "prometheus",
        "it answers without a password: anyone who can reach it can read everything, bypassing "
        "ceems_lb",
        "set --web.config.file of Prometheus, or let only ceems_lb and administrators reach it");
  }
  examine_matchers();
  return true;
}

/// A server that ignores the matchers of labels would give users the names of everybody, so
/// ceems_lb refuses these requests.
void Examination::examine_matchers() {
  constexpr std::int64_t kDayMs = 86'400'000;
  const std::vector<std::string> nothing = {
      R"({uuid="ceems_tool asks whether matchers count"})",
      R"(up{uuid="ceems_tool asks whether matchers count"})"};  // some look at the name only
  const std::int64_t start = context_.now_ms - kDayMs;
  const auto labels = context_.tsdb->label_names(nothing, start, context_.now_ms);
  const auto values = context_.tsdb->label_values("__name__", nothing, start, context_.now_ms);
  if ((labels && !labels->empty()) || (values && !values->empty())) {
    add(State::kProblem, "prometheus",
        "it ignores match[] of labels and their values: ceems_lb refuses them to users",
        "update it: Prometheus 2.24 is the first that honours match[]");
  } else if (!labels || !values) {
    add(State::kWarning, "prometheus",
        fmt::format("cannot find out whether it honours match[] of labels: {}",
                    (labels ? values : labels).error().message));
  }
}

void Examination::examine_exporters() {
  const auto known = ask("ceems_exporter_build_info");
  std::set<std::string, std::less<>> instances;
  for (const tsdb::Series& series : known.value_or(std::vector<tsdb::Series>{})) {
    exporter_jobs_.emplace(series.labels.get("job"));
    instances.emplace(series.labels.get("instance"));
  }
  for (const std::string& job : names("max_over_time(ceems_exporter_build_info[1d])", "job")) {
    exporter_jobs_.insert(job);
  }
  if (exporter_jobs_.empty()) {
    add(State::kProblem, "exporters", "Prometheus scrapes no ceems_exporter",
        "add a job for the nodes to scrape_configs, port 9010");
    return;
  }
  const auto targets = context_.tsdb->targets();
  std::vector<std::string> down;
  for (const tsdb::Target& target : targets.value_or(std::vector<tsdb::Target>{})) {
    if (!exporter_jobs_.contains(target.labels.get("job"))) {
      continue;
    }
    const std::string_view instance = target.labels.get("instance");
    if (target.health == "down") {
      down.push_back(fmt::format("{} ({})", printable(instance), printable(target.last_error, 80)));
    } else if (instances.contains(instance)) {
      exporter_pages_.push_back(target.url);
    }
  }
  if (!targets) {
    add(State::kWarning, "exporters",
        fmt::format("the targets are unknown: {}", targets.error().message));
  }
  if (!down.empty()) {
    add(State::kProblem, "exporters",
        fmt::format("{} targets cannot be scraped: {}", down.size(), some_of(down)),
        "start the exporter there (systemctl status ceems_exporter), or correct its password, "
        "certificate or firewall");
  }
  add(State::kOk, "exporters",
      fmt::format("{} are scraped, in the jobs {}", instances.size(),
                  fmt::join(exporter_jobs_, ", ")));
  const auto failing = names("ceems_scrape_collector_success == 0", "instance");
  if (!failing.empty()) {
    add(State::kWarning, "exporters",
        fmt::format("collectors {} fail on {}",
                    fmt::join(names("ceems_scrape_collector_success == 0", "collector"), ", "),
                    some_of(failing)),
        "run 'ceems_exporter doctor' on the node");
  }
  const auto old = names("ceems_exporter_source_age_seconds > 300", "instance");
  if (!old.empty()) {
    add(State::kWarning, "exporters",
        fmt::format("readings of {} are older than five minutes on {}",
                    fmt::join(names("ceems_exporter_source_age_seconds > 300", "source"), ", "),
                    some_of(old)),
        "check the BMC or the service that is read");
  }
  examine_passwords();
}

void Examination::examine_passwords() {
  std::vector<std::string> open;
  std::size_t asked = 0;
  for (const std::string& page : exporter_pages_) {
    if (asked >= context_.max_exporters) {
      break;
    }
    const auto status = status_for_stranger(page);
    asked += status ? 1 : 0;
    if (status == 200) {
      open.push_back(shown_url(page));
    }
  }
  if (!open.empty()) {
    add(State::kWarning, "exporters",
        fmt::format("{} of {} asked answer without a password: {}", open.size(), asked,
                    some_of(open)),
        "ceems_tool config create-web-config --tls --tls.host=NODE, and --web.config.file of the "
        "exporter");
  } else if (asked > 0) {
    add(State::kOk, "exporters", fmt::format("{} asked require a password", asked));
  }
}

void Examination::examine_data() {
  const bool counted = !names("count(ceems_compute_unit_energy_joules_total)", "").empty();
  const bool recorded = !names("count({__name__=\"uuid:ceems_host_power_watts:pue\"})", "").empty();
  const bool units = !names("sum(ceems_compute_units) > 0", "").empty();
  if (!units) {
    add(State::kWarning, "units", "no exporter reports a running unit",
        "switch on the collector of the resource manager (--collector.slurm, .libvirt or .k8s)");
  } else if (!counted && !recorded) {
    add(State::kProblem, "energy", "units have neither energy counters nor recorded power",
        "write recording rules with 'ceems_tool tsdb create-recording-rules', or use exporters "
        "that count energy");
  } else {
    add(State::kOk, "energy",
        counted ? "exporters count the energy of units"
                : "recording rules compute the power of units");
  }
  const auto failing = names("ceems_energy_source_age_seconds > 120", "instance");
  if (!failing.empty()) {
    add(State::kWarning, "energy",
        fmt::format("energy meters are silent for more than two minutes on {}", some_of(failing)),
        "run 'ceems_exporter doctor' on the node");
  }
  const auto providers = names("ceems_emissions_gCo2_kWh", "provider");
  if (providers.empty()) {
    add(State::kWarning, "emissions", "no exporter reports emission factors",
        "start one exporter of the site with --collector.emissions, or write rules with "
        "--country-code or --emission-factor");
  } else {
    add(State::kOk, "emissions", fmt::format("factors of {}", fmt::join(providers, ", ")));
  }
}

void Examination::examine_servers_metrics() {
  const auto late =
      names("time() - ceems_api_server_update_watermark_timestamp_seconds > 3600", "cluster_id");
  if (!late.empty()) {
    add(State::kProblem, "api server",
        fmt::format("the database is more than an hour behind for cluster {}", some_of(late)),
        "look for errors in the log of ceems_api_server; docs/api/metrics.md lists the causes");
  }
  const auto failing = names("ceems_api_server_update_failing == 1", "cluster_id");
  if (!failing.empty()) {
    add(State::kWarning, "api server",
        fmt::format("the last update failed or left something out for cluster {}",
                    some_of(failing)),
        "look for warnings with this cluster_id in the log of ceems_api_server");
  }
  const auto empty = names("max_over_time(ceems_api_server_update_units[1d]) == 0", "cluster_id");
  if (!empty.empty() && !names("sum(ceems_compute_units) > 0", "").empty()) {
    add(State::kWarning, "api server",
        fmt::format("no unit for a day of cluster {}, while exporters report running ones",
                    some_of(empty)),
        "check how its resource manager is reached: extra_config (slurm_cluster), the user who "
        "runs its commands, their output by hand");
  }
  if (!context_.api_url.empty() && names("ceems_api_server_build_info", "instance").empty()) {
    add(State::kWarning, "api server", "Prometheus does not scrape its /metrics",
        "add a job for port 9020 to scrape_configs");
  }
  const auto unreachable = names("ceems_lb_backend_up == 0", "backend");
  if (!unreachable.empty()) {
    add(State::kProblem, "lb", fmt::format("backends are down: {}", some_of(unreachable)),
        "start them, or remove them from ceems_lb.backends");
  }
  if (!context_.lb_url.empty() && names("ceems_lb_build_info", "instance").empty()) {
    add(State::kWarning, "lb", "Prometheus does not scrape its /metrics",
        "add a job for port 9030 to scrape_configs");
  }
}

void Examination::examine_api() {
  if (context_.api_url.empty()) {
    return;
  }
  const auto health = context_.api->get(context_.api_url + "/health");
  if (!health || health->status != 200) {
    add(State::kProblem, "api server",
        fmt::format(
            "{}: {}", shown_url(context_.api_url),
            health ? fmt::format("HTTP status {}", health->status) : health.error().message),
        "start ceems_api_server, or correct --api.url and the password");
    return;
  }
  add(State::kOk, "api server", fmt::format("{} is healthy", shown_url(context_.api_url)));
  const auto status = status_for_stranger(context_.api_url + "/api/v1/users",
                                          {{"X-Grafana-User", "ceems-tool-check-site"}});
  if (status && *status != 401 && *status != 403) {
    add(State::kWarning, "api server",
        "it takes the name of the user from anybody who sends X-Grafana-User from here",
        "set --web.config.file with a password, or identity.header.trusted_proxies "
        "(docs/api/access.md)");
  } else if (status) {
    add(State::kOk, "api server", "it does not believe strangers who they are");
  }
  if (!context_.api_user.empty()) {
    examine_units();
  }
}

/// Compares the jobs that ended last with what SLURM's own plugin measured, and their nodes with
/// those that report.
void Examination::examine_units() {
  const auto answer =
      context_.api->get(context_.api_url +
                            "/api/v1/units/admin?sort=ended_at&limit=5000&field=cluster_id"
                            "&field=allocation&field=tags&field=total_cpu_energy_usage_kwh&field="
                            "total_gpu_energy_usage_kwh",
                        {{"X-Grafana-User", context_.api_user}});
  if (!answer || answer->status != 200) {
    add(State::kWarning, "api server",
        fmt::format(
            "units are not listed to {}: {}", printable(context_.api_user),
            answer ? fmt::format("HTTP status {}", answer->status) : answer.error().message),
        "set --api.user to an admin of ceems_api_server");
    return;
  }
  std::ranges::move(compare_with_slurm(answer->body), std::back_inserter(findings_));
  std::ranges::move(compare_with_units(answer->body, reporting_), std::back_inserter(findings_));
}

void Examination::examine_lb() {
  if (context_.lb_url.empty()) {
    return;
  }
  auto health = context_.lb->get(context_.lb_url + "/-/healthy");
  if (!health || health->status != 200) {
    add(State::kProblem, "lb",
        fmt::format(
            "{}: {}", shown_url(context_.lb_url),
            health ? fmt::format("HTTP status {}", health->status) : health.error().message),
        "start ceems_lb, or correct --lb.url and the password");
    return;
  }
  add(State::kOk, "lb", fmt::format("{} is healthy", shown_url(context_.lb_url)));
  net::Headers headers{{"X-Grafana-User", "ceems-tool-check-site"}};
  if (!context_.lb_cluster.empty()) {
    headers.emplace_back("X-Ceems-Cluster-Id", context_.lb_cluster);
  }
  const auto status =
      status_for_stranger(context_.lb_url + "/api/v1/query?query=ceems_compute_units", headers);
  if (status == 200) {
    add(State::kProblem, "lb", "a user without units reads the series of nodes through it",
        "configure ceems_api_server.data.path or .web in its file, so that it knows owners");
  } else if (status == 401) {
    add(State::kOk, "lb", "it requires a password");
  } else if (status) {
    add(State::kWarning, "lb",
        "it takes the name of the user from anybody who sends X-Grafana-User, without a password",
        "set --web.config.file with a password for Grafana (docs/lb/access.md)");
  }
}

}  // namespace

std::vector<Finding> examine_site(const SiteContext& context) {
  return Examination(context).run();
}

}  // namespace ceems::tool

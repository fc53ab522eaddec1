// ceems_api_server: keeps units, usage, users and projects of the clusters up to date and serves
// them.

#include <linux/capability.h>
#include <malloc.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "advice/rules_in_use.h"
#include "api/config.h"
#include "api/login/sign_in.h"
#include "api/login/tokens.h"
#include "api/mail/service.h"
#include "api/profiles/pyroscope.h"
#include "api/report/finisher.h"
#include "api/server.h"
#include "api/tsdb/fleet.h"
#include "api/tsdb/measurements_tsdb.h"
#include "api/tsdb/series_tsdb.h"
#include "audit/log.h"
#include "base/clock.h"
#include "base/log.h"
#include "config/flags.h"
#include "directories.h"
#include "export/push/sender.h"
#include "import_bill.h"
#include "ingest/grafana_admins.h"
#include "ingest/update_loop.h"
#include "metrics/registry.h"
#include "metrics/web_certificate.h"
#include "net/server/daemon.h"
#include "net/server/server.h"
#include "options.h"
#include "os/command.h"
#include "os/daemon.h"
#include "os/privileges.h"
#include "store/backups.h"
#include "store/database.h"
#include "store/factory/open_database.h"

namespace {

namespace api = ceems::api;
namespace ingest = ceems::ingest;
namespace log = ceems::log;
namespace os = ceems::os;
using ceems::Result;

// The upgrade of a larger database takes longer than a start should.
constexpr std::int64_t kLongUpgradeBytes = std::int64_t{32} << 20;

constexpr std::string_view kDescription =
    "API server for the compute units of clusters. Keeps their use of resources, energy and "
    "emissions in a database and serves them over a REST API and a web page. `ceems_api_server "
    "import-bill FILE` adds bills of the utility; it has a --help of its own.";

Result<api::Config> read_config(const api::CommandLine& line) {
  return ceems::config::read_config(
      line.config_file, line.expand_env,
      [&](const ceems::config::Node& document, const std::string& directory) {
        return api::parse_config(document, directory, !line.disable_checks);
      });
}

Result<> drop_privileges(const api::CommandLine& line) {
  if (!line.drop_privileges) {
    log::warn("keeping privileges because of --no-security.drop-privileges");
    return {};
  }
  // Both are needed to run sacct and sacctmgr as root.
  CEEMS_TRY_IN("dropping privileges",
               os::drop_privileges(line.run_as_user, {CAP_SETUID, CAP_SETGID}));
  return {};
}

void read_rules_again(ceems::advice::RulesInUse& rules) {
  if (auto done = rules.reload(); !done) {
    log::error("SIGHUP: the rules of reports stay as they are", {{"err", done.error().message}});
  } else {
    log::info("SIGHUP: read the rules of reports again");
  }
}

void serve(ceems::net::Server& server, ceems::audit::Log* audit, ceems::advice::RulesInUse& rules) {
  server.start();
  for (const std::string& address : server.addresses()) {
    log::info("listening", {{"address", address}});
  }
  ceems::net::serve_until_stopped(server.addresses(), [audit, &rules] {
    if (audit != nullptr) {
      audit->reopen();
      log::info("SIGHUP: reopened the audit log");
    }
    read_rules_again(rules);
  });
  server.stop();  // finishes current requests while everything they need still exists
}

/// The service that sends mails; null if they are disabled.
Result<std::unique_ptr<api::MailService>> make_mails(const api::Config& config,
                                                     const std::string& external_url,
                                                     const std::vector<api::SiteCluster>& clusters,
                                                     ceems::store::Database& database,
                                                     const ceems::Clock& clock) {
  if (config.mail.mode == ceems::mail::Mode::kDisabled) {
    return nullptr;
  }
  if (config.mail.max_wait < config.data.update_interval) {
    log::warn(
        "mail.max_wait is shorter than data.update_interval: many mails will be sent before the "
        "job is in the database");
  }
  api::MailSetup setup{
      .options = config.mail,
      .help_url = config.site.help_text(),
      .external_url = external_url,
      .data_directory = config.data.path,
      .reports_stored = config.report.rate > 0,
      .zone = ceems::TimeZone::find(config.data.time_zone).value_or(ceems::TimeZone()),
      .roles = config.login.roles};
  std::set<std::string> measured;
  for (const api::SiteCluster& cluster : clusters) {
    if (cluster.manager == "slurm") {
      setup.clusters.push_back({.id = cluster.id, .slurm_name = cluster.slurm_name});
    }
    if (cluster.series) {
      measured.insert(cluster.id);
    }
  }
  setup.measured = [measured = std::move(measured)](const std::string& id) {
    return measured.contains(id);
  };
  return api::MailService::create(std::move(setup), database, clock);
}

Result<ingest::UpdateOptions> update_options(const api::Config& config,
                                             const api::CommandLine& line) {
  ingest::UpdateOptions options;
  options.update_interval = config.data.update_interval;
  options.max_update_interval = config.data.max_update_interval;
  options.retention = config.data.retention;
  options.purge = !line.skip_purge;
  options.update_from = config.data.update_from;
  options.time_zone = config.data.time_zone;
  options.admins = config.admin.users;
  const auto& admin = config.admin;
  if (!admin.grafana_url.empty() && !admin.grafana_teams.empty()) {
    CEEMS_TRY(grafana, ingest::grafana_admins(admin.grafana_url, admin.grafana_teams, admin.grafana,
                                              config.login.names));
    options.grafana = std::move(grafana);
  }
  return options;
}

int serve_database(api::Config config,
                   const api::CommandLine& line,
                   api::ApiOptions api_options,
                   ceems::advice::RulesInUse& rules,
                   ceems::net::Server& server,
                   ceems::metrics::Registry& registry,
                   std::unique_ptr<api::ApiServer>& handler) {
  const ceems::Clock& clock = ceems::real_clock();
  std::atomic<bool> upgrade_failed = false;
  const auto on_upgrade_failed = [&upgrade_failed](const ceems::Error& error) {
    log::error("cannot upgrade the database", {{"err", error.message}});
    upgrade_failed = true;
    ::kill(::getpid(), SIGTERM);  // as if the program had been stopped
  };
  const bool custom_stats = line.migrate || ingest::has_custom_metrics(config.updaters);
  auto database = ceems::store::open_database({.directory = config.data.path,
                                               .time_zone = config.data.time_zone,
                                               .url = config.data.database_url,
                                               .password_file = config.data.database_password_file,
                                               .custom_stats = custom_stats,
                                               .finish_upgrade = line.migrate,
                                               .upgrade_in_use_above = kLongUpgradeBytes,
                                               .on_upgrade_failed = on_upgrade_failed},
                                              clock);
  if (!database) {
    return os::give_up(database.error());
  }
  auto tsdbs = api::cluster_tsdbs(config.clusters, config.updaters, config.series, clock);
  if (!tsdbs) {
    return os::give_up(tsdbs.error());
  }
  std::vector<api::SiteCluster> site_clusters;
  site_clusters.reserve(config.clusters.size());
  for (const auto& cluster : config.clusters) {
    site_clusters.push_back({.id = cluster.cluster.id,
                             .manager = cluster.cluster.manager,
                             .slurm_name = cluster.extra["slurm_cluster"].as_string().value_or(""),
                             .series = tsdbs->contains(cluster.cluster.id)});
  }
  api::TsdbSeriesSource series(std::move(*tsdbs));
  std::vector<std::string> cluster_ids;
  std::ranges::transform(site_clusters, std::back_inserter(cluster_ids), &api::SiteCluster::id);
  auto profiles =
      api::PyroscopeSource::create(std::move(config.profiles), cluster_ids, config.series);
  if (!profiles) {
    return os::give_up(profiles.error());
  }
  api_options.profiles = profiles->get();
  auto tsdbs_of_reports =
      api::cluster_tsdbs(config.clusters, config.updaters, config.series, clock);
  if (!tsdbs_of_reports) {
    return os::give_up(tsdbs_of_reports.error());
  }
  api::TsdbMeasurementSource measurements(std::move(*tsdbs_of_reports));
  api_options.measurements = &measurements;
  auto updates = update_options(config, line);
  if (!updates) {
    return os::give_up(updates.error());
  }
  updates->wait_until_ready = [&database](const std::stop_token& stop) {
    return (*database)->wait_until_ready(stop);
  };
  std::optional<api::Finisher> finisher;  // set before the updates start
  if (config.report.rate > 0) {
    updates->on_written = [&finisher](bool leads) { finisher->wake(leads); };
  }

  auto tsdbs_of_nodes = api::cluster_tsdbs(config.clusters, config.updaters, config.series, clock);
  if (!tsdbs_of_nodes) {
    return os::give_up(tsdbs_of_nodes.error());
  }
  for (auto& [cluster, tsdb] : *tsdbs_of_nodes) {
    auto source = std::make_shared<ingest::NodeSource>();
    source->cluster_id = cluster;
    source->client = std::move(tsdb.client);
    source->cluster_label = std::move(tsdb.cluster_label);
    updates->nodes.push_back(std::move(source));
  }
  auto loop = ingest::UpdateLoop::create(std::move(*updates), config.clusters, config.updaters,
                                         (*database)->writer(), registry, clock, os::real_runner());
  if (!loop) {
    return os::give_up(loop.error());
  }
  auto sign_in = api::login::SignIn::create(config.login,
                                            {.user_headers = api_options.user_headers,
                                             .route_prefix = api_options.route_prefix,
                                             .external_url = api_options.external_url,
                                             .data_directory = config.data.path,
                                             .site_name = config.site.name},
                                            (*database)->reader(), clock);
  if (!sign_in) {
    return os::give_up(sign_in.error());
  }
  api_options.sign_in = sign_in->get();
  api::login::Tokens tokens({.login = config.login,
                             .user_headers = api_options.user_headers,
                             .external_url = api_options.external_url,
                             .open_writer = [&database] { return (*database)->open_tokens(); }},
                            (*database)->reader(), clock);
  if (config.login.offers_tokens()) {
    api_options.tokens = &tokens;
    config.site.tokens = true;
  }
  api_options.open_feedback = [&database] { return (*database)->open_feedback(); };
  std::unique_ptr<ceems::audit::Log> audit;
  if (config.audit.enabled()) {
    auto opened = ceems::audit::Log::open(config.audit, "ceems_api_server", clock);
    if (!opened) {
      return os::give_up(std::move(opened).error().with_context("ceems_api_server.audit"));
    }
    audit = std::move(*opened);
  }
  auto mails = make_mails(config, api_options.external_url, site_clusters, **database, clock);
  if (!mails) {
    return os::give_up(std::move(mails).error().with_context("ceems_api_server.mail"));
  }
  auto senders = ceems::exporting::Senders::create(config.exports, **database, registry, clock);
  if (!senders) {
    return os::give_up(std::move(senders).error().with_context("ceems_api_server.export"));
  }
  api_options.mute_page = *mails ? &(*mails)->mute_page() : nullptr;
  api_options.site = config.site;
  api_options.accounting = std::move(config.accounting);
  api_options.site.time_zone = config.data.time_zone;
  api_options.site.clusters = std::move(site_clusters);
  api::Fleet fleet(series.tsdbs(), clock);
  api_options.fleet = &fleet;
  api_options.audit = audit.get();
  auto made = api::ApiServer::create(std::move(api_options), (*database)->reader(), &series,
                                     registry, clock);
  if (!made) {
    return os::give_up(made.error());
  }
  handler = std::move(*made);
  if (config.report.rate > 0) {
    finisher.emplace(config.report, (*database)->reader(), (*database)->writer(),
                     handler->reports(), registry, clock);
    finisher->start();
  }
  (*senders)->start();
  (*loop)->start();
  if (*mails) {
    (*mails)->start(handler->reports(), handler->digests(), handler->accounting(), registry);
  }
  std::optional<ceems::store::Backups> backups;
  if (!config.data.backup_path.empty()) {
    backups.emplace(**database, config.data.backup_path, config.data.backup_interval);
  }
  serve(server, audit.get(), rules);
  (*loop)->stop();
  series.cancel();
  measurements.cancel();
  (*profiles)->cancel();
  if (finisher) {
    finisher->stop();
  }
  if (*mails) {
    (*mails)->stop();
  }
  (*senders)->stop();
  handler.reset();  // its threads use the TSDBs and the database
  tokens.close();
  backups.reset();
  if (auto closed = (*database)->close(); !closed) {
    log::error("cannot close the database", {{"err", closed.error().message}});
  }
  log::info("stopped");
  return upgrade_failed ? 1 : 0;
}

int run(int argc, const char* const* argv) {
  if (argc > 1 && std::string_view(argv[1]) == "import-bill") {
    return api::import_bill(argc, argv);
  }
  api::CommandLine line;
  line.run_as_user = os::default_run_as_user();
  ceems::config::FlagSet flags("ceems_api_server", std::string(kDescription));
  add_flags(flags, line);
  if (const auto status =
          ceems::net::parse_flags(flags, argc, argv, line.health, line.listen_addresses)) {
    return *status;
  }
  auto api_options = api::api_options(line);
  if (!api_options) {
    return os::give_up_early(api_options.error());
  }
  auto server_options = api::server_options(line);
  if (!server_options) {
    return os::give_up_early(server_options.error());
  }
  auto config = read_config(line);
  if (!config) {
    return os::give_up_early(config.error());
  }
  for (std::string* path : {&config->data.path, &config->data.backup_path}) {
    if (path->empty()) {
      continue;
    }
    auto prepared = api::prepare_directory(*path, line.drop_privileges ? line.run_as_user : "root");
    if (!prepared) {
      return os::give_up_early(prepared.error());
    }
    *path = std::move(*prepared);
  }
  auto rules = ceems::advice::load_rules(config->report.rules);
  if (!rules) {
    return os::give_up_early(
        std::move(rules).error().with_context("ceems_api_server.report.rules"));
  }
  const auto rules_in_use =
      std::make_shared<ceems::advice::RulesInUse>(std::move(*rules), config->report.rules);
  api_options->rules = rules_in_use;
  if (auto configured = log::configure(line.log_level, line.log_format); !configured) {
    return os::give_up_early(configured.error());
  }
  os::raise_file_limit();
  os::log_start("ceems_api_server");
  for (const std::string& warning : config->warnings) {
    log::warn(warning);
  }

  for (const std::string& warning :
       api::login::exposure_warnings(config->login, line.cors_origin)) {
    log::warn(warning);
  }

  // Open sockets and the web configuration before dropping privileges.
  ceems::metrics::Registry registry("ceems_api_server", "the API server");
  std::unique_ptr<api::ApiServer> handler;
  server_options->needs_body = [&handler](const ceems::net::Request& request) {
    return handler->needs_body(request);
  };
  server_options->waits = [&handler](const ceems::net::Request& request) {
    return handler->waits(request);
  };
  server_options->on_dropped =
      [&dropped = registry.counters("ceems_api_server_dropped_requests_total",
                                    "Requests that the server gave up because of too much load, by "
                                    "reason.",
                                    {"reason"})](ceems::net::Dropped what) {
        dropped.with({ceems::net::to_string(what)}).add();
      };
  server_options->on_certificate = ceems::metrics::web_certificate_gauge(registry);
  auto server = ceems::net::Server::create(
      std::move(*server_options),
      [&handler](const ceems::net::Request& request, ceems::net::Response& response) {
        handler->handle(request, response);
      });
  if (!server) {
    return os::give_up(server.error());
  }
  if (auto dropped = drop_privileges(line); !dropped) {
    return os::give_up(dropped.error());
  }
  return serve_database(std::move(*config), line, std::move(*api_options), *rules_in_use, **server,
                        registry, handler);
}

}  // namespace

int main(int argc, char** argv) {
  // Each thread would otherwise get an arena of its own, which keeps what the largest sum needed.
  ::mallopt(M_ARENA_MAX, 2);  // NOLINT(concurrency-mt-unsafe): there is no other thread yet
  return os::daemon_main("ceems_api_server", argc, argv, run);
}

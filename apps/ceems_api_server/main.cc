// ceems_api_server: units, usage, users and projects of the clusters, kept up to date and served.

#include <linux/capability.h>
#include <signal.h>

#include <condition_variable>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include <date/date.h>
#include <fmt/format.h>

#include "api/config.h"
#include "api/grafana_admins.h"
#include "api/login/sign_in.h"
#include "api/series_tsdb.h"
#include "api/server.h"
#include "api/update_loop.h"
#include "api/update_metrics.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/version.h"
#include "config/flags.h"
#include "directories.h"
#include "net/server.h"
#include "options.h"
#include "os/command.h"
#include "os/privileges.h"
#include "os/signals.h"
#include "store/database.h"

namespace {

namespace api = ceems::api;
namespace log = ceems::log;
namespace os = ceems::os;
using ceems::Error;
using ceems::Result;

constexpr std::string_view kDescription =
    "API server of the compute units of clusters: keeps their use of resources, energy and "
    "emissions in a data base and serves them, together with a web page.";

/// What goes wrong before the log is set up is one plain line.
int give_up_early(const Error& error) {
  const auto now = date::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  fmt::print(stderr, "{} {}\n", date::format("%Y/%m/%d %H:%M:%S", now), error.message);
  return 1;
}

int give_up(const Error& error) {
  log::error("cannot start", {{"err", error.message}});
  return 1;
}

Result<api::Config> read_config(const api::CommandLine& line) {
  const std::string path = line.config_file.empty() ? "." : line.config_file;
  auto document = ceems::config::load_yaml(path, line.expand_env);
  if (!document) {
    return fail(std::move(document).error().with_context("failed to parse config file"));
  }
  auto config = api::parse_config(*document, std::filesystem::path(path).parent_path().string(),
                                  !line.disable_checks);
  if (!config) {
    return fail(std::move(config).error().with_context("failed to parse config file"));
  }
  return config;
}

Result<> drop_privileges(const api::CommandLine& line) {
  if (!line.drop_privileges) {
    log::warn("privileges are kept: --no-security.drop-privileges");
    return {};
  }
  // For running sacct and sacctmgr as root.
  if (auto dropped = os::drop_privileges(line.run_as_user, {CAP_SETUID, CAP_SETGID}); !dropped) {
    return fail(std::move(dropped).error().with_context("dropping privileges"));
  }
  return {};
}

/// Copies the data base once per interval, the first time after one interval.
void keep_backups(const std::stop_token& stop,
                  ceems::store::Database& database,
                  const std::string& directory,
                  std::chrono::milliseconds interval) {
  std::mutex mutex;
  std::condition_variable_any wake;
  while (true) {
    {
      std::unique_lock lock(mutex);
      wake.wait_for(lock, stop, interval, [] { return false; });
    }
    if (stop.stop_requested()) {
      return;
    }
    const auto name = database.backup(directory, stop);
    if (name) {
      log::info("backup written", {{"file", *name}});
    } else {
      log::error("backup failed", {{"err", name.error().message}});
    }
  }
}

void serve(ceems::net::Server& server) {
  server.start();
  for (const std::string& address : server.addresses()) {
    log::info("listening", {{"address", address}});
  }
  os::notify_systemd("READY=1");
  int signal = os::wait_for_signal();
  while (signal == SIGHUP) {
    log::info("SIGHUP ignored: a changed configuration takes a restart");
    signal = os::wait_for_signal();
  }
  os::notify_systemd("STOPPING=1");
  log::info("stopping", {{"signal", signal}});
  server.stop();  // requests under way are finished while everything they need is there
}

Result<api::UpdateOptions> update_options(const api::Config& config, const api::CommandLine& line) {
  api::UpdateOptions options;
  options.update_interval = config.data.update_interval;
  options.max_update_interval = config.data.max_update_interval;
  options.retention = config.data.retention;
  options.purge = !line.skip_purge;
  options.update_from = config.data.update_from;
  options.time_zone = config.data.time_zone;
  options.admins = config.admin.users;
  const auto& admin = config.admin;
  if (!admin.grafana_url.empty() && !admin.grafana_teams.empty()) {
    auto grafana = api::grafana_admins(admin.grafana_url, admin.grafana_teams, admin.grafana);
    if (!grafana) {
      return fail(std::move(grafana).error());
    }
    options.grafana = std::move(*grafana);
  }
  return options;
}

int serve_data_base(api::Config config,
                    const api::CommandLine& line,
                    api::ApiOptions api_options,
                    ceems::net::Server& server,
                    std::unique_ptr<api::ApiServer>& handler) {
  const ceems::Clock& clock = ceems::real_clock();
  auto database =
      ceems::store::Database::open({.directory = config.data.path,
                                    .time_zone = config.data.time_zone,
                                    .url = config.data.database_url,
                                    .password_file = config.data.database_password_file},
                                   clock);
  if (!database) {
    return give_up(database.error());
  }
  auto series = api::TsdbSeriesSource::create(config.clusters, config.updaters, clock);
  if (!series) {
    return give_up(series.error());
  }
  auto updates = update_options(config, line);
  if (!updates) {
    return give_up(updates.error());
  }
  auto loop = api::UpdateLoop::create(std::move(*updates), config.clusters, config.updaters,
                                      (*database)->writer(), clock, os::real_runner());
  if (!loop) {
    return give_up(loop.error());
  }
  auto sign_in = api::login::SignIn::create(std::move(config.login),
                                            {.user_headers = api_options.user_headers,
                                             .route_prefix = api_options.route_prefix,
                                             .external_url = api_options.external_url,
                                             .data_directory = config.data.path},
                                            (*database)->reader(), clock);
  if (!sign_in) {
    return give_up(sign_in.error());
  }
  api_options.sign_in = sign_in->get();
  api_options.other_figures = [&loop](ceems::metrics::Sink& sink) {
    api::add_update_figures(sink, (*loop)->figures());
  };
  auto made =
      api::ApiServer::create(std::move(api_options), (*database)->reader(), series->get(), clock);
  if (!made) {
    return give_up(made.error());
  }
  handler = std::move(*made);
  (*loop)->start();
  std::jthread backups;
  if (!config.data.backup_path.empty()) {
    backups = std::jthread([&](const std::stop_token& stop) {
      keep_backups(stop, **database, config.data.backup_path, config.data.backup_interval);
    });
  }
  serve(server);
  (*loop)->stop();
  backups = {};
  if (auto closed = (*database)->close(); !closed) {
    log::error("closing the data base", {{"err", closed.error().message}});
  }
  log::info("stopped");
  return 0;
}

int run(int argc, const char* const* argv) {
  api::CommandLine line;
  line.run_as_user = os::default_run_as_user();
  ceems::config::FlagSet flags("ceems_api_server", std::string(kDescription));
  add_flags(flags, line);
  const auto outcome = flags.parse(argc, argv);
  if (outcome.exit) {
    fmt::print(*outcome.exit == 0 ? stdout : stderr, "{}", outcome.text);
    return *outcome.exit;
  }
  auto api_options = api::api_options(line);
  if (!api_options) {
    return give_up_early(api_options.error());
  }
  auto server_options = api::server_options(line);
  if (!server_options) {
    return give_up_early(server_options.error());
  }
  auto config = read_config(line);
  if (!config) {
    return give_up_early(config.error());
  }
  for (std::string* path : {&config->data.path, &config->data.backup_path}) {
    if (path->empty()) {
      continue;
    }
    auto prepared = api::prepare_directory(*path, line.drop_privileges ? line.run_as_user : "root");
    if (!prepared) {
      return give_up_early(prepared.error());
    }
    *path = std::move(*prepared);
  }
  const auto level = log::parse_level(line.log_level);
  const auto format = log::parse_format(line.log_format);
  if (!level || !format) {
    return give_up_early(!level ? level.error() : format.error());
  }
  log::configure(*level, *format);
  const ceems::Version& about = ceems::version();
  log::info("starting ceems_api_server",
            {{"version", about.version}, {"branch", about.branch}, {"revision", about.revision}});
  for (const std::string& warning : config->warnings) {
    log::warn(warning);
  }

  // Sockets and the web configuration are opened before privileges are dropped.
  std::unique_ptr<api::ApiServer> handler;
  auto server = ceems::net::Server::create(
      std::move(*server_options),
      [&handler](const ceems::net::Request& request, ceems::net::Response& response) {
        handler->handle(request, response);
      });
  if (!server) {
    return give_up(server.error());
  }
  if (auto dropped = drop_privileges(line); !dropped) {
    return give_up(dropped.error());
  }
  return serve_data_base(std::move(*config), line, std::move(*api_options), **server, handler);
}

}  // namespace

int main(int argc, char** argv) {
  os::block_signals();
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "ceems_api_server: {}\n", error.what());
    return 1;
  }
}

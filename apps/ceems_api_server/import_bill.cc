#include "import_bill.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/accounting/bill_file.h"
#include "api/config.h"
#include "base/strings.h"
#include "config/flags.h"
#include "host/read_file.h"
#include "os/privileges.h"
#include "store/factory/open_database.h"

namespace ceems::api {
namespace {

constexpr std::string_view kDescription =
    "Adds bills of the utility to the database, for the table that shows what energy was used for. "
    "FILE is CSV with the columns period_start, period_end and kwh, and optionally cost, currency "
    "and kgco2_market. The server may run meanwhile.";

struct Options {
  std::vector<std::string> files;
  std::string config_file;
  bool expand_env = false;
  std::string cluster;
  bool replace = false;
};

/// Becomes the owner of the database file, so that files that SQLite creates beside it belong to
/// the user of the server.
Result<> become_owner(const std::string& directory) {
  const std::string path = fmt::format("{}/{}", directory, store::kDatabaseFile);
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) {
    return fail(errno_error(errno, fmt::format("database {}", path)));
  }
  if (::geteuid() != 0 || status.st_uid == 0) {
    return {};
  }
  return os::drop_privileges(fmt::to_string(status.st_uid), {});
}

Result<store::BillReport> import_file(const Options& options) {
  if (options.files.size() != 1) {
    return fail(ErrorCode::kInvalidArgument, "expected the name of one file");
  }
  CEEMS_TRY(config,
            config::read_config(options.config_file, options.expand_env,
                                [](const config::Node& document, const std::string& directory) {
                                  return parse_config(document, directory, false);
                                }));
  const auto& clusters = config.clusters;
  if (!options.cluster.empty() && std::ranges::none_of(clusters, [&](const auto& cluster) {
        return cluster.cluster.id == options.cluster;
      })) {
    return fail(ErrorCode::kInvalidArgument, "--cluster: no cluster has the ID '{}'",
                printable(options.cluster, 80));
  }
  constexpr std::size_t kMaxBytes = std::size_t{16} << 20U;
  CEEMS_TRY(text, host::read_file(options.files.front(), kMaxBytes));
  CEEMS_TRY(zone, TimeZone::find(config.data.time_zone));
  CEEMS_TRY(bills, parse_bills(text, options.files.front(), options.cluster, zone));
  if (config.data.database_url.empty()) {
    CEEMS_TRY(become_owner(config.data.path));
  }
  return store::import_bills({.directory = config.data.path,
                              .url = config.data.database_url,
                              .password_file = config.data.database_password_file},
                             bills, options.replace);
}

}  // namespace

int import_bill(int argc, const char* const* argv) {
  Options options;
  config::FlagSet flags("ceems_api_server import-bill", std::string(kDescription));
  flags.positionals("FILE", options.files, "CSV file with the bills.");
  flags.add("config.file", options.config_file,
            {.help = "Path of the configuration file.", .env = "CEEMS_API_SERVER_CONFIG_FILE"});
  flags.add(
      "config.file.expand-env-vars", options.expand_env,
      {.help = "Replace $NAME and ${NAME} in the configuration file with environment variables."});
  flags.add("cluster", options.cluster,
            {.help = "ID of the cluster that the bills are of. The default is the whole site."});
  flags.add("replace", options.replace,
            {.help = "Remove stored bills that the new ones overlap, instead of refusing these."});
  const auto outcome = flags.parse(argc - 1, argv + 1);
  if (outcome.exit) {
    fmt::print(*outcome.exit == 0 ? stdout : stderr, "{}", outcome.text);
    return *outcome.exit;
  }
  const auto report = import_file(options);
  if (!report) {
    fmt::print(stderr, "ceems_api_server: error: {}\n", report.error().message);
    return 1;
  }
  fmt::print("bills: {} added, {} replaced, {} known already\n", report->added, report->replaced,
             report->unchanged);
  return 0;
}

}  // namespace ceems::api

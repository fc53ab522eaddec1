#include "lb/owner_source.h"

#include <linux/capability.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "gate/api_owners.h"
#include "gate/owners.h"
#include "os/privileges.h"
#include "store/database.h"
#include "store/factory/open_database.h"

namespace ceems::lb {
namespace {

constexpr std::chrono::seconds kOwnerTimeout{1};

/// Also true if the directory cannot be read: opening the database then gives the reason.
bool may_hold_database(const std::string& directory) {
  bool there = false;
  read_as_root([&] {
    std::error_code error;
    there =
        std::filesystem::exists(std::filesystem::path(directory) / store::kDatabaseFile, error) ||
        error;
  });
  return there;
}

/// The IDs of the clusters that the source of owners knows.
Result<std::vector<std::string>> known_clusters(const Config& config, OwnerSource& source) {
  if (!source.reader) {
    net::ClientOptions options = config.api_client;
    options.timeout = kOwnerTimeout;
    return gate::api_clusters(config.api_url, options);
  }
  auto rows = source.reader->clusters();
  if (!rows) {
    return fail(std::move(rows).error());
  }
  std::vector<std::string> ids;
  while (true) {
    const auto more = (*rows)->next();
    if (!more) {
      return fail(Error(more.error()));
    }
    if (!*more) {
      return ids;
    }
    ids.emplace_back((*rows)->text(0));
  }
}

}  // namespace

void read_as_root(const std::function<void()>& read) {
  const os::RaisedCapabilities raised({CAP_DAC_READ_SEARCH});
  read();
}

Result<std::shared_ptr<OwnerSource>> open_owners(const Config& config) {
  auto source = std::make_shared<OwnerSource>();
  if (!config.has_owners()) {
    return std::shared_ptr<OwnerSource>();
  }
  const bool has_file = config.data_path && may_hold_database(*config.data_path);
  if (!config.database_url.empty() || has_file || config.api_url.empty()) {
    auto reader = store::open_reader({.directory = config.data_path.value_or(""),
                                      .url = config.database_url,
                                      .password_file = config.database_password_file,
                                      .around_open = read_as_root});
    if (!reader) {
      return fail(
          std::move(reader).error().with_context("cannot open the database of unit owners"));
    }
    source->reader = std::move(*reader);
    source->direct = gate::database_owners(*source->reader);
  } else {
    net::ClientOptions options = config.api_client;
    options.timeout = kOwnerTimeout;
    options.connect_timeout = kOwnerTimeout;
    auto owners = gate::api_owners(config.api_url, std::move(options));
    if (!owners) {
      return fail(std::move(owners).error().with_context("ceems_api_server.web"));
    }
    source->direct = std::move(*owners);
  }
  source->cached =
      gate::cached_owners(*source->direct, real_clock(), {.age = config.access.cache_age});
  return source;
}

Result<> check_clusters(const Config& config, OwnerSource& source) {
  const auto known = known_clusters(config, source);
  if (!known) {
    return fail(Error(known.error()).with_context("cannot check the IDs of backends"));
  }
  for (const ClusterConfig& cluster : config.clusters) {
    if (std::ranges::find(*known, cluster.id) == known->end()) {
      return fail(ErrorCode::kInvalidArgument,
                  "unknown cluster ID: {}. Cluster IDs in CEEMS DB are {}", cluster.id,
                  fmt::join(*known, ","));
    }
  }
  return {};
}

}  // namespace ceems::lb

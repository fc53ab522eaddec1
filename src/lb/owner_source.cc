#include "lb/owner_source.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "gate/api_owners.h"
#include "gate/owners.h"
#include "lb/followed_owners.h"
#include "lb/owner_breaker.h"
#include "model/protocol.h"
#include "os/privileges.h"
#include "store/database.h"
#include "store/factory/open_database.h"

namespace ceems::lb {
namespace {

/// Also true if the directory cannot be read: opening the database then gives the reason.
bool may_hold_database(const std::string& directory) {
  bool there = false;
  os::read_as_root([&] {
    std::error_code error;
    there =
        std::filesystem::exists(std::filesystem::path(directory) / store::kDatabaseFile, error) ||
        error;
  });
  return there;
}

/// With a credential of its own, the service account is not named in the header of people.
gate::ServiceName service_name(const Config& config) {
  return config.service_account.configured() ? gate::ServiceName::kOmitted
                                             : gate::ServiceName::kInHeader;
}

/// How to reach the API server. The token of the service account goes with each request; a user of
/// the web configuration is in the options already.
net::ClientOptions client_options(const Config& config, const OwnerTimes& times) {
  net::ClientOptions options = config.api_client;
  options.timeout = times.question;
  options.connect_timeout = times.question;
  if (const std::string& file = config.service_account.token_file; !file.empty()) {
    options.headers[std::string(model::kServiceTokenHeader)].files = {file};
  }
  return options;
}

/// The IDs of the clusters that the source of owners knows.
Result<std::vector<std::string>> known_clusters(const Config& config, OwnerSource& source) {
  if (!source.reader) {
    return gate::api_clusters(config.api_url, client_options(config, OwnerTimes()),
                              service_name(config));
  }
  CEEMS_TRY(rows, source.reader->clusters());
  std::vector<std::string> ids;
  while (true) {
    CEEMS_TRY(more, rows->next());
    if (!more) {
      return ids;
    }
    ids.emplace_back(rows->text(0));
  }
}

/// A source with everything that stands before it.
class AskedOwners {
 public:
  AskedOwners(std::shared_ptr<store::Reader> reader,
              std::unique_ptr<gate::Owners> direct,
              const Config& config)
      : reader_(std::move(reader)),
        direct_(std::move(direct)),
        interruptible_(interruptible_owners(*direct_, real_clock())),
        cached_(
            gate::cached_owners(*interruptible_, real_clock(), {.age = config.access.cache_age})) {}

  [[nodiscard]] gate::Owners& owners() { return *cached_; }

 private:
  std::shared_ptr<store::Reader> reader_;  ///< null if `direct_` needs none
  std::unique_ptr<gate::Owners> direct_;
  std::unique_ptr<gate::Owners> interruptible_;
  std::unique_ptr<gate::Owners> cached_;
};

std::shared_ptr<gate::Owners> asked_owners(std::shared_ptr<store::Reader> reader,
                                           std::unique_ptr<gate::Owners> direct,
                                           const Config& config) {
  auto asked = std::make_shared<AskedOwners>(std::move(reader), std::move(direct), config);
  gate::Owners& owners = asked->owners();
  return {std::move(asked), &owners};
}

Result<std::shared_ptr<gate::Owners>> owners_of_api(const Config& config, const OwnerTimes& times) {
  CEEMS_TRY(owners,
            gate::api_owners(config.api_url, client_options(config, times), service_name(config)));
  return asked_owners(nullptr, std::move(owners), config);
}

Result<> open_database(const Config& config, const OwnerTimes& times, OwnerSource& source) {
  CEEMS_TRY(reader, store::open_reader({.directory = config.data_path.value_or(""),
                                        .connection_wait = times.question,
                                        .busy_wait = times.question,
                                        .url = config.database_url,
                                        .password_file = config.database_password_file,
                                        .around_open = os::read_as_root}));
  source.reader = std::move(reader);
  source.cached = asked_owners(source.reader, gate::database_owners(*source.reader), config);
  return {};
}

/// Opens the database file, and again whenever there is another one at its path.
Result<> follow_database(const Config& config, const OwnerTimes& times, OwnerSource& source) {
  const auto path = std::filesystem::path(config.data_path.value_or("")) / store::kDatabaseFile;
  auto open = [config, times, &source,
               first = true]() mutable -> Result<std::shared_ptr<gate::Owners>> {
    OwnerSource opened;
    CEEMS_TRY(open_database(config, times, opened));
    if (std::exchange(first, false)) {
      source.reader = std::move(opened.reader);  // `source` may be gone later
    }
    return std::move(opened.cached);
  };
  CEEMS_TRY(followed,
            FollowedOwners::create(path.string(), std::move(open), os::read_as_root, times.look));
  source.cached = std::move(followed);
  return {};
}

}  // namespace

Result<std::shared_ptr<OwnerSource>> open_owners(const Config& config, const OwnerTimes& times) {
  if (!config.has_owners()) {
    return std::shared_ptr<OwnerSource>();
  }
  auto source = std::make_shared<OwnerSource>();
  const bool has_file = config.data_path && may_hold_database(*config.data_path);
  if (config.database_url.empty() && !has_file && !config.api_url.empty()) {
    CEEMS_TRY_IN("ceems_api_server.web", owners, owners_of_api(config, times));
    source->cached = std::move(owners);
    return source;
  }
  CEEMS_TRY_IN("cannot open the database of unit owners",
               config.database_url.empty() ? follow_database(config, times, *source)
                                           : open_database(config, times, *source));
  return source;
}

Result<> check_clusters(const Config& config, OwnerSource& source) {
  CEEMS_TRY_IN("cannot check the IDs of backends", known, known_clusters(config, source));
  for (const ClusterConfig& cluster : config.clusters) {
    if (std::ranges::find(known, cluster.id) == known.end()) {
      return fail(ErrorCode::kInvalidArgument,
                  "unknown cluster ID: {}. Cluster IDs in CEEMS DB are {}", cluster.id,
                  fmt::join(known, ","));
    }
  }
  return {};
}

}  // namespace ceems::lb

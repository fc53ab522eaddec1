#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/time/time_zone.h"
#include "ingest/manager/manager.h"
#include "ingest/manager/openstack/client.h"

namespace ceems::ingest {

/// The extra_config of an OpenStack cluster.
struct OpenstackOptions {
  openstack::Endpoints endpoints;
  std::string auth;  ///< JSON text, secret
  std::chrono::milliseconds request_timeout{std::chrono::minutes(1)};
  std::chrono::milliseconds users_refresh_interval{std::chrono::minutes(5)};
  std::string default_domain_id = "default";  ///< its accounts have names without a suffix
};

/// kInvalidArgument with file and line; messages never contain values of `auth`. create_manager()
/// rejects unknown keys.
Result<OpenstackOptions> parse_openstack_options(const config::Node& extra);

/// The manager "openstack": servers of Nova, users and projects of Keystone
/// (docs/api/resource-managers.md#openstack). It sends no request before the first fetch, so a
/// cloud that is down at startup only delays its own windows.
std::unique_ptr<ResourceManager> make_openstack(std::string cluster_id,
                                                OpenstackOptions options,
                                                std::unique_ptr<openstack::Transport> transport,
                                                TimeZone zone,
                                                const Clock& clock);

}  // namespace ceems::ingest

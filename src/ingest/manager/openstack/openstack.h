#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/time/time_zone.h"
#include "ingest/manager/manager.h"
#include "ingest/manager/openstack/client.h"

namespace ceems::ingest {

/// extra_config of an OpenStack cluster.
struct OpenstackOptions {
  openstack::Endpoints endpoints;
  std::string auth;  ///< JSON text, secret
  std::chrono::milliseconds request_timeout{std::chrono::minutes(1)};
  std::chrono::milliseconds users_refresh_interval{std::chrono::minutes(5)};
};

/// Errors: kInvalidArgument with file and line; values of `auth` are never part of the message.
/// Unknown keys are refused by create_manager().
Result<OpenstackOptions> parse_openstack_options(const config::Node& extra);

/// Manager "openstack": servers of Nova; users and projects of Keystone
/// (docs/api/resource-managers.md#openstack). Nothing is asked for before the first fetch, so a
/// cloud that is down at the start only delays its own windows.
std::unique_ptr<ResourceManager> make_openstack(std::string cluster_id,
                                                OpenstackOptions options,
                                                std::unique_ptr<openstack::Transport> transport,
                                                TimeZone zone,
                                                const Clock& clock);

}  // namespace ceems::ingest

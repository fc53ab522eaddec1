#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "ingest/manager/openstack/client.h"
#include "model/flavor.h"

namespace ceems::ingest::openstack {

/// The flavors of all regions, read again when they are an hour old. Not thread-safe.
class FlavorList {
 public:
  /// Both must outlive the list.
  FlavorList(Client& client, const Clock& clock) : client_(client), clock_(clock) {}

  /// Reads them if they are due. If one region does not answer, the list stays as it was, with one
  /// warning until all answer again, and is due in an hour.
  void refresh(const std::string& cluster_id, const std::stop_token& stop);

  /// Nothing until all regions have answered once. Flavors whose extra specs are not known are left
  /// out: whether another one can take their place is not known either.
  [[nodiscard]] const std::optional<std::vector<model::Flavor>>& all() const { return flavors_; }

 private:
  Client& client_;
  const Clock& clock_;
  std::optional<std::vector<model::Flavor>> flavors_;
  std::optional<Clock::SteadyTime> read_at_;
  bool failed_ = false;
};

}  // namespace ceems::ingest::openstack

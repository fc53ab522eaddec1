#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time/time_zone.h"
#include "ingest/manager/openstack/json.h"
#include "model/unit.h"

namespace ceems::ingest::openstack {

/// The state of a server at the end of a window.
struct ServerState {
  std::int64_t launched_ms = 0;
  bool running = false;  ///< whether it used resources
  std::string status = {};
  Flavor flavor = {};
};

/// The states of the servers at the end of the previous window. They keep a change of `updated`
/// from being mistaken for a start or a stop. If a window is fetched again because it could not be
/// written, the second call finds the same states as the first. After a skipped window nothing is
/// known. Not thread-safe.
class ServerHistory {
 public:
  /// Must be called before the servers of a window are converted.
  void begin(model::Window window);
  /// The state at the window's start; null if unknown.
  [[nodiscard]] const ServerState* find(const std::string& id) const;
  /// Records the state at the window's end.
  void keep(const std::string& id, ServerState state);

 private:
  using States = std::map<std::string, ServerState>;
  States before_;  // as of before_ms_
  States after_;   // as of after_ms_
  std::optional<std::int64_t> before_ms_, after_ms_;
};

/// Returns the units of a server in a window, as they stood at its end: none if it was created or
/// launched later, otherwise one, or two if it was launched again in between (resized, rebuilt,
/// unshelved). Nova then moves `launched_at`, and the time before belongs to a unit that ended
/// there.
///
/// Time counts from max(launch, window start) to min(end, window end) while the server used
/// resources, that is, in all states except SHUTOFF, SUSPENDED, SHELVED, SHELVED_OFFLOADED, ERROR,
/// DELETED and SOFT_DELETED. A start or stop in between is assumed to have happened at `updated`.
/// It is recognized only if the state before the window is known to differ, or if a server that is
/// off now has never been seen before.
std::vector<model::Unit> to_units(const Server& server,
                                  std::string_view project,
                                  std::string_view user,
                                  model::Window window,
                                  const TimeZone& zone,
                                  ServerHistory& history);

}  // namespace ceems::ingest::openstack

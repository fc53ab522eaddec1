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

/// What was known of a server at the end of a window.
struct ServerState {
  std::int64_t launched_ms = 0;
  bool running = false;  ///< used resources
  std::string status = {};
  Flavor flavor = {};
};

/// States of servers at the end of the window before, so that a change of `updated` is not taken
/// for a start or a stop. Windows follow one another; one that is asked for again, because it
/// could not be written, finds what the first call found. After a gap nothing is known. Not
/// thread-safe.
class ServerHistory {
 public:
  /// Before the servers of a window are converted.
  void begin(model::Window window);
  /// As of the window's start; null where nothing is known.
  [[nodiscard]] const ServerState* find(const std::string& id) const;
  /// As of the window's end.
  void keep(const std::string& id, ServerState state);

 private:
  using States = std::map<std::string, ServerState>;
  States before_;  // as of before_ms_
  States after_;   // as of after_ms_
  std::optional<std::int64_t> before_ms_, after_ms_;
};

/// The units of a server in a window, as they stood at its end: none where it was created later,
/// otherwise one; two where it was launched anew (resized, rebuilt, unshelved): Nova moves
/// `launched_at` then, and the time before belongs to a unit that ended there.
///
/// Time is counted from max(launch, window start) to min(end, window end) while the server used
/// resources: in all states but SHUTOFF, SUSPENDED, SHELVED, SHELVED_OFFLOADED, ERROR, DELETED and
/// SOFT_DELETED. A change between the two is put at `updated`, and is one only where the state
/// before the window is known to be the other, or where a server that is off now was never seen.
std::vector<model::Unit> to_units(const Server& server,
                                  std::string_view project,
                                  std::string_view user,
                                  model::Window window,
                                  const TimeZone& zone,
                                  ServerHistory& history);

}  // namespace ceems::ingest::openstack

#pragma once

#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "exporter/redfish/documents.h"
#include "exporter/redfish/reader.h"

namespace ceems::exporter::redfish {

/// What a node takes from the outlets of one service.
struct NodeOutlets {
  std::string node;
  std::optional<double> watts;
  std::optional<double> joules;  ///< a counter that starts again when the service does
};

/// Reads the outlets of a power distribution unit (DMTF: PowerEquipment, RackPDUs and FloorPDUs,
/// PowerDistribution, Outlets). Only outlets that the mapping names are requested. A node whose
/// outlets do not all have a value has none, because a part would look like the whole.
///
/// An outlet is named by its Id, or by UNIT/ID where the service has several units. Connects first
/// and finds the paths of the outlets, again after a failure and every 10 minutes. After a refused
/// login the pause is 10 minutes, because services lock accounts. Used by one thread at a time.
class PduReader {
 public:
  static constexpr auto kAgain = std::chrono::minutes(10);
  static constexpr std::size_t kMaxUnits = 64;

  PduReader(std::unique_ptr<Session> session,
            std::map<std::string, std::string> outlets,
            const Clock& clock);

  /// By node. An error if no node has a value. After `stop` it ends soon and must not be used
  /// again.
  Result<std::vector<NodeOutlets>> read(const std::stop_token& stop);

 private:
  struct Path {
    std::string node;
    std::string link;  ///< of the outlet; empty if the service has none of this name
  };

  Result<> connect();
  Result<std::vector<std::pair<std::string, std::string>>> list_outlets(const std::string& root);
  void find(const std::vector<std::pair<std::string, std::string>>& outlets, bool several);
  Result<std::vector<NodeOutlets>> read_all();

  std::unique_ptr<Session> session_;
  std::map<std::string, std::string> outlets_;  // node by outlet
  const Clock& clock_;
  std::vector<Path> paths_;  // sorted by node; empty: not connected
  Clock::SteadyTime next_connect_{};
  std::optional<Error> refused_;  // until next_connect_
};

}  // namespace ceems::exporter::redfish

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time/time_zone.h"
#include "ingest/nodes/node_energy.h"
#include "store/store.h"

namespace ceems::ingest {

/// A part of a day to be read from a source.
struct NodeRequest {
  std::shared_ptr<const NodeSource> source;
  NodeWindow window;
};

/// Fills the days of the nodes of each cluster, part by part, up to now: says which part to read
/// next, and writes it. The days begin with the month in which the first part is read. After an
/// error of a cluster the next cluster is read, and the part is tried again in the next round. Used
/// by one thread.
class NodeProgress {
 public:
  NodeProgress(std::vector<std::shared_ptr<const NodeSource>> sources, const TimeZone& zone)
      : sources_(std::move(sources)), zone_(zone) {}

  /// Begins with the first cluster again.
  void begin_round(std::int64_t now_ms);
  /// The next request; nothing if the round is done. Call it again only after take().
  std::optional<NodeRequest> next(store::Writer& writer);
  /// Writes the answer to the last request.
  void take(Result<store::NodeUpdate> update, store::Writer& writer);

 private:
  void report(const std::string& cluster, const std::string& error);

  std::vector<std::shared_ptr<const NodeSource>> sources_;
  TimeZone zone_;
  std::int64_t settled_ms_ = 0;
  std::size_t source_ = 0;                                                       ///< that is read
  std::vector<std::string> errors_ = std::vector<std::string>(sources_.size());  ///< as logged
};

}  // namespace ceems::ingest

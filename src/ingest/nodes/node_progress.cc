#include "ingest/nodes/node_progress.h"

#include <utility>

#include "base/log.h"

namespace ceems::ingest {
namespace {

// Samples of the last minutes may not have arrived yet.
constexpr std::int64_t kSettleMs = 2LL * 60 * 1000;

std::int64_t month_start(const TimeZone& zone, std::int64_t ms) {
  constexpr std::int64_t kHalfDayMs = 12LL * 60 * 60 * 1000;
  std::int64_t day = zone.day_start(ms);
  while (zone.day(day).substr(8, 2) != "01") {
    day = zone.day_start(day - kHalfDayMs);
  }
  return day;
}

}  // namespace

void NodeProgress::begin_round(std::int64_t now_ms) {
  settled_ms_ = now_ms - kSettleMs;
  source_ = 0;
}

std::optional<NodeRequest> NodeProgress::next(store::Writer& writer) {
  for (; source_ < sources_.size(); ++source_) {
    const auto& source = sources_[source_];
    const auto until = writer.nodes_until(source->cluster_id);
    if (!until) {
      report(source->cluster_id, until.error().message);
      continue;
    }
    const NodeWindow window =
        next_node_window(until->value_or(month_start(zone_, settled_ms_)), settled_ms_, zone_);
    if (window.end_ms > window.start_ms) {
      return NodeRequest{.source = source, .window = window};
    }
  }
  return std::nullopt;
}

void NodeProgress::take(Result<store::NodeUpdate> update, store::Writer& writer) {
  if (source_ >= sources_.size()) {
    return;
  }
  const std::string& cluster = sources_[source_]->cluster_id;
  auto done = update ? writer.write_nodes(*update) : Result<>(fail(update.error()));
  report(cluster, done ? "" : done.error().message);
  if (!done) {
    ++source_;
  }
}

void NodeProgress::report(const std::string& cluster, const std::string& error) {
  std::string& last = errors_.at(source_);
  if (!error.empty() && error != last) {
    log::error("cannot add up the energy of nodes, trying again in the next round",
               {{"cluster", cluster}, {"err", error}});
  }
  last = error;
}

}  // namespace ceems::ingest

#include "energy/wall_meter.h"

#include <cmath>

namespace ceems::bench::energy {
namespace {

constexpr double kSlack = 1e-6;  // of a clock that counts in fractions

}  // namespace

WallMeter::WallMeter(const Node& node, const MeterSet& meters)
    : meters_(meters),
      window_(meters.wall_window > 0 ? meters.wall_window : meters.wall_period),
      start_(node.time()),
      next_mark_(node.time() + 1),
      next_value_(node.time() + meters.wall_period),
      marks_{{.time = node.time(), .joules = node.wall_joules()}} {}

void WallMeter::advance(const Node& node) {
  if (meters_.wall_period <= 0) {
    return;
  }
  const double now = node.time() + kSlack;
  if (now >= next_mark_) {
    next_mark_ += 1;
    marks_.push_back({.time = node.time(), .joules = node.wall_joules()});
    while (marks_.size() > 2 && marks_[1].time <= now - window_) {
      marks_.pop_front();
    }
  }
  if (now >= next_value_) {
    next_value_ += meters_.wall_period;
    const Mark& first = marks_.front();
    coming_.push_back(
        {.watts = std::round((node.wall_joules() - first.joules) / (node.time() - first.time)),
         .time = node.time() + meters_.wall_delay});
  }
  const double since = node.time() - start_;
  const bool stuck = meters_.stuck_from <= since && since < meters_.stuck_until;
  while (!coming_.empty() && coming_.front().time <= now) {
    shown_ = stuck && shown_ ? *shown_ : coming_.front().watts;
    coming_.pop_front();
  }
}

}  // namespace ceems::bench::energy

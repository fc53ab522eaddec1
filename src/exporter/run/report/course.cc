#include "exporter/run/report/course.h"

#include <algorithm>
#include <cmath>

#include "base/strings.h"

namespace ceems::exporter::run {
namespace {

/// A point between two others, or nothing outside of all.
std::optional<NodeCourse::Point> point_at(const std::vector<NodeCourse::Point>& points, double ms) {
  const auto after = std::ranges::lower_bound(
      points, ms, {}, [](const NodeCourse::Point& point) { return static_cast<double>(point.ms); });
  if (after == points.end() || (after == points.begin() && static_cast<double>(after->ms) > ms)) {
    return std::nullopt;
  }
  if (after == points.begin()) {
    return *after;
  }
  const NodeCourse::Point& last = *(after - 1);
  const double part =
      (ms - static_cast<double>(last.ms)) / static_cast<double>(after->ms - last.ms);
  const auto between = [part](double from, double to) { return from + (to - from) * part; };
  return NodeCourse::Point{.ms = static_cast<std::int64_t>(ms),
                           .joules = between(last.joules, after->joules),
                           .cpu_seconds = between(last.cpu_seconds, after->cpu_seconds),
                           .memory_bytes = between(last.memory_bytes, after->memory_bytes)};
}

}  // namespace

void NodeCourse::add(std::string_view line) {
  constexpr std::string_view kPrefix = "ceems_compute_unit_";
  if (!line.starts_with(kPrefix)) {
    return;
  }
  line.remove_prefix(kPrefix.size());
  const auto labels = line.find('{');
  const auto end = line.rfind('}');
  if (labels == std::string_view::npos || end == std::string_view::npos) {
    return;
  }
  const std::string_view name = line.substr(0, labels);
  std::string_view rest = line.substr(end + 1);
  const auto value = parse_double(take_word(rest));
  const auto ms = parse_int<std::int64_t>(take_word(rest));
  if (!value || !ms || !std::isfinite(*value) || *value < 0 || *ms < 0) {
    return;
  }
  if (open_ && open_->ms != *ms) {
    close(false);
  }
  if (!points_.empty() && *ms <= points_.back().ms) {
    return;
  }
  if (!open_) {
    open_ = Point{.ms = *ms};
  }
  if (name == "energy_joules_total") {
    open_->joules += *value;
  } else if (name == "cpu_user_seconds_total" || name == "cpu_system_seconds_total") {
    open_->cpu_seconds += *value;
  } else if (name == "memory_rss_bytes") {
    open_->memory_bytes = *value;
  }
}

void NodeCourse::close(bool last) {
  const bool later = open_ && (points_.empty() || open_->ms > points_.back().ms);
  if (later && (last || count_++ % stride_ == 0)) {
    points_.push_back(*open_);
  }
  open_.reset();
  if (points_.size() >= kMaxPoints && !last) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < points_.size(); i += 2) {
      points_[kept++] = points_[i];
    }
    points_.resize(kept);
    stride_ *= 2;
    count_ = 1;  // the next one is the second of its pair
  }
}

const std::vector<NodeCourse::Point>& NodeCourse::points() {
  close(true);
  return points_;
}

Course course_of(const std::vector<std::vector<NodeCourse::Point>>& nodes,
                 std::int64_t begin_ms,
                 std::int64_t end_ms,
                 std::size_t parts) {
  std::size_t most = 0;
  for (const auto& points : nodes) {
    most = std::max(most, points.size());
  }
  if (end_ms <= begin_ms || most < 2) {
    return {};
  }
  const std::size_t count = std::clamp<std::size_t>(most - 1, 1, parts);
  const double step = static_cast<double>(end_ms - begin_ms) / static_cast<double>(count);
  Course course{.step_seconds = step / 1e3,
                .watts = std::vector<std::optional<double>>(count),
                .cpus = std::vector<std::optional<double>>(count),
                .memory_bytes = std::vector<std::optional<double>>(count)};
  for (const auto& points : nodes) {
    for (std::size_t i = 0; i < count && !points.empty(); ++i) {
      // The first and the last sample of a node are seldom at the edge of a part.
      const double from = std::max(static_cast<double>(begin_ms) + step * static_cast<double>(i),
                                   static_cast<double>(points.front().ms));
      const double to = std::min(static_cast<double>(begin_ms) + step * static_cast<double>(i + 1),
                                 static_cast<double>(points.back().ms));
      const auto first = from < to ? point_at(points, from) : std::nullopt;
      const auto last = first ? point_at(points, to) : std::nullopt;
      if (!last) {
        continue;
      }
      const double seconds = (to - from) / 1e3;
      const auto add = [](std::optional<double>& sum, double value) {
        sum = sum.value_or(0) + value;
      };
      add(course.watts[i], std::max(0.0, last->joules - first->joules) / seconds);
      add(course.cpus[i], std::max(0.0, last->cpu_seconds - first->cpu_seconds) / seconds);
      add(course.memory_bytes[i], last->memory_bytes);
    }
  }
  return course;
}

}  // namespace ceems::exporter::run

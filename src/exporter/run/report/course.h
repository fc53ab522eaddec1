#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "exporter/run/report/report.h"

namespace ceems::exporter::run {

/// The samples of one node, thinned so that they fit in kMaxPoints however long the run was.
class NodeCourse {
 public:
  static constexpr std::size_t kMaxPoints = 2048;
  struct Point {
    std::int64_t ms = 0;
    double joules = 0;
    double cpu_seconds = 0;
    double memory_bytes = 0;
  };

  /// Takes a line of a job file; other lines than samples of known series are ignored. Lines of one
  /// sample have the same time. Samples that do not come later than those before are ignored, so a
  /// frame that is there twice counts once.
  void add(std::string_view line);
  /// Takes the last sample. Call it once, at the end.
  const std::vector<Point>& points();

 private:
  void close(bool last);
  std::optional<Point> open_;
  std::vector<Point> points_;
  std::uint64_t stride_ = 1;
  std::uint64_t count_ = 0;
};

/// The sums over all nodes in at most `parts` equal parts of the time from `begin_ms` to `end_ms`.
Course course_of(const std::vector<std::vector<NodeCourse::Point>>& nodes,
                 std::int64_t begin_ms,
                 std::int64_t end_ms,
                 std::size_t parts);

}  // namespace ceems::exporter::run

#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time/time_zone.h"
#include "ingest/manager/manager.h"
#include "model/unit.h"

namespace ceems::ingest {

/// A line about one unit. docs/api/resource-managers.md describes the members.
struct ExecUnit {
  std::string id, name, user, group, project, state;
  std::int64_t created_ms = 0;  ///< epoch
  std::int64_t start_ms = 0;    ///< 0: it has not started
  std::int64_t end_ms = 0;      ///< 0: it is running
  double cpus = 0, memory_mib = 0, gpus = 0;
  std::string tags = "{}";  ///< JSON object
};

/// What the lines of one run say.
struct ExecLines {
  std::vector<ExecUnit> units;
  std::set<Membership> members;
  ProjectLeads leads;
};

/// Adds what one JSON line says: of a unit (it has `unit`), of the users of a project (`project`),
/// or of the projects of a user (`user`). Empty lines and lines that begin with '#' say nothing.
/// kParse for lines that are not such an object, unknown members (with the nearest known name),
/// times that are not numbers or RFC 3339, and numbers out of range.
Result<> read_line(std::string_view line, ExecLines& lines);

/// The unit as it stood at the end of the window; nothing if it had not started.
std::optional<model::Unit> unit_of(const ExecUnit& unit,
                                   model::Window window,
                                   const TimeZone& zone);

}  // namespace ceems::ingest

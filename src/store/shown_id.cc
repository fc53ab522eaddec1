#include "store/shown_id.h"

#include <fmt/format.h>

namespace ceems::store {

std::string array_id(const JsonMembers& allocation) {
  const auto job = allocation.number("array_job");
  const auto task = allocation.number("array_task");
  const auto het = allocation.number("het_job");
  const auto offset = allocation.number("het_offset");
  if (het && offset && *het > 0) {
    return fmt::format("{:.0f}+{:.0f}", *het, *offset);
  }
  if (!job || *job <= 0) {
    return {};
  }
  return task ? fmt::format("{:.0f}_{:.0f}", *job, *task) : fmt::format("{:.0f}", *job);
}

}  // namespace ceems::store

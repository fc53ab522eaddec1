#include "ingest/manager/openstack/units.h"

#include <algorithm>
#include <array>
#include <utility>

#include <boost/json.hpp>

#include "base/time/time_text.h"
#include "ingest/manager/unit_fields.h"

namespace ceems::ingest::openstack {
namespace {

namespace json = boost::json;

constexpr std::string_view kUnknownTime = "N/A";

enum class Phase { kRunning, kOff, kDeleted };

Phase phase_of(std::string_view status) {
  constexpr std::array<std::string_view, 5> kOff{"SHUTOFF", "SUSPENDED", "SHELVED",
                                                 "SHELVED_OFFLOADED", "ERROR"};
  if (status == "DELETED" || status == "SOFT_DELETED") {
    return Phase::kDeleted;
  }
  return std::ranges::find(kOff, status) != kOff.end() ? Phase::kOff : Phase::kRunning;
}

/// Names of Nova's power states (nova/objects/fields.py: InstancePowerState).
std::string_view power_state_name(std::int64_t state) {
  constexpr std::array<std::string_view, 8> kNames{"NOSTATE",  "RUNNING", "_UNUSED", "PAUSED",
                                                   "SHUTDOWN", "_UNUSED", "CRASHED", "SUSPENDED"};
  return state >= 0 && state < static_cast<std::int64_t>(kNames.size())
             ? kNames[static_cast<std::size_t>(state)]
             : "N/A";
}

json::string_view text(std::string_view value) {
  return {value.data(), value.size()};
}

json::object texts(const std::map<std::string, std::string>& map) {
  json::object object;
  for (const auto& [name, value] : map) {
    object[text(name)] = text(value);
  }
  return object;
}

std::string allocation_of(const Flavor& flavor) {
  json::object object;
  object["disk"] = flavor.disk_gb;
  object["extra_specs"] = texts(flavor.extra_specs);
  object["mem"] = flavor.ram_mib;
  object["name"] = text(flavor.name);
  object["swap"] = flavor.swap_mb;
  object["vcpus"] = flavor.vcpus;
  if (flavor.vgpus > 0) {
    object["vgpus"] = flavor.vgpus;
  }
  return json::serialize(object);
}

std::string tags_of(const Server& server) {
  json::object object;
  object["az"] = text(server.availability_zone);
  object["metadata"] = texts(server.metadata);
  object["power_state"] = text(power_state_name(server.power_state));
  if (!server.region.empty()) {
    object["region"] = text(server.region);
  }
  object["reservation_id"] = text(server.reservation_id);
  json::array tags;
  for (const auto& tag : server.tags) {
    tags.push_back(text(tag));
  }
  object["tags"] = std::move(tags);
  return json::serialize(object);
}

/// One launch of a server within a window.
struct Life {
  std::int64_t launched_ms = 0;  ///< 0: never
  std::int64_t ended_ms = 0;     ///< 0: not by the end of the window
  std::int64_t active_ms = 0;
  std::string_view status;
  const Flavor* flavor = nullptr;
};

model::Unit make_unit(const Server& server,
                      const Life& life,
                      std::string_view project,
                      std::string_view user,
                      model::Window window,
                      const TimeZone& zone) {
  model::Unit unit;
  unit.uuid = server.id;
  unit.name = server.name;
  unit.project = project;
  unit.username = user;
  unit.created_at_ts = server.created_ms.value_or(0);
  unit.started_at_ts = life.launched_ms;
  unit.ended_at_ts = life.ended_ms;
  print_times(unit, zone, kUnknownTime);
  unit.elapsed = kUnknownTime;
  if (life.launched_ms > 0) {
    const std::int64_t until = life.ended_ms > 0 ? life.ended_ms : window.end_ms;
    unit.elapsed = elapsed_text((until - life.launched_ms) / 1000);
  }
  unit.state = life.status;
  unit.allocation = allocation_of(*life.flavor);
  unit.allocation_stands_in = !life.flavor->detailed;
  unit.tags = tags_of(server);

  const double active = static_cast<double>(std::max<std::int64_t>(life.active_ms, 0)) / 1000;
  unit.total_time_seconds = allocation_times(active, static_cast<double>(life.flavor->vcpus),
                                             static_cast<double>(life.flavor->ram_mib),
                                             static_cast<double>(life.flavor->vgpus));
  return unit;
}

/// What happened to the last launch of a server in the window.
struct Course {
  std::int64_t active_ms = 0;
  std::int64_t ended_ms = 0;
  bool running = false;  ///< at the end of the window
};

/// `before`: the state of the same launch at the start of the window; null if unknown.
Course course_of(const Server& server,
                 std::int64_t launched_ms,
                 const ServerState* before,
                 model::Window window) {
  const std::int64_t begin = std::max(launched_ms, window.start_ms);
  const std::int64_t updated = server.updated_ms.value_or(0);
  const bool known_off = before != nullptr && !before->running;
  Course course;
  switch (phase_of(server.status)) {
    case Phase::kDeleted: {
      const std::int64_t terminated = server.terminated_ms.value_or(updated);
      const bool later = terminated > window.end_ms;
      course.running = later && !known_off;
      course.ended_ms = later ? 0 : std::max<std::int64_t>(terminated, 1);
      course.active_ms = known_off ? 0 : std::min(terminated, window.end_ms) - begin;
      break;
    }
    case Phase::kOff:
      course.running = !known_off && updated > window.end_ms;
      course.active_ms = known_off ? 0 : std::min(updated, window.end_ms) - begin;
      break;
    case Phase::kRunning: {
      const std::int64_t since = known_off ? std::max(updated, begin) : begin;
      course.running = since <= window.end_ms;
      course.active_ms = window.end_ms - since;
      break;
    }
  }
  course.active_ms = std::max<std::int64_t>(course.active_ms, 0);
  return course;
}

}  // namespace

void ServerHistory::begin(model::Window window) {
  if (after_ms_ == window.start_ms) {
    before_ = std::move(after_);
    before_ms_ = after_ms_;
  } else if (before_ms_ != window.start_ms) {
    before_.clear();
    before_ms_.reset();
  }
  after_.clear();
  after_ms_ = window.end_ms;
}

const ServerState* ServerHistory::find(const std::string& id) const {
  const auto found = before_.find(id);
  return found == before_.end() ? nullptr : &found->second;
}

void ServerHistory::keep(const std::string& id, ServerState state) {
  after_.insert_or_assign(id, std::move(state));
}

std::vector<model::Unit> to_units(const Server& server,
                                  std::string_view project,
                                  std::string_view user,
                                  model::Window window,
                                  const TimeZone& zone,
                                  ServerHistory& history) {
  const ServerState* before = history.find(server.id);
  std::vector<model::Unit> units;
  const auto add = [&](const Life& life) {
    units.push_back(make_unit(server, life, project, user, window, zone));
  };

  if (!server.launched_ms) {
    // Still being built, or failed before it ran.
    if (server.created_ms.value_or(0) <= window.end_ms) {
      const bool deleted = phase_of(server.status) == Phase::kDeleted;
      const std::int64_t end = server.terminated_ms.value_or(server.updated_ms.value_or(0));
      const bool ended = deleted && end <= window.end_ms;
      add({.ended_ms = ended ? std::max<std::int64_t>(end, 1) : 0,
           .status = deleted && !ended ? std::string_view("BUILD") : server.status,
           .flavor = &server.flavor});
    }
    return units;
  }

  const std::int64_t launched = *server.launched_ms;
  const bool anew = before != nullptr && before->launched_ms != launched;
  if (anew) {
    const bool later = launched > window.end_ms;
    const std::int64_t until = std::min(launched, window.end_ms);
    add({.launched_ms = before->launched_ms,
         .ended_ms = later ? 0 : std::max(launched, before->launched_ms),
         .active_ms = before->running ? until - window.start_ms : 0,
         .status = later ? std::string_view(before->status) : "RELAUNCHED",
         .flavor = &before->flavor});
    if (later) {
      history.keep(server.id, *before);
      return units;
    }
  } else if (launched > window.end_ms) {
    return units;
  }

  const ServerState* same = anew ? nullptr : before;
  const Course course = course_of(server, launched, same, window);
  std::string_view status = server.status;
  if (phase_of(status) == Phase::kDeleted && course.ended_ms == 0) {
    // Deleted after the window: report the last state known within it.
    status = same != nullptr ? std::string_view(same->status) : "ACTIVE";
  }
  add({.launched_ms = launched,
       .ended_ms = course.ended_ms,
       .active_ms = course.active_ms,
       .status = status,
       .flavor = &server.flavor});
  history.keep(server.id, {.launched_ms = launched,
                           .running = course.running,
                           .status = std::string(status),
                           .flavor = server.flavor});
  return units;
}

}  // namespace ceems::ingest::openstack

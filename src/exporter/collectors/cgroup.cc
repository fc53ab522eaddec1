#include "exporter/collectors/cgroup.h"

#include <pwd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/clock.h"
#include "exporter/collectors/unit_collector.h"
#include "exporter/unit/cgroup_unit_source.h"
#include "host/cgroup/process.h"
#include "host/paths.h"
#include "host/read_file.h"

namespace ceems::exporter {
namespace {

/// Names of users by id: from etc/passwd beside the proc directory (with /host/proc in a container,
/// the host's) and, for the machine's own /proc, also from the name service (LDAP, ...). Kept for
/// kKeep. Not thread-safe.
class UserNames {
 public:
  static constexpr auto kKeep = std::chrono::minutes(10);

  explicit UserNames(const host::Paths& paths);
  /// The name, or the number if the user has none, or "" for -1. Valid until the next call.
  std::string_view name_of(std::int64_t uid, Clock::SteadyTime now);

 private:
  struct Entry {
    std::string name;
    Clock::SteadyTime looked_up;
  };

  [[nodiscard]] std::string look_up(std::uint32_t uid) const;

  std::filesystem::path passwd_;
  bool ask_name_service_;
  std::unordered_map<std::int64_t, Entry> names_;
};

UserNames::UserNames(const host::Paths& paths)
    : passwd_(paths.proc.parent_path() / "etc/passwd"), ask_name_service_(paths.proc == "/proc") {}

std::string_view UserNames::name_of(std::int64_t uid, Clock::SteadyTime now) {
  if (uid < 0) {
    return {};
  }
  auto known = names_.find(uid);
  if (known == names_.end() || now - known->second.looked_up > kKeep) {
    known =
        names_.insert_or_assign(uid, Entry{look_up(static_cast<std::uint32_t>(uid)), now}).first;
  }
  return known->second.name;
}

std::string UserNames::look_up(std::uint32_t uid) const {
  if (const auto text = host::read_file(passwd_.string())) {
    if (const std::string_view name = host::find_user_name(*text, uid); !name.empty()) {
      return std::string(name);
    }
  }
  if (ask_name_service_) {
    struct passwd entry{};
    struct passwd* found = nullptr;
    std::array<char, 16384> buffer{};
    if (::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr) {
      return found->pw_name;
    }
  }
  return std::to_string(uid);
}

using metrics::Desc;
using metrics::Type;

double seconds_of(Clock::SystemTime time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

/// Series that exist only for units without a resource manager.
class UnitFacts {
 public:
  explicit UnitFacts(const CollectorContext& context)
      : hostname_(context.hostname), users_(context.paths) {}

  void add(const UnitSnapshot& snapshot, metrics::Sink& sink) {
    for (const Unit& unit : snapshot.units) {
      sink.add(info_, 1,
               {snapshot.manager, hostname_, unit.cgrouphostname, unit.uuid, unit.name,
                users_.name_of(unit.owner_uid, snapshot.taken)});
      if (unit.started != Clock::SystemTime{}) {
        sink.add(start_, seconds_of(unit.started),
                 {snapshot.manager, hostname_, unit.cgrouphostname, unit.uuid});
      }
      if (unit.ended) {
        sink.add(end_, seconds_of(unit.last_seen),
                 {snapshot.manager, hostname_, unit.cgrouphostname, unit.uuid});
      }
    }
  }

 private:
  std::string hostname_;
  UserNames users_;

  const Desc info_{"ceems_compute_unit_info",
                   "Name of a unit and of the user who owns its processes.",
                   Type::kGauge,
                   {"manager", "hostname", "cgrouphostname", "uuid", "name", "username"}};
  const Desc start_{"ceems_compute_unit_start_time_seconds",
                    "Creation of the unit's cgroup, seconds since the epoch.",
                    Type::kGauge,
                    {"manager", "hostname", "cgrouphostname", "uuid"}};
  const Desc end_{"ceems_compute_unit_end_time_seconds",
                  "When a unit that ended was last seen alive, seconds since the epoch.",
                  Type::kGauge,
                  {"manager", "hostname", "cgrouphostname", "uuid"}};
};

OtherManagers other_managers(const Sources& sources) {
  const auto is_on = [&sources](std::string_view manager) {
    return std::ranges::any_of(
        sources.units, [manager](const auto& source) { return source->manager() == manager; });
  };
  return {.slurm = is_on("slurm"),
          .libvirt = is_on("libvirt"),
          .k8s = is_on("k8s"),
          .lsf = is_on("lsf"),
          .openpbs = is_on("openpbs")};
}

}  // namespace

Result<std::unique_ptr<Collector>> make_cgroup_collector(const CollectorContext& context,
                                                         const Sources& sources,
                                                         const CgroupFlags& cgroups,
                                                         const SubCollectorSet& subs,
                                                         const CgroupOptions& options) {
  const host::CgroupMount mount = cgroups.mount(context);
  CEEMS_TRY_IN("--collector.cgroup.pattern", matcher,
               pattern_matcher(options.patterns, mount.mode, other_managers(sources)));
  CEEMS_TRY(source, CgroupUnitSource::create({.manager = "cgroup",
                                              .paths = context.paths,
                                              .mount = mount,
                                              .active_subsystem = cgroups.active_subsystem,
                                              .stats = {.swap = options.metrics.swap,
                                                        .pressure = options.metrics.pressure,
                                                        .block_io = options.metrics.block_io,
                                                        .flavour = StatFlavour::kGeneric},
                                              .owners = true,
                                              .warn_of_stale = false,
                                              .keep_ended = context.keep_ended},
                                             std::move(matcher), *context.clock));
  CEEMS_TRY(sub_collectors, subs.create(context, mount, *source));
  auto facts = std::make_shared<UnitFacts>(context);
  return make_unit_collector(
      {.name = "cgroup",
       .source = std::move(source),
       .metrics =
           UnitMetrics(context.hostname, for_mount(options.metrics, mount, context, "cgroup")),
       .subs = std::move(sub_collectors),
       .extra = [facts](const UnitSnapshot& snapshot,
                        metrics::Sink& sink) { facts->add(snapshot, sink); }},
      *context.clock);
}

bool cgroup_by_default(const CollectorContext& context,
                       const Sources& sources,
                       const CgroupFlags& cgroups) {
  const host::CgroupMount mount = cgroups.mount(context);
  if (!mount.live || !sources.units.empty()) {
    return false;
  }
  if (mount.mode == host::CgroupMode::kLegacy &&
      !host::find_v1_hierarchy(context.paths.cgroup, cgroups.active_subsystem, true)) {
    return false;
  }
  return !host::resource_manager_present(context.paths, mount, cgroups.active_subsystem);
}

/// --collector.cgroup: cgroups of any kind, by default services and containers.
CollectorSpec cgroup_collector(const std::shared_ptr<UnitFlags>& shared) {
  auto values = std::make_shared<CgroupOptions>();
  return {
      .name = "cgroup",
      .help =
          "Enable the cgroup collector (services, containers or any other cgroups); on by "
          "default without a resource manager",
      .stage = Stage::kCgroups,
      .enabled_when =
          [shared](const CollectorContext& context, const Sources& sources) {
            return cgroup_by_default(context, sources, shared->cgroups);
          },
      .add_flags =
          [values](config::FlagSet& flags) {
            flags.add("collector.cgroup.pattern", values->patterns,
                      {.help = "RE2 pattern for paths of cgroups that are units, with a group "
                               "(?P<id>...) and maybe (?P<host>...); repeatable. Default: systemd "
                               "services and scopes, containers",
                       .placeholder = "PATTERN"});
            flags.add("collector.cgroup.swap-memory-metrics", values->metrics.swap,
                      {.help = "Swap use of each unit"});
            flags.add("collector.cgroup.psi-metrics", values->metrics.pressure,
                      {.help = "Pressure stall times of each unit (cgroup v2)"});
            flags.add("collector.cgroup.blkio-metrics", values->metrics.block_io,
                      {.help = "Block I/O of each unit"});
          },
      .create =
          [values, shared](const CollectorContext& context, const Sources& sources) {
            return make_cgroup_collector(context, sources, shared->cgroups, shared->subs, *values);
          }};
}

}  // namespace ceems::exporter

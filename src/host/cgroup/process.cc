#include "host/cgroup/process.h"

#include "base/strings.h"
#include "host/cpu_topology.h"

namespace ceems::host {

std::optional<std::uint32_t> parse_status_uid(std::string_view status) {
  while (!status.empty()) {
    std::string_view rest = take_until(status, '\n');
    if (take_word(rest) == "Uid:") {
      return parse_int<std::uint32_t>(take_word(rest));
    }
  }
  return std::nullopt;
}

std::optional<std::uint64_t> parse_start_ticks(std::string_view stat) {
  const auto name_end = stat.rfind(')');
  if (name_end == std::string_view::npos) {
    return std::nullopt;
  }
  // The field after the name is field 3 (state); the start time is field 22.
  std::string_view rest = stat.substr(name_end + 1);
  for (int field = 3; field < 22; ++field) {
    take_word(rest);
  }
  return parse_int(take_word(rest));
}

std::optional<std::uint64_t> parse_cpu_ticks(std::string_view stat) {
  const auto name_end = stat.rfind(')');
  if (name_end == std::string_view::npos) {
    return std::nullopt;
  }
  // The field after the name is field 3; user and system time are fields 14 and 15.
  std::string_view rest = stat.substr(name_end + 1);
  for (int field = 3; field < 14; ++field) {
    take_word(rest);
  }
  const auto user = parse_int(take_word(rest));
  const auto system = parse_int(take_word(rest));
  return user && system ? std::optional(*user + *system) : std::nullopt;
}

std::optional<ScheduledTime> parse_schedstat(std::string_view schedstat) {
  const auto ran = parse_int(take_word(schedstat));
  const auto waited = parse_int(take_word(schedstat));
  return ran && waited ? std::optional(ScheduledTime{.ran = *ran, .waited = *waited})
                       : std::nullopt;
}

std::optional<std::vector<int>> parse_allowed_cpus(std::string_view status) {
  while (!status.empty()) {
    std::string_view rest = take_until(status, '\n');
    if (take_word(rest) == "Cpus_allowed_list:") {
      return parse_cpu_list(rest);
    }
  }
  return std::nullopt;
}

std::optional<std::uint64_t> parse_boot_time(std::string_view stat) {
  while (!stat.empty()) {
    std::string_view rest = take_until(stat, '\n');
    if (take_word(rest) == "btime") {
      return parse_int(take_word(rest));
    }
  }
  return std::nullopt;
}

std::optional<std::uint64_t> parse_uptime(std::string_view uptime) {
  const auto seconds = parse_int(take_until(uptime, '.'));
  std::string_view fraction = uptime;
  fraction = take_word(fraction);
  const auto hundredths = parse_int(fraction);
  constexpr std::uint64_t kFarFuture = 1ULL << 40U;
  if (!seconds || *seconds > kFarFuture || fraction.size() != 2 || !hundredths) {
    return std::nullopt;
  }
  return *seconds * 100 + *hundredths;
}

std::optional<std::uint64_t> parse_slurmstepd_job(std::string_view cmdline) {
  constexpr std::string_view kTitle = "slurmstepd: [";
  if (!cmdline.starts_with(kTitle)) {
    return std::nullopt;
  }
  cmdline.remove_prefix(kTitle.size());
  const auto end = cmdline.find_first_of(".]");
  return end == std::string_view::npos ? std::nullopt : parse_int(cmdline.substr(0, end));
}

std::string_view find_user_name(std::string_view passwd, std::uint32_t uid) {
  while (!passwd.empty()) {
    std::string_view rest = take_until(passwd, '\n');
    const std::string_view name = take_until(rest, ':');
    take_until(rest, ':');
    if (!name.empty() && parse_int<std::uint32_t>(take_until(rest, ':')) == uid) {
      return name;
    }
  }
  return {};
}

std::optional<ProcessOrigin> parse_process_origin(std::string_view stat) {
  const auto name_end = stat.rfind(')');
  if (name_end == std::string_view::npos) {
    return std::nullopt;
  }
  // Fields are numbered from 1. The field after the name is field 3, the state.
  constexpr int kParent = 4;
  constexpr int kSession = 6;
  constexpr int kStart = 22;
  ProcessOrigin origin;
  std::string_view rest = stat.substr(name_end + 1);
  for (int field = 3; field <= kStart; ++field) {
    const std::string_view word = take_word(rest);
    if (field == kParent || field == kSession) {
      const auto number = parse_int<int>(word);
      if (!number) {
        return std::nullopt;
      }
      (field == kParent ? origin.parent : origin.session) = *number;
    } else if (field == kStart) {
      const auto ticks = parse_int(word);
      if (!ticks) {
        return std::nullopt;
      }
      origin.start_ticks = *ticks;
    }
  }
  return origin;
}

}  // namespace ceems::host

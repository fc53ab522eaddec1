#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/clock.h"
#include "host/paths.h"

namespace ceems::exporter {

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

}  // namespace ceems::exporter

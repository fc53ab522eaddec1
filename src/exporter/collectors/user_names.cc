#include "exporter/collectors/user_names.h"

#include <pwd.h>

#include <array>

#include "host/cgroup/process.h"
#include "host/read_file.h"

namespace ceems::exporter {

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

}  // namespace ceems::exporter

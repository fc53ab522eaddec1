#include "exporter/marks/peer.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <span>
#include <utility>

#include "exporter/marks/message.h"
#include "exporter/unit/process_facts.h"
#include "host/cgroup/cgroup.h"
#include "host/cgroup/process.h"
#include "host/read_file.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

namespace ceems::exporter::marks {
namespace {

constexpr std::size_t kMaxText = 8192;
constexpr std::size_t kMaxProcesses = 64;
constexpr std::size_t kMaxDirectories = 128;
constexpr std::size_t kMaxOwners = 1024;

bool lives(const UniqueFd& process) {
  pollfd waiting{.fd = process.get(), .events = POLLIN, .revents = 0};
  return ::poll(&waiting, 1, 0) == 0;
}

std::string process_text(const std::filesystem::path& proc, pid_t pid, std::string_view file) {
  auto text = host::read_file((proc / std::to_string(pid) / file).string(), kMaxText);
  return text ? *std::move(text) : std::string();
}

bool is_inside(std::string_view path, std::string_view directory) {
  return !directory.empty() && path.starts_with(directory) &&
         (path.size() == directory.size() || path[directory.size()] == '/');
}

}  // namespace

std::string_view to_string(Refusal refusal) {
  constexpr std::array<std::string_view, kRefusalCount> kNames{"gone", "no_unit",     "other_user",
                                                               "rate", "connections", "units"};
  return kNames.at(static_cast<std::size_t>(refusal));
}

Credentials credentials_of(int socket) {
  Credentials peer;
  struct ucred found{};
  socklen_t size = sizeof found;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &found, &size) != 0) {
    peer.ended = true;
    return peer;
  }
  peer.pid = found.pid;
  peer.uid = found.uid;
  int process = -1;
  size = sizeof process;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &process, &size) == 0) {
    peer.process.reset(process);
  } else {
    peer.ended = errno != ENOPROTOOPT;  // which older kernels return
  }
  return peer;
}

bool look_at_peer(const std::filesystem::path& proc,
                  const Credentials& peer,
                  const std::function<void()>& look) {
  if (peer.pid <= 0 || peer.ended) {
    return false;
  }
  const auto start = host::parse_start_ticks(process_text(proc, peer.pid, "stat"));
  look();
  const auto uid = host::parse_status_uid(process_text(proc, peer.pid, "status"));
  return start && uid && start == host::parse_start_ticks(process_text(proc, peer.pid, "stat")) &&
         (peer.process.valid() ? lives(peer.process) : *uid == peer.uid);
}

PeerFinder::PeerFinder(host::Paths paths,
                       std::vector<std::shared_ptr<UnitSource>> sources,
                       const Clock& clock)
    : paths_(std::move(paths)), sources_(std::move(sources)), clock_(clock) {}

std::string PeerFinder::text_of(pid_t pid, std::string_view file) const {
  return process_text(paths_.proc, pid, file);
}

std::optional<PeerFinder::Found> PeerFinder::find_unit(std::string_view cgroups,
                                                       std::chrono::milliseconds max_age) {
  for (const auto& source : sources_) {
    const auto path = parse_cgroup_path(cgroups, source->controller());
    if (!path) {
      continue;
    }
    auto snapshot = source->energy_snapshot(max_age);
    if (!snapshot) {
      continue;
    }
    for (const Unit& unit : (*snapshot)->units) {
      if (!unit.ended && is_inside(*path, unit.path)) {
        source_ = source.get();
        return Found{.snapshot = *std::move(snapshot), .unit = &unit};
      }
    }
  }
  return std::nullopt;
}

/// The user who owns most of the unit's processes. Root's do not count, such as the step daemons of
/// SLURM, unless there are no others.
std::optional<std::uint32_t> PeerFinder::owner_of_unit(const UnitSource& source,
                                                       const Unit& unit) const {
  std::filesystem::path root = paths_.cgroup;
  if (!source.controller().empty()) {
    const auto hierarchy = host::find_v1_hierarchy(root, source.controller(), true);
    if (!hierarchy) {
      return std::nullopt;
    }
    root /= *hierarchy;
  }
  std::vector<std::string> directories{root.string() + unit.path};
  std::vector<int> users;
  std::vector<int> others;
  for (std::size_t i = 0; i < directories.size() && users.size() < kMaxProcesses; ++i) {
    std::vector<int> pids;
    if (const auto text = host::read_file(directories[i] + "/cgroup.procs")) {
      host::parse_cgroup_procs(*text, pids);
    }
    for (const int pid : pids) {
      const auto uid = host::parse_status_uid(text_of(pid, "status"));
      if (uid && users.size() < kMaxProcesses && others.size() < kMaxProcesses) {
        (*uid == 0 ? others : users).push_back(pid);
      }
    }
    const auto names = host::list_directory(directories[i]);
    for (const std::string& name : names ? *names : std::vector<std::string>()) {
      std::string below = directories[i] + "/" + name;
      if (directories.size() < kMaxDirectories && host::is_directory(below)) {
        directories.push_back(std::move(below));
      }
    }
  }
  return owner_of(paths_.proc, users.empty() ? others : users);
}

bool PeerFinder::may_mark(uid_t uid, const UnitSource& source, const Unit& unit) {
  if (uid == 0) {
    return true;
  }
  const auto now = clock_.steady_now();
  auto known = owners_.find(unit.path);
  const bool fits = known != owners_.end() && known->second.uid == uid;
  const auto max_age =
      fits ? std::chrono::milliseconds(kOwnerAge) : std::chrono::milliseconds(kSnapshotAge);
  if (known == owners_.end() || now - known->second.found > max_age) {
    if (owners_.size() >= kMaxOwners) {
      owners_.clear();
    }
    known =
        owners_.insert_or_assign(unit.path, Owner{.uid = owner_of_unit(source, unit), .found = now})
            .first;
  }
  return known->second.uid == uid;
}

std::variant<PeerFinder::Found, Refusal> PeerFinder::find(const Credentials& peer) {
  std::string cgroups;
  if (!look_at_peer(paths_.proc, peer, [&] { cgroups = text_of(peer.pid, "cgroup"); })) {
    return Refusal::kGone;
  }
  auto found = find_unit(cgroups, kSnapshotAge);
  if (!found) {
    found = find_unit(cgroups, kNewSnapshotAge);  // it may be new
  }
  if (!found) {
    return Refusal::kNoUnit;
  }
  if (!may_mark(peer.uid, *source_, *found->unit)) {
    return Refusal::kOtherUser;
  }
  return *std::move(found);
}

}  // namespace ceems::exporter::marks

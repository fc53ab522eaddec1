#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "exporter/unit/unit.h"
#include "exporter/unit/unit_source.h"
#include "host/cgroup/mount.h"
#include "host/paths.h"

namespace ceems::exporter::marks {

/// Why a process may not send marks.
enum class Refusal : std::uint8_t {
  kGone,         ///< the process has ended or cannot be seen, such as one in another PID namespace
  kNoUnit,       ///< it is in no unit
  kOtherUser,    ///< the processes of the unit belong to another user
  kRate,         ///< its user connects too often
  kConnections,  ///< too many connections of the unit or the node
  kUnits,        ///< too many units with marks
};
inline constexpr std::size_t kRefusalCount = 6;
/// Value of the label `reason`.
std::string_view to_string(Refusal refusal);

/// What the kernel says about the process at the other end of a connection, at the time when it
/// connected.
struct Credentials {
  pid_t pid = 0;  ///< 0 if it is in a PID namespace that cannot be seen from here
  uid_t uid = 0;
  UniqueFd process;    ///< a pidfd (Linux 6.5 and later), or invalid
  bool ended = false;  ///< the process has ended already
};
/// By SO_PEERCRED and SO_PEERPIDFD (unix(7)).
Credentials credentials_of(int socket);

/// Calls `look`, which reads files of the peer in /proc, and returns whether they belonged to the
/// peer. Its pid may have been given to another process since it connected, so the pidfd must show
/// that the process lives afterwards. Without a pidfd, the user must be that of the process now and
/// its start time the same before and after, so at worst a user reaches another process of the same
/// user.
bool look_at_peer(const std::filesystem::path& proc,
                  const Credentials& peer,
                  const std::function<void()>& look);

/// The unit that a process marks.
struct PeerUnit {
  std::shared_ptr<const UnitSnapshot> snapshot;
  const Unit* unit = nullptr;  ///< in the snapshot
};
/// Decides about a connection.
using FindPeer = std::function<std::variant<PeerUnit, Refusal>(const Credentials& peer)>;

/// Finds the unit of a process. Everything comes from the kernel: the pid and user of the
/// connection, the cgroup of the pid, the units of the last snapshot. Not thread-safe.
class PeerFinder {
 public:
  /// Age up to which a snapshot and the owner of a unit are used.
  static constexpr auto kSnapshotAge = std::chrono::seconds(1);
  static constexpr auto kOwnerAge = std::chrono::seconds(10);
  /// If the unit is unknown, the snapshot may be this old.
  static constexpr auto kNewSnapshotAge = std::chrono::milliseconds(200);

  using Found = PeerUnit;

  PeerFinder(host::Paths paths,
             std::vector<std::shared_ptr<UnitSource>> sources,
             const Clock& clock);

  std::variant<Found, Refusal> find(const Credentials& peer);
  std::variant<Found, Refusal> operator()(const Credentials& peer) { return find(peer); }

 private:
  struct Owner {
    std::optional<std::uint32_t> uid;
    Clock::SteadyTime found{};
  };

  std::optional<Found> find_unit(std::string_view cgroups, std::chrono::milliseconds max_age);
  bool may_mark(uid_t uid, const UnitSource& source, const Unit& unit);
  [[nodiscard]] std::optional<std::uint32_t> owner_of_unit(const UnitSource& source,
                                                           const Unit& unit) const;
  [[nodiscard]] std::string text_of(pid_t pid, std::string_view file) const;

  host::Paths paths_;
  std::vector<std::shared_ptr<UnitSource>> sources_;
  const Clock& clock_;
  std::unordered_map<std::string, Owner> owners_;  // by the path of the unit
  UnitSource* source_ = nullptr;                   // of the unit that was found last
};

}  // namespace ceems::exporter::marks

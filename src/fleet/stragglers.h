#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fleet/robust.h"

namespace ceems::fleet {

/// A GPU of a job, or one of its nodes. Its series may be shorter than the series of others, or
/// empty.
struct JobMember {
  std::string node;
  std::string device = {};        ///< index of the GPU; empty for a node
  std::string device_class = {};  ///< only members of one class are compared
  WindowValues clock = {};        ///< hertz
  WindowValues power = {};        ///< watts
  /// Share of the time in which the SMs, or the reserved CPUs, worked. A driver's "busy" does not
  /// do: it is 100 % while a kernel waits for others.
  WindowValues activity = {};
  std::optional<double> idle_watts = {};
  /// Share of the window in which a reason, such as "hardware_thermal", kept the clock down.
  std::map<std::string, WindowValues, std::less<>> throttled = {};
  /// What went wrong in the window, by kind, such as "ecc" or "link_downed": a number of events,
  /// or a share of the time. More than 0 counts.
  std::map<std::string, WindowValues, std::less<>> errors = {};
};

enum class StragglerKind : std::uint8_t {
  kSlowDevice,   ///< its clock is lower while it works as much as its peers or more
  kImbalance,    ///< it has more work than its peers
  kWaits,        ///< it does less than its peers: it waits, or has less work
  kFabricOrDisk  ///< errors of a link, of memory or of a disk that only it has
};
inline constexpr std::size_t kStragglerKinds = 4;
std::string_view name_of(StragglerKind kind);  ///< "slow_device"

struct Straggler {
  std::string node;
  std::string device;  ///< empty: the node, or all of its devices
  StragglerKind kind = StragglerKind::kSlowDevice;
  std::string metric;               ///< "gpu_clock", "gpu_power", "activity", or a kind of error
  std::optional<double> z;          ///< median modified z-score of the windows that counted
  std::optional<double> deviation;  ///< likewise, of the median of its peers: -0.11
  std::size_t counted = 0;          ///< of `windows` windows
  std::size_t windows = 0;
  std::string cause;                         ///< a reason or kind of error; empty: not known
  std::optional<double> waiting_joules_max;  ///< what others drew at most while they waited for it
  std::size_t found_at = 0;                  ///< the window at whose end it could be found
};

struct StragglerOptions {
  double window_s = 60;
  /// So many windows at the start do not count: programs load their data there.
  std::size_t skipped = 5;
};

inline constexpr std::size_t kLeastNodes = 4;    ///< a smaller job has too few peers,
inline constexpr std::size_t kLeastDevices = 8;  ///< unless it has so many GPUs
inline constexpr std::size_t kJudged = 10;       ///< windows that are judged together
inline constexpr std::size_t kLeastCounted = 6;  ///< of these

/// The members of one job that differ from their peers in at least 6 of any 10 windows in a row,
/// by node and device. Devices of a node that all show the same are one row.
///
/// A device is slow if one of these holds, each while it is at least as active as its peers:
/// - a reason other than the power limit keeps its clock down and does not do so to its peers, and
/// the clock
///   is 3 % lower;
/// - clock and power are both lower, by 4 % and 3 %, and together further out than chance allows;
/// - the clock alone is 10 % lower and further out than chance allows.
///
/// What chance allows grows with the number of peers: the chance that one of n healthy members is
/// beyond the limit stays below 0.1 %. Healthy GPUs of one model differ by 8 % in speed (P. Sinha
/// et al., "Not All GPUs Are Created Equal", SC22), but one that the power limit keeps at a lower
/// clock draws as much as its peers, and one below that limit has the same clock as its peers.
/// Neither is lower in both.
std::vector<Straggler> find_stragglers(std::span<const JobMember> members,
                                       const StragglerOptions& options = {});

}  // namespace ceems::fleet

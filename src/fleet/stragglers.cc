#include "fleet/stragglers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <set>
#include <tuple>
#include <utility>

#include "fleet/robust.h"

namespace ceems::fleet {
namespace {

/// The chance that a healthy member of a job is beyond the limit in a window.
constexpr double kChance = 1e-3;
constexpr double kLeastSpread = 0.01;   // a MAD that counts, as a share of the median
constexpr double kLower = 0.03;         // with a reason for it
constexpr double kLowerClock = 0.04;    // with the power
constexpr double kLowerPower = 0.03;    // with the clock
constexpr double kFar = 0.1;            // one value alone
constexpr double kFarPower = 0.15;      // likewise: power differs more between healthy GPUs
constexpr double kPowerAgainst = 0.02;  // the other way than activity, which makes it doubtful
constexpr double kLess = 0.05;          // from the start: a role, such as a master's
constexpr double kSteepest = 3.5;       // power falls with the third power of the clock at most
constexpr double kActive = 0.1;         // below it, the job computes nothing worth a comparison
constexpr double kAsActive = 0.95;      // of the median, that a slow device has
constexpr double kThrottled = 0.1;      // of the time, more than the median
constexpr std::size_t kFewDivisor = 8;  // errors that more members than n / 8 have are everybody's

/// Whether the reason is a fault. Under load, any GPU may be at its power limit. The other reasons
/// here are how programs and operators set a GPU up.
bool is_fault(std::string_view reason) {
  constexpr std::array<std::string_view, 6> kNormal{
      "idle", "power_cap", "sync_boost", "application_setting", "application_clocks", "display"};
  return std::ranges::find(kNormal, reason) == kNormal.end();
}

std::optional<double> at(const WindowValues& values, std::size_t window) {
  const auto value = window < values.size() ? values[window] : std::nullopt;
  return value && std::isfinite(*value) ? value : std::nullopt;
}

/// How a value differs from the values of its peers.
struct Difference {
  double z = 0;
  double share = 0;
};

std::optional<Difference> difference(std::optional<double> value,
                                     const std::optional<Statistics>& peers) {
  if (!value || !peers || peers->n < kLeastPeers || peers->median <= 0) {
    return std::nullopt;
  }
  return Difference{.z = modified_z(*value, *peers, kLeastSpread),
                    .share = *value / peers->median - 1};
}

/// What the members of one class did in one window.
struct Peers {
  std::optional<Statistics> clock, power, activity;
  std::map<std::string_view, std::optional<Statistics>> throttled;
};

/// The judgement on one member in one window.
struct Verdict {
  StragglerKind kind{};
  std::string_view metric;
  std::string_view cause;
  Difference by;
};

class Group {
 public:
  Group(std::vector<const JobMember*> members, const StragglerOptions& options)
      : members_(std::move(members)),
        options_(options),
        limit_(std::max(kOutlier,
                        std::sqrt(2 * std::log(static_cast<double>(members_.size()) / kChance)))) {
    std::set<std::string_view> reasons;
    std::set<std::string_view> kinds;
    for (const JobMember* member : members_) {
      for (const auto* series : {&member->clock, &member->power, &member->activity}) {
        windows_ = std::max(windows_, series->size());
      }
      for (const auto& [reason, series] : member->throttled) {
        if (is_fault(reason)) {
          reasons.insert(reason);
        }
      }
      for (const auto& [kind, series] : member->errors) {
        windows_ = std::max(windows_, series.size());
        kinds.insert(kind);
      }
    }
    kinds_.assign(kinds.begin(), kinds.end());
    for (std::size_t window = 0; window < windows_; ++window) {
      Peers& peers = peers_.emplace_back();
      peers.clock = of_all(window, [](const auto& m) -> auto& { return m.clock; });
      peers.power = of_all(window, [](const auto& m) -> auto& { return m.power; });
      peers.activity = of_all(window, [](const auto& m) -> auto& { return m.activity; });
      for (const std::string_view reason : reasons) {
        peers.throttled[reason] = of_all(
            window, [reason](const auto& m) -> auto& { return m.throttled.find(reason)->second; },
            reason);
      }
    }
  }

  void find(bool differences, std::vector<Straggler>& to) const {
    for (const JobMember* member : members_) {
      std::optional<Straggler> found;
      if (differences) {
        found = find_slow_or_uneven(*member);
      }
      // Errors explain why a device waits, and are found where everybody waits for it.
      if (!found || found->kind == StragglerKind::kWaits) {
        if (auto errors = find_errors(*member)) {
          if (found) {
            found->kind = StragglerKind::kFabricOrDisk;
            found->cause = errors->cause;
          } else {
            found = std::move(errors);
          }
        }
      }
      if (found && !(found->kind == StragglerKind::kWaits && found->cause == kRole)) {
        to.push_back(std::move(*found));
      }
    }
  }

 private:
  static constexpr std::string_view kRole = "role";

  template <typename Get>
  [[nodiscard]] std::optional<Statistics> of_all(std::size_t window,
                                                 const Get& get,
                                                 std::string_view reason = {}) const {
    std::vector<double> values;
    values.reserve(members_.size());
    for (const JobMember* member : members_) {
      if (!reason.empty() && !member->throttled.contains(reason)) {
        continue;
      }
      if (const auto value = at(get(*member), window)) {
        values.push_back(*value);
      }
    }
    return statistics_of(values);
  }

  /// The fault that keeps the clock down, if it does not do so to its peers.
  [[nodiscard]] std::string_view reason_of(const JobMember& member, std::size_t window) const {
    // Of equal ones the last: "hardware_thermal" says more than "hardware_slowdown".
    std::string_view longest;
    double most = 0;
    for (const auto& [reason, values] : member.throttled) {
      const auto share = at(values, window);
      const auto peers = peers_[window].throttled.find(reason);
      if (share && peers != peers_[window].throttled.end() && peers->second &&
          *share >= peers->second.value_or(Statistics{}).median + kThrottled && *share >= most) {
        most = *share;
        longest = reason;
      }
    }
    return most >= kThrottled ? longest : std::string_view();
  }

  [[nodiscard]] std::optional<Verdict> judge(const JobMember& member, std::size_t window) const {
    const Peers& peers = peers_[window];
    if (peers.activity && peers.activity->median < kActive) {
      return std::nullopt;
    }
    const auto clock = difference(at(member.clock, window), peers.clock);
    const auto power = difference(at(member.power, window), peers.power);
    const auto activity = difference(at(member.activity, window), peers.activity);
    const bool as_active = !activity || activity->share >= kAsActive - 1;
    if (clock && as_active && clock->share <= -kLower) {
      const std::string_view reason = reason_of(member, window);
      const bool both = power && clock->share <= -kLowerClock && power->share <= -kLowerPower &&
                        (activity || power->share >= kSteepest * clock->share) &&
                        (clock->z + power->z) / std::numbers::sqrt2 < -limit_;
      if (!reason.empty() || both || (clock->share <= -kFar && clock->z < -limit_)) {
        return Verdict{.kind = StragglerKind::kSlowDevice,
                       .metric = "gpu_clock",
                       .cause = reason,
                       .by = *clock};
      }
    }
    if (activity && std::abs(activity->share) >= kFar && std::abs(activity->z) > limit_) {
      const bool more = activity->share > 0;
      if (!power || (more ? power->share >= -kPowerAgainst : power->share <= kPowerAgainst)) {
        return Verdict{.kind = more ? StragglerKind::kImbalance : StragglerKind::kWaits,
                       .metric = "activity",
                       .cause = {},
                       .by = *activity};
      }
    }
    if (!activity && power && std::abs(power->share) >= kFarPower && std::abs(power->z) > limit_) {
      return Verdict{.kind = power->share > 0 ? StragglerKind::kImbalance : StragglerKind::kWaits,
                     .metric = member.device.empty() ? "power" : "gpu_power",
                     .cause = {},
                     .by = *power};
    }
    return std::nullopt;
  }

  /// The ten windows in a row in which most count, the last of such; and when there were enough of
  /// them for the first time.
  struct Stretch {
    std::size_t counted = 0, end = 0, found_at = 0;
  };
  [[nodiscard]] Stretch most_of(const std::vector<bool>& counts) const {
    Stretch best;
    for (std::size_t end = options_.skipped + kJudged; end <= counts.size(); ++end) {
      const auto last = counts.begin() + static_cast<std::ptrdiff_t>(end);
      const auto counted = static_cast<std::size_t>(
          std::count(last - static_cast<std::ptrdiff_t>(kJudged), last, true));
      if (counted >= kLeastCounted && best.counted == 0) {
        best.found_at = end - 1;
      }
      if (counted >= kLeastCounted && counted >= best.counted) {
        best.counted = counted;
        best.end = end;
      }
    }
    return best;
  }

  [[nodiscard]] std::optional<Straggler> find_slow_or_uneven(const JobMember& member) const {
    std::vector<std::optional<Verdict>> verdicts(windows_);
    for (std::size_t window = options_.skipped; window < windows_; ++window) {
      verdicts[window] = judge(member, window);
    }
    for (const StragglerKind kind :
         {StragglerKind::kSlowDevice, StragglerKind::kImbalance, StragglerKind::kWaits}) {
      std::vector<bool> counts(windows_);
      for (std::size_t window = options_.skipped; window < windows_; ++window) {
        const auto& verdict = verdicts[window];
        counts[window] = verdict && verdict->kind == kind;
      }
      const Stretch stretch = most_of(counts);
      if (stretch.counted == 0) {
        continue;
      }
      Straggler found{.node = member.node,
                      .device = member.device,
                      .kind = kind,
                      .metric = {},
                      .z = {},
                      .deviation = {},
                      .counted = stretch.counted,
                      .windows = kJudged,
                      .cause = {},
                      .waiting_joules_max = waiting(member, kind, counts),
                      .found_at = stretch.found_at};
      describe(member, verdicts, counts, stretch, found);
      if (kind == StragglerKind::kWaits && has_role(member)) {
        found.cause = kRole;
      }
      return found;
    }
    return std::nullopt;
  }

  /// Whether the member had less to do from the start, such as a master that hands out the work.
  [[nodiscard]] bool has_role(const JobMember& member) const {
    std::size_t known = 0;
    std::size_t less = 0;
    for (std::size_t window = options_.skipped; window < windows_ && known < kJudged; ++window) {
      const Peers& peers = peers_[window];
      auto by = difference(at(member.activity, window), peers.activity);
      by = by ? by : difference(at(member.power, window), peers.power);
      if (by && !(peers.activity && peers.activity->median < kActive)) {
        ++known;
        less += by->share <= -kLess ? 1 : 0;
      }
    }
    return less >= kLeastCounted;
  }

  void describe(const JobMember& member,
                const std::vector<std::optional<Verdict>>& verdicts,
                const std::vector<bool>& counts,
                const Stretch& stretch,
                Straggler& found) const {
    std::vector<double> scores;
    std::vector<double> shares;
    std::map<std::string_view, std::size_t> causes;
    for (std::size_t window = stretch.end - kJudged; window < stretch.end; ++window) {
      const auto& held = verdicts[window];
      if (!counts[window] || !held) {
        continue;
      }
      const Verdict& verdict = *held;
      found.metric = verdict.metric;
      scores.push_back(verdict.by.z);
      shares.push_back(verdict.by.share);
      if (!verdict.cause.empty()) {
        ++causes[verdict.cause];
      } else if (const auto capped = member.throttled.find("power_cap");
                 found.kind == StragglerKind::kSlowDevice && capped != member.throttled.end() &&
                 at(capped->second, window).value_or(0) >= kThrottled) {
        ++causes["power_cap"];
      }
    }
    found.z = median_of(scores);
    found.deviation = median_of(shares);
    const auto most =
        std::ranges::max_element(causes, {}, [](const auto& one) { return one.second; });
    if (most != causes.end()) {
      found.cause = most->first;
    }
  }

  /// Errors that few members have, in so many windows.
  [[nodiscard]] std::optional<Straggler> find_errors(const JobMember& member) const {
    for (const std::string_view kind : kinds_) {
      const Stretch stretch = most_of(errors_of(member, kind));
      if (stretch.counted == 0) {
        continue;
      }
      const auto having =
          static_cast<std::size_t>(std::ranges::count_if(members_, [&](const JobMember* other) {
            return most_of(errors_of(*other, kind)).counted > 0;
          }));
      if (having > std::max<std::size_t>(1, members_.size() / kFewDivisor)) {
        continue;
      }
      return Straggler{.node = member.node,
                       .device = member.device,
                       .kind = StragglerKind::kFabricOrDisk,
                       .metric = std::string(kind),
                       .z = {},
                       .deviation = {},
                       .counted = stretch.counted,
                       .windows = kJudged,
                       .cause = std::string(kind),
                       .waiting_joules_max = {},
                       .found_at = stretch.found_at};
    }
    return std::nullopt;
  }
  [[nodiscard]] std::vector<bool> errors_of(const JobMember& member, std::string_view kind) const {
    std::vector<bool> has(windows_);
    if (const auto found = member.errors.find(kind); found != member.errors.end()) {
      for (std::size_t window = options_.skipped; window < windows_; ++window) {
        has[window] = at(found->second, window).value_or(0) > 0;
      }
    }
    return has;
  }

  /// What the others drew above idle for the part of the time in which they did not work and the
  /// busiest did; of a member that waits, what it drew itself. Without activity, those that wait
  /// for a slow device do so for the part by which it is slower, at most.
  [[nodiscard]] std::optional<double> waiting(const JobMember& member,
                                              StragglerKind kind,
                                              const std::vector<bool>& counts) const {
    std::optional<double> joules;
    for (std::size_t window = options_.skipped; window < windows_; ++window) {
      if (!counts[window]) {
        continue;
      }
      for (const JobMember* other : members_) {
        const bool waits = (other == &member) == (kind == StragglerKind::kWaits);
        const auto watts = at(other->power, window);
        const auto share = waits && watts ? waiting_share(*other, member, window) : std::nullopt;
        if (share) {
          joules = joules.value_or(0) + std::max(0.0, *watts - other->idle_watts.value_or(0)) *
                                            *share * options_.window_s;
        }
      }
    }
    return joules;
  }
  [[nodiscard]] std::optional<double> waiting_share(const JobMember& waiter,
                                                    const JobMember& straggler,
                                                    std::size_t window) const {
    const auto& activity = peers_[window].activity;
    if (const auto own = at(waiter.activity, window); own && activity && activity->max > 0) {
      return 1 - *own / activity->max;
    }
    const auto clock = difference(at(straggler.clock, window), peers_[window].clock);
    return !activity && clock ? std::optional(std::clamp(-clock->share, 0.0, 1.0)) : std::nullopt;
  }

  std::vector<const JobMember*> members_;
  StragglerOptions options_;
  double limit_;
  std::size_t windows_ = 0;
  std::vector<std::string_view> kinds_;
  std::vector<Peers> peers_;
};

/// One row where all devices of a node show the same.
std::vector<Straggler> fold_nodes(std::vector<Straggler> all,
                                  const std::map<std::string_view, std::size_t>& devices_of) {
  std::ranges::stable_sort(all, {}, [](const Straggler& one) {
    return std::tie(one.node, one.kind, one.cause, one.device);
  });
  std::vector<Straggler> rows;
  for (std::size_t begin = 0; begin < all.size();) {
    std::size_t end = begin;
    while (end < all.size() && all[end].node == all[begin].node &&
           all[end].kind == all[begin].kind && all[end].cause == all[begin].cause &&
           !all[end].device.empty()) {
      ++end;
    }
    const auto devices = devices_of.find(all[begin].node);
    const std::size_t same = end - begin;
    if (same < 2 || devices == devices_of.end() || same < devices->second) {
      rows.push_back(std::move(all[begin++]));
      continue;
    }
    const auto farthest = std::max_element(
        all.begin() + static_cast<std::ptrdiff_t>(begin),
        all.begin() + static_cast<std::ptrdiff_t>(end), [](const auto& one, const auto& other) {
          return std::abs(one.deviation.value_or(0)) < std::abs(other.deviation.value_or(0));
        });
    Straggler row = *farthest;
    row.device.clear();
    for (std::size_t i = begin; i < end; ++i) {
      // Those that wait for one device of a node wait for the others at the same time.
      if (const auto& waiting = all[i].waiting_joules_max) {
        const double before = row.waiting_joules_max.value_or(0);
        row.waiting_joules_max = row.kind == StragglerKind::kWaits && &all[i] != &*farthest
                                     ? before + *waiting
                                     : std::max(before, *waiting);
      }
      row.found_at = std::min(row.found_at, all[i].found_at);
    }
    rows.push_back(std::move(row));
    begin = end;
  }
  std::ranges::stable_sort(rows, {}, [](const Straggler& one) {
    return std::tuple(std::string_view(one.node), one.device.size(), std::string_view(one.device));
  });
  return rows;
}

}  // namespace

std::string_view name_of(StragglerKind kind) {
  constexpr std::array<std::string_view, kStragglerKinds> kNames{"slow_device", "imbalance",
                                                                 "waits", "fabric_or_disk"};
  return kNames.at(static_cast<std::size_t>(kind));
}

std::vector<Straggler> find_stragglers(std::span<const JobMember> members,
                                       const StragglerOptions& options) {
  std::set<std::string_view> nodes;
  std::map<std::string_view, std::size_t> devices_of;
  std::map<std::pair<bool, std::string_view>, std::vector<const JobMember*>> groups;
  std::size_t devices = 0;
  for (const JobMember& member : members) {
    nodes.insert(member.node);
    if (!member.device.empty()) {
      ++devices;
      ++devices_of[member.node];
    }
    groups[{member.device.empty(), member.device_class}].push_back(&member);
  }
  std::vector<Straggler> all;
  if (nodes.size() < kLeastNodes && devices < kLeastDevices) {
    return all;
  }
  for (auto& [key, group] : groups) {
    if (group.size() < kLeastPeers) {
      continue;
    }
    // In a job with GPUs, the CPUs of a node that writes the results differ without harm.
    const bool differences = !key.first || devices == 0;
    Group(std::move(group), options).find(differences, all);
  }
  return fold_nodes(std::move(all), devices_of);
}

}  // namespace ceems::fleet

#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "exporter/energy/account/attribution.h"
#include "exporter/energy/account/claims.h"
#include "exporter/energy/account/idle_power.h"
#include "exporter/energy/account/known_set.h"
#include "exporter/energy/account/meter_lag.h"
#include "exporter/energy/account/unit_table.h"
#include "exporter/energy/account/unit_watts.h"
#include "exporter/energy/account/use_history.h"
#include "exporter/energy/account/window.h"
#include "exporter/energy/meter/device_meters.h"
#include "exporter/energy/meter/meter.h"
#include "exporter/energy/state/learned.h"

namespace ceems::exporter::energy {

/// Counters of one source. `joules` is what the source contributed to its own domain: for a source
/// of kNode, the node's energy in the intervals it determined. `other_joules` is what it
/// contributed to kOther.
struct SourceAccount {
  SourceInfo info;
  JouleCounter joules;
  JouleCounter other_joules;
  std::optional<Clock::SteadyTime> fresh;  ///< time of its newest value
};

/// The input of one interval, taken at its end.
struct Sample {
  Clock::SteadyTime time{};
  std::span<const std::optional<Reading>> readings;  ///< by source, in the order of add_source()
  NodeUse node;
  std::span<const ManagerUnits> managers;
  std::span<const DeviceSample> devices = {};  ///< with unique names
  Timing timing = {};                          ///< of CPU times, and of packages and memory
};

struct AccountOptions {
  std::chrono::milliseconds keep_ended = std::chrono::minutes(10);
  /// Watts that replace the learned idle power of a domain (package, dram, gpu, other, node).
  IdleWatts idle_watts{};
  AssumedIdle assumed{};
};

/// Where an idle power comes from.
enum class IdleBasis : std::uint8_t { kLearned, kAssumed, kConfigured, kModelled };
std::string_view to_string(IdleBasis basis);

/// Accounts for the node's energy: takes one Sample per interval and keeps the counters of units,
/// system, unallocated and node for every domain. For every domain and after every advance():
///
///   sum of units + ended + system + unallocated = node         (to rounding)
///
/// with all counters >= 0 and never decreasing. The rules are in attribution.h and docs/energy.md.
///
/// The node's energy is that of the best source of kNode that has a value (`source` = its name),
/// but at least the sum of the known domains. Without such a source it is that sum (`source` =
/// "sum"). A modelled source counts only until a meter has delivered energy.
///
/// Energy of a device (Sample::devices) is part of the domain of its source, but it is split among
/// the holders of that device, and the device has its own idle power.
///
/// Units: joules, seconds, watts. Source: the balance of energy, and what its parts say;
/// docs/energy-internals.md lists what is learned where.
///
/// Does no I/O and reads no clock. Allocates nothing per unit in the steady state. Not thread-safe.
class Account {
 public:
  /// How long a wall meter that lags behind the known domains is expected to catch up.
  static constexpr double kMaxDebtSeconds = 900;
  /// Maximum number of devices. Further ones are left out until the program restarts.
  static constexpr std::size_t kMaxDevices = 512;
  /// Fraction of a GPU's power at full load that is taken as its idle power until it was seen idle.
  /// (An H200 draws 75 W of 700 W when idle; GPUs in general 5 % to 20 %.)
  static constexpr double kDeviceFullLoadIdle = 0.2;
  /// What the supply loses for a device at rest, as a fraction of its power (a supply of 92 %).
  static constexpr double kIdleLosses = 0.08;

  explicit Account(const AccountOptions& options);

  /// Adds a source; its domain must not be kOther. Returns its index in Sample::readings.
  std::size_t add_source(const SourceInfo& info);
  /// Splits the energy since the previous sample among units, system and unallocated.
  void advance(const Sample& sample);
  /// Call it after each page: ended units that were on one may be dropped.
  void mark_scraped() { units_.mark_scraped(); }
  /// The idle powers that were learned, with the names of the sources that measured them, what
  /// units draw, and how late the wall meter is.
  [[nodiscard]] Learned learned() const;
  /// Continues with stored values that were learned from the same sources. Call it after
  /// add_source(). Values of devices, units and wall meters are used when these first appear.
  /// Values learned since are kept.
  void restore(const Learned& learned);

  [[nodiscard]] std::span<const std::unique_ptr<UnitEntry>> units() const {
    return units_.entries();
  }
  /// In the order of add_source(), followed by the source "sum".
  [[nodiscard]] std::span<const SourceAccount> sources() const { return sources_; }
  /// Sources of Sample::devices, in the order of their first appearance.
  [[nodiscard]] std::span<const SourceAccount> device_sources() const { return device_sources_; }
  /// True once a source of the domain has had a value. For kOther and kNode, a source that implies
  /// the domain counts, too.
  [[nodiscard]] bool known(Domain domain) const { return known_.at(index(domain)); }
  /// Active energy of everything that is not a unit: the kernel, daemons, logins.
  [[nodiscard]] double system_joules(Domain domain) const { return total(system_, domain); }
  /// Idle energy that no unit had reserved.
  [[nodiscard]] double unallocated_joules(Domain domain) const {
    return total(unallocated_, domain);
  }
  /// Energy of units that are no longer in units().
  [[nodiscard]] double ended_joules(Domain domain) const { return total(ended_, domain); }
  /// Sum over the sources of the domain.
  [[nodiscard]] double node_joules(Domain domain) const;
  /// The source of kNode whose value counted in the last sample, as an index in sources(). After
  /// the first sample, which has no energy yet, it is the one that is expected to count from then
  /// on. Nothing if none has a value.
  [[nodiscard]] std::optional<std::size_t> node_source() const { return node_source_; }
  /// Idle power in use now; nothing while it is not known.
  [[nodiscard]] std::optional<double> idle_watts(Domain domain) const;
  /// Where idle_watts() comes from. kAssumed: the use has hardly varied yet.
  [[nodiscard]] IdleBasis idle_basis(Domain domain) const;
  /// How late the wall meter is; nothing while that is not known.
  [[nodiscard]] std::optional<MeterLag::Lag> wall_lag() const { return lag_.lag(); }

 private:
  using Parts = std::array<JouleCounter, kPartCount>;
  struct Interval;

  static constexpr double kBefore = 300;

  /// Energy of the packages or the memory of one socket, or of all where sources do not tell.
  struct Book {
    Book(Domain domain, const AssumedIdle& assumed, std::size_t sockets);
    /// The idle power by `watts`, bounded by the lowest observed power, or the first guess.
    [[nodiscard]] std::optional<PowerEstimate> idle_estimate() const;
    IdlePower idle;
    UnitWatts watts;
    double joules = 0;  ///< of the current interval
    /// Stored values of units, by unit_name(). Forgotten after kBefore seconds.
    std::unordered_map<std::string, PowerEstimate> before;
    double seconds = 0;
  };
  using Before = std::unordered_map<std::string, PowerEstimate>;
  /// A device between its readings, which come at their own pace and may cease.
  struct Device {
    IdlePower idle{kDeviceFullLoadIdle};
    std::size_t place = 0;     ///< in known_set_
    double watts = 0;          ///< of the last reading
    double highest_watts = 0;  ///< of all readings
    std::optional<double> utilisation;
    // Of the last reading, for the time until the next one.
    std::vector<DeviceHolder> holders;
    double total_use = 0;
  };
  static const PowerEstimate* before_of(const Before& before, const UnitEntry& unit);
  static std::string unit_name(const UnitEntry& unit);

  static double total(const Parts& parts, Domain domain);
  [[nodiscard]] bool by_socket(Domain domain) const;
  [[nodiscard]] Learned::Idle place_of_book(Domain domain, std::size_t book) const;
  void restore_books(Domain domain);
  void restore_lag();
  [[nodiscard]] std::vector<Learned::UnitCore> learned_units(const UnitWatts& watts) const;
  void fill_books(Domain domain, const Sample& sample);
  void split_books(Domain domain, const Interval& interval);
  void split_gpus(const Interval& interval);
  void split_other(const Interval& interval);
  [[nodiscard]] std::optional<double> learned_watts(Domain domain) const;
  [[nodiscard]] PowerEstimate learned_estimate(Domain domain) const;
  void learn_from_wall(const Interval& interval, const Sample& sample);
  [[nodiscard]] Domain wall_domain() const;
  void begin_wall();
  void follow_use(const Interval& interval);
  void learn_units_from_wall(const AlignedReading& reading, double watts);
  [[nodiscard]] std::optional<PowerEstimate> wall_estimate() const;
  [[nodiscard]] double rest_of_wall(double wall, double known_watts) const;
  void split_wall(double joules, double idle_joules);
  void split_and_charge(Domain domain,
                        double joules,
                        double idle_joules,
                        double total_use,
                        std::span<const Claim> claims,
                        std::span<const double> unused);
  [[nodiscard]] std::optional<std::size_t> find_device(std::string_view name) const;
  [[nodiscard]] std::optional<std::size_t> find_or_add_device(const SourceInfo& info);
  void take_devices(const Sample& sample, Interval& interval);
  void split_devices(const Sample& sample);
  void hold_missing(const DeviceSample& silent);
  void hold_devices(Interval& interval);
  void claim_device(std::span<const DeviceHolder> holders);
  void find_unused_device(std::optional<double> utilisation, double total_use);
  void note_active_devices(const Interval& interval);
  [[nodiscard]] bool shown(const Device& device) const;
  void charge_device(Domain domain, double joules, double idle_joules, double total_use);
  /// Of `other`, what fans and the supply draw for devices.
  struct Losses {
    double joules = 0;
    double idle_joules = 0;  // of these
  };
  Losses split_losses(const Interval& interval, double other, double idle_joules);
  double split_missing(const Interval& interval, double other, double comparable_watts);
  [[nodiscard]] std::optional<double> expected_rest(double comparable_watts) const;
  void follow_known_set(const Interval& interval);
  [[nodiscard]] std::optional<double> moved_watts() const;
  void learn_rest_anew();
  [[nodiscard]] Learned::Idle learned_rest() const;
  void add_learned_wall(Learned::Idle& entry) const;
  [[nodiscard]] std::optional<Learned::Lag> learned_lag() const;
  [[nodiscard]] std::optional<double> unscaled_idle_watts(Domain domain) const;
  [[nodiscard]] double known_idle_watts() const;
  [[nodiscard]] double idle_scale() const;
  [[nodiscard]] std::optional<double> other_idle_watts() const;
  [[nodiscard]] double device_idle_watts(std::size_t device) const;
  [[nodiscard]] std::string meters_of(Domain domain) const;
  [[nodiscard]] std::optional<std::size_t> wall_source(const Sample& sample) const;
  [[nodiscard]] std::optional<std::size_t> choose_node_source(const Interval& interval,
                                                              bool first) const;
  void charge(Domain domain, std::span<const double> units, const Remainder& rest);
  void note_idle(Domain domain, std::span<const double> unused);
  void find_unused(const NodeUse& node);

  AccountOptions options_;
  std::vector<SourceAccount> sources_;  // "sum" is the last one
  std::vector<SourceAccount> device_sources_;
  /// Another power of a device than was held since `from`.
  struct Correction {
    double watts = 0;
    Clock::SteadyTime from{};
  };
  void take_wall_value(const Reading& reading, Clock::SteadyTime now);
  std::vector<Correction> corrections_;  // of this interval
  std::vector<Device> devices_;          // same index as device_sources_
  KnownSet known_set_;
  std::vector<std::size_t> source_places_;  // of sources_ in it
  bool all_known_ = true;                   // no member was missing in the last interval
  UnitTable units_;
  std::array<bool, kDomainCount> known_{};
  std::array<IdlePower, kDomainCount> idle_;           // of domains without books
  std::array<std::vector<Book>, kDomainCount> books_;  // of kPackage and kDram
  Claims claims_;
  Learned restored_;  // for devices and sockets that come later, and for other known_set_
  std::optional<double> model_idle_watts_;
  Parts system_;
  Parts unallocated_;
  Parts ended_;
  OtherBalance other_;
  MeterLag lag_;
  // What units draw where no meter shows the packages.
  UnitWatts wall_watts_{UnitWatts::wall(IdlePower::kFullLoadIdle)};
  bool wall_begun_ = false;
  std::unordered_map<std::string, PowerEstimate> wall_before_;  // see Book::before
  UseHistory history_;
  AlignedReading counted_;                      // of a wall meter that counts energy
  std::optional<double> learned_until_;         // by the clock of history_
  std::optional<MeterLag::Lag> learned_lag_;    // with which
  std::optional<std::size_t> lag_source_;       // whose lag it is
  std::optional<Clock::SteadyTime> lag_fresh_;  // of the last value that was given to it
  double late_ = 0;                             // Timing::late of the last sample with a wall meter
  double peak_known_watts_ = 0;
  bool measured_ = false;  // a meter of package or node has delivered energy
  std::optional<Clock::SteadyTime> last_;
  std::optional<std::size_t> node_source_;

  // Scratch space of one interval, indexed like units_.entries().
  std::vector<Claim> no_claims_;
  std::vector<Claim> device_claims_;
  std::vector<Claim> book_claims_;
  std::vector<UnitWatts::Use> uses_;
  std::vector<UnitWatts::Use> wall_uses_;
  std::vector<double> split_;
  // The part of what each has reserved that it did not use, 0...1.
  std::vector<double> unused_cpus_;
  std::vector<double> unused_memory_;
  std::vector<double> unused_device_;
  // Active energy of the known domains.
  std::vector<double> active_units_;
  double active_system_ = 0;
  double active_joules_ = 0;
};

/// Energy of one interval by domain.
struct Account::Interval {
  double seconds = 0;
  std::array<double, kDomainCount> joules{};  // of sources that have a value; kNode: of `wall`
  std::array<double, kDomainCount> device_joules{};  // of devices
  /// known_joules without the unevenness of devices, which have readings at their own pace: each
  /// draws the watts of the last one.
  double even_joules = 0;
  double known_joules = 0;          // package + dram + gpu, devices included
  bool known_source = false;        // a source of these has a value and has delivered energy before
  std::optional<std::size_t> wall;  // index of the source that determines the node's energy
  double utilisation = std::numeric_limits<double>::quiet_NaN();
  Timing timing;
};

}  // namespace ceems::exporter::energy

#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace ceems::exporter::energy {

/// What energy is accounted for. The first four are disjoint; kNode is their sum.
enum class Domain : std::size_t {
  kPackage,  ///< CPU sockets
  kDram,     ///< memory modules
  kGpu,      ///< accelerators, all devices together
  kOther,    ///< node minus the known domains: fans, disks, board, losses
  kNode,     ///< the whole node
};

inline constexpr std::size_t kPartCount = 4;    ///< all but kNode
inline constexpr std::size_t kDomainCount = 5;  ///< kNode included

constexpr std::size_t index(Domain domain) {
  return static_cast<std::size_t>(domain);
}

/// Value of the label `domain`.
constexpr std::string_view to_string(Domain domain) {
  constexpr std::array<std::string_view, kDomainCount> kNames{"package", "dram", "gpu", "other",
                                                              "node"};
  return kNames.at(index(domain));
}

inline constexpr std::array<Domain, kDomainCount> kDomains{
    Domain::kPackage, Domain::kDram, Domain::kGpu, Domain::kOther, Domain::kNode};

/// Idle power in watts by domain. Nothing where it is not known.
using IdleWatts = std::array<std::optional<double>, kDomainCount>;

/// Where a value comes from.
enum class Method {
  kMeasured,  ///< a meter of the hardware
  kDerived,   ///< computed from measured values
  kModelled,  ///< estimated from CPU use
};

/// Value of the label `method`.
constexpr std::string_view to_string(Method method) {
  constexpr std::array<std::string_view, 3> kNames{"measured", "derived", "modelled"};
  return kNames.at(static_cast<std::size_t>(method));
}

/// Ranks of the sources of kNode. They all measure the same energy, so only the one with the lowest
/// rank among those that have a value counts.
inline constexpr int kCrayRank = 5;         ///< the node controller, 10 times a second
inline constexpr int kIpmiRank = 10;        ///< the BMC, which measures the whole node
inline constexpr int kRedfishRank = 12;     ///< usually the same BMC, through a service
inline constexpr int kPowerMeterRank = 20;  ///< ACPI power meter; usually asks the same BMC
inline constexpr int kPsysRank = 30;        ///< the CPU's counter of the platform
inline constexpr int kModelRank = 1000;     ///< estimated
inline constexpr int kSumRank = 1001;       ///< the sum of the known domains

/// What a source of energy is, as in ceems_energy_source_info.
struct SourceInfo {
  std::string name;  ///< value of the label `source`; unique among the sources of a node
  Domain domain = Domain::kPackage;
  Method method = Method::kMeasured;
  /// For a source of kNode, one of the ranks above. Unused for other domains, whose sources add up.
  int rank = 0;
  /// The socket of kPackage and kDram, as a position in host::CpuTopology::packages; -1 if it is
  /// not known or the source covers several.
  int socket = -1;
};

class SourceGate;

/// The arguments of a read.
struct MeterContext {
  Clock::SteadyTime now{};
  /// Busy fraction of all CPUs since the last read, 0...1. Nothing if unknown.
  std::optional<double> utilisation;
  /// False while a scrape waits. A meter that would block then returns what it has.
  bool may_block = true;
  /// The time since boot for which the machine was suspended.
  std::chrono::nanoseconds suspended{};
  /// Judges each power before it is integrated; null: only what no meter can mean is dropped.
  SourceGate* gate = nullptr;
};

struct Reading {
  double joules = 0;                 ///< since the last successful read; >= 0, and 0 at the first
  Clock::SteadyTime fresh{};         ///< time of the hardware's value behind it
  std::optional<double> idle_watts;  ///< idle power, if the source itself knows it
  /// What the hardware showed at `fresh`, if it shows power and not energy.
  std::optional<double> watts = {};
  /// What a counter showed, in microjoules.
  std::optional<std::uint64_t> raw_uj = {};
  /// True if the counter did not show `joules`: it jumped, and the power of the interval before
  /// counts, or it started again, and nothing does (counter_unwrap.h).
  bool assumed = false;
  /// The energy counts as that of a GPU, so this source adds none (apu_power.h).
  bool elsewhere = false;
  /// How the value was obtained, where that is not SourceInfo::method.
  std::optional<Method> method = {};
};

/// What a source's counter showed but cannot have measured (counter_unwrap.h), since the start.
struct Rejected {
  double joules = 0;
  std::uint64_t steps = 0;
};

/// One source of energy. read() is called by one thread at a time. A read takes microseconds unless
/// `may_block` allows it to be slow.
class EnergyMeter {
 public:
  virtual ~EnergyMeter() = default;
  [[nodiscard]] virtual const SourceInfo& source() const = 0;
  /// An error means that there is no value for this interval. Its energy is added to a later
  /// reading or lost, as the implementation documents.
  virtual Result<Reading> read(const MeterContext& context) = 0;
  /// Nothing for a source that has no counter. Safe for concurrent use with read().
  [[nodiscard]] virtual std::optional<Rejected> rejected() const { return std::nullopt; }
};

/// Shared, because a collector that reads the hardware keeps the meter to which it publishes.
using Meters = std::vector<std::shared_ptr<EnergyMeter>>;

}  // namespace ceems::exporter::energy

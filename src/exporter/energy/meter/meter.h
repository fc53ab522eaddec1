#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace ceems::exporter::energy {

/// What energy is accounted for. The first four are disjoint parts; kNode is their sum.
enum class Domain : std::size_t {
  kPackage,  ///< CPU sockets
  kDram,     ///< memory modules
  kGpu,      ///< accelerators, all devices together
  kOther,    ///< node minus the parts that are known: fans, disks, board, losses
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

/// Ranks of the sources of kNode, which all see the same energy: of those that have a value only
/// the one with the lowest rank counts.
inline constexpr int kCrayRank = 5;         ///< the node controller, 10 times a second
inline constexpr int kIpmiRank = 10;        ///< the BMC, which sees everything at the wall
inline constexpr int kRedfishRank = 12;     ///< mostly the same BMC, behind a service
inline constexpr int kPowerMeterRank = 20;  ///< ACPI power meter; mostly asks the same BMC
inline constexpr int kPsysRank = 30;        ///< what the CPU knows of its platform
inline constexpr int kModelRank = 1000;     ///< estimated
inline constexpr int kSumRank = 1001;       ///< of the parts that are known

/// What a source of energy is; shown in ceems_energy_source_info.
struct SourceInfo {
  std::string name;  ///< value of the label `source`; unique among the sources of a node
  Domain domain = Domain::kPackage;
  Method method = Method::kMeasured;
  /// Of a source of kNode, one of those above. Meaningless for other domains, whose sources add up.
  int rank = 0;
};

/// What a meter is told when it is read.
struct MeterContext {
  Clock::SteadyTime now{};
  /// Busy part of all CPUs since the last read, 0...1; nothing where it is unknown.
  std::optional<double> utilisation;
  /// False while a scrape waits: a meter that may block then answers with what it has.
  bool may_block = true;
};

struct Reading {
  double joules = 0;          ///< since the previous read that succeeded; >= 0, 0 at the first
  Clock::SteadyTime fresh{};  ///< when the hardware gave the value this rests on
  std::optional<double> idle_watts;  ///< idle power, where the source itself knows it
};

/// One source of energy. read() is called by one thread at a time. Reading is cheap (microseconds)
/// unless `may_block` lets it be slow.
class EnergyMeter {
 public:
  virtual ~EnergyMeter() = default;
  [[nodiscard]] virtual const SourceInfo& source() const = 0;
  /// An error means: no value for this interval. What passed meanwhile is added to a later reading
  /// or lost, as the implementation says.
  virtual Result<Reading> read(const MeterContext& context) = 0;
};

/// Shared, as a collector that reads the hardware itself keeps the meter to which it publishes.
using Meters = std::vector<std::shared_ptr<EnergyMeter>>;

}  // namespace ceems::exporter::energy

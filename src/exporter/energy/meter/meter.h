#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "exporter/energy/meter/domain.h"

namespace ceems::exporter::energy {

/// What a source of energy is; shown in ceems_energy_source_info.
struct SourceInfo {
  std::string name;  ///< value of the label `source`; unique among the sources of a node
  Domain domain = Domain::kPackage;
  Method method = Method::kMeasured;
  /// Among sources of kNode only the one with the lowest rank that has a value counts: they all see
  /// the same energy. Meaningless for other domains, whose sources add up.
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

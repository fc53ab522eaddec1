#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/flags.h"
#include "exporter/collector.h"

namespace ceems::exporter {

/// A collector that is on, with its word.
struct NamedCollector {
  std::string name;
  std::unique_ptr<Collector> collector;
};

/// The known collectors, their switches on the command line, and which of them are on. Not
/// thread-safe; outlives what create() gives.
class CollectorSet {
 public:
  explicit CollectorSet(std::vector<CollectorSpec> specs);

  /// Flags of the collectors themselves: --collector.NAME.*
  void add_option_flags(config::FlagSet& flags) const;
  /// --[no-]collector.NAME for each, then --collector.disable-defaults.
  void add_switches(config::FlagSet& flags);

  /// After parsing: creates those that are on, in list order, and fills context.unit_sources. Given
  /// switches count; else with --collector.disable-defaults a collector is off; else its default
  /// counts. The error of a collector comes back with its name in front.
  Result<std::vector<NamedCollector>> create(const config::FlagSet& flags,
                                             CollectorContext& context) const;

  [[nodiscard]] const std::vector<CollectorSpec>& specs() const { return specs_; }

 private:
  std::vector<CollectorSpec> specs_;
  std::deque<bool> switches_;  ///< vector<bool> has no bool& for a flag to write to
  bool disable_defaults_ = false;
};

}  // namespace ceems::exporter

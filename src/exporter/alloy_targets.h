#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/flags.h"
#include "exporter/unit/process_filter.h"
#include "exporter/unit/unit_source.h"
#include "host/paths.h"
#include "os/privileges.h"

namespace ceems::exporter {

struct AlloyTargetOptions {
  bool enabled = false;
  std::vector<std::string> variables = {};  ///< keep only processes with one of these; all if empty
  bool self = false;                        ///< the exporter itself is a target, too
};

/// Adds the flags --discoverer.alloy-targets*.
void add_alloy_target_flags(config::FlagSet& flags, AlloyTargetOptions& options);

/// Lists the processes of units for Grafana Alloy, whose profiler labels its data with them. The
/// document has the format of Prometheus' HTTP service discovery. Safe for concurrent use.
class AlloyTargets {
 public:
  /// Serves the units of SLURM, or of Kubernetes if there is no SLURM. Null if the targets are off
  /// or `sources` has neither.
  static std::unique_ptr<AlloyTargets> create(const AlloyTargetOptions& options,
                                              std::span<const std::shared_ptr<UnitSource>> sources,
                                              const host::Paths& paths);

  AlloyTargets(const AlloyTargetOptions& options,
               std::shared_ptr<UnitSource> source,
               const host::Paths& paths);

  [[nodiscard]] std::vector<os::Capability> capabilities() const { return filter_.capabilities(); }

  /// The JSON document: an array with one element for each process of each unit, or `null` if there
  /// is none. Passes on errors of the unit source.
  [[nodiscard]] Result<std::string> document() const;

 private:
  std::shared_ptr<UnitSource> source_;
  ProcessFilter filter_;
  bool self_;
};

}  // namespace ceems::exporter

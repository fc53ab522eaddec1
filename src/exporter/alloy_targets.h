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
  std::vector<std::string> variables = {};  ///< only processes with one of these; none: all
  bool self = false;                        ///< the exporter itself is a target, too
};

/// Flags --discoverer.alloy-targets*.
void add_alloy_target_flags(config::FlagSet& flags, AlloyTargetOptions& options);

/// Tells Grafana Alloy which processes belong to which unit, so that its profiler can label what it
/// sees: the document has the form of Prometheus' HTTP service discovery. Safe for concurrent use.
class AlloyTargets {
 public:
  /// Targets of SLURM's units, else of Kubernetes'. Null where they are off or neither is among
  /// `sources`.
  static std::unique_ptr<AlloyTargets> create(const AlloyTargetOptions& options,
                                              std::span<const std::shared_ptr<UnitSource>> sources,
                                              const host::Paths& paths);

  AlloyTargets(const AlloyTargetOptions& options,
               std::shared_ptr<UnitSource> source,
               const host::Paths& paths);

  [[nodiscard]] std::vector<os::Capability> capabilities() const { return filter_.capabilities(); }

  /// The JSON document: an array with an element for each process of each unit, or `null` without
  /// any. Errors are those of the unit source.
  [[nodiscard]] Result<std::string> document() const;

 private:
  std::shared_ptr<UnitSource> source_;
  ProcessFilter filter_;
  bool self_;
};

}  // namespace ceems::exporter

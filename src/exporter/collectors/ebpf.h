#pragma once

#include <memory>
#include <string>
#include <vector>

#include "exporter/ebpf/counts.h"
#include "exporter/ebpf/network_class.h"
#include "exporter/sub_collector.h"

namespace ceems::exporter {

struct EbpfOptions {
  bool files = false;
  bool network = false;
  bool latency = false;
  /// Of reads and writes, only mounts whose name contains one of these texts are shown; all if
  /// empty.
  std::vector<std::string> mount_points = {};
  ebpf::NetworkClasses classes = {};
};

/// What the programs in the kernel counted for each unit. `counts` is shared by the collectors of
/// all managers. `source` receives the traffic of its units; it may be null, and otherwise must
/// outlive the collector.
std::unique_ptr<SubCollector> make_ebpf(const CollectorContext& context,
                                        EbpfOptions options,
                                        std::shared_ptr<ebpf::Counts> counts,
                                        UnitSource* source = nullptr);

}  // namespace ceems::exporter

#pragma once

#include <chrono>
#include <memory>

#include "exporter/collector.h"
#include "exporter/hsmp/hsmp.h"

namespace ceems::exporter {

struct AmdHsmpOptions {
  hsmp::Reader::Open open;
  /// How long a scrape may wait; see SlowSourceOptions.
  std::chrono::milliseconds patience{20};
  std::chrono::milliseconds fresh_enough{1000};
};

/// The collector without its flags, for tests. A missing device is not an error, because its module
/// may be loaded later.
std::unique_ptr<Collector> make_amd_hsmp_collector(const CollectorContext& context,
                                                   const AmdHsmpOptions& options);

}  // namespace ceems::exporter

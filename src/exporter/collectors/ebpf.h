#pragma once

#include "exporter/sub_collector.h"

namespace ceems::exporter {

/// --collector.ebpf.* and --profiling.ebpf*: this version has neither eBPF metrics nor the
/// profiler. The flags are taken, with one warning for each that is given, so that the command line
/// of a site that comes from the reference starts.
SubCollectorSpec ebpf_sub_collector();

}  // namespace ceems::exporter

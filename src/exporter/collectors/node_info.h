#pragma once

#include <string>
#include <string_view>

#include "host/paths.h"
#include "metrics/desc.h"
#include "metrics/sink.h"

namespace ceems::exporter {

/// The family ceems_node_info. CPUs are looked up once, when it is created. Not thread-safe.
class NodeInfo {
 public:
  NodeInfo(std::string hostname, const host::Paths& paths);

  /// `gpu_model`: empty for a node without GPUs, or while they are not known.
  void add(std::string_view gpu_model, metrics::Sink& sink) const;

 private:
  std::string hostname_;
  std::string cpu_model_;
  std::string sockets_;
  metrics::Desc info_;
};

}  // namespace ceems::exporter

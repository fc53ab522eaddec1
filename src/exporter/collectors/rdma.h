#pragma once

#include <memory>
#include <string>
#include <vector>

#include "exporter/rdma/reader.h"
#include "exporter/sub_collector.h"
#include "os/command.h"

namespace ceems::exporter {

struct RdmaOptions {
  bool on = false;
  std::string command;      ///< --collector.rdma.cmd; empty: netlink, else rdma on the path
  std::string search_path;  ///< directories for commands, ":"-separated
};

/// RDMA objects and counters of each unit, and counters of ports, from the given reader. Null
/// reader: ports only. Everything is read by workers of its own.
std::unique_ptr<SubCollector> make_rdma(const CollectorContext& context,
                                        UnitSource& source,
                                        std::unique_ptr<rdma::Reader> reader);

/// Netlink in process where the machine itself is looked at, else the command; null, with a line in
/// the log, where neither is possible.
std::unique_ptr<rdma::Reader> choose_rdma_reader(const CollectorContext& context,
                                                 const RdmaOptions& options,
                                                 os::CommandRunner& runner);

}  // namespace ceems::exporter

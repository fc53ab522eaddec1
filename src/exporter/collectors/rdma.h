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
  std::string command;      ///< --collector.rdma.cmd; empty: netlink, or else rdma in search_path
  std::string search_path;  ///< directories for commands, ":"-separated
};

/// RDMA objects and counters of each unit from the given reader, and counters of ports. If the
/// reader is null, ports only. Separate threads read them.
std::unique_ptr<SubCollector> make_rdma(const CollectorContext& context,
                                        UnitSource& source,
                                        std::unique_ptr<rdma::Reader> reader);

/// Netlink if the machine itself is read, otherwise the command. Null, with a line in the log, if
/// neither is possible.
std::unique_ptr<rdma::Reader> choose_rdma_reader(const CollectorContext& context,
                                                 const RdmaOptions& options,
                                                 os::CommandRunner& runner);

}  // namespace ceems::exporter

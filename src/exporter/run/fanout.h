#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "exporter/run/job.h"

namespace ceems::exporter::run {

/// How agents are started on the other nodes of a job.
enum class Fanout { kNone, kSrun, kPbsdsh, kBlaunch, kSsh };

/// Parses --fanout. "auto" is srun in a job of SLURM with several nodes, or started from outside of
/// its nodes, and otherwise none.
Result<Fanout> choose_fanout(std::string_view text, const Job& job);

/// The commands that start `agent` (program and arguments) on the nodes. srun, pbsdsh and blaunch
/// also start it on this node, where it ends at once.
std::vector<std::vector<std::string>> fanout_commands(Fanout fanout,
                                                      const Job& job,
                                                      const std::vector<std::string>& agent);

}  // namespace ceems::exporter::run

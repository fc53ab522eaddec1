// Jobs on many GPUs whose slow members are known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "fleet/stragglers.h"

namespace ceems::bench::fleet {

/// What is wrong with a simulated job.
enum class Fault : std::uint8_t {
  kNone,
  kSlow5,      ///< one GPU is 5 % slower
  kSlow10,     ///< 10 %
  kSlow20,     ///< 20 %
  kHotRack,    ///< all GPUs of up to a quarter of the nodes get too hot
  kImbalance,  ///< one node has a quarter more work
  kWaits,      ///< one node gets less to do after a while
  kBadCable,   ///< the link of one node has errors, and all wait for it
  kMaster      ///< healthy: one node hands out the work and does little
};
std::string_view name_of(Fault fault);

struct SimulatedJob {
  std::vector<ceems::fleet::JobMember> members;
  std::vector<std::size_t> at_fault;  ///< in `members`
  std::optional<ceems::fleet::StragglerKind> kind;
  std::size_t from = 0;        ///< the window in which the fault begins
  std::vector<bool> computes;  ///< by window; false: the GPUs are hardly busy and not compared
};

/// A job of 4 to 64 nodes with four GPUs each over `windows` minutes. Half of the faults are there
/// from the start. The job waits in each step for its slowest GPU.
///
/// Healthy GPUs differ in their silicon: under the power limit, their clocks have a standard
/// deviation of up to 2 %, so that 95 % of them are within 8 %, as P. Sinha et al. found (SC22);
/// below it, the clocks are equal and the power differs by 3 %. A phase of a job is somewhere
/// between. One job in five lacks the activity of SMs, one in five the reasons of clocks, one value
/// in a hundred is missing, and a quarter of the slow GPUs give no reason.
SimulatedJob simulate_job(Fault fault, std::size_t windows, std::mt19937_64& random);

}  // namespace ceems::bench::fleet

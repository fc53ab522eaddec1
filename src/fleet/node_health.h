#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fleet/robust.h"

namespace ceems::fleet {

// Which nodes are sick. The evidence is what nodes drew in jobs, compared with the other nodes of
// the same jobs, jobs that failed there, and signs of broken hardware. Functions of numbers: the
// same input gives the same findings.

inline constexpr std::int64_t kShortestEffectMs = std::int64_t{10} * 60 * 1000;
/// Jobs of a node that its drift is judged by: the last ones, the fewest, and the fewest of its
/// first kEffectJobs ones that say what it drew before.
inline constexpr std::size_t kEffectJobs = 30;
inline constexpr std::size_t kLeastEffectJobs = 10;
inline constexpr std::size_t kLeastEarlierJobs = 20;
inline constexpr std::size_t kFailureJobs = 40;

/// A node's mean power in a job.
struct NodePower {
  std::string node = {}, node_class = {};
  double watts = 0;
};
struct PowerEffect {
  std::string node = {};
  double effect = 0;  ///< ln(power ÷ median power of the nodes of the class in this job)
};
/// The effects of the nodes of one exclusive job, in their order. Classes with fewer than
/// kLeastPeers nodes that drew power have none.
std::vector<PowerEffect> power_effects(std::span<const NodePower> nodes);

struct EffectOfJob {
  std::int64_t ended_ms = 0;
  std::string user = {};
  double effect = 0;
};

/// A job that ended on the node.
struct JobOnNode {
  std::int64_t ended_ms = 0;
  std::string user = {};
  /// It failed, and not because of what was run: the manager says that a node failed (NODE_FAIL),
  /// or the job's family succeeds on other nodes.
  bool unexplained = false;
};

/// Signs of broken hardware, counted over the last day.
enum class HardSign : std::uint8_t { kLostGpu, kEcc, kXid, kLink, kThrottle };
inline constexpr std::size_t kHardSigns = 5;
/// "lost_gpu", "ecc", "xid", "link", "throttle".
std::string_view name_of(HardSign sign);

/// The evidence about a node.
struct NodeHistory {
  std::string node = {}, node_class = {};
  std::vector<EffectOfJob> effects = {};  ///< in any order, as many as are kept
  std::vector<JobOnNode> jobs = {};       ///< in any order; the last kFailureJobs count
  /// Seconds of throttling; otherwise numbers of events.
  std::array<double, kHardSigns> signs = {};
};

/// What a node draws more or less than its peers: the median effect of its last kEffectJobs jobs.
struct NodeDrift {
  double effect = 0;
  std::optional<double> before = {};  ///< the median effect of its first jobs, if there are enough
  std::size_t n = 0, users = 0;
  double p = 1;  ///< of the sign test against what it drew before, or else against its peers
  std::int64_t first_ms = 0;  ///< end of the first job of the shift
};

/// Unexplained failures among the last jobs of a node.
struct NodeFailures {
  std::size_t jobs = 0, failed = 0, users = 0;
  double rate_of_class = 0;  ///< of the other nodes
  double p = 1;              ///< of so many or more at the rate of the class
  std::int64_t first_ms = 0;
};

/// A node that should be looked at.
struct SickNode {
  std::string node = {}, node_class = {};
  int score = 0;                                        ///< from kLeastScore to 100
  std::optional<NodeDrift> drift = {};                  ///< if it is found
  std::optional<NodeFailures> failures = {};            ///< if they are found
  std::vector<std::pair<HardSign, double>> signs = {};  ///< that there are, the hardest first
  /// A line to be typed by an administrator. Empty if the name of the node is not one that a
  /// shell and SLURM take as it is.
  std::string suggested = {};
};

/// A step that many nodes of a class took within a day, such as with a new firmware.
struct ClassStep {
  std::string node_class = {};
  std::int64_t first_ms = 0;
  double effect = 0;  ///< median
  std::vector<std::string> nodes = {};
};

struct FleetHealth {
  std::vector<SickNode> nodes = {};             ///< by score, then name
  std::vector<ClassStep> steps = {};            ///< by class
  std::vector<std::string> small_classes = {};  ///< without a judgement of power and failures
};

/// The least score of a finding. Throttling and link errors alone do not reach it.
inline constexpr int kLeastScore = 30;

/// Judges the nodes of one cluster.
///
/// Drift: in at least kLeastEffectJobs jobs of at least 3 users with p < 0.001, the effect is
/// - more than 0.05 beyond what it was before, and more than half of that in the same direction, or
/// - more than 0.05, with a modified z-score of more than 5 among the effects of its class, whose
///   nodes differ a little for ever.
/// If at least 3 nodes and a tenth of the class drift the same way from the same day on, it is a
/// step and no node is sick for it.
///
/// Failures: at least 3 jobs of at least 2 users; of each user 3 count at most. The binomial
/// probability of so many at the rate of the other nodes of the class is < 0.00003.
FleetHealth judge_nodes(std::span<const NodeHistory> nodes);

/// scontrol update nodename=NODE state=drain reason="…", or nothing for a name that is not plain.
std::string drain_line(std::string_view node, std::string_view reason);

}  // namespace ceems::fleet

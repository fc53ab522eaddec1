#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ingest/manager/slurm/job.h"

namespace ceems::ingest {

/// What the QOS and the associations of a cluster allow a single job, also those that limit several
/// jobs together. The lines are what sacctmgr(1) prints with --parsable2 and the formats below;
/// whatever does not parse counts as not known.
class AccountLimits {
 public:
  static constexpr std::string_view kQosFormat =
      "format=Name,Flags,MaxTRES,MaxTRESPerNode,MaxTRESMins,MaxWall,MaxTRESPU,MaxTRESPA,GrpTRES,"
      "MinTRES";
  /// To be asked for with WOPLimits, which leaves out what an association has from its parents.
  static constexpr std::string_view kAssociationFormat =
      "format=Account,User,Partition,ParentName,MaxTRES,MaxTRESPerNode,MaxTRESMins,MaxWall,GrpTRES";

  void add_qos_line(std::string_view line);
  void add_association_line(std::string_view line);

  [[nodiscard]] bool empty() const { return associations_.empty(); }
  /// Lowers partition_* of the job's details to what its QOS, that of its partition, if any, and
  /// its association allow. Call after PartitionLimits::set().
  void set(SlurmJob& job, const std::string& partition_qos) const;

 private:
  /// 0: no limit.
  struct Limits {
    Allocation job = {};
    Allocation node = {};
    Allocation minutes = {};  ///< each multiplied by the minutes of the job
    Allocation group = {};    ///< all jobs of the QOS, or of the association and those below
    Allocation people = {};   ///< all jobs of a user or account
    Allocation least = {};
    std::int64_t seconds = 0;
    /// Adds what is not limited yet: SLURM goes by the first limit that it finds.
    void add(const Limits& next);
  };
  struct Qos {
    Limits limits = {};
    bool over_partition_qos = false;
    bool over_partition_time = false;
  };
  struct Association {
    std::string parent;  ///< an account
    Limits limits = {};
  };

  [[nodiscard]] const Qos* qos_of(const std::string& name) const;
  /// The associations that concern a job, its own first.
  [[nodiscard]] std::vector<const Association*> chain_of(const SlurmJob& job) const;

  std::map<std::string, Qos, std::less<>> qos_;
  std::map<std::string, Association, std::less<>> associations_;  ///< by "account|user|partition"
};

}  // namespace ceems::ingest

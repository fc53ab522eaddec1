#pragma once

#include <array>
#include <string_view>

namespace ceems::advice {

/// How the lines are called that users of a manager type, in rule files and in front of a line.
struct Dialect {
  std::string_view manager = {};  ///< as units name their manager
  std::string_view key = {};      ///< the lines of a rule
  std::string_view was_key = {};  ///< what stood there before
  std::string_view prefix = {};   ///< before each line, as in a job script
};

/// Units of other managers get suggestions without lines: what runs below `local` was not asked for
/// in any line.
inline constexpr std::array<Dialect, 5> kDialects{{
    {.manager = "slurm", .key = "sbatch", .was_key = "was", .prefix = "#SBATCH "},
    {.manager = "lsf", .key = "bsub", .was_key = "bsub_was", .prefix = "#BSUB "},
    {.manager = "openpbs", .key = "pbs", .was_key = "pbs_was", .prefix = "#PBS "},
    {.manager = "k8s", .key = "requests", .was_key = "requests_was", .prefix = ""},
    {.manager = "openstack", .key = "openstack", .was_key = "openstack_was", .prefix = ""},
}};

}  // namespace ceems::advice

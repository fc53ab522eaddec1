#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ingest/manager/slurm/job.h"

namespace ceems::ingest {

/// A job of /slurmdb/v0.0.38 to v0.0.43. Numbers are plain or {"set", "infinite", "number"}; a
/// state is a string or a list.
struct RestJob {
  SlurmJob job;  ///< without uid, gid and the "by" of CANCELLED: answers have only names
  std::string cluster;
  std::string killed_by;  ///< the user who cancelled it
  bool waiting = false;   ///< whether it never had a node
};
Result<RestJob> parse_rest_job(std::string_view text);

struct RestAssociation {
  std::string account, user, cluster;
};
Result<RestAssociation> parse_rest_association(std::string_view text);

/// An element of "errors" or "warnings".
struct RestProblem {
  std::int64_t number = 0;
  std::string text;  ///< printable
};
RestProblem parse_rest_problem(std::string_view text);

/// An element of "accounts".
struct RestAccount {
  std::string name;
  std::vector<std::string> coordinators;
};
Result<RestAccount> parse_rest_account(std::string_view text);

}  // namespace ceems::ingest

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ingest/manager/slurm/job.h"

namespace ceems::ingest {

/// Cuts an answer of slurmrestd while it arrives: an object, most of whose members are long lists.
/// Holds one element at a time, of 4 MiB at most. Looks at brackets and quotes only; whether an
/// element is valid JSON is left to its parser.
class RestCutter {
 public:
  /// Gets each element of a member that is a list, and each other member whole. An error stops the
  /// cutter.
  using Take = std::function<Result<>(std::string_view member, std::string_view json)>;

  explicit RestCutter(Take take) : take_(std::move(take)) {}
  /// kParse, or the error of Take.
  Result<> add(std::string_view part);
  /// kParse when the object has not ended.
  [[nodiscard]] Result<> finish() const;
  [[nodiscard]] bool has_list(std::string_view member) const { return lists_.contains(member); }

 private:
  Result<> add_character(char c);
  Result<> open(char c);
  Result<> close(char c);
  Result<> end_element();
  Result<> keep(char c);
  [[nodiscard]] bool between_elements() const { return depth_ == 1 || (depth_ == 2 && in_list_); }

  Take take_;
  std::set<std::string, std::less<>> lists_;
  std::string member_;    ///< key of the member at hand
  bool has_key_ = false;  ///< the colon behind it has come
  bool in_list_ = false;  ///< the member is a list
  std::string text_;      ///< of the key or element so far
  int depth_ = 0;
  bool in_string_ = false;
  bool escaped_ = false;
  bool ended_ = false;
};

/// A job of /slurmdb/v0.0.38 to v0.0.43. Numbers come plain or as {"set", "infinite", "number"},
/// states as text or list.
struct RestJob {
  SlurmJob
      job;  ///< uid, gid and the "by" of CANCELLED are left to the caller: answers have names only
  std::string cluster;
  std::string killed_by;  ///< user who cancelled it
  bool waiting = false;   ///< never had a node
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

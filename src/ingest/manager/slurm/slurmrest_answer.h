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

/// Splits an answer of slurmrestd while it arrives. The answer is an object, most of whose members
/// are long lists. Holds one element at a time, of at most 4 MiB. Tracks only brackets and quotes;
/// whether an element is valid JSON is left to its parser.
class RestCutter {
 public:
  /// Called with each element of a member that is a list, and with each other member as a whole. An
  /// error stops the splitting.
  using Take = std::function<Result<>(std::string_view member, std::string_view json)>;

  explicit RestCutter(Take take) : take_(std::move(take)) {}
  /// kParse, or the error that Take returned.
  Result<> add(std::string_view part);
  /// kParse if the object is incomplete.
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
  std::string member_;    ///< key of the current member
  bool has_key_ = false;  ///< the colon after the key has been read
  bool in_list_ = false;  ///< the member is a list
  std::string text_;      ///< of the current key or element so far
  int depth_ = 0;
  bool in_string_ = false;
  bool escaped_ = false;
  bool ended_ = false;
};

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

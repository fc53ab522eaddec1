#pragma once

#include <map>
#include <set>
#include <string>

namespace ceems::model {

/// The names that accounts of one kind, users or projects, bear in one cluster.
struct NamesOfKind {
  /// By the id that the resource manager has for the account. Each name belongs to one id for good.
  std::map<std::string, std::string> by_id = {};
  /// Names of stored usage that no id has, because they were written before ids were kept. No
  /// account may get one of them.
  std::set<std::string> without_id = {};
};

struct AccountNames {
  NamesOfKind users = {}, projects = {};
};

}  // namespace ceems::model

#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

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
  /// Units that ended lately and whose owner is still a stand-in: uuid and start (epoch ms). Only
  /// read, never stored.
  std::set<std::pair<std::string, std::int64_t>> without_owner = {};
};

}  // namespace ceems::model

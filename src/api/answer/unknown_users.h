#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "access/policy.h"
#include "base/mutex.h"
#include "net/http.h"
#include "store/reader.h"

namespace ceems::api {

/// Says to people whose login no cluster knows why their lists are empty. Safe for concurrent use.
class UnknownUsers {
 public:
  explicit UnknownUsers(store::Reader& reader) : reader_(reader) {}

  /// Adds the member `warnings` to a good answer if the caller has no role but `user`, and no
  /// cluster has a user or a unit of that name. Logs each name once.
  void warn(const access::Identity& identity, net::Response& response);

 private:
  [[nodiscard]] bool is_unknown(const std::string& user);

  static constexpr std::size_t kMaxNames = 10'000;

  store::Reader& reader_;
  Mutex mutex_;
  std::set<std::string> known_ CEEMS_GUARDED_BY(mutex_);
  /// To the generation of the database at which it was unknown.
  std::map<std::string, std::uint64_t> unknown_ CEEMS_GUARDED_BY(mutex_);
  std::set<std::string> logged_ CEEMS_GUARDED_BY(mutex_);
};

}  // namespace ceems::api

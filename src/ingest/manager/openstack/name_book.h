#pragma once

#include <map>
#include <set>
#include <string>

#include "ingest/manager/openstack/json.h"
#include "model/account_names.h"

namespace ceems::ingest::openstack {

/// The names of users, or of projects, by their id in Keystone. Keystone may give a name again, and
/// two domains may have the same one; here a name, once given, belongs to its id for good. So no
/// user inherits the units of a namesake or loses their own. Not thread-safe.
class NameBook {
 public:
  /// Accounts of this domain have the name that they have in Keystone, all others are called
  /// NAME@DOMAIN_ID.
  explicit NameBook(std::string plain_domain) : plain_domain_(std::move(plain_domain)) {}

  /// Replaces all names by the database's.
  void restore(model::NamesOfKind stored);
  /// The fresh names have been stored.
  void stored() { fresh_.clear(); }

  /// Gives the account a name if it has none. If the name belongs to another id, "@ID" is appended.
  void give(const Named& account);
  [[nodiscard]] bool is_plain(const Named& account) const {
    return account.domain_id.empty() || account.domain_id == plain_domain_;
  }

  [[nodiscard]] bool contains(const std::string& id) const { return by_id_.contains(id); }
  /// Empty if the id has none.
  [[nodiscard]] std::string find(const std::string& id) const;
  /// Those that were given since the last restore() or stored().
  [[nodiscard]] const std::map<std::string, std::string>& fresh() const { return fresh_; }

 private:
  std::string plain_domain_;
  std::map<std::string, std::string> by_id_, fresh_;
  std::set<std::string> taken_;
};

}  // namespace ceems::ingest::openstack

#include "ingest/manager/openstack/name_book.h"

#include <utility>

#include "base/log.h"
#include "base/strings.h"

namespace ceems::ingest::openstack {

void NameBook::restore(model::NamesOfKind stored) {
  by_id_ = std::move(stored.by_id);
  taken_ = std::move(stored.without_id);
  for (const auto& [id, name] : by_id_) {
    taken_.insert(name);
  }
  fresh_.clear();
}

void NameBook::give(const Named& account) {
  if (by_id_.contains(account.id)) {
    return;
  }
  const std::string wanted =
      is_plain(account) ? account.name : account.name + "@" + account.domain_id;
  std::string name = wanted;
  while (!taken_.insert(name).second) {
    name += "@" + account.id;
  }
  if (name != wanted) {
    log::warn("the name of an account belongs to another id, so it gets another name",
              {{"name", printable(wanted)}, {"id", printable(account.id)}});
  }
  fresh_.emplace(account.id, name);
  by_id_.emplace(account.id, std::move(name));
}

std::string NameBook::find(const std::string& id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? std::string() : found->second;
}

}  // namespace ceems::ingest::openstack

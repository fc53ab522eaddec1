#include "access/lists.h"

#include "access/visible.h"

namespace ceems::access {
namespace {

// Support sees every column except names and the use over time, which NameRule withholds: series of
// others are not for support. Who adds a column decides here whether that still holds.
static_assert(store::kFactCount == 34, "may support see the new column?");

/// People write names, so support sees the names of only its own units and of units it leads.
store::NameRule seen_names(const Identity& identity) {
  if (sees_unit_field(identity.role, "name")) {
    return {.everybody = true};
  }
  return {.everybody = false, .user = identity.user, .led = identity.led};
}

}  // namespace

void list_everybodys(const Identity& identity,
                     const std::vector<std::string>& users,
                     store::FactFilter& filter) {
  filter.owners = chosen_rows(identity, users, {});
  filter.names = seen_names(identity);
}

void list_own(const Identity& identity, Part part, store::FactFilter& filter) {
  filter.owners = own_rows(identity, filter.projects, part);
  // All of these rows are the caller's own, of their service accounts or of projects they lead.
  filter.names = {.everybody = true};
}

void list_projects(const Identity& identity, Part part, store::FactFilter& filter) {
  filter.owners = {.everybody = true};
  filter.members = own_projects(identity, part);
  filter.names = {};
}

void list_statistics(store::FactFilter& filter) {
  filter.owners = {.everybody = true};
  filter.names = {.everybody = true};
}

}  // namespace ceems::access

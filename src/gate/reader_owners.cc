#include "gate/reader_owners.h"

#include <array>
#include <atomic>
#include <optional>
#include <utility>
#include <vector>

#include "base/log.h"
#include "store/fields.h"

namespace ceems::gate {
namespace {

class ReaderOwners final : public Owners {
 public:
  explicit ReaderOwners(store::Reader& reader) : reader_(&reader) {}

  Result<bool> is_admin(const std::string& user) override { return reader_->is_admin(user); }

  Result<bool> may_see(const std::string& user,
                       const std::string& cluster,
                       const UnitSet& units) override {
    if (user.empty() || units.empty()) {
      return false;
    }
    const auto count = reader_->count_member_units(scope_of(user), {cluster},
                                                   std::vector(units.begin(), units.end()));
    if (!count) {
      return fail(Error(count.error()));
    }
    return *count == units.size();
  }

  Result<UnitSet> units_of(const std::string& user,
                           const std::string& cluster,
                           std::size_t most) override {
    const auto uuid = store::find_field(store::unit_fields(), "uuid");
    if (!uuid) {
      return fail(ErrorCode::kInternal, "units without ids");
    }
    store::UnitQuery query;
    query.owners = scope_of(user);
    query.clusters = {cluster};
    const std::array fields = {*uuid};
    auto rows = reader_->units(query, fields);
    if (!rows) {
      return fail(std::move(rows).error());
    }
    UnitSet units;
    while (units.size() <= most) {
      const auto more = (*rows)->next();
      if (!more) {
        return fail(Error(more.error()));
      }
      if (!*more) {
        break;
      }
      units.emplace((*rows)->text(0));
    }
    return units;
  }

  Result<SharedIds> shared_ids(const std::string& user,
                               const std::string& cluster,
                               const UnitSet& units) override {
    auto lives =
        reader_->unit_lives(scope_of(user), cluster, std::vector(units.begin(), units.end()));
    if (!lives) {
      return fail(std::move(lives).error());
    }
    return shared_ids_among(std::move(*lives));
  }

 private:
  /// What the user is a member of or leads, as the API server has it (access::own_projects). A data
  /// base of CEEMS 0.10.2 has no table of leads: then nobody leads anything.
  store::Scope scope_of(const std::string& user) {
    store::Scope scope{.names = {user}};
    auto led = reader_->led_projects(user);
    if (led) {
      scope.led_projects = std::move(*led);
    }
    if (knows_leads_.exchange(led.has_value()) && !led) {
      log::warn("cannot read who leads projects, so nobody does", {{"err", led.error().message}});
    }
    return scope;
  }

  std::atomic<bool> knows_leads_ = true;
  store::Reader* reader_;
};

}  // namespace

std::unique_ptr<Owners> reader_owners(store::Reader& reader) {
  return std::make_unique<ReaderOwners>(reader);
}

}  // namespace ceems::gate

#include "gate/reader_owners.h"

#include <array>
#include <optional>
#include <utility>
#include <vector>

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
    const auto count = reader_->count_member_units({.names = {user}}, {cluster},
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
    query.owners.names = {user};
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
        reader_->unit_lives({.names = {user}}, cluster, std::vector(units.begin(), units.end()));
    if (!lives) {
      return fail(std::move(lives).error());
    }
    return shared_ids_among(std::move(*lives));
  }

 private:
  store::Reader* reader_;
};

}  // namespace

std::unique_ptr<Owners> reader_owners(store::Reader& reader) {
  return std::make_unique<ReaderOwners>(reader);
}

}  // namespace ceems::gate

#include "access/visible.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

namespace ceems::access {
namespace {

/// Measurements, times and names that come from the resource manager. Not listed: `name` and `tags`
/// (working directory, annotations, metadata), which people write.
constexpr std::array<std::string_view, 32> kShownToSupport = {
    "cluster_id",
    "resource_manager",
    "uuid",
    "project",
    "groupname",
    "username",
    "created_at",
    "started_at",
    "ended_at",
    "created_at_ts",
    "started_at_ts",
    "ended_at_ts",
    "elapsed",
    "state",
    "allocation",
    "total_time_seconds",
    "avg_cpu_usage",
    "avg_cpu_mem_usage",
    "total_cpu_energy_usage_kwh",
    "total_cpu_emissions_gms",
    "avg_gpu_usage",
    "avg_gpu_mem_usage",
    "total_gpu_energy_usage_kwh",
    "total_gpu_emissions_gms",
    "total_io_write_stats",
    "total_io_read_stats",
    "total_ingress_stats",
    "total_egress_stats",
    "total_custom_stats",
    "avg_custom_stats",
    "min_custom_stats",
    "max_custom_stats",
};

/// Rows of units. Some columns are empty if the row belongs to somebody else.
class WithheldCursor final : public store::Cursor {
 public:
  struct OwnerColumns {
    std::size_t user = 0, cluster = 0, project = 0;
  };

  WithheldCursor(std::unique_ptr<store::Cursor> rows,
                 Identity identity,
                 std::vector<bool> withheld,
                 OwnerColumns owner)
      : rows_(std::move(rows)),
        identity_(std::move(identity)),
        withheld_(std::move(withheld)),
        owner_(owner) {}

  Result<bool> next() override {
    own_ = false;
    auto row = rows_->next();
    if (row && *row) {
      own_ = is_own();
    }
    return row;
  }
  [[nodiscard]] std::string_view text(std::size_t column) const override {
    return shows(column) ? rows_->text(column) : std::string_view();
  }
  [[nodiscard]] std::int64_t integer(std::size_t column) const override {
    return shows(column) ? rows_->integer(column) : 0;
  }

 private:
  [[nodiscard]] bool shows(std::size_t column) const {
    return own_ || (column < withheld_.size() && !withheld_[column]);
  }
  [[nodiscard]] bool is_own() const {
    return (!identity_.user.empty() && rows_->text(owner_.user) == identity_.user) ||
           leads(identity_, rows_->text(owner_.cluster), rows_->text(owner_.project));
  }

  std::unique_ptr<store::Cursor> rows_;
  Identity identity_;
  std::vector<bool> withheld_;
  OwnerColumns owner_;
  bool own_ = false;
};

/// The index of the field in `columns`, where it is added if it is missing.
std::optional<std::size_t> column_of(std::string_view name, std::vector<std::size_t>& columns) {
  const auto field = store::find_field(store::unit_fields(), name);
  if (!field) {
    return std::nullopt;
  }
  const auto found = std::ranges::find(columns, *field);
  if (found != columns.end()) {
    return static_cast<std::size_t>(found - columns.begin());
  }
  columns.push_back(*field);
  return columns.size() - 1;
}

}  // namespace

bool sees_unit_field(Role role, std::string_view field) {
  if (role == Role::kAdmin) {
    return true;
  }
  return role == Role::kSupport &&
         std::ranges::find(kShownToSupport, field) != kShownToSupport.end();
}

Result<std::unique_ptr<store::Cursor>> read_units(store::Reader& reader,
                                                  const Identity& identity,
                                                  const store::UnitQuery& query,
                                                  store::FieldList fields) {
  if (identity.role == Role::kNobody) {
    return fail(ErrorCode::kPermissionDenied, "a caller without identity may not read units");
  }
  const auto all = store::unit_fields();
  std::vector<bool> withheld;
  withheld.reserve(fields.size());
  for (const std::size_t field : fields) {
    withheld.push_back(field >= all.size() || !sees_unit_field(identity.role, all[field].name));
  }
  // A scope without `everybody` contains only the rows of the caller, of their service accounts and
  // of projects they lead. Only support and admins get other rows, from chosen_rows().
  const bool only_own = identity.role == Role::kUser || identity.role == Role::kProjectLead;
  if (only_own || std::ranges::find(withheld, true) == withheld.end()) {
    return reader.units(query, fields);
  }
  std::vector<std::size_t> columns(fields.begin(), fields.end());
  const auto user = column_of("username", columns);
  const auto cluster = column_of("cluster_id", columns);
  const auto project = column_of("project", columns);
  if (!user || !cluster || !project) {
    return fail(ErrorCode::kInternal, "units have no columns for their owner");
  }
  CEEMS_TRY(rows, reader.units(query, columns));
  return std::make_unique<WithheldCursor>(
      std::move(rows), identity, std::move(withheld),
      WithheldCursor::OwnerColumns{.user = *user, .cluster = *cluster, .project = *project});
}

}  // namespace ceems::access

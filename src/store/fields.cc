#include "store/fields.h"

#include <algorithm>
#include <array>

#include "store/schema/tables.h"

namespace ceems::store {
namespace {

/// The fields of a table, made by the compiler.
template <const Table& kTable>
constexpr auto kFieldsOf = [] {
  std::array<Field, answer_fields(kTable).size()> fields{};
  std::ranges::copy(answer_fields(kTable), fields.begin());
  return fields;
}();

/// Where the columns of a key stand in answers.
template <std::size_t kSize>
constexpr auto places_of(std::span<const Field> fields,
                         const std::array<std::string_view, kSize>& key) {
  std::array<std::size_t, kSize> places{};
  for (std::size_t i = 0; i < kSize; ++i) {
    const auto found = std::ranges::find(fields, key.at(i), &Field::name);
    places.at(i) = static_cast<std::size_t>(found - fields.begin());
  }
  return places;
}

constexpr auto kUnitKeyFields = places_of(kFieldsOf<kUnits>, tables::kUnitKey);
constexpr auto kUsageKeyFields = places_of(kFieldsOf<kUsage>, tables::kUsageKey);
static_assert(kFieldsOf<kUsage>[kUsageTimes].name == kMapColumns.front().name);
static_assert(kFieldsOf<kUsage>.size() == kUsageTimes + kMapColumns.size());

// Fields that several kinds of rows share.
constexpr Field text(std::string_view name,
                     std::string_view help,
                     std::string_view example,
                     bool omit_empty = false) {
  return {name, name, FieldKind::kText, omit_empty, 0, help, example};
}
constexpr Field integer(std::string_view name, std::string_view help, std::string_view example) {
  return {name, name, FieldKind::kInteger, false, 0, help, example};
}
constexpr Field list(std::string_view name,
                     std::string_view help,
                     std::string_view example,
                     bool omit_empty = true) {
  return {name, name, FieldKind::kList, omit_empty, 0, help, example};
}

constexpr Field kCluster = text("cluster_id", tables::kClusterHelp, R"("hpc-a")");
constexpr Field kManager = text("resource_manager", tables::kManagerHelp, R"("slurm")");
constexpr Field kUid = text("uid", "Id that the manager uses.", R"("1007")", true);
constexpr Field kName = text("name", tables::kNameHelp, R"("fluids")");
constexpr Field kTags = list("tags", tables::kTagsHelp, R"(["ceems"])");
constexpr Field kUnitCount = integer("num_units", tables::kUnitCountHelp, "9");

constexpr std::array kUserFields = {
    kUid,
    kCluster,
    text("resource_manager", tables::kManagerHelp, R"("slurm")", true),
    kName,
    list("projects", "Projects that have the user as a member.", R"(["fluids","optics"])"),
    kTags,
};

constexpr std::array kProjectFields = {
    kUid,
    kCluster,
    kManager,
    kName,
    list("users", "Members of the project.", R"(["ada","lin"])", false),
    kTags,
};

constexpr std::array kClusterFields = {
    Field{"id", "cluster_id", FieldKind::kText, false, 0, tables::kClusterHelp, R"("hpc-a")"},
    Field{"manager", "resource_manager", FieldKind::kText, false, 0, "Kind of the cluster.",
          R"("slurm")"},
};

constexpr std::array kStatFields = {
    kCluster,
    kManager,
    kUnitCount,
    integer("num_inactive_units", "Units that have ended.", "7"),
    integer("num_active_units", "Units that have not ended.", "2"),
    integer("num_projects", "Projects with units.", "2"),
    integer("num_users", "Users with units.", "3"),
};

}  // namespace

std::span<const Field> unit_fields() {
  return kFieldsOf<kUnits>;
}
std::span<const Field> usage_fields() {
  return kFieldsOf<kUsage>;
}
std::span<const Field> user_fields() {
  return kUserFields;
}
std::span<const Field> project_fields() {
  return kProjectFields;
}
std::span<const Field> cluster_fields() {
  return kClusterFields;
}
std::span<const Field> stat_fields() {
  return kStatFields;
}

std::span<const std::size_t> unit_key_fields() {
  return kUnitKeyFields;
}
std::span<const std::size_t> usage_key_fields() {
  return kUsageKeyFields;
}

std::optional<std::size_t> find_field(std::span<const Field> fields, std::string_view name) {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].name == name) {
      return i;
    }
  }
  return std::nullopt;
}

}  // namespace ceems::store

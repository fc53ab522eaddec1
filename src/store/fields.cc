#include "store/fields.h"

#include <array>

namespace ceems::store {
namespace {

constexpr Field text(std::string_view name, bool omit_empty = true) {
  return {name, name, FieldKind::kText, omit_empty};
}
constexpr Field integer(std::string_view name, bool omit_empty = true) {
  return {name, name, FieldKind::kInteger, omit_empty};
}
constexpr Field metrics(std::string_view name) {
  return {name, name, FieldKind::kMetrics, true};
}
constexpr Field list(std::string_view name, bool omit_empty = true) {
  return {name, name, FieldKind::kList, omit_empty};
}

constexpr std::array kUnitFields = {
    text("cluster_id"),
    text("resource_manager"),
    text("uuid", false),
    text("name"),
    text("project"),
    text("groupname"),
    text("username"),
    text("created_at"),
    text("started_at"),
    text("ended_at"),
    integer("created_at_ts"),
    integer("started_at_ts"),
    integer("ended_at_ts"),
    text("elapsed"),
    text("state"),
    Field{"allocation", "allocation", FieldKind::kObject, true},
    metrics("total_time_seconds"),
    metrics("avg_cpu_usage"),
    metrics("avg_cpu_mem_usage"),
    metrics("total_cpu_energy_usage_kwh"),
    metrics("total_cpu_emissions_gms"),
    metrics("avg_gpu_usage"),
    metrics("avg_gpu_mem_usage"),
    metrics("total_gpu_energy_usage_kwh"),
    metrics("total_gpu_emissions_gms"),
    metrics("total_io_write_stats"),
    metrics("total_io_read_stats"),
    metrics("total_ingress_stats"),
    metrics("total_egress_stats"),
    Field{"tags", "tags", FieldKind::kObject, true},
};

constexpr std::array kUsageFields = {
    text("cluster_id", false),          text("resource_manager", false),
    integer("num_units", false),        text("project", false),
    text("groupname", false),           text("username", false),
    metrics("total_time_seconds"),      metrics("avg_cpu_usage"),
    metrics("avg_cpu_mem_usage"),       metrics("total_cpu_energy_usage_kwh"),
    metrics("total_cpu_emissions_gms"), metrics("avg_gpu_usage"),
    metrics("avg_gpu_mem_usage"),       metrics("total_gpu_energy_usage_kwh"),
    metrics("total_gpu_emissions_gms"), metrics("total_io_write_stats"),
    metrics("total_io_read_stats"),     metrics("total_ingress_stats"),
    metrics("total_egress_stats"),
};
static_assert(kUsageFields[kUsageTimes].name == "total_time_seconds");

constexpr std::array kUserFields = {
    text("uid"),         text("cluster_id", false), text("resource_manager"),
    text("name", false), list("projects"),          list("tags"),
};

constexpr std::array kProjectFields = {
    text("uid"),         text("cluster_id", false), text("resource_manager", false),
    text("name", false), list("users", false),      list("tags"),
};

constexpr std::array kClusterFields = {
    Field{"id", "cluster_id", FieldKind::kText, false},
    Field{"manager", "resource_manager", FieldKind::kText, false},
};

constexpr std::array kStatFields = {
    text("cluster_id", false),          text("resource_manager", false),
    integer("num_units", false),        integer("num_inactive_units", false),
    integer("num_active_units", false), integer("num_projects", false),
    integer("num_users", false),
};

}  // namespace

std::span<const Field> unit_fields() {
  return kUnitFields;
}
std::span<const Field> usage_fields() {
  return kUsageFields;
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

std::optional<std::size_t> find_field(std::span<const Field> fields, std::string_view name) {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].name == name) {
      return i;
    }
  }
  return std::nullopt;
}

}  // namespace ceems::store

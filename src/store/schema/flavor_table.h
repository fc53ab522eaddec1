#pragma once

#include <string>
#include <string_view>

#include "model/flavor.h"
#include "store/schema/dialect.h"

namespace ceems::store {

/// The table ceems_flavors (model/flavor.h).
std::string create_flavor_table(Dialect dialect);

/// All columns but the cluster.
inline constexpr std::string_view kFlavorColumns =
    "region,id,name,vcpus,ram_mib,disk_gb,ephemeral_gb,swap_mb,extra_specs,offered";

/// A row of these columns.
template <typename Row>
model::Flavor flavor_of(const Row& row) {
  return {.region = std::string(row.text(0)),
          .id = std::string(row.text(1)),
          .name = std::string(row.text(2)),
          .vcpus = row.integer(3),
          .ram_mib = row.integer(4),
          .disk_gb = row.integer(5),
          .ephemeral_gb = row.integer(6),
          .swap_mb = row.integer(7),
          .extra_specs = std::string(row.text(8)),
          .offered = row.integer(9) != 0};
}

}  // namespace ceems::store

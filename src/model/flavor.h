#pragma once

#include <cstdint>
#include <string>

namespace ceems::model {

/// A size in which a cloud makes VMs, as its manager lists it. Texts come from the cloud and are
/// untrusted.
struct Flavor {
  std::string region = {};  ///< empty if the cluster has only one
  std::string id = {}, name = {};
  std::int64_t vcpus = 0, ram_mib = 0;
  std::int64_t disk_gb = 0;  ///< 0: as large as the image
  std::int64_t ephemeral_gb = 0, swap_mb = 0;
  std::string extra_specs = {};  ///< a JSON object of texts, its names sorted
  bool offered = false;          ///< everybody may use it, and it is not disabled

  bool operator==(const Flavor&) const = default;
};

}  // namespace ceems::model

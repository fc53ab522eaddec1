#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace ceems::api {

/// A cluster that an answer lacks: the schema MissingClusters in data/openapi.json.
struct MissingCluster {
  std::string cluster_id;
  std::string_view reason;  ///< "no_tsdb" or "unavailable"
};

/// Appends the member "missing".
inline void append_missing(JsonWriter& json, const std::vector<MissingCluster>& missing) {
  json.key("missing").begin_array();
  for (const MissingCluster& one : missing) {
    json.begin_object().member("cluster_id", one.cluster_id).member("reason", one.reason);
    json.end_object();
  }
  json.end_array();
}

}  // namespace ceems::api
